"""Logging of a process: lines on standard error, ours at the level of the settings, others' from warnings on.

Of a request its id is logged, never its text.
"""

from __future__ import annotations

import json
import logging
from contextvars import ContextVar
from datetime import UTC, datetime

from service.settings import Settings
from service.telemetry.tracing import trace_ids

request_id: ContextVar[str | None] = ContextVar("request_id", default=None)
TEXT = "%(asctime)s %(levelname)s %(name)s: %(message)s"


class JsonFormatter(logging.Formatter):
    """One JSON object a line: time, level, logger, message; where known request_id, trace_id, span_id, error."""

    def format(self, record: logging.LogRecord) -> str:
        line = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        if (request := request_id.get()) is not None:
            line["request_id"] = request
        if (ids := trace_ids()) is not None:
            line["trace_id"], line["span_id"] = ids
        if record.exc_info:
            line["error"] = self.formatException(record.exc_info)
        return json.dumps(line, ensure_ascii=False)


def configure_logging(settings: Settings) -> None:
    logging.basicConfig(level=logging.WARNING, format=TEXT)
    if settings.log_format == "json":
        for handler in logging.getLogger().handlers:
            handler.setFormatter(JsonFormatter())
    logging.getLogger("semcache").setLevel(settings.log_level.upper())
    logging.getLogger("psycopg.pool").setLevel(logging.ERROR)  # the door tells of the database itself


__all__ = ["JsonFormatter", "configure_logging", "request_id"]
