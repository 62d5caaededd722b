"""With which probability a request is observed, so that its label can be weighted by the inverse."""

from __future__ import annotations

from math import prod


def inclusion(*chances: float) -> float:
    """The probability that at least one of independent draws falls, from the probability of each (0 to 1)."""
    return 1 - prod(1 - chance for chance in chances)


__all__ = ["inclusion"]
