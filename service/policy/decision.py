"""The static policy, and the form in which every policy answers: hit, gray or miss, with what led to it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from math import ceil, floor
from typing import Literal

from service.policy.guards.checks import Outcome, Verdict, check
from service.policy.guards.features import Features

# No policy serves a neighbour below this cosine, whatever its threshold: unrelated texts reach 0.5 with MiniLM.
FLOOR = 0.6

Policy = Literal["threshold", "calibrated", "verified"]


class Ruling(StrEnum):
    """`gray`: a second stage may still serve it; without one it is a miss."""

    HIT = "hit"
    GRAY = "gray"
    MISS = "miss"


class Reason(StrEnum):
    """Why a decision fell, or why a candidate was not taken."""

    ACCEPTED = "accepted"
    NO_NEIGHBOUR = "no_neighbour"
    BELOW_FLOOR = "below_floor"
    BELOW_THRESHOLD = "below_threshold"
    OTHER_TEXT = "other_text"
    GUARD_BLOCKED = "guard_blocked"
    GUARD_GRAY = "guard_gray"
    UNLIKELY = "unlikely"
    UNFAMILIAR = "unfamiliar"
    UNCALIBRATED = "uncalibrated"
    EXPLORED = "explored"
    OUTRANKED = "outranked"
    DISPUTED = "disputed"


@dataclass(frozen=True, slots=True)
class Query:
    """What is asked: the semantic text and its features."""

    text: str
    features: Features


@dataclass(frozen=True, slots=True)
class Candidate:
    """A living neighbour. `text` is its semantic text, `answer` tells equal answers apart from others (a hash).

    `confirmed` and `refuted` count the labelled requests that its answer was right and wrong for.
    """

    entry_id: str
    similarity: float
    text: str
    features: Features
    answer: str = ""
    confirmed: int = 0
    refuted: int = 0


@dataclass(frozen=True, slots=True)
class Judged:
    """One candidate with what was found.

    `probability` is that of being right, for the policy verified that of being served; None where there is none.
    """

    candidate: Candidate
    reason: Reason
    verdicts: tuple[Verdict, ...] = ()
    probability: float | None = None

    @property
    def fired(self) -> list[Verdict]:
        return [v for v in self.verdicts if v.outcome is not Outcome.PASS]


@dataclass(frozen=True, slots=True)
class Decision:
    """`candidate` is the one served on a hit, the one in doubt on gray, else None; `judged` stands nearest first.

    `policy` names who decided, `threshold` is the least similarity, `cut` the least probability of a policy that has
    one. `missing` says what an uncalibrated policy wants.
    """

    ruling: Ruling
    reason: Reason
    threshold: float
    judged: tuple[Judged, ...] = ()
    candidate: Candidate | None = None
    policy: Policy = "threshold"
    cut: float | None = None
    missing: str = ""

    @property
    def verdicts_fired(self) -> list[Verdict]:
        """What kept candidates back or in doubt, for the counters."""
        return [v for j in self.judged for v in j.fired]


def decide_threshold(
    query: Query,
    candidates: Sequence[Candidate],
    *,
    threshold: float,
    guards: bool = True,
) -> Decision:
    """The nearest candidate at or above `threshold` (cosine, 0 to 1) that every guard passes is a hit.

    A blocked candidate gives way to the next; one in doubt does too, and makes the decision gray if no later one
    is a hit. `FLOOR` holds under any threshold. At a threshold of 1 only the same semantic text is served, since
    different texts can have equal vectors. The candidates after a hit are not judged.
    """
    judged: list[Judged] = []
    for candidate in candidates:
        judged.append(judge(query, candidate, threshold=threshold, guards=guards))
        if judged[-1].reason is Reason.ACCEPTED:
            break
    return conclude(judged, threshold)


def judge(query: Query, candidate: Candidate, *, threshold: float, guards: bool = True) -> Judged:
    """One candidate by itself."""
    verdicts = tuple(check(query.features, candidate.features)) if guards else ()
    outcomes = {v.outcome for v in verdicts}
    if threshold >= 1 and candidate.text != query.text:
        return Judged(candidate, Reason.OTHER_TEXT, verdicts)
    if threshold < 1 and candidate.similarity < threshold:
        return Judged(candidate, Reason.BELOW_THRESHOLD, verdicts)
    if candidate.similarity < FLOOR:
        return Judged(candidate, Reason.BELOW_FLOOR, verdicts)
    if Outcome.BLOCK in outcomes:
        return Judged(candidate, Reason.GUARD_BLOCKED, verdicts)
    return Judged(candidate, Reason.GUARD_GRAY if Outcome.GRAY in outcomes else Reason.ACCEPTED, verdicts)


_GRAY = frozenset({Reason.GUARD_GRAY, Reason.UNLIKELY, Reason.UNFAMILIAR, Reason.EXPLORED})


def conclude(
    judged: Sequence[Judged],
    threshold: float,
    *,
    policy: Policy = "threshold",
    cut: float | None = None,
    missing: str = "",
) -> Decision:
    """The decision that judged candidates make: the first accepted, else the first in doubt, else a miss."""
    accepted = next((j for j in judged if j.reason is Reason.ACCEPTED), None)
    doubtful = accepted or next((j for j in judged if j.reason in _GRAY), None)
    ruling = Ruling.HIT if accepted else Ruling.GRAY if doubtful else Ruling.MISS
    first = doubtful or next(iter(judged), None)
    return Decision(
        ruling,
        first.reason if first else Reason.NO_NEIGHBOUR,
        threshold,
        tuple(judged),
        doubtful.candidate if doubtful else None,
        policy,
        cut,
        missing,
    )


_REMEDIES = {
    Reason.OUTRANKED: "no better candidate that is accepted",
    Reason.DISPUTED: "the policy that was asked for choosing the same answer as the cache's own",
    Reason.UNFAMILIAR: "a label that finds a near entry right, or two near entries with the same answer",
    Reason.EXPLORED: "a draw above the probability of exploring",
}


def would_change(judged: Judged, decision: Decision) -> list[str]:
    """Each thing that would have to be otherwise for this candidate's verdict to turn, in words."""
    threshold, cut = decision.threshold, decision.cut
    similarity, chance = judged.candidate.similarity, judged.probability
    if judged.reason is Reason.ACCEPTED:
        by_chance = [f"a cut above {rounded_up(chance)}"] if chance is not None and cut is not None else []
        return [f"a threshold above {rounded_up(max(similarity, threshold))}", *by_chance]
    if judged.reason is Reason.EXPLORED and not chance:
        return ["labels of the entry: with what is known of it every request explores"]
    if judged.reason in _REMEDIES:
        return [_REMEDIES[judged.reason]]
    if judged.reason is Reason.UNCALIBRATED:
        return [decision.missing]
    if judged.reason is Reason.UNLIKELY:
        return [f"a cut of at most {rounded_down(chance)}"]
    barring = [v for v in judged.fired if v.outcome is Outcome.BLOCK or decision.policy != "calibrated"]
    needed = [f"the guard {v.guard.value} passing ({v.evidence})" for v in barring]
    if similarity < FLOOR:
        needed.append(f"a similarity of at least {max(FLOOR, threshold):g}")
    elif judged.reason is Reason.OTHER_TEXT:
        needed.append(f"a threshold of at most {rounded_down(similarity)} and below 1")
    elif similarity < threshold:
        needed.append(f"a threshold of at most {rounded_down(similarity)}")
    return needed


def rounded_down(value: float | None) -> str:
    """Four digits that are not more than the value, so that a bound which is moved there is met."""
    return f"{floor((value or 0.0) * 10_000) / 10_000:.4f}"


def rounded_up(value: float) -> str:
    """Four digits that are not less than the value."""
    return f"{ceil(value * 10_000) / 10_000:.4f}"


__all__ = [
    "FLOOR",
    "Candidate",
    "Decision",
    "Judged",
    "Policy",
    "Query",
    "Reason",
    "Ruling",
    "conclude",
    "decide_threshold",
    "judge",
    "rounded_down",
    "rounded_up",
    "would_change",
]
