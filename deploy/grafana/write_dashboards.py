"""Write the dashboards anew: `python deploy/grafana/write_dashboards.py`. Grafana reads JSON; they are said here."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).with_name("dashboards")
SOURCE = {"type": "prometheus", "uid": "prometheus"}
WIDTH = 24
SERVED = 'outcome=~"hit|semantic_hit|coalesced|stale"'
RATE = "[$__rate_interval]"


@dataclass(frozen=True)
class Panel:
    """queries: legend to PromQL. kind, unit: by Grafana's names. At most 24 wide."""

    title: str
    queries: dict[str, str]
    text: str = ""
    kind: str = "timeseries"
    unit: str = "short"
    width: int = 8
    height: int = 8
    stacked: bool = False
    most: float | None = None


def stat(title: str, query: str, unit: str, text: str = "", **more: Any) -> Panel:
    return Panel(title, {"": query}, text, "stat", unit, 4, 4, **more)


def heat(title: str, outcome: str, text: str) -> Panel:
    query = f'sum by (le) (increase(semcache_nearest_similarity_bucket{{outcome="{outcome}"}}{RATE}))'
    return Panel(title, {"{{le}}": query}, text, "heatmap", width=12)


def share(part: str, whole: str) -> str:
    return f"({part}) / ({whole})"


def rate(metric: str, by: str = "", labels: str = "") -> str:
    return f"sum {f'by ({by}) ' if by else ''}(rate({metric}{{{labels}}}{RATE}))"


def quantiles(metric: str, by: str, labels: str = "", at: tuple[float, ...] = (0.95,)) -> dict[str, str]:
    legend = f"{{{{{by}}}}}"
    return {
        f"{legend} p{at_ * 100:g}": f"histogram_quantile({at_}, {rate(f'{metric}_bucket', f'{by}, le', labels)})"
        for at_ in at
    }


def of_all(metric: str, by: str = "") -> str:
    """What the database holds: every replica shows the same."""
    return f"max {f'by ({by}) ' if by else ''}({metric})"


