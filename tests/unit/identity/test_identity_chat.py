"""What separates and what merges two chat requests, rule by rule."""

import textwrap

import pytest

from service.identity.model import ModelIdentity
from service.identity.request import KeyPolicy, Namespace, Tier, identify_chat
from service.identity.scope import PART_NAMES
from service.identity.tier import Reason

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


# -- what separates ----------------------------------------

OUTPUT_FIELDS = {
    "temperature": (0.7, 1.3),
    "top_p": (0.9, 0.5),
    "top_k": (20, 0),
    "min_p": (0.1, 0),
    "presence_penalty": (0.1, 0),
    "frequency_penalty": (0.2, 0),
    "repetition_penalty": (1.1, 1),
    "seed": (7, 0),
    "logit_bias": ({"50": 1}, {"50": -1}),
    "allowed_token_ids": ([1], []),
    "bad_words": (["tar"], []),
    "vllm_xargs": ({"a": 1}, {}),
    "max_tokens": (200, 20),
    "max_completion_tokens": (200, 20),
    "min_tokens": (3, 0),
    "ignore_eos": (True, False),
    "stop": (["END"], []),
    "stop_token_ids": ([1], []),
    "include_stop_str_in_output": (True, False),
    "use_beam_search": (True, False),
    "length_penalty": (1.5, 1),
    "n": (2, 1),
    "thinking_token_budget": (100, 0),
    "skip_special_tokens": (True, False),
    "logprobs": (True, False),
    "echo": (True, False),
    "tools": ([TOOL], [TOOL, TOOL]),
    "tool_choice": ("none", "required"),
    "parallel_tool_calls": (True, False),
    "response_format": ({"type": "json_object"}, {"type": "text"}),
    "structured_outputs": ({"choice": ["a"]}, {"choice": ["b"]}),
    "guided_regex": ("[a-z]", ""),
    "chat_template": ("{{ a }}", ""),
    "chat_template_kwargs": ({"enable_thinking": False}, {"enable_thinking": True}),
    "add_generation_prompt": (True, False),
    "continue_final_message": (True, False),
    "documents": ([{"text": "a"}], []),
    "truncate_prompt_tokens": (9, -1),
    "reasoning_effort": ("low", "high"),
    "mm_processor_kwargs": ({"a": 1}, {}),
    "cache_salt": ("floor-17", "floor-18"),
    "verbosity": ("low", "high"),
    "a_field_of_next_year": ({"level": 2}, None),
}
KNOWN = OUTPUT_FIELDS.keys() - {"a_field_of_next_year", "guided_regex"}


@pytest.mark.parametrize("name", OUTPUT_FIELDS)
def test_each_output_field_separates_and_absent_is_no_constant(name):
    one, two = OUTPUT_FIELDS[name]
    assert_apart(ask(), ask(**{name: one}), ask(**{name: two}))


def test_absent_defaults_are_not_filled_in():
    assert_apart(ask(), ask(temperature=0), ask(temperature=1), ask(temperature=1, top_p=1), ask(n=1))


@pytest.mark.parametrize(
    ("fields", "part"),
    [
        ({"tools": [TOOL]}, "tools"),
        ({"tool_choice": "none"}, "tools"),
        ({"response_format": {"type": "json_object"}}, "format"),
        ({"chat_template_kwargs": {}}, "template"),
        ({"cache_salt": "s"}, "salt"),
        ({"of_next_year": 1}, "other"),
        ({"messages": [{"role": "system", "content": "In German."}, USER]}, "system"),
        ({"messages": [USER, {"role": "assistant", "content": "Hemp."}, USER]}, "history"),
        ({"messages": [USER | {"name": "ann"}]}, "last_turn"),
        ({"messages": [USER | {"content": "Which rope here:\n  - hemp\n  - steel"}]}, "layout"),
    ],
)
def test_the_part_that_differs_is_named(fields, part):
    plain, other = identify(ask()).scope, identify(ask(**fields)).scope
    assert dict(other.parts) == dict(plain.parts) | {part: other.parts[part]}
    assert set(plain.parts) == {"endpoint"}
    assert part in PART_NAMES
    assert other.sampling == plain.sampling == "{}"


