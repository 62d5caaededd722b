import pytest

from service.policy.cache_policy import CachePolicy
from service.policy.controls import Controls, Mode, tighten_mode, tighten_ttl


@pytest.mark.parametrize(("policy", "asked", "used"), [(0.9, 0.95, 0.95), (0.9, 0, 0.9), (0.9, None, 0.9), (0, 0, 0)])
def test_a_caller_only_raises_the_threshold(policy: float, asked: float | None, used: float) -> None:
    assert CachePolicy.model_validate({"similarityThreshold": policy}).threshold(asked) == used


@pytest.mark.parametrize(
    ("policy", "asked", "used"),
    [
        ("semantic", "exact", "exact"),
        ("semantic", "off", "off"),
        ("semantic", None, "semantic"),
        ("exact", "semantic", "exact"),
        ("off", "semantic", "off"),
    ],
)
def test_a_caller_only_narrows_the_mode(policy: Mode, asked: Mode | None, used: Mode) -> None:
    assert tighten_mode(policy, Controls(mode=asked)) == used


@pytest.mark.parametrize(
    ("default", "maximum", "asked", "used"),
    [
        (None, None, None, None),
        (None, None, 60, 60),
        (3600, None, None, 3600),
        (3600, None, 60, 60),
        (3600, None, 7200, 3600),
        (3600, 86400, 7200, 7200),
        (3600, 86400, 99999, 86400),
        (None, 86400, None, 86400),
        (3600, 60, None, 60),
        (3600, None, 0, 0),
        (0, None, 60, 0),
    ],
)
def test_a_caller_only_shortens_the_life(
    default: float | None, maximum: float | None, asked: float | None, used: float | None
) -> None:
    assert tighten_ttl(default, maximum, Controls(ttl=asked)) == used
