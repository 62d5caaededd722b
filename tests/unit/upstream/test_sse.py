import itertools

from hypothesis import given
from hypothesis import strategies as st

from service.upstream.sse import DONE, Event, Parser, encode

NAMED = st.sampled_from(["error", "response.created", "x"])
TEXT = st.text('ab: {}"\u2028é日\U0001f469', max_size=12)


def parsed(*chunks: bytes) -> list[Event]:
    parser = Parser()
    return [event for chunk in chunks for event in parser.feed(chunk)]


def cut(data: bytes, places: list[int]) -> list[bytes]:
    marks = sorted({0, len(data), *(place % (len(data) + 1) for place in places)})
    return [data[a:b] for a, b in itertools.pairwise(marks)]


@st.composite
def streams(draw: st.DrawFn) -> tuple[bytes, list[Event]]:
    """A stream with comments, ids, names, several data lines and each kind of line end, and the events in it."""
    wire, events = bytearray(), []
    for _ in range(draw(st.integers(0, 5))):
        name, data = draw(st.none() | NAMED), draw(st.lists(TEXT, min_size=1, max_size=3))
        end = draw(st.sampled_from([b"\n", b"\r\n", b"\r"]))
        rows = [*([f"event: {name}"] if name else []), *(f"data: {line}" for line in data)]
        rows += draw(st.lists(st.sampled_from([": keep-alive", "id: 7", "retry: 10", "other"]), max_size=2))
        for row in [*rows, "", *draw(st.lists(st.just(": ping"), max_size=1))]:
            wire += row.encode() + end
        events.append(Event("\n".join(data), name))
    return bytes(wire), events


@given(streams(), st.lists(st.integers(0, 500), max_size=40))
def test_any_chunking_gives_the_same_events(stream: tuple[bytes, list[Event]], places: list[int]) -> None:
    wire, events = stream
    assert parsed(wire) == events
    assert parsed(*cut(wire, places)) == events
    assert parsed(*(bytes([byte]) for byte in wire)) == events


@given(st.text("ab: \r\n\u2028é日\U0001f469"), st.none() | NAMED)
def test_what_is_written_is_read_back(data: str, name: str | None) -> None:
    lines = data.replace("\r\n", "\n").replace("\r", "\n")
    assert parsed(encode(data.encode(), name)) == [Event(lines, name)]


def test_a_carriage_return_ends_a_line_at_once() -> None:
    parser = Parser()
    assert parser.feed(b"data: a\r\r") == [Event("a")]
    assert parser.feed(b"\ndata: b\r\n\r") == [Event("b")]
    assert parser.feed(b"\ndata: c\n\n") == [Event("c")]


def test_one_leading_space_and_a_byte_order_mark_are_no_part_of_the_data() -> None:
    assert parsed(b"\xef\xbb\xbfdata:  two\n\ndata:none\n\ndata\n\n") == [Event(" two"), Event("none"), Event("")]


def test_an_event_without_its_blank_line_is_not_given_out() -> None:
    assert parsed(b"data: whole\n\ndata: half\n") == [Event("whole")]


def test_a_name_without_data_is_no_event_and_does_not_stick() -> None:
    assert parsed(b"event: ping\n\ndata: x\n\n") == [Event("x")]


def test_done_is_recognised() -> None:
    (event,) = parsed(DONE)
    assert event.done
    assert not Event("[DONE] no").done
