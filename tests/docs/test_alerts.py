"""The alerts: each asks for what there is, is fired in a test, and leads to a section of the runbook."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml
from promql import ROOT, known, unknown

FILE = ROOT / "deploy" / "prometheus" / "alerts.yml"
TESTS = Path(__file__).with_name("alerts_test.yml")
RULES: list[dict[str, Any]] = [rule for group in yaml.safe_load(FILE.read_text())["groups"] for rule in group["rules"]]
ALERTS = {rule["alert"]: rule for rule in RULES if "alert" in rule}


def test_every_rule_asks_for_metrics_and_labels_that_exist() -> None:
    series = known() | {rule["record"]: {"tier"} for rule in RULES if "record" in rule}
    assert [(rule["expr"], missing) for rule in RULES if (missing := unknown(rule["expr"], series))] == []


@pytest.mark.parametrize("expression", ["sum(semcache_nothing)", 'semcache_entries{tenant="a"}', "sum by (cache) (up)"])
def test_what_does_not_exist_is_noticed(expression: str) -> None:
    assert len(unknown(expression, known())) == 1


def test_every_alert_leads_to_a_section_of_the_runbook() -> None:
    sections = re.findall(r"^## (\w+)$", (ROOT / "docs" / "runbook.md").read_text(), re.MULTILINE)
    assert sections == list(ALERTS), "in the order of the alerts"
    for name, rule in ALERTS.items():
        assert rule["annotations"]["runbook_url"] == f"docs/runbook.md#{name.lower()}"
        assert rule["labels"]["severity"] in ("critical", "warning")


def test_every_alert_is_fired_in_a_test() -> None:
    fired = {
        case["alertname"] for test in yaml.safe_load(TESTS.read_text())["tests"] for case in test["alert_rule_test"]
    }
    assert fired == set(ALERTS)


@pytest.mark.skipif(shutil.which("promtool") is None, reason="promtool is not here: on Debian, the package prometheus")
def test_every_alert_fires_on_what_it_is_for() -> None:
    for command in (["check", "config", FILE.with_name("prometheus.yml")], ["test", "rules", TESTS]):
        done = subprocess.run(["promtool", *command], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
