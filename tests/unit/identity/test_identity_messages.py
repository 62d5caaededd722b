"""Which tier a chat request may use and why, and how messages with media and generated ids are read."""

import base64

import pytest

from service.identity.model import ModelIdentity
from service.identity.request import KeyPolicy, Namespace, Reason, Tier, identify_chat

MODEL = ModelIdentity("small")
HERE = Namespace("north", "faq")
USER = {"role": "user", "content": "Which rope for a kite?"}
TOOL = {
    "type": "function",
    "function": {"name": "stock", "parameters": {"type": "object", "required": ["part"]}},
}


def identify(body, *, namespace=HERE, model=MODEL, **policy):
    return identify_chat(body, namespace=namespace, model=model, policy=KeyPolicy(**policy))


def ask(**fields):
    return {"model": "small", "messages": [USER]} | fields


def talk(*messages, **fields):
    return {"model": "small", "messages": [{"role": m[0], "content": m[1]} for m in messages]} | fields


def keys(*bodies, **policy):
    found = [identify(body, **policy) for body in bodies]
    return {i.scope.key for i in found}, {i.exact_key for i in found}


def assert_apart(*bodies, **policy):
    scopes, exact = keys(*bodies, **policy)
    assert len(scopes) == len(exact) == len(bodies)


def assert_equal(*bodies, **policy):
    scopes, exact = keys(*bodies, **policy)
    assert len(scopes) == len(exact) == 1


# -- tiers and reasons ----------------------------------------


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"n": 2}, Reason.SEVERAL_CHOICES),
        ({"logprobs": True}, Reason.LOGPROBS),
        ({"top_logprobs": 3}, Reason.LOGPROBS),
        ({"prompt_logprobs": 0}, Reason.PROMPT_LOGPROBS),
        ({"echo": True}, Reason.ECHO),
        ({"return_token_ids": True}, Reason.RETURN_EXTRAS),
        ({"return_of_next_year": 1}, Reason.RETURN_EXTRAS),
        ({"logprob_token_ids": [1]}, Reason.RETURN_EXTRAS),
        ({"routed_experts_prompt_start": 0}, Reason.RETURN_EXTRAS),
        ({"use_beam_search": True}, Reason.BEAM_SEARCH),
    ],
)
def test_fields_that_allow_exact_hits_only(fields, reason):
    found = identify(ask(**fields))
    assert (found.tier, found.reason, found.text) == (Tier.EXACT, reason, "Which rope for a kite?")


@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"n": 1},
        {"n": 1.0},
        {"n": None},
        {"logprobs": False, "top_logprobs": 0},
        {"echo": False},
        {"return_token_ids": None},
    ],
)
def test_fields_that_ask_for_nothing_leave_the_semantic_tier(fields):
    found = identify(ask(**fields))
    assert (found.tier, found.reason) == (Tier.SEMANTIC, None)


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"kv_transfer_params": {"do_remote_prefill": True}}, Reason.KV_TRANSFER_PARAMS),
        ({"kv_transfer_params": {}}, Reason.KV_TRANSFER_PARAMS),
        ({"ec_transfer_params": {}}, Reason.EC_TRANSFER_PARAMS),
        ({"prompt_embeds": "AAAA"}, Reason.PROMPT_EMBEDS),
        ({"previous_response_id": "resp_1", "n": 2}, Reason.PREVIOUS_RESPONSE_ID),
    ],
)
def test_fields_that_bypass(fields, reason):
    found = identify(ask(**fields))
    assert (found.tier, found.reason) == (Tier.BYPASS, reason)


@pytest.mark.parametrize(
    ("messages", "reason", "text"),
    [
        (
            [USER, {"role": "tool", "tool_call_id": "c", "content": "3 m"}],
            Reason.TOOL_RESULT_LAST,
            USER["content"],
        ),
        ([USER, {"role": "assistant", "content": "Well,"}], Reason.LAST_TURN_NOT_USER, USER["content"]),
        ([{"role": "system", "content": "Speak."}], Reason.LAST_TURN_NOT_USER, None),
        ([{"role": "tool", "content": "3 m"}], Reason.TOOL_RESULT_LAST, None),
        ([{"role": "user", "content": " \n"}], Reason.NO_TEXT, None),
        ([{"role": "user", "content": None}], Reason.NO_TEXT, None),
        ([{"role": "user", "content": []}], Reason.NO_TEXT, None),
    ],
)
def test_last_turns_that_allow_exact_hits_only(messages, reason, text):
    found = identify(ask(messages=messages))
    assert (found.tier, found.reason, found.text) == (Tier.EXACT, reason, text)


