"""What a budget of bytes costs in hit rate: the miss-ratio curve of LRU, from one pass over the log.

Mattson et al. 1970: an access hits in every cache that holds what was touched since the key's last access. Long logs
are sampled by key, and distances scaled up (SHARDS, Waldspurger et al., FAST 2015).
"""

from __future__ import annotations

import hashlib
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass

MOST = 200_000  # accesses that are looked at
SHARES = (0.01, 0.05, 0.1, 0.2, 0.5, 1.0)


@dataclass(frozen=True, slots=True)
class Curve:
    """footprint: bytes of all distinct entries; points: a budget as a share of it, in bytes, and the hit rate."""

    footprint: int
    points: list[tuple[float, int, float]]


def miss_curve(accesses: Sequence[tuple[bytes, int]]) -> Curve:
    """accesses: key and bytes of its entry, in the order of time."""
    rate = min(1.0, MOST / max(1, len(accesses)))
    sampled = [access for access in accesses if _place(access[0]) < rate]
    distances = sorted(distance / rate for distance in _distances(sampled) if distance is not None)
    footprint = int(sum(dict(sampled).values()) / rate)
    return Curve(
        footprint,
        [
            (share, int(share * footprint), bisect_right(distances, share * footprint) / max(1, len(sampled)))
            for share in SHARES
        ],
    )


def _distances(accesses: Sequence[tuple[bytes, int]]) -> list[int | None]:
    """Bytes touched from a key's last access to this one, its own included; None at its first."""
    tree, last = [0] * (len(accesses) + 1), dict[bytes, tuple[int, int]]()
    found: list[int | None] = []
    for at, (key, size) in enumerate(accesses, start=1):
        before = last.get(key)
        if before is None:
            found.append(None)
        else:
            found.append(_sum(tree, at - 1) - _sum(tree, before[0] - 1))
            _add(tree, before[0], -before[1])
        _add(tree, at, size)
        last[key] = at, size
    return found


def _add(tree: list[int], at: int, value: int) -> None:
    while at < len(tree):
        tree[at] += value
        at += at & -at


def _sum(tree: list[int], at: int) -> int:
    total = 0
    while at > 0:
        total += tree[at]
        at -= at & -at
    return total


def _place(key: bytes) -> float:
    """Where a key falls between 0 and 1, always the same."""
    return float(int.from_bytes(hashlib.sha256(key).digest()[:8]) / 2**64)


__all__ = ["Curve", "miss_curve"]
