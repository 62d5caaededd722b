"""The endpoints beside chat, and the data API's prompt with its scope."""

import pytest

from service.errors import Code, SemcacheError
from service.identity.model import ModelIdentity
from service.identity.prompt import SCOPE_FIELDS, identify_prompt
from service.identity.request import (
    KeyPolicy,
    Namespace,
    Reason,
    Tier,
    identify_chat,
    identify_completion,
    identify_embedding,
    identify_response,
)

PLACE = {"namespace": Namespace("north", "faq"), "policy": KeyPolicy()}
MODEL = ModelIdentity("small")
TEXT = "Which rope for a kite?"


def complete(**body):
    return identify_completion(body, model=MODEL, **PLACE)


def respond(**body):
    return identify_response({"input": TEXT} | body, model=MODEL, **PLACE)


def embed(**body):
    return identify_embedding(body, model=MODEL, **PLACE)


def prompt(text=TEXT, **scope):
    return identify_prompt(text, scope, **PLACE)


def distinct(*identities):
    return len({i.exact_key for i in identities}) == len(identities)


def verdict(identity):
    return identity.tier, identity.reason


def test_one_text_at_four_endpoints_is_four_requests():
    said = [{"role": "user", "content": TEXT}]
    chat = identify_chat({"messages": said}, model=MODEL, **PLACE)
    both = [
        chat,
        complete(prompt=TEXT),
        respond(),
        embed(input=TEXT),
        respond(input=said),
        embed(messages=said),
    ]
    assert distinct(*both)
    assert len({i.scope.key for i in both}) == 6


# -- completions ----------------------------------------


def test_a_completion_prompt_is_its_text():
    found = complete(prompt=" Once \n upon ")
    assert (found.text, found.turn, found.conversation) == ("Once upon", None, None)
    assert verdict(found) == (Tier.SEMANTIC, None)
    assert found.scope == complete(prompt="Another").scope
    assert distinct(found, complete(prompt="Once upon"), complete(prompt=["Once upon"]))


def test_a_list_of_one_text_is_kept_apart_but_compared():
    found = complete(prompt=["Once upon"])
    assert (found.text, *verdict(found)) == ("Once upon", Tier.SEMANTIC, None)
    assert found.scope.key != complete(prompt="Once upon").scope.key


@pytest.mark.parametrize(
    ("body", "tier", "reason"),
    [
        ({"prompt": ["a", "b"]}, Tier.EXACT, Reason.SEVERAL_PROMPTS),
        ({"prompt": [1, 2]}, Tier.EXACT, Reason.TOKEN_PROMPT),
        ({"prompt": [[1], [2]]}, Tier.EXACT, Reason.TOKEN_PROMPT),
        ({"prompt": " "}, Tier.EXACT, Reason.NO_TEXT),
        ({"prompt": "a", "echo": True}, Tier.EXACT, Reason.ECHO),
        ({"prompt": "a", "logprobs": 0}, Tier.EXACT, Reason.LOGPROBS),
        ({"prompt_embeds": "AAAA"}, Tier.BYPASS, Reason.PROMPT_EMBEDS),
        ({"prompt": []}, Tier.BYPASS, Reason.MALFORMED),
        ({"prompt": None}, Tier.BYPASS, Reason.MALFORMED),
        ({"prompt": 5}, Tier.BYPASS, Reason.MALFORMED),
        ({}, Tier.BYPASS, Reason.MALFORMED),
    ],
)
def test_completions_that_are_not_one_text(body, tier, reason):
    assert verdict(complete(**body)) == (tier, reason)


def test_suffix_and_messages_of_a_completion_separate():
    assert distinct(complete(prompt="a"), complete(prompt="a", suffix="b"), complete(prompt="a", messages=[]))


# -- responses ----------------------------------------


def test_instructions_are_the_system_part():
    plain, told = respond(), respond(instructions="In German.")
    assert set(told.scope.parts) - set(plain.scope.parts) == {"system"}
    assert plain.text == told.text == TEXT
    assert respond(instructions=None) == plain
    assert verdict(told) == (Tier.SEMANTIC, None)


