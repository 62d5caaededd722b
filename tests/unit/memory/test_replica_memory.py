from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.memory import replica
from service.memory.replica import NAMED_BYTES, OVERHEAD, ReplicaMemory

CACHES = st.integers(1, 2)
REQUESTS = st.sampled_from([b"a", b"b"])
KINDS = st.sampled_from(["", "team"])


class Clock:
    """The monotonic clock, moved by hand."""

    def __init__(self) -> None:
        self.now = 100.0

    def monotonic(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(replica, "time", clock)
    return clock


@pytest.fixture
def memory(clock: Clock) -> ReplicaMemory:
    """Under a lease of ten seconds."""
    memory = ReplicaMemory(100, 100_000)
    memory.trust(clock.now + 10)
    return memory


def remember(
    memory: ReplicaMemory, request: bytes = b"a", *, cache_id: int = 1, kind: str = "", value: str = "v", size: int = 1
) -> None:
    memory.remember_answer(cache_id, request, kind, value, size=size, mark=memory.mark)


def test_an_answer_is_served_with_its_time_since_the_reading(memory: ReplicaMemory, clock: Clock) -> None:
    remember(memory)
    clock.now += 3
    kept = memory.answer(1, b"a", "")
    assert kept is not None
    assert (kept.value, kept.seconds) == ("v", 3.0)


def test_nothing_is_served_without_a_live_lease(memory: ReplicaMemory, clock: Clock) -> None:
    remember(memory)
    memory.remember_named("default", 1, "cache", mark=memory.mark)
    clock.now += 10
    assert not memory.live
    assert memory.answer(1, b"a", "") is None
    assert memory.named("default") is None
    memory.trust(clock.now + 10)
    assert memory.answer(1, b"a", "") is not None
    assert memory.named("default") == "cache"


def test_a_new_memory_has_no_lease(clock: Clock) -> None:
    fresh = ReplicaMemory(100, 100_000)
    remember(fresh)
    assert not fresh.live
    assert fresh.answer(1, b"a", "") is None


def test_what_differs_in_its_filters_is_told_apart(memory: ReplicaMemory) -> None:
    remember(memory, kind="", value="all")
    remember(memory, kind="team", value="ours")
    assert [memory.answer(1, b"a", kind).value for kind in ("", "team")] == ["all", "ours"]  # type: ignore[union-attr]
    assert memory.answer(1, b"a", "other") is None


@pytest.mark.parametrize("forgotten", [(1, b"a"), (1, b"other"), (1, None), (2, None), (None, None)])
def test_what_was_read_before_something_was_forgotten_is_not_remembered(
    memory: ReplicaMemory, forgotten: tuple[int | None, bytes | None]
) -> None:
    """The reading may be older than the invalidation; which one it concerned is not worth telling."""
    mark = memory.mark
    memory.forget(*forgotten)
    memory.remember_answer(1, b"a", "", "stale", size=1, mark=mark)
    memory.remember_named("default", 1, "stale", mark=mark)
    assert memory.answer(1, b"a", "") is None
    assert memory.named("default") is None
    remember(memory, value="new")
    assert memory.answer(1, b"a", "") is not None


@given(
    kept=st.sets(st.tuples(CACHES, REQUESTS, KINDS)),
    cache_id=st.none() | CACHES,
    request=st.none() | REQUESTS,
)
def test_forgetting_takes_what_it_says_and_no_more(
    kept: set[tuple[int, bytes, str]], cache_id: int | None, request: bytes | None
) -> None:
    memory = ReplicaMemory(100, 100_000)
    memory.trust(float("inf"))
    for each in kept:
        remember(memory, each[1], cache_id=each[0], kind=each[2])
    memory.forget(cache_id, request)
    gone = {k for k in kept if cache_id is None or (k[0] == cache_id and request in (None, k[1]))}
    assert {k for k in kept if memory.answer(*k) is None} == gone


def test_a_cache_is_forgotten_with_its_answers_and_a_tenant_with_everything(memory: ReplicaMemory) -> None:
    memory.remember_named("cache 1", 1, "one", mark=memory.mark)
    memory.remember_named("cache 2", 2, "two", mark=memory.mark)
    memory.remember_named("tenant", None, "acme", mark=memory.mark)
    memory.forget(1, b"a")
    assert memory.named("cache 1") == "one"
    memory.forget(1, None)
    assert [memory.named(name) for name in ("cache 1", "cache 2", "tenant")] == [None, "two", "acme"]
    memory.forget(None, None)
    assert [memory.named(name) for name in ("cache 2", "tenant")] == [None, None]


@given(st.lists(st.tuples(REQUESTS, st.text(max_size=2), st.integers(0, 3_000))))
def test_all_variants_together_stay_within_the_bounds(answers: list[tuple[bytes, str, int]]) -> None:
    memory = ReplicaMemory(2, 4_000)
    memory.trust(float("inf"))
    last: dict[tuple[bytes, str], int] = {}
    for request, kind, size in answers:
        remember(memory, request, kind=kind, size=size)
        last[request, kind] = size + OVERHEAD
        held = sum(size for (r, k), size in last.items() if memory.answer(1, r, k) is not None)
        assert held == memory.bytes <= 4_000
        assert memory.entries <= 2


def test_l1_can_be_switched_off(clock: Clock) -> None:
    memory = ReplicaMemory(0, 100_000)
    memory.trust(clock.now + 10)
    remember(memory)
    assert memory.answer(1, b"a", "") is None
    assert (memory.entries, memory.bytes) == (0, 0)


def test_large_named_things_push_out_the_oldest(clock: Clock) -> None:
    memory = ReplicaMemory(10, 1000)
    memory.trust(clock.now + 100)
    for name in ("first", "second", "third"):
        memory.remember_named(name, 1, name, size=NAMED_BYTES // 3, mark=memory.mark)
    assert [memory.named(name) for name in ("first", "second", "third")] == [None, "second", "third"]
