"""Which metrics and labels an expression of Prometheus asks for, and whether there are such."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import promql_parser as promql

ROOT = Path(__file__).parents[1]
ROW = re.compile(r"^\| `(semcache_\w+)` \| (\w+) \| ([^|]*) \|", re.MULTILINE)
OF_SCRAPES = {"job", "instance"}


def known() -> dict[str, set[str]]:
    """Every series by its name with its labels: as docs/metrics.md has them, of Prometheus, and of the process."""
    found: dict[str, set[str]] = {"up": set()}
    for name, kind, labels in ROW.findall((ROOT / "docs" / "metrics.md").read_text()):
        own = set(re.findall(r"`(\w+)`", labels))
        if kind == "histogram":
            found |= {f"{name}_bucket": own | {"le"}, f"{name}_sum": own, f"{name}_count": own}
        else:
            found[name] = own
    for name in ("process_resident_memory_bytes", "process_cpu_seconds_total"):
        found[name] = set()
    return found


def unknown(expression: str, series: dict[str, set[str]]) -> list[str]:
    """What an expression asks for and nobody gives. Raises ValueError where it is none."""
    tree = promql.parse(expression.replace("$__rate_interval", "5m"))
    selectors, groups = [], set[str]()
    for node in nodes(tree):
        if isinstance(node, promql.VectorSelector):
            selectors.append(node)
        if isinstance(node, promql.AggregateExpr) and node.modifier is not None:
            groups |= set(node.modifier.labels)
    missing = [f"metric {selector.name}" for selector in selectors if selector.name not in series]
    labels = set().union(*(series.get(selector.name, set()) for selector in selectors)) | OF_SCRAPES
    for selector in selectors:
        names = {matcher.name for matcher in selector.matchers.matchers}
        own = series.get(selector.name, names) | OF_SCRAPES
        missing += [f"label {name} of {selector.name}" for name in names - own]
    return missing + [f"label {name} to group by" for name in groups - labels]


def nodes(node: Any) -> Iterator[Any]:
    yield node
    for name in ("expr", "lhs", "rhs", "param", "vector_selector"):
        if (below := getattr(node, name, None)) is not None:
            yield from nodes(below)
    for argument in getattr(node, "args", None) or ():
        yield from nodes(argument)