@pytest.mark.parametrize(
    ("spaced", "plain"),
    [
        ('Is "a  b" a word?', 'Is "a b" a word?'),
        ("Is `a\tb` a word?", "Is `a b` a word?"),
        ("Sort:\n- hemp\n  - steel", "Sort:\n- hemp\n- steel"),
    ],
)
def test_white_space_in_quotations_code_and_lists_keeps_apart_what_is_the_same_text(spaced, plain):
    one, two, loose = (identify(talk(("user", text))) for text in (spaced, plain, plain.replace(" ", "  ", 1)))
    assert one.text == two.text
    assert one.scope.key != two.scope.key
    if "\n" not in plain:
        assert two.scope == loose.scope


LOOP = "What does this print?\n{fence}\nfor knot in knots:\n    last = knot\n{indent}print(last)\n{fence}"


@pytest.mark.parametrize("fence", ["```", ""])
def test_indentation_of_code_keeps_apart_what_is_the_same_text(fence):
    """In Python and YAML it is a part of what is said."""
    inside, outside = (LOOP.format(fence=fence, indent=indent) for indent in ("    ", ""))
    one, two, shifted = (identify(talk(("user", text))) for text in (inside, outside, textwrap.indent(inside, "  ")))
    assert one.text == two.text
    assert one.scope.key != two.scope.key
    assert one.scope == shifted.scope


def test_white_space_of_plain_text_is_no_part_of_the_scope():
    texts = ("Which rope for a kite?", " Which\n  rope  for\n\n\ta kite?\r\n", "Which rope\nfor a kite?")
    asked = [identify(talk(("user", text))) for text in texts]
    assert {(each.scope.key, each.text) for each in asked} == {(asked[0].scope.key, texts[0])}


def test_users_are_a_part_where_the_policy_separates_them():
    one, two = ask(user="u-1"), ask(user="u-2")
    assert_equal(ask(), one, two, ask(safety_identifier="s"))
    assert_apart(ask(), one, two, ask(safety_identifier="u-1"), share="user")
    assert_equal(ask(), ask(user=None), share="user")
    assert "user" in identify(one, share="user").scope.parts


def test_a_callers_salt_keeps_its_requests_apart_and_stands_beside_the_engines():
    body = ask(cache_salt="a")
    salted = (("x-bf-cache-key", "b"),)
    assert identify(body).exact_key != identify(body, salt=salted).exact_key
    assert identify(ask(), salt=salted).scope.parts["salt"] != identify(body, salt=salted).scope.parts["salt"]
    assert identify(ask(), salt=()).exact_key == identify(ask()).exact_key


def test_a_seed_that_chooses_among_answers_is_no_part_of_the_key():
    one, two = ask(temperature=0.7, seed=1), ask(temperature=0.7, seed=2)
    assert_apart(one, two)
    assert_equal(one, two, ask(temperature=0.7), seed_chooses=True)


def test_tenant_cache_and_model_are_in_every_key():
    places = [
        Namespace("north", "faq"),
        Namespace("south", "faq"),
        Namespace("north", "faq2"),
        Namespace("nort", "hfaq"),
    ]
    models = [
        MODEL,
        ModelIdentity("lab_a.7b"),
        ModelIdentity("lab-a.7b"),
        ModelIdentity("small", revision="r2"),
    ]
    body = {"messages": [USER]}
    found = [identify(body, namespace=n) for n in places] + [identify(body, model=m) for m in models[1:]]
    assert len({i.scope.key for i in found}) == len({i.exact_key for i in found}) == 7
    assert len({i.turn for i in found}) == 4


