"""docker-compose.yml: by the compose specification, and its services run as Docker would, on an embedded Postgres."""

from __future__ import annotations

import asyncio
import json
import os
import re
import socket
import subprocess
from pathlib import Path
from typing import Any

import httpx
import psycopg
import pytest
import yaml
from compose_spec import PyCompose
from dockerless import ROOT, Stage
from processes import CHECKOUT

from service.store.embedded import EmbeddedPostgres
from tests.fakes.relay import Relay

FILE = ROOT / "docker-compose.yml"
VARIABLE = re.compile(r"\$\$|\$\{(\w+)(?::([-?])([^}]*))?\}")
EXAMPLE = dict(
    line.split("=", 1) for line in (ROOT / ".env.example").read_text().splitlines() if line and line[0] != "#"
)


def interpolated(variables: dict[str, str]) -> Any:
    """The file with these variables in its values, as the specification has it (14, interpolation)."""

    def value(found: re.Match[str]) -> str:
        if found[0] == "$$":
            return "$"
        given = variables.get(found[1], "")
        assert given or found[2] != "?", found[3]
        return given or found[3] or ""

    def filled(node: Any) -> Any:
        match node:
            case dict():
                return {name: filled(member) for name, member in node.items()}
            case list():
                return [filled(member) for member in node]
            case str():
                return VARIABLE.sub(value, node)
        return node

    return filled(yaml.safe_load(FILE.read_text()))


@pytest.fixture(scope="module")
def services() -> dict[str, Any]:
    return dict(interpolated(EXAMPLE)["services"])


def test_it_follows_the_specification() -> None:
    PyCompose.from_json(json.dumps(interpolated(EXAMPLE)))


def test_every_variable_is_in_the_example() -> None:
    assert {found[1] for found in VARIABLE.finditer(FILE.read_text()) if found[1]} | {"COMPOSE_PROFILES"} == set(
        EXAMPLE
    )


def test_without_passwords_it_says_what_to_do() -> None:
    with pytest.raises(AssertionError, match=r"copy .env.example to .env"):
        interpolated({})


def test_every_file_that_is_mounted_is_there(services: dict[str, Any]) -> None:
    mounts = [mount for service in services.values() for mount in service.get("volumes", ()) if mount.startswith("./")]
    assert mounts
    assert [mount for mount in mounts if not (ROOT / mount.split(":")[0]).exists()] == []


def test_whoever_serves_has_a_health_check(services: dict[str, Any], image: dict[str, Stage]) -> None:
    assert "HEALTHCHECK" in image["service"].options
    built = {name for name, service in services.items() if "build" in service}
    assert {name for name, service in services.items() if "healthcheck" not in service} <= built


def command(service: dict[str, Any], stage: Stage) -> list[str]:
    return [*service.get("entrypoint", stage.options["ENTRYPOINT"]), *service.get("command", stage.options["CMD"])]


async def test_database_migration_service_and_worker_come_up_in_turn(
    services: dict[str, Any], image: dict[str, Stage], tmp_path: Path
) -> None:
    stage = image["service"]
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = str(free.getsockname()[1])
    with EmbeddedPostgres(tmp_path, durable=False) as server:
        make_roles(server, services["db"]["environment"])
        async with Relay(server.url) as relay:
            at = relay.url.partition("@")[2].partition("/")[0]

            def variables(name: str) -> dict[str, str]:
                given = {k: v.replace("@db/", f"@{at}/") for k, v in services[name]["environment"].items()}
                return given | {"SEMCACHE_PORT": port}

            for _ in range(2):  # `docker compose up` runs it each time
                await asyncio.to_thread(stage.run, *command(services["migrate"], stage), **variables("migrate"))
            running = [
                stage.start(*command(services[name], stage), **variables(name)) for name in ("service", "worker")
            ]
            try:
                await healthy(stage, port)
                await asyncio.to_thread(ask, f"http://127.0.0.1:{port}")
                worker_check = services["worker"]["healthcheck"]["test"][1:]
                await asyncio.to_thread(stage.run, *worker_check, **variables("worker"))
            finally:
                for process in running:
                    process.terminate()
                ends = [(*(await asyncio.to_thread(process.communicate)), process.returncode) for process in running]
        assert [status for *_, status in ends] == [0, 0], ends


def make_roles(server: EmbeddedPostgres, environment: dict[str, str]) -> None:
    """As the image of Postgres runs the files of docker-entrypoint-initdb.d."""
    psql = [*server.psql_command(), "--set=ON_ERROR_STOP=1", "--no-psqlrc"]
    file = CHECKOUT / "deploy" / "postgres" / "roles.sql"
    subprocess.run([*psql, f"--file={file}"], env=os.environ | environment, check=True, capture_output=True)
    with psycopg.connect(server.url) as connection:
        rows = connection.execute(
            "select rolname from pg_authid where rolpassword is not null and rolcanlogin and not rolsuper order by 1"
        ).fetchall()
    assert rows == [("semcache_service_login",), ("semcache_worker_login",)]


async def healthy(stage: Stage, port: str) -> None:
    """Wait as Docker does: by the image's health check, at the port of this test."""
    check = [word.replace("8080", port) for word in stage.options["HEALTHCHECK"]]
    for _ in range(60):
        with stage.start(*check) as process:
            await asyncio.to_thread(process.communicate)
        if process.returncode == 0:
            return
    raise AssertionError("the service did not become healthy")


def ask(base: str) -> None:
    """As a client with the key of the file .env: the image has its embedder."""
    with httpx.Client(base_url=f"{base}/v1/caches", timeout=30) as http:
        assert http.get("/default").status_code == 401
        http.headers["authorization"] = f"Bearer {EXAMPLE['API_KEY']}"
        stored = {"prompt": "How do I reset my password?", "response": "Under Settings."}
        assert http.post("/default/entries", json=stored).status_code == 201
        found = http.post("/default/entries/search", json={"prompt": "How can I reset my password?"}).json()["data"]
        assert [entry["searchStrategy"] for entry in found] == ["semantic"]
