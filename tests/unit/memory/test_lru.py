from __future__ import annotations

from collections import OrderedDict

from hypothesis import given
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from service.memory.lru import Lru

KEYS = st.integers(0, 5)
SIZES = st.integers(0, 12)
MAX_ENTRIES, MAX_BYTES = 3, 20


class Model(RuleBasedStateMachine):
    """Beside an Lru the plainest thing that does the same: a list of what was used, the latest last."""

    def __init__(self) -> None:
        super().__init__()
        self.lru: Lru[int, int] = Lru(MAX_ENTRIES, MAX_BYTES)
        self.kept: OrderedDict[int, tuple[int, int]] = OrderedDict()

    @rule(key=KEYS, value=st.integers(), size=SIZES)
    def put(self, key: int, value: int, size: int) -> None:
        self.lru.put(key, value, size)
        self.kept.pop(key, None)
        self.kept[key] = (value, size)
        while len(self.kept) > MAX_ENTRIES or self.weight > MAX_BYTES:
            self.kept.popitem(last=False)

    @rule(key=KEYS)
    def get(self, key: int) -> None:
        assert self.lru.get(key) == self.kept.get(key, (None,))[0]
        if key in self.kept:
            self.kept.move_to_end(key)

    @rule(key=KEYS)
    def pop(self, key: int) -> None:
        self.lru.pop(key)
        self.kept.pop(key, None)

    @rule(wanted=st.sets(KEYS))
    def drop(self, wanted: set[int]) -> None:
        self.lru.drop(lambda key, _: key not in wanted)
        self.kept = OrderedDict((key, item) for key, item in self.kept.items() if key in wanted)

    @precondition(lambda self: self.kept)
    @rule()
    def clear(self) -> None:
        self.lru.clear()
        self.kept.clear()

    @property
    def weight(self) -> int:
        return sum(size for _, size in self.kept.values())

    @invariant()
    def bounded(self) -> None:
        assert len(self.lru) == len(self.kept) <= MAX_ENTRIES
        assert self.lru.bytes == self.weight <= MAX_BYTES


TestLru = Model.TestCase


def test_a_value_that_is_too_large_is_not_kept_and_its_older_self_goes() -> None:
    lru: Lru[str, str] = Lru(10, 100)
    lru.put("a", "small", 10)
    lru.put("b", "other", 10)
    lru.put("a", "large", 101)
    assert lru.get("a") is None
    assert lru.get("b") == "other"
    assert lru.bytes == 10


@given(st.lists(st.tuples(KEYS, SIZES)))
def test_without_room_nothing_is_kept(puts: list[tuple[int, int]]) -> None:
    lru: Lru[int, int] = Lru(0, 100)
    for key, size in puts:
        lru.put(key, key, size)
        assert lru.get(key) is None
    assert (len(lru), lru.bytes) == (0, 0)