def test_every_member_of_a_model_identity_separates():
    members = [
        "revision",
        "tokenizer",
        "chat_template",
        "dtype",
        "quantization",
        "kv_cache_dtype",
        "engine_version",
    ]
    models = [ModelIdentity("small"), *(ModelIdentity("small", **{name: "x"}) for name in members)]
    assert len({m.key for m in models}) == len(models)
    assert ModelIdentity("small", dtype="x").key == ModelIdentity("small", dtype="x").key


def test_the_bodys_model_counts_once_and_never_hides():
    assert_equal(ask(), {"messages": [USER]}, ask(model=""), ask(model=None))
    assert_apart(ask(), ask(model="another"))


def test_a_system_prompt_before_is_not_one_in_the_middle():
    rule = ("system", "In German.")
    assert_apart(
        talk(rule, ("user", "a"), ("assistant", "b"), ("user", "c")),
        talk(("user", "a"), rule, ("assistant", "b"), ("user", "c")),
        talk(("developer", "In German."), ("user", "a"), ("assistant", "b"), ("user", "c")),
        talk(("system", "In "), ("system", "German."), ("user", "a"), ("assistant", "b"), ("user", "c")),
    )


def test_the_same_follow_up_after_another_history_is_another_scope():
    assert_apart(
        talk(("user", "The Danube?"), ("assistant", "Ten countries."), ("user", "How long?")),
        talk(("user", "The Rhine?"), ("assistant", "Six countries."), ("user", "How long?")),
        talk(("user", "The Danube?Ten"), ("assistant", " countries."), ("user", "How long?")),
        talk(("user", "The Danube?"), ("user", "Ten countries."), ("user", "How long?")),
        talk(("user", "How long?")),
    )


# -- what merges ----------------------------------------


def test_null_is_absent_but_for_unknown_fields():
    assert_equal(ask(), *(ask(**{name: None}) for name in sorted(KNOWN)), ask(**dict.fromkeys(KNOWN)))
    assert_apart(ask(), ask(guided_regex=None))


def test_no_choice_among_tools_is_another_choice_than_the_servers():
    assert_apart(ask(tools=[TOOL]), ask(tools=[TOOL], tool_choice=None))


def test_null_members_of_messages_are_absent():
    said = {"role": "assistant", "content": "Hemp."}
    nulls = dict.fromkeys(("name", "refusal", "audio", "function_call", "tool_calls"))
    assert_equal(ask(messages=[USER, said, USER]), ask(messages=[USER | {"name": None}, said | nulls, USER]))
    called = {"role": "assistant", "tool_calls": [{"id": "c1", "type": "function", "function": {"name": "f"}}]}
    assert_equal(ask(messages=[USER, called, USER]), ask(messages=[USER, called | {"content": None}, USER]))


def test_zero_temperature_makes_the_sampling_fields_irrelevant():
    greedy = ask(temperature=0)
    assert_equal(greedy, ask(temperature=0.0, top_p=0.4, top_k=7, min_p=0.1, seed=9), ask(temperature=-0.0))
    assert_apart(greedy, ask(temperature=0, repetition_penalty=1.1), ask(temperature=0.5))
    assert_apart(ask(temperature=0.5), ask(temperature=0.5, seed=9), ask(temperature=0.5, top_p=0.4))


@pytest.mark.parametrize("spelt", [False, "0", [0]])
def test_only_the_number_zero_is_greedy(spelt):
    assert identify(ask(temperature=spelt)).sampled
    assert_apart(ask(temperature=0), ask(temperature=spelt), ask(temperature=spelt, seed=1))


@pytest.mark.parametrize(
    ("one", "two"),
    [
        ({"stop": "x"}, {"stop": ["x"]}),
        ({"temperature": 0.001}, {"temperature": 0.01}),
        ({"top_k": -1}, {"top_k": 0}),
        ({"seed": -1}, {}),
        ({"stop_token_ids": [3, 1, 3]}, {"stop_token_ids": [3, 1]}),
        ({"bad_words": ["a", "b", "a"]}, {"bad_words": ["a", "b"]}),
        ({"logit_bias": {"050": 300, "7": -300.5}}, {"logit_bias": {"50": 100, "7": -100}}),
    ],
)
def test_what_the_engine_normalises_is_merged(one, two):
    assert_equal(ask(**one), ask(**two))


