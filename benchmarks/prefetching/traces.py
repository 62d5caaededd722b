"""Sessions with a clock, as requests in time order."""

from __future__ import annotations

import json
import os
import random
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

DATA = Path(os.environ.get("SEMCACHE_BENCH_DATA", Path(__file__).parents[3] / "shared" / "data"))
GAP = 1800.0  # seconds
BETWEEN_SESSIONS = 180.0  # mean seconds, where the data has no clock
TOKENS = 200  # of a request, where the data says nothing


@dataclass(frozen=True, slots=True)
class Request:
    """at: seconds from the start; node: what is asked, numbered from 0; session: who asks; tokens: what it costs."""

    at: float
    node: int
    session: str
    tokens: int


@dataclass(frozen=True)
class Trace:
    name: str
    requests: list[Request]
    nodes: int


def traces() -> list[Trace]:
    """The three sets of sessions. Two have no clock: sessions begin at random (Poisson), and the pauses between turns
    are drawn from those of real support conversations."""
    return [
        _numbered("multiwoz", _with_clock("sessions_multiwoz", lambda row: "+".join(sorted(set(row["acts"]))))),
        _numbered(
            "sgd",
            _with_clock("sessions_sgd", lambda row: f"{row['service']} {row['intent']} {sorted(set(row['acts']))}"),
        ),
        _numbered("weblog", _weblog()),
    ]


def _weblog() -> Iterator[tuple[float, str, str, int]]:
    for row in _rows("trace_weblog_semicomplete"):
        if not row["asset"] and not row["bot"]:
            yield row["t"], row["text"], row["session"], max(1, row["bytes"] // 4)


def _with_clock(name: str, kind: Any) -> Iterator[tuple[float, str, str, int]]:
    draw, pauses = random.Random(1), _pauses()
    sessions: dict[str, list[str]] = defaultdict(list)
    for row in _rows(name):
        sessions[row["session"]].append(kind(row))
    begin = 0.0
    for session in draw.sample(sorted(sessions), len(sessions)):
        begin += draw.expovariate(1 / BETWEEN_SESSIONS)
        at = begin
        for said in sessions[session]:
            yield at, said, session, TOKENS
            at += draw.choice(pauses)


def _pauses() -> list[float]:
    """Seconds between two turns of a user in one sitting."""
    turns: dict[str, list[float]] = defaultdict(list)
    for row in _rows("trace_support_timing"):
        if row["role"] == "user":
            turns[row["session"]].append(row["t"])
    pauses = [later - earlier for times in turns.values() for earlier, later in pairwise(times)]
    return [pause for pause in pauses if pause <= GAP]


def _numbered(name: str, rows: Iterator[tuple[float, str, str, int]]) -> Trace:
    numbers: dict[str, int] = {}
    requests = [
        Request(at, numbers.setdefault(said, len(numbers)), session, tokens)
        for at, said, session, tokens in sorted(rows, key=lambda row: (row[0], row[2]))
    ]
    return Trace(name, requests, len(numbers))


def _rows(name: str) -> Iterator[dict[str, Any]]:
    with (DATA / f"{name}.jsonl").open() as lines:
        yield from map(json.loads, lines)


__all__ = ["GAP", "Request", "Trace", "traces"]
