"""Write docs/errors.md anew from the codes themselves: `python docs/errors_table.py`."""

from __future__ import annotations

from pathlib import Path

from service.errors import Code

PAGE = Path(__file__).with_name("errors.md")
HEAD = """# Errors and reasons

`python docs/errors_table.py` writes this page.

## Errors

The data API answers failures as problem+json (RFC 9457), with a stable `code`; `detail` says what failed, the rule
and the mend, and never a prompt's text or a secret. Of several fields that break a rule each stands in `errors`. The
proxy answers in OpenAI's form, `{"error": {"message", "type", "param", "code"}}`, with the same codes and statuses,
but for `invalid_data`, which is 400 there. What the model server itself answers, errors too, goes through as it is.
503 comes with `Retry-After`, 401 with `WWW-Authenticate`. In psql and other clients of the database the functions
raise the SQLSTATE.

| code | status | what it means | type | SQLSTATE |
|---|---|---|---|---|
"""
BETWEEN = """
## What `x-cache` says

| `x-cache` | what was served |
|---|---|
| `HIT` | the stored answer of the same request |
| `SEMANTIC-HIT` | that of a near entry |
| `STALE` | one after its end, as the policy allows |
| `COALESCED` | the answer that an equal request was waiting for |
| `MISS` | the model's, since nothing that is stored may serve |
| `REFRESH` | the model's, since the caller wanted a fresh one |
| `BYPASS` | the model's: the cache is not for this request |
| `ERROR` | the model's, since the cache failed |

## Reasons

`x-cache-reason` of the proxy, `reason` of a search, of `semcache.request_log` and of the metrics. `explain` gives
them for each near entry, and `guard_` with the name of the guard that kept it back. A code of the table above is a
reason too, where the cache failed by it.

| reason | what it means |
|---|---|
"""
REASONS = {
    "same_request": "the same request was answered before",
    "accepted": "the policy accepts the near entry",
    "second_stage_accepted": "the policy left it in doubt, and the second stage accepts it",
    "in_flight": "an equal request was under way, and both got its answer",
    "landed": "an equal request had just been answered",
    "revalidating": "an answer after its end, while the model is asked in the background",
    "upstream_failed": "the model failed, and a stored answer stands in",
    "no_entry": "nothing is stored in this scope",
    "too_old": "the stored answer to this request is older than the caller's `max-age`",
    "ends_too_soon": "the stored answer to this request has less left than the caller's `min-fresh`",
    "no_neighbour": "nothing that is stored in this scope may be looked at",
    "below_floor": "the nearest entry is too far for any policy",
    "below_threshold": "the nearest entry is not near enough",
    "other_text": "at a threshold of 1 only the same text would do",
    "guard_blocked": "the nearest entry differs in something that vectors do not see, as a number or a name",
    "guard_gray": "a guard is in doubt about the nearest entry",
    "unlikely": "the policy finds it too improbable that the answer of a near entry is right",
    "unfamiliar": "nothing near is known to be asked in other words, so that likeness may mean nothing yet",
    "uncalibrated": "the cache has a budget and too few labels to serve neighbours by it",
    "outranked": "another near entry was chosen",
    "disputed": "the cache's policy and the one that the caller asks for choose different answers",
    "second_stage_rejected": "the second stage found the near entry wrong",
    "second_stage_failed": "the second stage failed or was too slow",
    "explored": "a semantic hit is checked: the model is asked, and both answers are compared",
    "exact_only": "the policy or the caller wants exact hits only, and there is none",
    "variants_filling": "several answers are kept of this prompt, and not all are there yet",
    "refresh": "the caller wants a fresh answer",
    "mode_off": "the policy or the caller has the cache off",
    "shadow": "the cache is in shadow: it decides, and the model answers",
    "sampled": "the policy keeps no answers of sampled requests",
    "model_identity_unknown": "no probe has seen the model yet, so nobody can say whose answers are stored",
    "route": "the route is not cached",
    "deadline": "the lookup took too long, and the model was asked without it",
    "malformed": "the request is not one that the cache can read; the model server is to judge it",
    "kv_transfer_params": "the field may replace the prompt",
    "ec_transfer_params": "the field may replace the prompt",
    "prompt_embeds": "the field replaces the prompt",
    "previous_response_id": "the request continues what only the model server holds",
    "server_side_state": "the request uses or makes state that only the model server holds",
    "server_tools": "the model server runs tools for it",
    "image_by_url": "an image behind a URL may change; `trustImageUrls` lets the URL count",
    "media_by_url": "media behind a URL may change",
    "embedding": "vectors are matched exactly",
    "tool_result_last": "after a tool's result only the same conversation hits",
    "last_turn_not_user": "the last message is not the user's, so only the same conversation hits",
    "non_text_last_turn": "the last message has more than text, so only the same one hits",
    "no_text": "there is no text that could be near another, so only the same request hits",
    "not_rewritten": "the question was not rewritten to stand alone in time, so only the same conversation hits",
    "token_prompt": "a prompt of tokens is matched exactly",
    "several_prompts": "several prompts at once are matched exactly",
    "several_choices": "`n` above 1 is matched exactly",
    "logprobs": "answers with log probabilities are matched exactly",
    "prompt_logprobs": "answers with the prompt's log probabilities are matched exactly",
    "echo": "answers that repeat the prompt are matched exactly",
    "return_extras": "answers with `return_…` extras are matched exactly",
    "beam_search": "beam search is matched exactly",
}


def page() -> str:
    kinds = [(code.slug, code.value) for code in Code]
    codes = [
        f"| `{slug}` | {kind.status} | {kind.title} | `{kind.type}` | {kind.sqlstate or ''} |\n" for slug, kind in kinds
    ]
    reasons = [f"| `{reason}` | {text} |\n" for reason, text in REASONS.items()]
    return HEAD + "".join(codes) + BETWEEN + "".join(reasons)


if __name__ == "__main__":
    PAGE.write_text(page())
