import pytest

from service.policy.decision import Candidate, Query, Reason, Ruling, decide_threshold, would_change
from service.policy.guards.checks import Guard
from service.policy.guards.features import extract
from service.policy.verified import decide_verified

TEXT = "How many pears fill a crate of 30 kg?"
OTHER_NUMBER = "How many pears fill a crate of 20 kg?"
PARAPHRASE = "How many pears can fill a crate of 30 kg?"
REPLACED = "How many plums fill a crate of 30 kg?"


def query(text=TEXT):
    return Query(text, extract(text))


def candidate(text, similarity, entry_id="e"):
    return Candidate(entry_id, similarity, text, extract(text))


def test_the_nearest_candidate_above_the_threshold_is_a_hit():
    decision = decide_threshold(query(), [candidate(PARAPHRASE, 0.93)], threshold=0.9)
    assert (decision.ruling, decision.reason) == (Ruling.HIT, Reason.ACCEPTED)
    assert decision.candidate is not None
    assert decision.candidate.text == PARAPHRASE
    assert decide_threshold(query(), [candidate(PARAPHRASE, 0.93)], threshold=0.94).reason is Reason.BELOW_THRESHOLD
    assert decide_threshold(query(), [], threshold=0.9).reason is Reason.NO_NEIGHBOUR


def test_a_blocked_candidate_gives_way_to_the_next():
    near = [candidate(OTHER_NUMBER, 0.99, "a"), candidate(PARAPHRASE, 0.95, "b")]
    decision = decide_threshold(query(), near, threshold=0.9)
    assert decision.candidate is not None
    assert decision.candidate.entry_id == "b"
    assert [verdict.guard for verdict in decision.verdicts_fired] == [Guard.NUMBERS]
    alone = decide_threshold(query(), near[:1], threshold=0.9)
    assert (alone.ruling, alone.reason, alone.candidate) == (Ruling.MISS, Reason.GUARD_BLOCKED, None)
    assert decide_threshold(query(), near[:1], threshold=0.9, guards=False).ruling is Ruling.HIT


def test_a_doubtful_candidate_is_gray_unless_a_later_one_is_sure():
    doubtful = candidate(REPLACED, 0.97, "a")
    decision = decide_threshold(query(), [doubtful], threshold=0.9)
    assert (decision.ruling, decision.reason, decision.candidate) == (Ruling.GRAY, Reason.GUARD_GRAY, doubtful)
    assert decide_threshold(query(), [doubtful, candidate(PARAPHRASE, 0.95)], threshold=0.9).ruling is Ruling.HIT


def test_a_threshold_of_one_wants_the_same_text_even_at_equal_vectors():
    assert decide_threshold(query(), [candidate(PARAPHRASE, 1.0)], threshold=1).reason is Reason.OTHER_TEXT
    assert decide_threshold(query(), [candidate(TEXT, 0.9999997)], threshold=1).ruling is Ruling.HIT


def test_a_threshold_of_zero_is_a_value_and_the_floor_holds():
    assert decide_threshold(query(), [candidate(PARAPHRASE, 0.61)], threshold=0).ruling is Ruling.HIT
    assert decide_threshold(query(), [candidate(PARAPHRASE, 0.59)], threshold=0).reason is Reason.BELOW_FLOOR


def test_a_stricter_threshold_never_adds_a_hit():
    near = [candidate(PARAPHRASE, 0.9)]
    served = [decide_threshold(query(), near, threshold=t / 100).ruling is Ruling.HIT for t in range(101)]
    assert served == sorted(served, reverse=True)
    assert any(served)


def test_each_verdict_says_what_would_change_it():
    near = [candidate(OTHER_NUMBER, 0.99, "a"), candidate(PARAPHRASE, 0.95, "b"), candidate(PARAPHRASE, 0.8, "c")]
    hit = decide_threshold(query(), near, threshold=0.9)
    first, second = hit.judged
    numbers = next(v for v in first.verdicts if v.guard == "numbers")
    assert (numbers.outcome, numbers.evidence) == ("block", "30 kilogram ≠ 20 kilogram")
    assert would_change(first, hit) == ["the guard numbers passing (30 kilogram ≠ 20 kilogram)"]
    assert would_change(second, hit) == ["a threshold above 0.9500"]
    miss = decide_threshold(query(), near[2:], threshold=0.9)
    assert would_change(miss.judged[0], miss) == ["a threshold of at most 0.8000"]


@pytest.mark.parametrize("similarity", [0.81987, 0.81982])
def test_what_would_change_a_verdict_does_when_it_is_done(similarity):
    near = [candidate(PARAPHRASE, similarity)]
    miss = decide_threshold(query(), near, threshold=0.95)
    bound = float(would_change(miss.judged[0], miss)[0].removeprefix("a threshold of at most "))
    hit = decide_threshold(query(), near, threshold=bound)
    assert hit.ruling is Ruling.HIT
    above = float(would_change(hit.judged[0], hit)[0].removeprefix("a threshold above "))
    assert decide_threshold(query(), near, threshold=above + 1e-9).ruling is not Ruling.HIT


def test_an_entry_below_the_floor_would_have_to_reach_the_threshold():
    miss = decide_threshold(query(), [candidate(PARAPHRASE, 0.5)], threshold=0.95)
    assert would_change(miss.judged[0], miss) == ["a similarity of at least 0.95"]


def test_what_is_always_explored_wants_labels_and_no_luck():
    near = [candidate(PARAPHRASE, 0.95)]
    explored = decide_verified(query(), near, fits=lambda _: None, delta=0.05, draw=0.999)
    assert explored.reason is Reason.EXPLORED
    assert would_change(explored.judged[0], explored) == [
        "labels of the entry: with what is known of it every request explores"
    ]
