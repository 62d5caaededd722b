"""Spans of what is done, or nothing at all: until `configure_tracing`, all here costs a comparison.

Names follow OpenTelemetry's conventions where there are any (HTTP, GenAI); ours begin with `semcache.`. No prompt is in
a span unless SEMCACHE_TRACE_PROMPTS is on.
"""

from __future__ import annotations

import time
from collections.abc import Generator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal

from service.errors import Code, SemcacheError
from service.settings import Settings

if TYPE_CHECKING:
    from service.telemetry.otel import OpenTelemetry

Attributes = Mapping[str, Any]
Headers = list[tuple[bytes, bytes]]
Kind = Literal["INTERNAL", "SERVER", "CLIENT"]


class Span:
    """A span that nobody records."""

    def set(self, attributes: Attributes) -> None:
        """Attributes by name; None is left out."""

    def rename(self, name: str) -> None: ...

    def fail(self, kind: str) -> None:
        """It ends badly; kind: of a closed set."""

    def end(self) -> None:
        """Idempotent."""

    def active(self) -> AbstractContextManager[object]:
        """Spans that begin meanwhile are below this one."""
        return nullcontext()


_backend: OpenTelemetry | None = None
_nobody = Span()
_nothing = nullcontext(_nobody)


def configure_tracing(settings: Settings, exporter: Any = None) -> None:
    """Record spans from here on, where the settings say so. `exporter` in place of OTLP's is for tests.

    Raises: SemcacheError naming the extra that is missing.
    """
    global _backend  # noqa: PLW0603 - one for the process, as logging is
    _backend = None
    if settings.traces:
        try:
            from service.telemetry.otel import OpenTelemetry  # noqa: PLC0415 - an extra
        except ImportError as error:
            detail = "SEMCACHE_TRACES needs the extra: pip install 'pgsemcache[otel]'"
            raise SemcacheError(Code.INTERNAL, detail) from error
        _backend = OpenTelemetry(exporter)


def begin(name: str, attributes: Attributes, *, kind: Kind = "INTERNAL", caller: Headers | None = None) -> Span:
    """A span that somebody ends. caller: headers of a request, which may name the trace that it belongs to."""
    return _nobody if _backend is None else _backend.begin(name, attributes, kind, caller)


def span(name: str) -> AbstractContextManager[Span]:
    """A span as long as its `with`."""
    return _nothing if _backend is None else _spanning(name)


@contextmanager
def _spanning(name: str) -> Generator[Span]:
    begun = begin(name, {})
    try:
        with begun.active():
            yield begun
    except Exception as error:
        begun.fail(error.code.slug if isinstance(error, SemcacheError) else type(error).__name__)
        raise
    finally:
        begun.end()


class Stage:
    """A span as long as its `with`, whose milliseconds go into `stages` under its name."""

    __slots__ = ("_begun", "_name", "_span", "_stages")

    def __init__(self, name: str, stages: dict[str, float]) -> None:
        self._name, self._stages, self._span = name, stages, span(name)

    def __enter__(self) -> None:
        self._begun = time.perf_counter()
        self._span.__enter__()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._span.__exit__(kind, error, trace)
        self._stages[self._name] = round((time.perf_counter() - self._begun) * 1000, 3)


def current() -> Span:
    """The span that this work is part of."""
    return _nobody if _backend is None else _backend.current()


def passed_on(headers: Headers) -> Headers:
    """Headers for the next hop: with our own place in the trace (W3C Trace Context), else as they came."""
    return headers if _backend is None else _backend.passed_on(headers)


def trace_ids() -> tuple[str, str] | None:
    """The trace and the span of this work, in hex, for logs."""
    return None if _backend is None else _backend.ids()


__all__ = ["Span", "Stage", "begin", "configure_tracing", "current", "passed_on", "span", "trace_ids"]
