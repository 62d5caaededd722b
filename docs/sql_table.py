"""Write docs/sql.md anew from the comments of the schema: `python docs/sql_table.py`, after `make schema`."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

SCHEMA = Path(__file__).parents[1] / "tests" / "migrations" / "schema.txt"
PAGE = Path(__file__).with_name("sql.md")
HEAD = """# The schema

Everything is in the schema `semcache`, and every object has a comment: `\\dt+ semcache.*`, `\\d+ semcache.entry`,
`\\df+ semcache.*`. This page is those comments. Read what you like; [psql.md](psql.md) has the questions. Write
through the functions only, or through the API: they tell the replicas what to forget. Tables are for the release that
made them; views and released functions are kept for one release. [security.md](security.md) says who may do what.
`python docs/sql_table.py` writes this page.
"""
RELATION = re.compile(r"(?:partitioned )?(table|view) (\w+) owner .*? -- (.*)")
COLUMN = re.compile(r"    (?!policy \w+ for |constraint )(\w+) (\w+)(?: .*?)? -- (.*)")
FUNCTION = re.compile(r"function (\w+\(.*?\)) returns .* owner semcache_owner.*? -- (.*)")


def page() -> str:
    lines = SCHEMA.read_text().splitlines()
    functions = [f"| `{name}` | {text} |\n" for name, text in _matches(FUNCTION, lines)]
    return "".join(
        [
            HEAD,
            "\n## Views\n",
            *_relations(lines, "view"),
            "\n## Functions\n\n| function | |\n|---|---|\n",
            *functions,
            "\n## Tables\n",
            *_relations(lines, "table"),
        ]
    )


def _relations(lines: list[str], kind: str) -> Iterator[str]:
    """Each table or view with the columns that have a comment, which stand below it."""
    is_inside = False
    for line in lines:
        if (found := RELATION.fullmatch(line)) is not None or not line.startswith(" "):
            is_inside = found is not None and found[1] == kind
            if found is not None and is_inside:
                yield f"\n### {found[2]}\n\n{found[3]}\n\n| column | type | |\n|---|---|---|\n"
        elif is_inside and (column := COLUMN.fullmatch(line)):
            yield f"| `{column[1]}` | {_type(column[2])} | {column[3]} |\n"


def _type(name: str) -> str:
    """Postgres names the type of an array by an underscore."""
    return f"{name[1:]}[]" if name.startswith("_") else name


def _matches(pattern: re.Pattern[str], lines: list[str]) -> list[tuple[str, ...]]:
    return [found.groups() for line in lines if (found := pattern.fullmatch(line))]


if __name__ == "__main__":
    PAGE.write_text(page())
