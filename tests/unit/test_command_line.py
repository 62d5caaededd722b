"""What the command line says of bad settings: one line each, by the names that a user can set."""

from __future__ import annotations

import os
import socket
import sys
from pathlib import Path

import pytest

from service.cli import main


@pytest.mark.parametrize(
    ("arguments", "variables", "words"),
    [
        (["--port", "99999"], {}, ["--port (SEMCACHE_PORT)", "65535"]),
        ([], {"SEMCACHE_HOST": "no.such.host.invalid"}, ["no.such.host.invalid", "--host"]),
        ([], {"SEMCACHE_WITH_WORKER": "perhaps"}, ["--with-worker (SEMCACHE_WITH_WORKER)"]),
        ([], {"SEMCACHE_LOG_LEVEL": "loud"}, ["SEMCACHE_LOG_LEVEL", "'debug'"]),
        ([], {"SEMCACHE_POOL_MAX": "0"}, ["SEMCACHE_POOL_MAX"]),
        ([], {"SEMCACHE_POOL_MAX": "0", "SEMCACHE_L1_BYTES": "-1"}, ["SEMCACHE_POOL_MAX", "SEMCACHE_L1_BYTES"]),
        ([], {"SEMCACHE_UPSTREAMS": "{"}, ["SEMCACHE_UPSTREAMS: must be JSON"]),
        ([], {"SEMCACHE_UPSTREAMS": '{"m": {"key": "k"}}'}, ["SEMCACHE_UPSTREAMS.m.url"]),
        (
            [],
            {"SEMCACHE_UPSTREAMS": '{"m": {"url": "h:8000/v1"}}'},
            ["SEMCACHE_UPSTREAMS.m.url: must be an"],
        ),
        (["--upstream", "localhost:8000/v1"], {}, ["--upstream (SEMCACHE_UPSTREAM): must be an address as http://"]),
        ([], {"SEMCACHE_UPSTREAM": "http:///v1"}, ["--upstream (SEMCACHE_UPSTREAM)"]),
        ([], {"SEMCACHE_UPSTREAM": "http://host:port/v1"}, ["--upstream (SEMCACHE_UPSTREAM)"]),
        ([], {"SEMCACHE_EMBEDDER_URL": "ftp://host/v1"}, ["SEMCACHE_EMBEDDER_URL: must be an address"]),
        (
            [],
            {"SEMCACHE_EMBEDDER": "remote", "SEMCACHE_EMBEDDER_MODEL": ""},
            ["SEMCACHE_EMBEDDER_MODEL: must be set", "SEMCACHE_EMBEDDER_URL: must be set"],
        ),
        ([], {"SEMCACHE_POOL_MIN": "11"}, ["SEMCACHE_POOL_MAX: must be at least SEMCACHE_POOL_MIN"]),
        (["--host", "no.such.host.invalid"], {}, ["no.such.host.invalid", "--host"]),
        (["--database-url", "postgresql://nobody@127.0.0.1:1/none"], {}, ["database"]),
        (["--database-url", "nonsense"], {}, ["database"]),
        (["--database-url", "mysql://x/y"], {}, ["database"]),
        (["--data-dir", "/proc/nowhere"], {}, ["/proc/nowhere", "--data-dir"]),
    ],
)
def test_a_bad_setting_is_told_in_one_line_by_its_names(
    arguments: list[str], variables: dict[str, str], words: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    where = [] if {"--database-url", "--data-dir"} & {*arguments} else ["--data-dir", str(tmp_path / "data")]
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(sys, "argv", ["pgsemcache", "serve", "--port", "0", *where, *arguments])
    with pytest.raises(SystemExit) as ended:
        main()
    said = str(ended.value)
    assert [word for word in words if word not in said] == []
    assert len(said.splitlines()) == len(variables or "1")
    assert "--pool-max" not in said


def test_a_port_in_use_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        monkeypatch.setattr(sys, "argv", ["pgsemcache", "serve", "--port", port, "--data-dir", str(tmp_path / "data")])
        with pytest.raises(SystemExit) as ended:
            main()
    said = str(ended.value)
    assert said.startswith(f"pgsemcache: cannot listen on 127.0.0.1:{port}: Address already in use")
    assert said.endswith("choose another --host or --port")
    assert not (tmp_path / "data").exists(), "nothing is made before it is known that it can be used"


@pytest.mark.parametrize("name", ["", "north\n", "a b", "x" * 65, "ä"])
def test_a_tenant_of_no_name_is_refused_before_a_database_is_made(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    where = ["--data-dir", str(tmp_path / "data")]
    monkeypatch.setattr(sys, "argv", ["pgsemcache", "keys", "create", "--tenant", name, *where])
    with pytest.raises(SystemExit) as ended:
        main()
    assert str(ended.value) == "pgsemcache: --tenant: must be 1 to 64 of A-Z a-z 0-9 _ . -"
    assert not (tmp_path / "data").exists()


@pytest.mark.parametrize(
    "command",
    [
        ("psql",),
        ("worker",),
        ("db", "current"),
        ("db", "check"),
        ("db", "downgrade", "0001"),
        ("keys", "list"),
        ("quotas", "list"),
        ("export", "-"),
    ],
)
def test_a_mistyped_data_directory_is_told_and_nothing_is_made_there(
    command: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "dtaa"
    monkeypatch.setattr(sys, "argv", ["pgsemcache", *command, "--data-dir", str(folder)])
    with pytest.raises(SystemExit) as ended:
        main()
    assert str(ended.value).startswith(f"pgsemcache: there is no database in {folder}; name another with --data-dir")
    assert not folder.exists()


def test_a_password_stands_in_no_argument_of_psql(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen = tmp_path / "seen"
    fake = tmp_path / "psql"
    fake.write_text(f'#!/bin/sh\nprintf "%s\\n" "$PGPASSWORD" "$@" > {seen}\nexit 3\n')
    fake.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    url = "postgresql://ann:p%40ss@h:5433/app?sslmode=disable"
    monkeypatch.setattr(sys, "argv", ["pgsemcache", "psql", "--database-url", url, "--", "-c", "select 1"])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 3
    password, where, *rest = seen.read_text().splitlines()
    assert (password, rest) == ("p@ss", ["-c", "select 1"])
    assert sorted(where.split()) == ["dbname=app", "host=h", "port=5433", "sslmode=disable", "user=ann"]