def test_input_items_are_read_as_messages_with_their_ids_renumbered():
    def items(call, item):
        return [
            {
                "type": "message",
                "role": "user",
                "content": [{"type": "input_text", "text": "Free?"}],
                "id": item,
            },
            {"type": "function_call", "id": f"fc_{item}", "call_id": call, "name": "room", "arguments": "{}"},
            {"type": "function_call_output", "call_id": call, "output": "free"},
            {"role": "user", "content": [{"type": "input_text", "text": "Book it."}]},
        ]

    found = respond(input=items("c1", "i1"))
    assert found == respond(input=items("c2", "i2"))
    assert (found.text, found.tier) == ("Book it.", Tier.SEMANTIC)
    assert found.conversation == respond(input=items("c9", "i9")[:1]).turn
    stray = items("c1", "i1")
    stray[2]["call_id"] = "c3"
    assert distinct(found, respond(input=stray))


@pytest.mark.parametrize(
    ("body", "tier", "reason"),
    [
        ({"previous_response_id": "resp_1"}, Tier.BYPASS, Reason.PREVIOUS_RESPONSE_ID),
        ({"background": True}, Tier.BYPASS, Reason.SERVER_SIDE_STATE),
        ({"store": True}, Tier.BYPASS, Reason.SERVER_SIDE_STATE),
        ({"conversation": "conv_1"}, Tier.BYPASS, Reason.SERVER_SIDE_STATE),
        ({"prompt": {"id": "pmpt_1"}}, Tier.BYPASS, Reason.SERVER_SIDE_STATE),
        ({"input": [{"type": "item_reference", "id": "i"}]}, Tier.BYPASS, Reason.SERVER_SIDE_STATE),
        (
            {"input": [{"type": "reasoning", "id": "rs_1", "summary": []}]},
            Tier.BYPASS,
            Reason.SERVER_SIDE_STATE,
        ),
        (
            {"input": [{"role": "user", "content": [{"type": "input_image", "file_id": "f"}]}]},
            Tier.BYPASS,
            Reason.SERVER_SIDE_STATE,
        ),
        (
            {"input": [{"role": "user", "content": [{"type": "input_image", "image_url": "http://a.example"}]}]},
            Tier.BYPASS,
            Reason.IMAGE_BY_URL,
        ),
        (
            {
                "input": [
                    {
                        "type": "function_call_output",
                        "call_id": "c",
                        "output": [{"type": "input_file", "file_url": "x:"}],
                    }
                ]
            },
            Tier.BYPASS,
            Reason.MEDIA_BY_URL,
        ),
        ({"tools": [{"type": "web_search"}]}, Tier.BYPASS, Reason.SERVER_TOOLS),
        ({"tools": [{"type": "function", "name": "f"}]}, Tier.SEMANTIC, None),
        ({"store": False, "background": False, "tools": []}, Tier.SEMANTIC, None),
        ({"include": ["message.output_text.logprobs"]}, Tier.EXACT, Reason.LOGPROBS),
        ({"top_logprobs": 2}, Tier.EXACT, Reason.LOGPROBS),
        (
            {"input": [{"type": "function_call_output", "call_id": "c", "output": ""}]},
            Tier.EXACT,
            Reason.TOOL_RESULT_LAST,
        ),
        ({"input": []}, Tier.BYPASS, Reason.MALFORMED),
        ({"input": None}, Tier.BYPASS, Reason.MALFORMED),
        ({"input": [{"content": "neither role nor type"}]}, Tier.BYPASS, Reason.MALFORMED),
    ],
)
def test_tiers_of_responses(body, tier, reason):
    assert verdict(respond(**body)) == (tier, reason)


def test_a_citation_in_an_earlier_answer_is_no_picture():
    cited = {
        "type": "output_text",
        "text": "Hemp.",
        "annotations": [{"type": "url_citation", "url": "https://a.example"}],
    }
    found = respond(input=[{"role": "assistant", "content": [cited]}, {"role": "user", "content": TEXT}])
    assert found.tier is Tier.SEMANTIC


@pytest.mark.parametrize("name", ["text", "reasoning", "max_output_tokens", "max_tool_calls", "truncation", "include"])
def test_fields_of_responses_separate(name):
    assert distinct(respond(), respond(**{name: 1}), respond(**{name: 2}))


