"""What one request may ask of the cache. A caller can only tighten what the cache's policy allows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from service.policy.decision import Policy

Mode = Literal["semantic", "exact", "off"]

# From wide to narrow.
_MODES: tuple[Mode, ...] = ("semantic", "exact", "off")


@dataclass(frozen=True, slots=True)
class Controls:
    """The controls of one request; None is "not asked", 0 is a value.

    namespace: the cache's name. ttl: seconds that the answer may be served, if it is stored. threshold: least
    similarity, 0 to 1. decision: a policy that must accept a neighbour beside the cache's own. mode: how wide to look.
    refresh: serve no stored answer, store the new one (RFC 9111 no-cache). no_store: store nothing of this request.
    max_age: oldest stored answer to serve, in seconds. min_fresh: seconds that an answer must have left, so that none
    is stale. stale_while_revalidate, stale_if_error: for how many seconds after its end an answer may be served, while
    the model is asked or where it fails (RFC 5861). only_if_cached: never ask the model. tags: of the stored entry.
    session_id: who asks, for the request graph. salt: pairs that keep requests apart beyond the key. variants: how many
    answers are to be kept for one prompt.
    """

    namespace: str | None = None
    ttl: float | None = None
    threshold: float | None = None
    decision: Policy | None = None
    mode: Mode | None = None
    refresh: bool = False
    no_store: bool = False
    max_age: float | None = None
    min_fresh: float | None = None
    stale_while_revalidate: float | None = None
    stale_if_error: float | None = None
    only_if_cached: bool = False
    tags: tuple[str, ...] = ()
    session_id: str | None = None
    salt: tuple[tuple[str, str], ...] = ()
    variants: int | None = None


def tighten_mode(policy: Mode, controls: Controls) -> Mode:
    """The narrower of the policy's mode and the caller's."""
    return max(policy, controls.mode or policy, key=_MODES.index)


def tighten_ttl(default: float | None, maximum: float | None, controls: Controls) -> float | None:
    """Seconds until the answer expires; None is never.

    The caller may ask for up to `maximum`, or up to `default` where there is no maximum.
    """
    bound = default if maximum is None else maximum
    asked = default if controls.ttl is None else controls.ttl
    return min((value for value in (asked, bound) if value is not None), default=None)


def tighten_stale(allowed_ms: int, asked: float | None, min_fresh: float | None) -> float:
    """For how many seconds after its end an answer may be served: as the policy says, or less where the caller does.

    Below 0: for how long before its end it may not.
    """
    if min_fresh is not None:
        return -min_fresh
    allowed = allowed_ms / 1000
    return allowed if asked is None else min(allowed, asked)


__all__ = ["Controls", "Mode", "tighten_mode", "tighten_stale", "tighten_ttl"]
