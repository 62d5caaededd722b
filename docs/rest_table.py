"""Write docs/rest.md anew from the service's OpenAPI document: `python docs/rest_table.py`."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path
from typing import Any

from service.api.app import create_app
from service.settings import Settings

PAGE = Path(__file__).with_name("rest.md")
HEAD = """# REST

The data API, for applications that look up and store by themselves. [proxy.md](proxy.md) has the OpenAI routes.
`/docs` is this page to try out, `/openapi.json` the document; `python docs/rest_table.py` writes this page from it.

- `Authorization: Bearer KEY`, once a key exists. Bodies are JSON, names camelCase, times RFC 3339, lifetimes
  milliseconds, similarities cosine, 0 to 1, higher is closer. An unknown field is refused, and 0 is a value, not
  "unset".
- A miss is 200 with `data: []` and a `reason`. Failures are problem+json: [errors.md](errors.md) has codes and
  reasons.
- Lists of caches and of entries come in pages: pass `nextCursor` as `cursor` until it is null. Calls in batches answer
  200, with a status for each item.
- Searches take the header `x-session-id`: the request graph, and so prefetching, learns from it what follows what.
- What is acknowledged of a flush, delete, quarantine or verdict holds on every replica.

```console
$ curl -s localhost:8080/v1/caches -H 'content-type: application/json' \\
    -d '{"name": "faq", "policy": {"ttlMillis": 86400000}}'
$ curl -s localhost:8080/v1/caches/faq/entries -H 'content-type: application/json' \\
    -d '{"prompt": "How do I reset my password?", "response": "Under Settings.", "tags": ["manual"]}'
$ curl -s localhost:8080/v1/caches/faq/entries/search -H 'content-type: application/json' \\
    -d '{"prompt": "How can I reset my password?", "explain": true}'
$ curl -s localhost:8080/v1/caches/faq/feedback -H 'content-type: application/json' \\
    -d '{"entryId": "75d76d2b0ded4f838115b308e78f153e", "verdict": "wrong", "prompt": "How can I reset my password?"}'
$ curl -s -X DELETE localhost:8080/v1/caches/faq/entries -H 'content-type: application/json' \\
    -d '{"tags": ["manual"], "dryRun": true}'
{"deletedEntriesCount":1}
```
"""


def page() -> str:
    document = create_app(Settings(), "postgresql://").openapi()
    calls = [(path, method, call) for path, methods in document["paths"].items() for method, call in methods.items()]
    inline = {body["title"]: body for _, _, call in calls if "title" in (body := _body(call.get("requestBody")))}
    bodies = document["components"]["schemas"] | inline
    return "".join([HEAD, *_calls(calls), "\n## Bodies\n", *_bodies(bodies)])


def _calls(calls: list[tuple[str, str, Any]]) -> Iterator[str]:
    """Each call with what it takes and gives, by tag."""
    for tag, group in groupby(calls, lambda item: item[2]["tags"][0]):
        yield f"\n## {tag.capitalize()}\n\n| call | | takes | answers |\n|---|---|---|---|\n"
        for path, method, call in group:
            query = [_parameter(item) for item in call.get("parameters", ()) if item["in"] == "query"]
            takes = ", ".join([*_named(call.get("requestBody")), *query])
            status, answer = next(iter(call["responses"].items()))
            answers = " ".join([status, *_named(answer)])
            yield f"| `{method.upper()} {path}` | {call['summary']} | {takes} | {answers} |\n"


def _parameter(item: dict[str, Any]) -> str:
    """A parameter of the query, with its values where they are a closed set."""
    schema = item["schema"]
    choices = [choice for choice in (schema, *schema.get("anyOf", ())) if "enum" in choice]
    return f"`{item['name']}`" + (f" ({_type(choices[0])})" if choices else "")


def _body(place: dict[str, Any] | None) -> dict[str, Any]:
    """The schema of a request's or an answer's JSON."""
    found: dict[str, Any] = (place or {}).get("content", {}).get("application/json", {}).get("schema", {})
    return found


def _named(place: dict[str, Any] | None) -> list[str]:
    name = (body := _body(place)).get("$ref") or body.get("title")
    return [_link(name)] if name and ("$ref" in body or "properties" in body) else []


def _bodies(schemas: dict[str, Any]) -> Iterator[str]:
    for name, schema in sorted(schemas.items()):
        yield f"\n### {name}\n" + (f"\n{text}\n" if (text := _described(schema)) else "")
        yield from _fields(schema)


def _described(schema: dict[str, Any]) -> str:
    values = f" One of {_type(schema)}." if "enum" in schema else ""
    return (schema.get("description", "") + values).strip()


def _fields(schema: dict[str, Any]) -> Iterator[str]:
    if "properties" in schema:
        yield "\n| field | type | default | |\n|---|---|---|---|\n"
    for name, field in schema.get("properties", {}).items():
        is_required = name in schema.get("required", ()) and "default" not in field
        default = "required" if is_required else _default(field.get("default"))
        yield f"| `{name}` | {_type(field)} | {default} | {_text(field)} |\n"


def _text(field: dict[str, Any]) -> str:
    """A field's description, which may stand in one of its types."""
    texts = [place["description"] for place in (field, *field.get("anyOf", ())) if "description" in place]
    return texts[0] if texts else ""


def _default(value: Any) -> str:
    return "" if value is None else f"`{json.dumps(value)}`"


def _type(field: dict[str, Any]) -> str:
    if "$ref" in field:
        return _link(field["$ref"])
    if "anyOf" in field:
        return " or ".join(_type(choice) for choice in field["anyOf"])
    if "enum" in field:
        return ", ".join(f"`{value}`" for value in field["enum"])
    if field.get("type") == "array":
        return f"list of {_type(field.get('items', {}))}"
    return str(field.get("const") or field.get("format") or field.get("type") or "any")


def _link(reference: str) -> str:
    name = reference.rpartition("/")[2]
    return f"[{name}](#{name.lower()})"


if __name__ == "__main__":
    PAGE.write_text(page())
