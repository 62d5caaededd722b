"""Spans by OpenTelemetry's SDK, of the extra `otel`, sent by OTLP to where the OTEL_ variables say."""

from __future__ import annotations

import os
from contextlib import AbstractContextManager
from typing import Any

from opentelemetry import trace
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SimpleSpanProcessor, SpanExporter
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from service.resources import version
from service.telemetry import tracing

CONTEXT = (b"traceparent", b"tracestate")
_propagator = TraceContextTextMapPropagator()


class Recorded(tracing.Span):
    """A span of OpenTelemetry's."""

    def __init__(self, span: trace.Span) -> None:
        self._span = span

    def set(self, attributes: tracing.Attributes) -> None:
        self._span.set_attributes(_given(attributes))

    def rename(self, name: str) -> None:
        self._span.update_name(name)

    def fail(self, kind: str) -> None:
        self._span.set_attribute("error.type", kind)
        self._span.set_status(trace.StatusCode.ERROR)

    def end(self) -> None:
        if self._span.is_recording():
            self._span.end()

    def active(self) -> AbstractContextManager[object]:
        return trace.use_span(self._span, record_exception=False, set_status_on_exception=False)


class OpenTelemetry:
    """A provider of its own. Spans that wait are sent when the process ends."""

    def __init__(self, exporter: SpanExporter | None = None) -> None:
        name = os.environ.get("OTEL_SERVICE_NAME", "pgsemcache")
        resource = Resource.create({"service.name": name, "service.version": version()})
        self._provider = TracerProvider(resource=resource)
        processor = SimpleSpanProcessor(exporter) if exporter else BatchSpanProcessor(OTLPSpanExporter())
        self._provider.add_span_processor(processor)
        self._tracer = self._provider.get_tracer("semcache", version())

    def begin(
        self, name: str, attributes: tracing.Attributes, kind: tracing.Kind, caller: tracing.Headers | None
    ) -> Recorded:
        carrier = {key.decode(): value.decode("latin-1") for key, value in caller or () if key in CONTEXT}
        context = _propagator.extract(carrier) if carrier else None
        span = self._tracer.start_span(name, context, trace.SpanKind[kind], _given(attributes))
        return Recorded(span)

    def current(self) -> Recorded:
        return Recorded(trace.get_current_span())

    def passed_on(self, headers: tracing.Headers) -> tracing.Headers:
        carrier: dict[str, str] = {}
        _propagator.inject(carrier)
        ours = [(name.encode(), value.encode("latin-1")) for name, value in carrier.items()]
        return [pair for pair in headers if pair[0] not in CONTEXT] + ours if ours else headers

    def ids(self) -> tuple[str, str] | None:
        context = trace.get_current_span().get_span_context()
        return (f"{context.trace_id:032x}", f"{context.span_id:016x}") if context.is_valid else None


def _given(attributes: tracing.Attributes) -> dict[str, Any]:
    return {name: value for name, value in attributes.items() if value is not None}


__all__ = ["OpenTelemetry"]
