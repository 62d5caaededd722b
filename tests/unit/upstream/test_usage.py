import itertools
import json

from hypothesis import given
from hypothesis import strategies as st

from service.upstream.usage import UsageFilter, ask_usage, wants_usage
from tests.fakes.upstream import USAGE, chat_chunk, chat_stream, lines


def filtered(wire: bytes, *places: int) -> bytes:
    relay = UsageFilter()
    marks = sorted({0, len(wire), *(place % (len(wire) + 1) for place in places)})
    out = b"".join(relay.feed(wire[a:b]) for a, b in itertools.pairwise(marks))
    return out + relay.flush()


@given(st.lists(st.integers(0, 2000), max_size=20), st.sampled_from([b"\n", b"\r\n"]))
def test_only_the_usage_chunk_is_taken_out(places: list[int], end: bytes) -> None:
    asked = b"".join([b": keep-alive\n\n", *chat_stream("a", "b", usage=True)]).replace(b"\n", end)
    plain = b"".join([b": keep-alive\n\n", *chat_stream("a", "b")]).replace(b"\n", end)
    assert filtered(asked, *places) == plain


def test_chunks_that_only_speak_of_usage_stay() -> None:
    talk = chat_chunk({"content": '"usage": {}, "choices": []'})
    counted = chat_chunk({"content": "a"}) | {"usage": USAGE}
    wire = b"".join(lines(talk, counted, {"choices": [], "usage": None})) + b'data: {"usage"\n\n'
    assert filtered(wire) == wire


def test_an_event_of_many_pieces_is_not_copied_for_each() -> None:
    relay, event = UsageFilter(), b"data: " + b"x" * 10_000 + b"\n\n"
    held = relay._rest
    assert {relay.feed(event[at : at + 100]) for at in range(0, len(event) - 100, 100)} == {b""}
    assert relay._rest is held
    assert relay.feed(event[len(held) :]) == event


def test_whole_events_are_not_held_back() -> None:
    first, second, *_ = chat_stream("a")
    relay = UsageFilter()
    assert relay.feed(first + second[:9]) == first
    assert relay.feed(second[9:]) == second
    assert relay.flush() == b""


def test_usage_is_asked_for_beside_what_was_asked() -> None:
    raw = b'{"temperature": 1.0, "stream_options": {"continuous_usage_stats": true}}'
    asked = ask_usage(raw, json.loads(raw))
    assert asked.startswith(b'{"temperature": 1.0,')
    assert json.loads(asked)["stream_options"] == {"continuous_usage_stats": True, "include_usage": True}
    assert wants_usage(json.loads(asked))
    assert ask_usage(asked, json.loads(asked)) is asked
    assert json.loads(ask_usage(b'{"stream_options": null}', {"stream_options": None})) == {
        "stream_options": {"include_usage": True}
    }