@pytest.mark.parametrize(
    ("one", "two"),
    [
        ({"stop": []}, {}),
        ({"stop": ["x", "y"]}, {"stop": ["y", "x"]}),
        ({"stop": ["x", "x"]}, {"stop": ["x"]}),
        ({"top_k": 0}, {}),
        ({"seed": True}, {"seed": 1}),
        ({"stop_token_ids": [1, True]}, {"stop_token_ids": [1]}),
        ({"logit_bias": {"50": 1, "050": 2}}, {"logit_bias": {"50": 2}}),
        ({"logit_bias": {"fifty": 200}}, {"logit_bias": {"fifty": 100}}),
        ({"max_tokens": 5, "max_completion_tokens": 7}, {"max_completion_tokens": 7}),
        ({"temperature": 0.01}, {"temperature": 0.02}),
    ],
)
def test_nothing_else_is_merged(one, two):
    assert_apart(ask(**one), ask(**two))


def test_sampling_is_readable_canonical_json():
    scope = identify(ask(temperature=1.0, stop="\ud83d\x00", max_tokens=1e2)).scope
    assert scope.sampling == r'{"max_tokens":100,"stop":["\ud83d\u0000"],"temperature":1}'
    assert (
        scope.sampling_key
        == identify(talk(("user", "x"), temperature=1, stop="\ud83d\x00", max_tokens=100)).scope.sampling_key
    )
    assert scope.sampling_key != identify(ask()).scope.sampling_key


def test_schema_key_order_is_nothing_but_the_order_of_tools_counts():
    other = {
        "function": {"parameters": {"required": ["part"], "type": "object"}, "name": "stock"},
        "type": "function",
    }
    second = {"type": "function", "function": {"name": "depth"}}
    assert_equal(ask(tools=[TOOL, second]), ask(tools=[other, second]))
    assert_apart(ask(tools=[TOOL, second]), ask(tools=[second, TOOL]))


# -- text ----------------------------------------


def test_semantic_text_is_normalised_and_the_exact_key_is_not():
    loose, tight = (
        talk(("user", "  Cafe\u0301\n\t in  Bruges?\u00a0")),
        talk(("user", "Caf\u00e9 in Bruges?")),
    )
    one, two = identify(loose), identify(tight)
    assert one.text == two.text == "Caf\u00e9 in Bruges?"
    assert one.scope.key == two.scope.key
    assert one.exact_key != two.exact_key
    assert one.tier is Tier.SEMANTIC


def test_a_letter_under_more_marks_than_a_text_has_is_matched_exactly():
    marked = identify(talk(("user", "a" + "\u0301\u0323" * 20)))
    assert (marked.tier, marked.reason, marked.text) == (Tier.EXACT, Reason.NO_TEXT, None)
    assert identify(talk(("user", "a" + "\u0301\u0323" * 15 + "\U0001f44d" * 40))).tier is Tier.SEMANTIC


def test_case_is_kept():
    assert identify(talk(("user", "US or us"))).text == "US or us"


def test_text_parts_are_joined_but_their_borders_are_kept():
    def parts(*texts):
        return talk(("user", [{"type": "text", "text": text} for text in texts]))

    found = identify(parts("Name a knot", "for two ropes"))
    assert (found.text, found.tier) == ("Name a knot for two ropes", Tier.SEMANTIC)
    assert_apart(parts("ab", "c"), talk(("user", "ab\nc")), parts("ab\nc"))
    assert len(keys(parts("ab", "c"), parts("a", "bc"))[1]) == 2
    assert len(keys(parts("ab", "c"), parts("a", "bc"))[0]) == 1


def test_lone_surrogates_and_nul_are_text_like_any_other():
    one, two = identify(talk(("user", "half \ud83d\x00"))), identify(talk(("user", "half \ud83e\x00")))
    assert one.text == "half \ud83d\x00"
    assert one.exact_key != two.exact_key
