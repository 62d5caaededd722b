"""Logging of a process: lines on standard error, ours at the level of the settings, others' from warnings on."""

from __future__ import annotations

import logging


def configure_logging(level: str) -> None:
    logging.basicConfig(level=logging.WARNING, format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    logging.getLogger("semcache").setLevel(level.upper())
    logging.getLogger("psycopg.pool").setLevel(logging.ERROR)  # the door tells of the database itself


__all__ = ["configure_logging"]
