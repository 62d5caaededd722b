"""Vectors as the whole service knows them: float32, one-dimensional, unit length."""

from __future__ import annotations

import hashlib

import numpy as np
from numpy.typing import NDArray

from service.errors import Code, SemcacheError

Vector = NDArray[np.float32]
Result = Vector | SemcacheError

SAME_GENERATION = 0.9995


class TextTooLong(SemcacheError):  # noqa: N818 (named as its code)
    """A text has more tokens than the embedder reads, so it may only be matched exactly.

    `tokens` is a lower bound, and None where it was not counted.
    """

    def __init__(self, tokens: int | None, limit: int) -> None:
        found = "more" if tokens is None else f"at least {tokens}"
        super().__init__(
            Code.TEXT_TOO_LONG,
            f"The embedder reads {limit} tokens and the text has {found}; no text is ever cut. "
            "Shorten it, match it exactly, or choose an embedder that reads more.",
            {"limit": limit} if tokens is None else {"limit": limit, "tokens": tokens},
        )
        self.tokens = tokens
        self.limit = limit


def unavailable(detail: str) -> SemcacheError:
    """The embedder gave no vector, and `detail` says why."""
    return SemcacheError(Code.EMBEDDER_UNAVAILABLE, detail)


def unit(values: NDArray[np.floating], dimensions: int) -> Result:
    """The vector scaled to length 1, or the error that says why it is not one."""
    if values.shape != (dimensions,):
        return unavailable(f"The embedder gave {values.size} numbers for a text instead of {dimensions}.")
    exact = values.astype(np.float64)
    length = np.linalg.norm(exact)
    if not np.isfinite(length):
        return unavailable("The embedder gave numbers that are not finite for a text.")
    if length == 0:
        return unavailable("The embedder gave only zeros for a text, which have no direction.")
    return (exact / length).astype(np.float32)


def same_generation(a: Vector, b: Vector) -> bool:
    """Whether two probes, unit vectors in rows for the same texts, come from one and the same model.

    Numeric formats and batch shapes move a vector by less than the cosine of 0.9995 allows; another
    training of the same architecture does not come near it.
    """
    return a.shape == b.shape and bool(np.all(np.einsum("ij,ij->i", a, b) >= SAME_GENERATION))


def encodable(text: str) -> str:
    """The text with each lone surrogate replaced by U+FFFD, since tokenizers and JSON want valid UTF-8."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def text_key(text: str) -> bytes:
    """SHA-256 of the text, lone surrogates included."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()


__all__ = [
    "Result",
    "TextTooLong",
    "Vector",
    "encodable",
    "same_generation",
    "text_key",
    "unavailable",
    "unit",
]
