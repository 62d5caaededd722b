"""Write docs/metrics.md anew from the metrics themselves: `python docs/metrics_table.py`."""

from __future__ import annotations

from pathlib import Path

from prometheus_client import Counter, Gauge, Histogram

from service.cache.gauges import SHOWN
from service.telemetry.metrics import Metrics

PAGE = Path(__file__).with_name("metrics.md")
HEAD = """# Metrics

`GET /metrics` of every replica, in the Prometheus text format. Each process counts for itself: sum over replicas. What
is of all caches comes from the database, so every replica shows the same: take the maximum. Labels are closed sets: no
tenant, cache, model or prompt stands in any. `python docs/metrics_table.py` writes this page.

| metric | kind | labels | |
|---|---|---|---|
"""
TAIL = (
    "\nBeside these, `process_cpu_seconds_total`, `process_resident_memory_bytes` and the other `process_` metrics.\n"
)


def metrics() -> dict[str, tuple[str, str, tuple[str, ...]]]:
    """Every metric by its name: kind, text, labels."""
    counted = [m for m in vars(Metrics()).values() if isinstance(m, Counter | Gauge | Histogram)]
    found = {m._name: (m._type, m._documentation, tuple(m._labelnames)) for m in counted}  # noqa: SLF001 - no other way
    for name, shown in SHOWN.items():
        found[name] = ("counter" if shown.counts else "gauge", shown.text, shown.labels)
    return {name + "_total" * (kind == "counter"): (kind, *rest) for name, (kind, *rest) in sorted(found.items())}


def page() -> str:
    rows = [
        f"| `{name}` | {kind} | {', '.join(f'`{label}`' for label in labels)} | {text} |\n"
        for name, (kind, text, labels) in metrics().items()
    ]
    return HEAD + "".join(rows) + TAIL


if __name__ == "__main__":
    PAGE.write_text(page())
