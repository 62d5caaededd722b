"""Write docs/configuration.md anew from the settings themselves: `python docs/settings_table.py`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pydantic.fields import FieldInfo

from service.settings import Settings

PAGE = Path(__file__).with_name("configuration.md")
HEAD = """# Configuration

Every setting is a variable; those with a flag in `pgsemcache serve --help` can be given there, and the flag wins.
Times are seconds and sizes bytes unless the name says otherwise. `python docs/settings_table.py` writes this page.

| variable | default | |
|---|---|---|
"""
COMPUTED = {"data_dir": "the user's data folder", "models_dir": "the user's cache folder"}


def page() -> str:
    rows = [
        f"| `SEMCACHE_{name.upper()}` | {_default(name, field)} | {field.description} |" for name, field in _fields()
    ]
    return HEAD + "\n".join(rows) + "\n"


def _fields() -> list[tuple[str, FieldInfo]]:
    return list(Settings.model_fields.items())


def _default(name: str, field: FieldInfo) -> str:
    value: Any = COMPUTED.get(name, field.get_default(call_default_factory=name not in COMPUTED))
    return "" if value is None else f"{value}"


if __name__ == "__main__":
    PAGE.write_text(page())
