"""The dashboards: as the script writes them, laid out without overlaps, and asking for what there is."""

from __future__ import annotations

import json
import re
from itertools import combinations
from pathlib import Path
from runpy import run_path
from typing import Any

import pytest
import yaml
from promql import ROOT, known, unknown

FOLDER = ROOT / "deploy" / "grafana"
PAGES = sorted((FOLDER / "dashboards").glob("*.json"))
RULES = yaml.safe_load((ROOT / "deploy" / "prometheus" / "alerts.yml").read_text())
RECORDED = {
    rule["record"]: {"tier"} if "tier" in rule["expr"] else set()
    for group in RULES["groups"]
    for rule in group["rules"]
    if "record" in rule
}


def panels(page: Path) -> list[dict[str, Any]]:
    return list(json.loads(page.read_text())["panels"])


def test_they_are_those_that_the_script_writes() -> None:
    script = run_path(str(FOLDER / "write_dashboards.py"))
    assert {page.stem for page in PAGES} == set(script["DASHBOARDS"])
    for page in PAGES:
        assert json.loads(page.read_text()) == script["dashboard"](page.stem), "run deploy/grafana/write_dashboards.py"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_every_panel_asks_for_metrics_and_labels_that_exist(page: Path) -> None:
    series = known() | RECORDED
    for panel in panels(page):
        for target in panel["targets"]:
            assert unknown(target["expr"], series) == [], f"{panel['title']}: {target['expr']}"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_a_legend_names_labels_that_its_query_keeps(page: Path) -> None:
    for panel in panels(page):
        for target in panel["targets"]:
            named = set(re.findall(r"\{\{(\w+)\}\}", target["legendFormat"]))
            kept = set(re.findall(r"\w+", " ".join(re.findall(r"by \(([^)]*)\)", target["expr"]))))
            assert named <= kept or "by (" not in target["expr"], f"{panel['title']}: {target['legendFormat']}"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_no_panel_lies_over_another_or_over_the_edge(page: Path) -> None:
    places = [panel["gridPos"] for panel in panels(page)]
    assert all(place["x"] + place["w"] <= 24 for place in places)
    for a, b in combinations(places, 2):
        beside = a["x"] + a["w"] <= b["x"] or b["x"] + b["w"] <= a["x"]
        assert beside or a["y"] + a["h"] <= b["y"] or b["y"] + b["h"] <= a["y"], (a, b)


def test_every_metric_is_on_a_dashboard_or_in_an_alert() -> None:
    asked = "".join(page.read_text() for page in PAGES) + str(RULES)
    names = {re.sub(r"_(bucket|sum|count)$", "", name) for name in known()}
    silent = {name for name in names if name not in asked}
    assert silent == {"semcache_build_info", "semcache_hit_ratio"}, (
        "give it a panel in deploy/grafana/write_dashboards.py"
    )
