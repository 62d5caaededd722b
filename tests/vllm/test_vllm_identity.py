"""Another model behind the same address, name and path gets none of the old one's answers, and the old one its own.

One server is restarted with each variant of the model in turn. Two services stand before it all the time: `seen` looks
at what is shown to all, `canary` also lets a few tokens be generated at each look.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

import pytest
from conftest import NewDatabase
from running import Service, running_service

from service.settings import DeclaredModel, Settings
from tests.vllm.server import MODEL, Vllm

LOOK_SECONDS = 30
TALK = [{"role": "user", "content": "When does the ferry leave?"}]
STAGES = ("base", "tokenizer", "template", "defaults", "weights", "base")
SERVICES = ("seen", "canary")


@dataclass(frozen=True)
class Stage:
    """What one service did under one variant: two equal requests. `kept`: the first stage's entry as it is read now."""

    first: str
    again: str
    text: str
    entry_id: str
    fingerprint: str
    revision: str | None
    kept: str | None


@pytest.fixture(scope="module")
def services(vllm: Vllm, new_database: NewDatabase) -> Iterator[dict[str, Service]]:
    with ExitStack() as stack:
        yield {
            name: stack.enter_context(
                running_service(
                    Settings(
                        database_url=stack.enter_context(new_database()),
                        upstream=vllm.url,
                        models={MODEL: DeclaredModel()},
                        probe_interval=0.2,
                        probe_canary=name == "canary",
                    )
                )
            )
            for name in SERVICES
        }


@pytest.fixture(scope="module")
def history(vllm: Vllm, services: dict[str, Service]) -> dict[str, list[Stage]]:
    """The stages as each service went through them."""
    went: dict[str, list[Stage]] = {name: [] for name in SERVICES}
    for number, variant in enumerate(STAGES):
        if number:
            vllm.serve(variant)
        for name, service in services.items():
            wait_for_look(service)
            went[name].append(go_through(service, went[name]))
    return went


def wait_for_look(service: Service) -> None:
    """Until a look at the model that begins from now on has ended well."""
    watched = service.runtime.models._models[MODEL]
    before, end = watched.look, time.monotonic() + LOOK_SECONDS
    while (look := watched.look) is None or look is before or not look.done() or look.exception():
        assert time.monotonic() < end, "the model was not looked at"
        time.sleep(0.05)


def go_through(service: Service, earlier: list[Stage]) -> Stage:
    first, text, _, fingerprint = ask(service)
    again = "COALESCED"
    while again == "COALESCED":
        again, repeated, entry_id, _ = ask(service)
        assert repeated == text
    identity = service.runtime.models._models[MODEL].identity
    assert identity
    kept = service.http.get(f"/v1/caches/default/entries/{earlier[0].entry_id}") if earlier else None
    response = kept.json()["response"] if kept else None
    return Stage(first, again, text, entry_id, fingerprint, identity.revision, response)


def ask(service: Service) -> tuple[str, str, str, str]:
    got = service.http.post("/v1/chat/completions", json={"model": MODEL, "messages": TALK, "seed": 4})
    body: Any = got.json()
    text = body["choices"][0]["message"]["content"]
    return got.headers["x-cache"], text, got.headers.get("x-cache-entry-id", ""), body["system_fingerprint"]


@pytest.mark.parametrize("variant", STAGES[1:-1])
def test_another_model_gets_no_old_answer(history: dict[str, list[Stage]], variant: str) -> None:
    stages = history["canary"]
    stage = stages[STAGES.index(variant)]
    assert (stage.first, stage.again) == ("MISS", "HIT")
    assert stage.text != stages[0].text
    assert sum(stage.revision == other.revision for other in stages) == 1


@pytest.mark.parametrize("name", SERVICES)
def test_the_old_model_gets_its_own_answer_again(history: dict[str, list[Stage]], name: str) -> None:
    first, *_, last = history[name]
    assert (first.first, first.again) == ("MISS", "HIT")
    assert (last.first, last.again) == ("HIT", "HIT")
    assert (last.text, last.entry_id, last.revision) == (first.text, first.entry_id, first.revision)


@pytest.mark.parametrize("name", SERVICES)
def test_old_answers_stay_readable(history: dict[str, list[Stage]], name: str) -> None:
    first, *later = history[name]
    assert [stage.kept for stage in later] == [first.text] * len(later)


@pytest.mark.parametrize("variant", ["tokenizer", "template", "defaults"])
def test_what_no_token_is_needed_for_is_seen_without_a_canary(history: dict[str, list[Stage]], variant: str) -> None:
    assert history["seen"][STAGES.index(variant)].first == "MISS"


def test_weights_are_seen_by_the_canary_only(history: dict[str, list[Stage]]) -> None:
    first, stage = history["seen"][0], history["seen"][STAGES.index("weights")]
    assert (stage.first, stage.text, stage.revision) == ("HIT", first.text, first.revision)


def test_what_is_declared_parts_what_nothing_shows(
    history: dict[str, list[Stage]], services: dict[str, Service]
) -> None:
    seen = services["seen"].runtime.settings
    declared = seen.model_copy(update={"models": {MODEL: DeclaredModel(revision="v2")}})
    with running_service(declared) as service:
        wait_for_look(service)
        assert ask(service)[0] == "MISS"
    assert ask(services["seen"])[0] == "HIT"


def test_vllms_own_fingerprint_tells_none_of_them_apart(history: dict[str, list[Stage]]) -> None:
    assert len({stage.fingerprint for stage in history["canary"]}) == 1
