"""The Helm chart: rendered by Helm's own engine, and held to Kubernetes' schemas."""

from __future__ import annotations

import tomllib
from functools import reduce
from typing import Any

import pytest
import yaml
from promql import ROOT, known, unknown
from typer.testing import CliRunner

from service.cli import app
from service.settings import Settings

helm = pytest.importorskip("helm_python", reason="needs helm-python-sdk, which brings Helm's engine (75 MB)")
kubernetes_validate = pytest.importorskip("kubernetes_validate", reason="needs kubernetes-validate")

CHART = ROOT / "deploy" / "helm" / "pgsemcache"
ADAPTER = ROOT / "deploy" / "helm" / "prometheus-adapter.yaml"
KUBERNETES = "1.30"
CHOSEN = {
    "secret": "mine",
    "settings": {"SEMCACHE_UPSTREAM": "http://vllm:8000/v1", "SEMCACHE_POOL_MAX": 20},
    "settingsSecret": "more",
    "imagePullSecrets": [{"name": "registry"}],
    "serviceMonitor": {"enabled": True},
}


def rendered(values: dict[str, Any]) -> dict[tuple[str, str], dict[str, Any]]:
    """The objects by kind and name."""
    with helm.Chart.load(CHART) as chart:
        files = chart.render(values=values, name="cache", namespace="models")
    texts = [text for name, text in files.items() if name.endswith(".yaml")]
    return {(made["kind"], made["metadata"]["name"]): made for text in texts for made in yaml.safe_load_all(text)}


@pytest.fixture(scope="module", params=[{}, CHOSEN], ids=["defaults", "chosen"])
def objects(request: pytest.FixtureRequest) -> dict[tuple[str, str], dict[str, Any]]:
    return rendered(request.param)


@pytest.fixture(scope="module")
def pods(objects: dict[tuple[str, str], dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """The templates of pods, by the names of what makes them."""
    return {name: made["spec"]["template"] for (_, name), made in objects.items() if "template" in made["spec"]}


def containers(pod: dict[str, Any]) -> list[dict[str, Any]]:
    return [*pod["spec"].get("initContainers", ()), *pod["spec"]["containers"]]


def test_it_installs_this_release() -> None:
    with helm.Chart.load(CHART) as chart:
        release = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
        assert (chart.metadata["version"], chart.metadata["appVersion"]) == (release, release)


def test_helm_finds_nothing_wrong() -> None:
    found = helm.lint(CHART, strict=True)
    assert found["errors"] == []
    assert [message["error"] for message in found["messages"]] == ["icon is recommended"]


def test_every_object_follows_kubernetes_schemas(objects: dict[tuple[str, str], dict[str, Any]]) -> None:
    for (kind, _), made in objects.items():
        if kind != "ServiceMonitor":  # of the Prometheus operator
            kubernetes_validate.validate(made, KUBERNETES, strict=True)


def test_values_reach_what_they_are_for() -> None:
    made = rendered(CHOSEN)
    (service,) = made["Deployment", "cache"]["spec"]["template"]["spec"]["containers"]
    given = {item["name"]: item.get("value") for item in service["env"]}
    assert (given["SEMCACHE_UPSTREAM"], given["SEMCACHE_POOL_MAX"]) == ("http://vllm:8000/v1", "20")
    assert service["envFrom"] == [{"secretRef": {"name": "more"}}]
    assert {"ServiceMonitor"} == {kind for kind, _ in made} - {kind for kind, _ in rendered({})}


def test_no_pod_has_rights_or_secrets_of_its_own(pods: dict[str, dict[str, Any]]) -> None:
    assert set(pods) == {"cache", "cache-worker", "cache-migrate"}
    for pod in pods.values():
        assert pod["spec"]["securityContext"]["runAsNonRoot"]
        assert pod["spec"]["automountServiceAccountToken"] is False
        for container in containers(pod):
            rights = container["securityContext"]
            assert rights["readOnlyRootFilesystem"]
            assert rights["capabilities"] == {"drop": ["ALL"]}
            assert "postgresql://" not in str(container)


def test_every_variable_is_a_setting_and_every_command_exists(pods: dict[str, dict[str, Any]]) -> None:
    settings = {f"SEMCACHE_{name.upper()}" for name in Settings.model_fields}
    for pod in pods.values():
        for container in containers(pod):
            assert {item["name"] for item in container["env"]} <= settings
            args = container["args"]  # the worker's command is a plug-in, which the test of the wheel runs
            assert args == ["worker"] or CliRunner().invoke(app, [*args, "--help"]).exit_code == 0


def test_each_role_has_its_own_login(pods: dict[str, dict[str, Any]]) -> None:
    urls = {
        name: {container["env"][0]["valueFrom"]["secretKeyRef"]["key"] for container in containers(pod)}
        for name, pod in pods.items()
    }
    assert urls == {"cache": {"service"}, "cache-worker": {"worker"}, "cache-migrate": {"owner"}}


def test_selectors_find_the_service_alone(
    objects: dict[tuple[str, str], dict[str, Any]], pods: dict[str, dict[str, Any]]
) -> None:
    budget = objects["PodDisruptionBudget", "cache"]["spec"]["selector"]["matchLabels"]
    for selector in (objects["Service", "cache"]["spec"]["selector"], budget):
        assert [n for n, pod in pods.items() if selector.items() <= pod["metadata"]["labels"].items()] == ["cache"]


def test_the_autoscaler_asks_for_what_the_adapter_makes(objects: dict[tuple[str, str], dict[str, Any]]) -> None:
    (rule,) = yaml.safe_load(ADAPTER.read_text())["rules"]["custom"]
    spec = objects["HorizontalPodAutoscaler", "cache"]["spec"]
    assert spec["metrics"][0]["pods"]["metric"]["name"] == rule["name"]["as"]
    assert ("Deployment", spec["scaleTargetRef"]["name"]) in objects
    series, labels = rule["seriesQuery"].rstrip("}").split("{")
    filled = {"<<.Series>>": series, "<<.LabelMatchers>>": labels, "<<.GroupBy>>": "pod"}
    query = reduce(lambda text, pair: text.replace(*pair), filled.items(), rule["metricsQuery"])
    assert unknown(query, {series: known()[series] | {"namespace", "pod"}}) == []


def test_a_pod_takes_requests_while_its_database_is_away(pods: dict[str, dict[str, Any]]) -> None:
    (container,) = pods["cache"]["spec"]["containers"]
    probes = {name: container[f"{name}Probe"]["httpGet"]["path"] for name in ("startup", "readiness", "liveness")}
    assert probes == {"startup": "/readyz", "readiness": "/healthz", "liveness": "/healthz"}
