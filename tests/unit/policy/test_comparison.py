import time

import pytest

from service.policy.comparison import Said, answer_key


def same(a: str, b: str) -> bool:
    return answer_key(Said(a)) == answer_key(Said(b))


@pytest.mark.parametrize(
    ("a", "b"),
    [
        ("High tide is at noon.", " High  tide\nis at noon "),
        ("Caf\u00e9", "Cafe\u0301"),
        ("The **ebb** comes *later*.", "The ebb comes later."),
        ("## Tides\n\n* ebb\n* flood", "Tides\n- ebb\n- flood"),
        ("It’s “high” now", 'It\'s "high" now'),
        ("Run `ls` first.", "Run ls first."),
        ('{"tide": 1, "at": "noon"}', '{ "at": "noon", "tide": 1.0 }'),
        ("Do this:\n```python\nif x:\n    go()  \n```\n", "Do this:\n\n~~~\nif x:\n    go()\n~~~"),
    ],
)
def test_only_the_form_differs(a: str, b: str) -> None:
    assert same(a, b)


@pytest.mark.parametrize(
    ("a", "b"),
    [
        ("Take 30 mg.", "Take 300 mg."),
        ("It is allowed.", "It is not allowed."),
        ("CO is a gas", "Co is a gas"),
        ("x\u00b2", "x2"),
        ("2*3*4", "234"),
        ("2 * 3", "2 3"),
        ("call __init__", "call init"),
        ('{"a": 1}', '{"a": 2}'),
        ('{"a": 1}', "[1]"),
        ("```\nif x:\n    go()\n```", "```\nif x:\ngo()\n```"),
        ("-5", "5"),
        ("", "0"),
    ],
)
def test_what_counts_is_kept(a: str, b: str) -> None:
    assert not same(a, b)


def test_tool_calls_agree_by_name_and_value_in_any_order() -> None:
    one = Said("", (("tide", '{"at": "noon", "day": 1}'), ("wind", "{}")))
    assert answer_key(one) == answer_key(Said("", (("wind", "{ }"), ("tide", '{"day":1,"at":"noon"}'))))
    assert answer_key(one) != answer_key(Said("", (("tide", '{"at": "noon", "day": 2}'), ("wind", "{}"))))
    assert answer_key(one) != answer_key(Said("", one.calls[:1]))
    assert answer_key(one) != answer_key(Said("")) != answer_key(Said("", (("", ""),)))


@pytest.mark.parametrize("text", ["\ud83d", "\x00", "{" * 50_000, '{"a": NaN}', "[1e999]", "{"])
def test_any_text_has_a_key(text: str) -> None:
    assert len(answer_key(Said(text, (("f", text),)))) == 32


def test_the_time_grows_with_the_length_only() -> None:
    text = " **a `b` # * -" * 100_000
    begun = time.process_time()
    answer_key(Said(text))
    assert time.process_time() - begun < 5
