import pytest

from service.policy.decision import Candidate, Query, Reason, decide_threshold
from service.policy.doubt import in_doubt
from service.policy.guards.features import extract
from service.policy.sampling import inclusion


def near(similarity: float, text: str = "When does the ferry leave the harbour?") -> Candidate:
    return Candidate(f"{similarity}", similarity, text, extract(text))


QUERY = Query("When does the ferry leave the port?", extract("When does the ferry leave the port?"))


@pytest.mark.parametrize(
    ("candidates", "found"),
    [
        ([near(0.9), near(0.89)], 0.9),
        ([near(0.84)], None),
        ([near(0.99, "When does the ferry not leave the port?"), near(0.9)], 0.9),
        ([near(0.97, QUERY.text), near(0.9)], None),
        ([], None),
    ],
)
def test_the_nearest_that_no_guard_blocks_beside_no_hit(candidates: list[Candidate], found: float | None) -> None:
    doubt = in_doubt(decide_threshold(QUERY, candidates, threshold=0.95), 0.85)
    assert (doubt and doubt.candidate.similarity) == found
    if doubt:
        assert doubt.reason is Reason.BELOW_THRESHOLD


def test_a_guard_in_doubt_is_looked_at_and_a_threshold_of_one_is_final() -> None:
    gray = decide_threshold(QUERY, [near(0.97)], threshold=0.95)
    assert gray.reason is Reason.GUARD_GRAY
    assert in_doubt(gray, 0.85)
    assert in_doubt(decide_threshold(QUERY, [near(0.97)], threshold=1.0), 0.85) is None


def test_inclusion() -> None:
    assert inclusion(0.5, 0.5) == 0.75
    assert inclusion(0, 0.02) == pytest.approx(0.02)
    assert inclusion(1, 0.3) == 1