LOOKUPS = rate("semcache_lookups_total")
OVERVIEW = [
    stat("Hit rate", share(rate("semcache_lookups_total", labels=SERVED), LOOKUPS), "percentunit", most=1),
    stat("Requests", LOOKUPS, "reqps"),
    stat("p99 of what the cache takes", "max(semcache:lookup_seconds:p99_5m)", "s", "The slowest tier."),
    stat("Tokens saved in a day", "sum(increase(semcache_tokens_saved_total[1d]))", "short"),
    stat(
        "Error budget left",
        '1 - (sum(increase(semcache_lookups_total{outcome="error"}[30d])) or vector(0))'
        " / sum(increase(semcache_lookups_total[30d])) / 0.001",
        "percentunit",
        "Of 30 days in which 99.9 % of the requests find the cache working. Others are passed on to the model.",
        most=1,
    ),
    stat("Replicas up", 'sum(up{job="pgsemcache"})', "short"),
    Panel(
        "Requests by outcome", {"{{outcome}}": rate("semcache_lookups_total", "outcome")}, unit="reqps", stacked=True
    ),
    Panel(
        "Why requests are not served",
        {
            "{{outcome}}: {{reason}}": rate(
                "semcache_lookups_total", "outcome, reason", 'outcome=~"miss|bypass|refresh|error"'
            )
        },
        "A rising reason says why the hit rate falls.",
        unit="reqps",
        stacked=True,
    ),
    Panel(
        "Hit rate and penetration",
        {
            "served": share(rate("semcache_lookups_total", labels=SERVED), LOOKUPS),
            "semantic": share(rate("semcache_lookups_total", labels='outcome="semantic_hit"'), LOOKUPS),
            "reached the model": "semcache:penetration_ratio:5m",
        },
        unit="percentunit",
        most=1,
    ),
    Panel(
        "Latency by tier",
        quantiles("semcache_lookup_seconds", "tier", 'tier=~"l1|exact|semantic"', (0.95, 0.99)),
        "What the cache took, without the model.",
        unit="s",
    ),
    Panel(
        "p95 by hotness",
        quantiles("semcache_lookup_seconds", "hotness"),
        "Hot: this replica has served the entry ten times or more.",
        unit="s",
    ),
    Panel(
        "p95 by reason",
        quantiles("semcache_lookup_seconds", "reason", 'tier="none"'),
        "Of requests not served.",
        unit="s",
    ),
    Panel("p95 by stage", quantiles("semcache_stage_seconds", "stage", 'stage!="upstream"'), unit="s"),
    Panel(
        "Tokens",
        {"saved": rate("semcache_tokens_saved_total"), "spent": rate("semcache_tokens_spent_total")},
        "Per second.",
    ),
    Panel(
        "The model's time",
        {"saved": rate("semcache_seconds_saved_total"), "spent": rate("semcache_seconds_spent_total")},
        "Seconds per second: as many requests the model answers, or would answer, at a time.",
    ),
]
QUALITY = [
    Panel(
        "False hits",
        {"{{per}}, {{value}}": of_all("semcache_false_hit_ratio", "per, value")},
        "Of the last 30 days, from served requests that were drawn at random: estimate, low and high of 95 %.",
        unit="percentunit",
        width=12,
    ),
    Panel(
        "Share of semantic hits",
        {"of all requests": share(rate("semcache_lookups_total", labels='outcome="semantic_hit"'), LOOKUPS)},
        unit="percentunit",
        width=12,
    ),
    heat(
        "Similarity of semantic hits", "semantic_hit", "Mass near the threshold is where a false hit would come from."
    ),
    heat("Similarity of misses", "miss", "Mass just below the threshold would be served with a lower one."),
    Panel(
        "Guards that kept an answer back",
        {"{{guard}}": rate("semcache_guards_fired_total", "guard", 'outcome="block"')},
        "Near entries that differ in what vectors do not see.",
        width=12,
    ),
    Panel(
        "Gray zone",
        {"{{guard}}": rate("semcache_guards_fired_total", "guard", 'outcome="gray"')},
        "Near entries that a guard put in doubt.",
        width=12,
    ),
    Panel(
        "Why near entries were not served",
        {"{{reason}}": rate("semcache_lookups_total", "reason", 'outcome="miss",reason!="no_entry"')},
        width=12,
        unit="reqps",
        stacked=True,
    ),
    Panel(
        "Second looks at the gray zone",
        {"{{stage}}: {{outcome}}": rate("semcache_second_stages_total", "stage, outcome")},
        "What a cross-encoder or a judge said of near entries in doubt.",
        width=12,
    ),
    Panel(
        "Caches made stricter",
        {"within a week": of_all("semcache_tightened_caches")},
        "By an alarm of drift: wrong answers had become more frequent.",
        width=12,
    ),
    Panel(
        "Audits",
        {"{{outcome}}": rate("semcache_audits_total", "outcome")},
        "Served hits that were asked again.",
        width=12,
    ),
    Panel(
        "What is learned from",
        {"{{source}}: {{verdict}}": rate("semcache_observations_total", "source, verdict")}
        | {"dropped": rate("semcache_observations_dropped_total")},
        "Near entries compared with a fresh answer.",
        width=12,
    ),
    Panel(
        "The judge",
        {"{{question}}: {{said}}": rate("semcache_judgements_total", "question, said")}
        | {"aliases made": rate("semcache_aliases_total")}
        | {"p95 in seconds": f"histogram_quantile(0.95, {rate('semcache_judge_seconds_bucket', 'le')})"},
        width=12,
    ),
    Panel(
        "Rewritten questions",
        {"{{outcome}}": rate("semcache_rewrites_total", "outcome")}
        | {"p95 in seconds": f"histogram_quantile(0.95, {rate('semcache_rewrite_seconds_bucket', 'le')})"},
        "Follow-up questions that were made to stand alone.",
        width=12,
    ),
]
CAPACITY = [
    stat("Entries", of_all("semcache_entries"), "short"),
    stat("Tables", f"sum({of_all('semcache_table_bytes', 'table')})", "bytes"),
    stat(
        "Entries ever served", share(of_all("semcache_hit_entries"), of_all("semcache_entries")), "percentunit", most=1
    ),
    stat(
        "Skew of hits", of_all("semcache_hits_skew"), "short", "Standard deviation over mean of the hits of an entry."
    ),
    stat("Answers in memory", "sum(semcache_l1_entries)", "short"),
    stat("Memory of a replica", "max(process_resident_memory_bytes)", "bytes", "The largest."),
    Panel("Tables", {"{{table}}": of_all("semcache_table_bytes", "table")}, unit="bytes", stacked=True),
    Panel(
        "Asked ahead",
        {"{{outcome}}": of_all("semcache_prefetches", "outcome")}
        | {"tokens {{value}}": of_all("semcache_prefetch_tokens", "value")},
        "In the last month: used, or wasted, of the answers that were asked for before their users came.",
    ),
    Panel(
        "Evicted",
        {
            "entries an hour": "max(increase(semcache_evictions_total[1h]))",
            "caches over a limit": of_all("semcache_overfull_caches"),
        },
    ),
    Panel(
        "Approximate indexes",
        {
            "lowest recall": of_all("semcache_index_recall"),
            "scopes that wait": of_all("semcache_index_waiting"),
            "built in an hour": "max(increase(semcache_index_builds_total[1h]))",
        },
    ),
    Panel("Dead rows", {"{{table}}": of_all("semcache_dead_rows", "table")}, "Vacuum has not yet removed them."),
    Panel("Memory of replicas", {"{{instance}}": "process_resident_memory_bytes"}, unit="bytes"),
    Panel("Answers in memory", {"{{instance}}": "semcache_l1_bytes"}, unit="bytes"),
    Panel(
        "Database connections",
        {"{{state}}": "sum by (state) (semcache_pool_connections)", "lookups that wait": "sum(semcache_pool_waiting)"},
    ),
    Panel(
        "Wait for a connection",
        {"{{instance}}": rate("semcache_pool_wait_seconds_total", "instance")},
        "Seconds per second.",
    ),
    Panel(
        "Under way",
        {
            "calls to follow": "sum(semcache_flights)",
            "led for all replicas": "sum(semcache_leads)",
            "lookups and calls": "sum(semcache_background_tasks)",
        },
    ),
    Panel(
        "Embedder",
        {
            "texts": rate("semcache_embedder_texts_total"),
            "joined an equal one": rate("semcache_embedder_coalesced_total"),
            "remembered": rate("semcache_embedder_remembered_total"),
            "waiting": "sum(semcache_embedder_waiting)",
        },
        "Per second, but for those that wait now.",
    ),
    Panel(
        "Texts of a batch",
        {"mean": share(rate("semcache_embedder_texts_total"), rate("semcache_embedder_batches_total"))},
        "Grows with the load.",
    ),
    Panel(
        "Request log",
        {"waiting": "sum(semcache_request_log_waiting)", "dropped": rate("semcache_request_log_dropped_total")},
    ),
    Panel(
        "Health",
        {
            "database up": "min(semcache_database_up)",
            "embedder up": "min(semcache_embedder_up)",
            "memory live": "min(semcache_l1_live)",
        },
        "The worst replica.",
        most=1,
    ),
    Panel("Breaker", {"openings": "sum(increase(semcache_breaker_openings_total[1h]))"}, "In an hour."),
    Panel("Processor", {"{{instance}}": f"rate(process_cpu_seconds_total{RATE})"}, "Cores."),
]
WORKERS = [
    Panel(
        "Runs in a row that failed",
        {"{{task}}": of_all("semcache_task_failures", "task")},
        width=12,
    ),
    Panel(
        "Since the last run",
        {"{{task}}": f"time() - {of_all('semcache_task_ended_timestamp_seconds', 'task')}"},
        unit="s",
        width=12,
    ),
    Panel("Time of the last run", {"{{task}}": of_all("semcache_task_seconds", "task")}, unit="s", width=24),
]
DASHBOARDS = {"overview": OVERVIEW, "quality": QUALITY, "capacity": CAPACITY, "workers": WORKERS}


