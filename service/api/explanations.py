"""Routes that tell why: what a prompt or a request of the proxy would get, and what one that was asked has got."""

from __future__ import annotations

from fastapi import APIRouter, Response

from service.api.context import CacheOf, RuntimeOf, respond
from service.api.controls import parse_controls
from service.api.limits import check_depth, check_prompted
from service.api.problems import RESPONSES
from service.api.schemas import (
    Explain,
    ExplanationView,
    GuardView,
    LoggedRequest,
    LoggedRequests,
    NeighbourView,
    ProxiedRequest,
)
from service.cache import data, statistics
from service.cache.call import Call
from service.cache.explain import Explanation, explain_call
from service.errors import Code, SemcacheError
from service.policy.guards.checks import Verdict
from service.settings import Settings
from service.upstream.answer import PATHS

_ENDPOINTS = {path: endpoint for endpoint, path in PATHS.items()}

router = APIRouter(prefix="/v1/caches/{cache_id}", tags=["explanations"], responses=RESPONSES)


@router.post("/explain", response_model=ExplanationView, summary="Why a prompt or a request hits or misses")
async def explain(body: Explain, runtime: RuntimeOf, cache: CacheOf) -> Response:
    if body.request is not None:
        if beside := body.model_fields_set - {"request", "limit"}:
            raise SemcacheError(
                Code.INVALID_DATA, f"request: says all by itself; leave out {', '.join(sorted(beside))}"
            )
        call = _call(body.request, runtime.settings)
        return respond(explanation_view(await explain_call(runtime, cache, call, body.limit)))
    if body.prompt is None:
        raise SemcacheError(Code.INVALID_DATA, "prompt: Field required, or request in its place")
    check_prompted(runtime.settings, body.prompt, body.attributes, body.scope)
    prompt = data.Prompt(body.prompt, body.scope, body.attributes, body.similarity_threshold, decision=body.decision)
    return respond(explanation_view(await data.explain(runtime, cache, prompt, body.limit)))


@router.get("/requests/{request_id}", response_model=LoggedRequests, summary="What requests with this x-request-id got")
async def logged(request_id: str, runtime: RuntimeOf, cache: CacheOf) -> Response:
    rows = await statistics.read_logged(runtime, cache, request_id)
    return respond(LoggedRequests(data=[LoggedRequest.model_validate(row) for row in rows]))


def _call(request: ProxiedRequest, settings: Settings) -> Call:
    check_depth(request.body, settings.max_json_depth, "request.body")
    headers = [(_raw(name.lower()), _raw(value)) for name, value in request.headers.items()]
    controlled = parse_controls(headers, request.body, max_tags=settings.max_tags)
    return Call(
        endpoint=_ENDPOINTS[request.path],
        path=request.path,
        query=request.query,
        headers=controlled.headers,
        raw=b"",
        body=controlled.body,
        controls=controlled.controls,
        key=None,
    )


def _raw(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


def explanation_view(found: Explanation) -> ExplanationView:
    return ExplanationView.model_validate(
        {
            "outcome": found.outcome,
            "reason": found.reason,
            "decision": found.decision,
            "threshold": found.threshold,
            "cut": found.cut,
            "entryId": found.entry_id.hex if found.entry_id else None,
            "similarity": found.similarity,
            "neighbours": [
                NeighbourView(
                    id=near.entry_id.hex,
                    prompt=near.prompt,
                    similarity=near.similarity,
                    obstacles=near.obstacles,
                    scope_differs_in=near.scope_differs_in,
                    guards=[_guard(verdict) for verdict in near.guards],
                    probability=near.probability,
                    would_change=near.would_change,
                )
                for near in found.neighbours
            ],
            "wouldChange": found.would_change,
        }
    )


def _guard(verdict: Verdict) -> GuardView:
    return GuardView(guard=verdict.guard.value, outcome=verdict.outcome.value, evidence=verdict.evidence)


__all__ = ["explanation_view", "router"]