def test_another_tool_result_or_prefill_is_another_request():
    def looked_up(result):
        return ask(messages=[USER, {"role": "tool", "tool_call_id": "c", "content": result}])

    assert_apart(looked_up("3 m"), looked_up("9 m"), ask(), talk(("user", USER["content"]), ("assistant", "3 m")))


@pytest.mark.parametrize(
    "body",
    [
        None,
        [],
        "text",
        {},
        {"messages": []},
        {"messages": {}},
        {"messages": "hello"},
        {"messages": ["hello"]},
        {"messages": [{"content": "no role"}]},
        {"messages": [{"role": 1, "content": "x"}]},
        {"messages": [{"role": "user", "content": 5}]},
        {"messages": [{"role": "user", "content": {"text": "x"}}]},
        {"messages": [{"role": "user", "content": [5]}]},
        {"messages": [{"role": "user", "content": [{"type": "text"}]}]},
        {"messages": [{"role": "assistant", "tool_calls": "f"}]},
        {"messages": [{"role": "assistant", "tool_calls": [{"id": 0}]}]},
        {"messages": [{"role": "tool", "tool_call_id": {}, "content": ""}]},
        {"messages": [USER], "temperature": float("nan")},
        {"messages": [USER], "other": [float("inf")]},
    ],
)
def test_what_has_not_the_form_of_the_api_is_passed_by(body):
    found = identify(body)
    assert (found.tier, found.reason, found.text) == (Tier.BYPASS, Reason.MALFORMED, None)


@pytest.mark.parametrize(
    ("fields", "sampled"),
    [
        ({}, True),
        ({"temperature": None}, True),
        ({"temperature": 0.001}, True),
        ({"temperature": 0}, False),
        ({"temperature": 0.0}, False),
        ({"use_beam_search": True, "temperature": 1}, False),
    ],
)
def test_what_counts_as_sampled(fields, sampled):
    assert identify(ask(**fields)).sampled is sampled


# -- media ----------------------------------------


def picture(data=b"\x89PNG 1", kind="image/png", **extra):
    url = f"data:{kind};base64,{base64.b64encode(data).decode()}"
    return {"type": "image_url", "image_url": {"url": url} | extra}


def beside(part, text="What is this?"):
    return talk(("user", [{"type": "text", "text": text}, part]))


def test_pictures_count_by_their_bytes_and_allow_exact_hits_only():
    found = identify(beside(picture()))
    assert (found.tier, found.reason, found.text) == (Tier.EXACT, Reason.NON_TEXT_LAST_TURN, "What is this?")
    assert_apart(
        beside(picture()),
        beside(picture(b"\x89PNG 2")),
        beside(picture(kind="image/webp")),
        beside(picture(detail="low")),
        talk(("user", "What is this?")),
    )


def test_one_picture_in_two_base64_spellings_agrees():
    def spelt(payload):
        return beside({"type": "image_url", "image_url": {"url": f"data:image/png;base64,{payload}"}})

    assert_equal(spelt("QQ=="), spelt("QR=="))
    assert_apart(spelt("QQ=="), spelt("QQ"), spelt("Q Q=="), spelt("***"))


def test_a_picture_in_the_history_leaves_the_semantic_tier():
    before = {"role": "user", "content": [picture()]}
    found = identify(ask(messages=[before, {"role": "assistant", "content": "A kite."}, USER]))
    assert found.tier is Tier.SEMANTIC