def dashboard(name: str) -> dict[str, Any]:
    return {
        "uid": f"pgsemcache-{name}",
        "title": f"pgsemcache: {name}",
        "tags": ["pgsemcache"],
        "schemaVersion": 41,
        "refresh": "30s",
        "time": {"from": "now-6h", "to": "now"},
        "graphTooltip": 1,
        "links": [{"type": "dashboards", "tags": ["pgsemcache"], "title": "pgsemcache", "keepTime": True}],
        "panels": list(_laid_out(DASHBOARDS[name])),
    }


def _laid_out(panels: list[Panel]) -> Iterator[dict[str, Any]]:
    """From left to right, a row as high as its highest panel."""
    x = y = row = 0
    for number, panel in enumerate(panels, 1):
        if x + panel.width > WIDTH:
            x, y, row = 0, y + row, 0
        yield _panel(number, panel) | {"gridPos": {"x": x, "y": y, "w": panel.width, "h": panel.height}}
        x, row = x + panel.width, max(row, panel.height)


def _panel(number: int, panel: Panel) -> dict[str, Any]:
    limits = {"min": 0} if panel.most is None else {"min": 0, "max": panel.most}
    return {
        "id": number,
        "title": panel.title,
        "description": panel.text,
        "type": panel.kind,
        "datasource": SOURCE,
        "targets": [
            {
                "refId": chr(ord("A") + place),
                "datasource": SOURCE,
                "expr": query,
                "legendFormat": legend,
                "format": "heatmap" if panel.kind == "heatmap" else "time_series",
            }
            for place, (legend, query) in enumerate(panel.queries.items())
        ],
        "fieldConfig": {"defaults": {"unit": panel.unit, **limits, "custom": _drawn(panel)}, "overrides": []},
        "options": _options(panel),
    }


def _drawn(panel: Panel) -> dict[str, Any]:
    if panel.kind != "timeseries":
        return {}
    stacking = {"mode": "normal" if panel.stacked else "none"}
    return {"lineWidth": 1, "fillOpacity": 30 if panel.stacked else 5, "showPoints": "never", "stacking": stacking}


def _options(panel: Panel) -> dict[str, Any]:
    match panel.kind:
        case "stat":
            return {"colorMode": "none", "graphMode": "area", "reduceOptions": {"calcs": ["lastNotNull"]}}
        case "heatmap":
            return {"calculate": False, "yAxis": {"min": "0.5", "max": "1"}, "color": {"scheme": "Blues"}}
    return {"legend": {"displayMode": "list", "placement": "bottom"}, "tooltip": {"mode": "multi", "sort": "desc"}}


if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    for name in DASHBOARDS:
        FOLDER.joinpath(f"{name}.json").write_text(json.dumps(dashboard(name), indent=2) + "\n")
