"""Labelled pairs of texts from a file, as requests that policies can be compared on."""

from __future__ import annotations

import csv
import hashlib
import json
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from service.embed.embedder import open_embedder
from service.embed.vectors import Vector
from service.errors import Code, SemcacheError
from service.identity.conversation import semantic_text
from service.policy.decision import Candidate, Query
from service.policy.guards.checks import Outcome, Verdict
from service.policy.guards.features import extract
from service.policy.signals import Frequencies, Seen, see
from service.policy.tradeoff import Labelled, Near, Sample
from service.settings import Settings

_SAME = {"1": True, "true": True, "0": False, "false": False}


@dataclass(frozen=True, slots=True)
class Pair:
    """Two texts. same: whether one answer serves both; group: what is right or wrong together."""

    stored: str
    asked: str
    same: bool
    group: str


def read_pairs(path: Path) -> list[Pair]:
    """The pairs of a JSONL or CSV file with `a` (stored), `b` (asked), `same` (1 or 0) and, if it likes, `group`.

    Raises: SemcacheError(INVALID_DATA), naming the line and the rule.
    """
    try:
        with path.open(encoding="utf-8-sig", newline="") as lines:
            rows = csv.DictReader(lines) if path.suffix == ".csv" else _json_rows(lines)
            return [_pair(number, row) for number, row in enumerate(rows, 1)]
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise _unreadable(f"{path}: {error}") from None


def _json_rows(lines: Iterable[str]) -> Iterator[Any]:
    for number, line in enumerate(lines, 1):
        try:
            yield json.loads(line)
        except ValueError:
            raise _unreadable(f"line {number} is not JSON") from None


def _pair(number: int, row: Any) -> Pair:
    texts = [row.get(name) for name in ("a", "b")] if isinstance(row, dict) else []
    stored, asked = (semantic_text(text) if isinstance(text, str) else None for text in texts or (None, None))
    same = _SAME.get(str(row.get("same")).lower()) if isinstance(row, dict) else None
    if stored is None or asked is None or same is None:
        raise _unreadable(f"row {number}: it must have the texts a and b, and same, which is 1 or 0")
    return Pair(stored, asked, same, str(row.get("group") or stored))


def _unreadable(what: str) -> SemcacheError:
    return SemcacheError(Code.INVALID_DATA, f"the labelled pairs cannot be read: {what}")


def split(pairs: Sequence[Pair], *, in_order: bool) -> tuple[list[Pair], list[Pair]]:
    """Two halves, by time where the pairs stand in its order, else by a draw over the groups."""
    first = [i < len(pairs) // 2 if in_order else _drawn(pair.group) for i, pair in enumerate(pairs)]
    earlier, later = (
        [pair for pair, half in zip(pairs, first, strict=True) if half is wanted] for wanted in (True, False)
    )
    return earlier, later


async def sample(settings: Settings, earlier: Sequence[Pair], later: Sequence[Pair]) -> tuple[Sample, Sample]:
    """The two halves as a cache that holds all their stored texts would see them.

    A pair with a text that the embedder does not read as a whole is an exact miss, so no hit.

    Raises: SemcacheError(EMBEDDER_UNAVAILABLE).
    """
    pairs = [*earlier, *later]
    vectors = await _embed(settings, sorted({text for pair in pairs for text in (pair.stored, pair.asked)}))
    words = Counter(stem for text in {pair.stored for pair in pairs} for stem in set(extract(text).content))
    frequencies = Frequencies(len({pair.stored for pair in pairs}), words)
    return _half(earlier, vectors, frequencies), _half(later, vectors, frequencies)


async def _embed(settings: Settings, texts: list[str]) -> dict[str, Vector]:
    embedder = await open_embedder(settings)
    try:
        found = await embedder.embed_many(texts)
    finally:
        await embedder.close()
    return {t: vector for t, vector in zip(texts, found, strict=True) if not isinstance(vector, SemcacheError)}


def _drawn(group: str) -> bool:
    return hashlib.sha256(group.encode("utf-8", "surrogatepass")).digest()[0] % 2 == 0


def _half(pairs: Sequence[Pair], vectors: dict[str, Vector], frequencies: Frequencies) -> Sample:
    exact = sum(pair.stored == pair.asked for pair in pairs)
    other = [pair for pair in pairs if pair.stored != pair.asked]
    return Sample([_labelled(pair, vectors, frequencies) for pair in other], len(pairs), exact)


def _labelled(pair: Pair, vectors: dict[str, Vector], frequencies: Frequencies) -> Labelled:
    if pair.stored not in vectors or pair.asked not in vectors:
        return Labelled(())
    similarity = min(1.0, float(vectors[pair.stored] @ vectors[pair.asked]))
    candidate = Candidate("", similarity, pair.stored, extract(pair.stored))
    seen = see(Query(pair.asked, extract(pair.asked)), [candidate], frequencies)
    return Labelled(tuple(_near(pair, found) for found in seen))


def _near(pair: Pair, seen: Seen) -> Near:
    return Near(seen.candidate.similarity, _worst(seen.verdicts), pair.same, pair.group, seen.signals)


def _worst(verdicts: Iterable[Verdict]) -> Outcome:
    outcomes = {verdict.outcome for verdict in verdicts}
    return next((o for o in (Outcome.BLOCK, Outcome.GRAY) if o in outcomes), Outcome.PASS)


__all__ = ["Pair", "read_pairs", "sample", "split"]
