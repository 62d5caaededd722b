"""Writes the committed OpenAPI document anew: python tests/openapi_document.py"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from service.api.app import create_app
from service.settings import Settings

OPENAPI_FILE = Path(__file__).parent / "api" / "openapi.json"


def rendered(document: dict[str, Any]) -> str:
    """As it is committed: without the release's number."""
    return json.dumps(document | {"info": document["info"] | {"version": ""}}, indent=2, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    OPENAPI_FILE.write_text(rendered(create_app(Settings(), "postgresql://").openapi()))