@pytest.mark.parametrize(
    ("part", "reason"),
    [
        ({"type": "image_url", "image_url": {"url": "https://a.example/1.png"}}, Reason.IMAGE_BY_URL),
        ({"type": "image_url", "image_url": "https://a.example/1.png"}, Reason.IMAGE_BY_URL),
        ({"image_url": "https://a.example/1.png"}, Reason.IMAGE_BY_URL),
        ({"type": "video_url", "video_url": {"url": "https://a.example/1.mp4"}}, Reason.MEDIA_BY_URL),
        ({"type": "file", "file": {"file_id": "file-1"}}, Reason.SERVER_SIDE_STATE),
        ({"type": "image_url", "image_url": None, "uuid": "u-1"}, Reason.SERVER_SIDE_STATE),
    ],
)
def test_media_that_the_request_only_points_to_are_passed_by(part, reason):
    for messages in (beside(part)["messages"], [*beside(part)["messages"], USER]):
        found = identify(ask(messages=messages))
        assert (found.tier, found.reason) == (Tier.BYPASS, reason)


def test_urls_count_as_they_are_where_the_policy_trusts_them():
    one, two = (beside({"type": "image_url", "image_url": {"url": f"https://a.example/{i}.png"}}) for i in "12")
    assert identify(one, trust_image_urls=True).tier is Tier.EXACT
    assert_apart(one, two, trust_image_urls=True)


def test_sounds_and_files_count_by_their_bytes():
    def sound(data, **extra):
        return beside({"type": "input_audio", "input_audio": {"data": data, "format": "wav"} | extra})

    def file(data):
        return beside({"type": "file", "file": {"filename": "a.pdf", "file_data": data}})

    assert_equal(sound("QQ=="), sound("QR=="))
    assert_apart(sound("QQ=="), sound("QUI="), sound("x,QQ=="), sound("xdata;base64,QQ=="))
    assert_apart(file("data:application/pdf;base64,QQ=="), file("data:application/pdf;base64,QUI="))
    assert identify(sound("QQ==")).reason is Reason.NON_TEXT_LAST_TURN


# -- generated ids and conversations ----------------------------------------


def booking(call, message, last="Book it."):
    return ask(
        messages=[
            {"role": "user", "content": "Is the room free?", "id": f"{message}-1"},
            {
                "role": "assistant",
                "content": None,
                "id": f"{message}-2",
                "tool_calls": [{"id": call, "type": "function", "function": {"name": "room", "arguments": "{}"}}],
            },
            {"role": "tool", "tool_call_id": call, "content": "free"},
            {"role": "user", "content": last, "id": f"{message}-4"},
        ]
    )


def test_generated_ids_change_nothing():
    assert identify(booking("call_a", "run-1")) == identify(booking("call_b", "run-2"))
    assert identify(booking("call_a", "run-1")).tier is Tier.SEMANTIC
    assert len(keys(booking("a", "1"), booking("b", "2", last="Book it, please."))[0]) == 1


def test_a_result_of_another_call_is_another_conversation():
    stray = booking("call_a", "run-1")
    stray["messages"][2]["tool_call_id"] = "call_b"
    assert_apart(booking("call_a", "run-1"), stray)


def test_the_body_is_left_as_it_was():
    body = booking("call_a", "run-1")
    body["messages"][3]["content"] = [picture()]
    before = repr(body)
    identify(body)
    assert repr(body) == before


def test_a_conversation_starts_without_one_before_it():
    opening = identify(talk(("system", "Be brief."), ("user", "a")))
    answered = [("system", "Be brief."), ("user", "a"), ("assistant", "b")]
    second = identify(talk(*answered, ("user", "c"), temperature=0), model=ModelIdentity("other"))
    other = identify(talk(*answered[1:], ("user", "c")))
    assert opening.conversation is None
    assert second.conversation == opening.turn
    assert other.conversation not in (None, opening.turn)


def test_keys_are_the_ones_that_earlier_releases_stored():
    """If this fails, stored answers are no longer found: raise CANONICAL_VERSION on purpose, or mend the change."""
    found = identify(booking("call_a", "run-1") | {"temperature": 0.5, "tools": [TOOL], "cache_salt": "s"})
    assert found.scope.key.hex() == "d197a1054b908281fadff58078bda08083ac5dab7d8c3c01ef471b24b1120979"
    assert found.exact_key.hex() == "16cc52ffb55a5cfed0c1e943b2838a63e6cf00f5fa0216dc17294659fb406d7f"
    assert found.turn.hex() == "ce3504e7924419756676d93e95bfa7fcf86c24c5683fa9fa4db8ae98de61c9d7"
