"""Lines of an import, checked as the bodies of `POST entries` are."""

from __future__ import annotations

from typing import Any

from pydantic import ValidationError

from service.api.limits import check_count, check_depth, check_prompt, check_response
from service.api.problems import read_validation
from service.api.schemas import ImportedEntry
from service.errors import Code, SemcacheError
from service.json_text import dumps
from service.settings import Settings


def checked_line(settings: Settings, line: Any, name: str) -> str:
    """The line as JSON text; `name` is what a failure calls it.

    Raises: SemcacheError(INVALID_DATA).
    """
    if not isinstance(line, dict):
        raise SemcacheError(Code.INVALID_DATA, f"{name}: must be an object as a body of POST entries, or as exported")
    check_depth(line, settings.max_json_depth, name)
    try:
        entry = ImportedEntry.model_validate(line)
        check_prompt(settings, entry.prompt)
        check_response(settings, entry.response)
        check_count(len(entry.attributes), settings.max_attributes, "attributes", "SEMCACHE_MAX_ATTRIBUTES")
        check_count(len(entry.tags), settings.max_tags, "tags", "SEMCACHE_MAX_TAGS")
    except ValidationError as error:
        raise read_validation([found | {"loc": ("body", name, *found["loc"])} for found in error.errors()]) from None
    except SemcacheError as error:
        raise SemcacheError(error.code, f"{name}.{error.detail}") from None
    return dumps(line)


__all__ = ["checked_line"]
