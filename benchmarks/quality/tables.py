"""Tables as they are printed, and as they are kept: the JSON is written anew after each one."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Iterable
from dataclasses import asdict
from pathlib import Path
from typing import Any, ClassVar, Protocol


class _Record(Protocol):
    __dataclass_fields__: ClassVar[dict[str, Any]]


class Tables:
    """What was measured, by title. What is being measured, and since when, is told on stderr."""

    def __init__(self, target: Path) -> None:
        self._target, self._found, self._start = target, dict[str, Any](), time.monotonic()

    def begin(self, title: str) -> None:
        print(f"{time.monotonic() - self._start:5.0f} s  {title}", file=sys.stderr)

    def show(self, title: str, rows: Iterable[_Record], line: Callable[[Any], str]) -> None:
        """Rows that may be made one by one."""
        self.begin(title)
        print(f"\n{title}")
        kept = []
        for row in rows:
            print("  " + line(row), flush=True)
            kept.append(asdict(row))
        self.keep(title, kept)

    def keep(self, title: str, value: Any) -> None:
        self._found[title] = value
        self._target.parent.mkdir(parents=True, exist_ok=True)
        self._target.write_text(json.dumps(self._found, indent=1), encoding="utf-8")


__all__ = ["Tables"]
