"""Requests made from the OpenAPI document, and against it: none is a fault of the service."""

from __future__ import annotations

import schemathesis
from calls import Cache
from hypothesis import HealthCheck, settings
from openapi_document import OPENAPI_FILE
from running import Service
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import content_type_conformance, response_schema_conformance

schema = schemathesis.openapi.from_path(OPENAPI_FILE)
bounded = settings(
    max_examples=10,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow, HealthCheck.filter_too_much],
)


@schema.exclude(path_regex="/entries").parametrize()
@bounded
def test_no_request_is_a_fault(case: schemathesis.Case, shared_service: Service) -> None:
    check(case, shared_service)


@schema.include(path_regex="cache_id").parametrize()
@bounded
def test_no_request_to_what_exists_is_a_fault(case: schemathesis.Case, shared_service: Service, cache: Cache) -> None:
    entry = cache.http.post(cache.entries, json={"prompt": "How do figs ripen?", "response": "Slowly."})
    case.path_parameters["cache_id"] = cache.name
    if "entry_id" in case.path_parameters and entry.is_success:
        case.path_parameters["entry_id"] = entry.json()["entryId"]
    check(case, shared_service)


def check(case: schemathesis.Case, service: Service) -> None:
    checks = [not_a_server_error, content_type_conformance, response_schema_conformance]
    case.call_and_validate(base_url=service.base, checks=checks, timeout=10)
