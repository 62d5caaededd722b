"""Whether wrong answers have become more frequent than they were: a cumulative sum of evidence (Page 1954).

Each label adds the logarithm of how much likelier it is where the odds of a wrong answer have grown by `ODDS` than at
the reference, and the sum never falls below 0. By Lorden (1971) an alarm at log(`BETWEEN_FALSE_ALARMS`) comes falsely
once in so many labels on average or more rarely, however often it is looked at. What is wrong together is evidence
once, and labels that depend on one another count for as many as they are worth in the reference. None counts for more
than one, whatever its weight: that alone keeps the bound when a share that is drawn is changed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import log

from service.policy.bounds import ClusteredRate

REFERENCE = 200  # labels that say what is usual
BETWEEN_FALSE_ALARMS = 10_000
ODDS = 2.5
HOPELESS = 0.95  # a rate that can hardly grow
CONFIDENCE = 0.9  # of the bound on the reference's rate, so that its own chance alarms nobody


@dataclass(frozen=True, slots=True)
class Label:
    """Whether an answer was wrong. cluster: what is wrong together; weight: how many requests it stands for."""

    wrong: bool
    cluster: str
    weight: float = 1.0


@dataclass(frozen=True, slots=True)
class Alarm:
    """`usual`: the rate of wrong answers that would have been tolerated; `seen`: the rate since it changed, in so many
    `labels` until the alarm."""

    usual: float
    seen: float
    labels: int


def watch(labels: Sequence[Label], *, tolerated: float = 0.0) -> Alarm | None:
    """The first alarm in labels of one kind, oldest first; the first `REFERENCE` of them say what is usual.

    tolerated: a rate, 0 to 1, up to which nobody is alarmed.
    """
    reference = ClusteredRate()
    for label in labels[:REFERENCE]:
        reference.add(label.cluster, wrong=label.wrong, count=label.weight)
    if len(labels) <= REFERENCE:
        return None
    usual = max(reference.bounds(CONFIDENCE)[1], tolerated)
    if usual >= HOPELESS:
        return None
    return _first_alarm(labels[REFERENCE:], usual, reference.effective / reference.total)


def _first_alarm(labels: Sequence[Label], usual: float, worth: float) -> Alarm | None:
    grown = ODDS * usual / (1 - usual + ODDS * usual)
    evidence = {True: log(grown / usual), False: log((1 - grown) / (1 - usual))}
    total, begun, wrong = 0.0, 0, set[str]()
    for number, label in enumerate(labels, 1):
        if not label.wrong or label.cluster not in wrong:
            total = max(0.0, total + min(1.0, worth * label.weight) * evidence[label.wrong])
        if label.wrong:
            wrong.add(label.cluster)
        if not total:
            begun = number
            wrong.clear()
        elif total >= log(BETWEEN_FALSE_ALARMS):
            return _alarm(labels[begun:number], usual)
    return None


def _alarm(labels: Sequence[Label], usual: float) -> Alarm:
    whole = sum(label.weight for label in labels)
    return Alarm(usual, sum(label.weight for label in labels if label.wrong) / whole, len(labels))


__all__ = ["BETWEEN_FALSE_ALARMS", "REFERENCE", "Alarm", "Label", "watch"]
