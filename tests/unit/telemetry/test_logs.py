"""Logs as JSON."""

from __future__ import annotations

import json
import logging

from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from service.settings import Settings
from service.telemetry.logs import JsonFormatter, request_id
from service.telemetry.tracing import configure_tracing, span, trace_ids


def record(message: str, *values: object, **more: object) -> logging.LogRecord:
    made = logging.LogRecord("semcache.proxy", logging.WARNING, __file__, 1, message, values, None)
    made.__dict__.update(more)
    return made


def shown(made: logging.LogRecord) -> dict[str, str]:
    line = JsonFormatter().format(made)
    assert "\n" not in line
    return dict(json.loads(line))


def test_a_line_is_one_object() -> None:
    told = shown(record("the answer took\n%s s", 3, created=1_900_000_000.5))
    assert told == {
        "time": "2030-03-17T17:46:40.500+00:00",
        "level": "warning",
        "logger": "semcache.proxy",
        "message": "the answer took\n3 s",
    }


def test_a_request_and_its_trace_are_named() -> None:
    configure_tracing(Settings(traces=True), InMemorySpanExporter())
    token = request_id.set("r-1")
    try:
        with span("work"):
            ids = trace_ids()
            told = shown(record("done"))
    finally:
        request_id.reset(token)
        configure_tracing(Settings())
    assert ids is not None
    assert (told["request_id"], told["trace_id"], told["span_id"]) == ("r-1", *ids)
    assert trace_ids() is None


def test_a_traceback_is_part_of_the_line() -> None:
    try:
        raise ValueError("broken")
    except ValueError as error:
        told = shown(record("failed", exc_info=(ValueError, error, error.__traceback__)))
    assert told["error"].endswith("ValueError: broken")