# -- embeddings ----------------------------------------


def test_embeddings_are_exact_only_and_never_sampled():
    found = embed(input=TEXT)
    assert (*verdict(found), found.text, found.sampled) == (Tier.EXACT, Reason.EMBEDDING, None, False)


def test_each_form_of_an_embedding_is_its_own_whichever_way_its_floats_are_spelt():
    assert distinct(
        embed(input="a"),
        embed(input=["a"]),
        embed(input=["a", "b"]),
        embed(input=["b", "a"]),
        embed(input=[1, 2]),
        embed(messages=[{"role": "user", "content": "a"}]),
        embed(input="a", dimensions=32),
        embed(input="a", encoding_format="bytes"),
        embed(input="a", embed_dtype="float16"),
        embed(input="a", endianness="big"),
    )
    assert embed(input="a", encoding_format="base64") == embed(input="a", encoding_format="float") == embed(input="a")
    assert embed(input="a", priority=3, user="u") == embed(input="a")


def test_embeddings_of_no_input_or_of_a_url():
    far = [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "https://a.example"}}]}]
    assert verdict(embed()) == (Tier.BYPASS, Reason.MALFORMED)
    assert verdict(embed(messages=far)) == (Tier.BYPASS, Reason.IMAGE_BY_URL)


# -- the data API ----------------------------------------


def test_a_prompt_is_the_chat_request_in_other_words():
    schema = {"type": "json_object"}
    found = prompt(
        model="small",
        revision="r1",
        tokenizer="t",
        chatTemplate="c",
        dtype="bfloat16",
        quantization="awq",
        kvCacheDtype="fp8",
        engineVersion="0.32.0",
        sampling={"temperature": 0, "top_p": 0.3},
        system="Be brief.",
        history=[{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}],
        tools=[{"type": "function"}],
        responseFormat=schema,
        user="u",
        salt="s",
    )
    body = {
        "messages": [
            {"role": "system", "content": "Be brief."},
            {"role": "user", "content": "a"},
            {"role": "assistant", "content": "b"},
            {"role": "user", "content": TEXT},
        ],
        "temperature": 0,
        "tools": [{"type": "function"}],
        "response_format": schema,
        "cache_salt": "s",
    }
    model = ModelIdentity("small", "r1", "t", "c", "bfloat16", "awq", "fp8", "0.32.0")
    assert found == identify_chat(body, model=model, **PLACE)


def test_every_scope_field_separates_and_null_is_absent():
    values = dict.fromkeys(SCOPE_FIELDS, "x") | {
        "sampling": {"temperature": 0},
        "responseFormat": {"type": "json_object"},
        "history": [{"role": "user", "content": "a"}],
        "tools": [{"type": "function"}],
    }
    by_user = {"namespace": PLACE["namespace"], "policy": KeyPolicy(share="user")}
    found = [identify_prompt(TEXT, {name: value}, **by_user) for name, value in values.items()]
    assert len({i.scope.key for i in [*found, prompt()]}) == len(SCOPE_FIELDS) + 1
    assert identify_prompt(TEXT, dict.fromkeys(SCOPE_FIELDS), **by_user) == identify_prompt(TEXT, {}, **by_user)


@pytest.mark.parametrize(
    ("scope", "told"),
    [
        ({"temperature": 0}, "no field 'temperature'"),
        ({"model": 7}, "model must be a string"),
        ({"sampling": []}, "sampling must be an object"),
        ({"history": {}}, "history must be a list"),
        ({"history": ["hello"]}, "object with a role"),
        ({"history": [{"role": "user", "content": 5}]}, "text or a list of parts"),
        ({"sampling": {"messages": []}}, "must not hold messages"),
        ({"sampling": {"temperature": float("nan")}}, "finite numbers"),
    ],
)
def test_a_scope_that_breaks_the_contract_is_refused_with_the_rule(scope, told):
    with pytest.raises(SemcacheError, match=told) as caught:
        prompt(**scope)
    assert caught.value.code is Code.INVALID_DATA


def test_a_prompt_without_text_is_exact_only():
    assert verdict(prompt("")) == (Tier.EXACT, Reason.NO_TEXT)
