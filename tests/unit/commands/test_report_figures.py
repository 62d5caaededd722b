"""The workload report's figures on logs whose answer is known."""

from __future__ import annotations

import random
from collections import Counter, OrderedDict
from uuid import uuid4

import pytest

from service.commands.report import curve
from service.commands.report.curve import miss_curve
from service.commands.report.figures import make_report
from service.commands.report.render import render
from service.commands.report.texts import entropy, read_texts, template
from service.store.workload import PromptRow, RequestRow, SystemRow, Workload


def lru_hits(accesses: list[tuple[bytes, int]], budget: int) -> float:
    """The same by keeping a list, as a cache does."""
    kept: OrderedDict[bytes, int] = OrderedDict()
    hits = 0
    for key, size in accesses:
        if key in kept:
            hits += 1
            kept.move_to_end(key)
        else:
            kept[key] = size
        while sum(kept.values()) > budget:
            kept.popitem(last=False)
    return hits / len(accesses)


def accesses(count: int) -> list[tuple[bytes, int]]:
    draw = random.Random(1)
    sizes = [draw.randrange(100, 1000) for _ in range(200)]
    numbers = [min(int(draw.paretovariate(0.7)) - 1, 199) for _ in range(count)]
    return [(str(number).encode(), sizes[number]) for number in numbers]


def test_the_curve_is_that_of_a_cache_that_keeps_the_latest() -> None:
    asked = accesses(3000)
    found = miss_curve(asked)
    assert found.footprint == sum(dict(asked).values())
    for _, budget, hits in found.points:
        assert hits == pytest.approx(lru_hits(asked, budget), abs=0.001)


def test_a_sample_of_the_keys_tells_nearly_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    draw = random.Random(2)
    asked = [(str(draw.randrange(5_000)).encode(), 100) for _ in range(50_000)]
    exact = miss_curve(asked)
    monkeypatch.setattr(curve, "MOST", 10_000)
    sampled = miss_curve(asked)
    assert sampled.footprint == pytest.approx(exact.footprint, rel=0.1)
    for (_, _, there), (_, _, here) in zip(exact.points, sampled.points, strict=True):
        assert here == pytest.approx(there, abs=0.05)


def test_templates_leave_values_out() -> None:
    asked = 'Where is order 7731-B of "Ann  Lee"? mail a@b.org'
    assert template(asked) == "Where is order <number> of <text>? mail <mail>"
    found = read_texts(["Order 1?", "Order 22?", "Help"], [3, None, 5])
    assert found.templated == pytest.approx(2 / 3)
    assert [(t.text, t.prompts) for t in found.templates] == [("Order <number>?", 2)]
    assert (found.characters, found.tokens) == ([8, 9, 9, 9], [5, 5, 5, 5])
    assert found.histogram == [(4, 1), (8, 2)]


def test_beginnings_are_shared_when_the_rest_differs() -> None:
    found = read_texts(
        ["You are a professional adviser and answer: a", "You are a professional adviser and answer: b"], []
    )
    assert [(s.text, s.prompts) for s in found.openings] == [("You are a professional adviser and", 2)]


def test_entropy_is_in_bits() -> None:
    assert entropy(Counter("abcd")) == pytest.approx(2)
    assert entropy(Counter()) == 0


def test_rates_tell_what_was_and_what_could_be() -> None:
    def request(key: bytes | None, outcome: str, similarity: float | None) -> RequestRow:
        return RequestRow(key, uuid4(), outcome, similarity, 5, 7, 100)

    requests = [
        request(b"a", "miss", None),
        request(b"a", "hit", 1.0),
        request(b"b", "miss", 0.955),
        request(b"c", "semantic_hit", 0.97),
        request(None, "bypass", None),
        *[request(b"d", outcome, None) for outcome in ("miss", "coalesced", "coalesced", "stale", "stale")],
    ]
    workload = Workload(requests, [PromptRow("x", 3)], [SystemRow("ab" * 32, 4, 900)])
    report = make_report(workload)
    rates = report.rates
    assert (rates.requests, rates.distinct, rates.repeated, rates.hits) == (10, 4, 0.5, 0.6)
    assert (rates.exact_hits, rates.semantic_hits, rates.coalesced, rates.stale) == (0.1, 0.1, 0.2, 0.2)
    assert dict(rates.near)[0.95] == pytest.approx(0.7)
    assert dict(rates.near)[0.98] == pytest.approx(0.5)
    text = render(report)
    assert "10 requests, 4 distinct" in text
    assert "coalesced        20.0 %" in text
    assert "4, 900" in text


def test_an_empty_log_has_a_report() -> None:
    assert "0 requests" in render(make_report(Workload([], [], [])))
