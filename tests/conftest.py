"""A real Postgres for the tests: one server, a template that the real upgrade made, a clone of it for each test.

Given SEMCACHE_TEST_DATABASE_URL (a superuser of any Postgres from 16 on with pgvector) its server is used, else the
embedded one.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from uuid import uuid4

import psycopg
import pytest
from running import Service, running_service
from sqlalchemy import make_url

from service.settings import Settings
from service.store import migrate
from service.store.embedded import EmbeddedPostgres

# What is answered and stored must not depend on the machine. A test of a deadline sets its own.
_DEADLINES = "LOOKUP_DEADLINE DATABASE_TIMEOUT PROBE_PATIENCE SECOND_STAGE_DEADLINE RESOLVER_TIMEOUT FLIGHT_LEASE"
for deadline in _DEADLINES.split():
    os.environ.setdefault(f"SEMCACHE_{deadline}", "30")

TEMPLATE = "semcache_template"
NewDatabase = Callable[[], AbstractContextManager[str]]


@pytest.fixture(scope="session")
def server_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A superuser's URL of the server."""
    given = os.environ.get("SEMCACHE_TEST_DATABASE_URL")
    if given:
        yield given
        return
    server = EmbeddedPostgres(tmp_path_factory.mktemp("server"), durable=False)
    url = server.start()
    execute(url, "alter system set deadlock_timeout = '100ms'", "select pg_reload_conf()")
    yield url
    server.release()


@pytest.fixture(scope="session")
def template(server_url: str) -> str:
    """The name of a database that `pgsemcache db upgrade` made."""
    execute(server_url, f"drop database if exists {TEMPLATE} with (force)", f"create database {TEMPLATE}")
    migrate.upgrade(url_of(server_url, TEMPLATE))
    return TEMPLATE


@pytest.fixture
def empty_database_url(server_url: str) -> Iterator[str]:
    """A database of the test's own, without a schema."""
    with _database(server_url, "template1") as url:
        yield url


@pytest.fixture
def database_url(new_database: NewDatabase) -> Iterator[str]:
    """A database of the test's own with the current schema."""
    with new_database() as url:
        yield url


@pytest.fixture(scope="session")
def new_database(server_url: str, template: str) -> NewDatabase:
    """Makes databases with the current schema, each dropped at the end of its `with`."""
    return lambda: _database(server_url, template)


@pytest.fixture(scope="session")
def shared_service(new_database: NewDatabase) -> Iterator[Service]:
    """One running service for all tests that leave it as it was: each makes a cache of its own."""
    with new_database() as url, running_service(Settings(database_url=url)) as running:
        yield running


@pytest.fixture
def settings(database_url: str, tmp_path: Path) -> Settings:
    """Settings of a service on the test's own database, with the bundled embedder."""
    return Settings(database_url=database_url, data_dir=tmp_path, port=0)


@pytest.fixture
def service(settings: Settings) -> Iterator[Service]:
    """A running service over real HTTP."""
    with running_service(settings) as running:
        yield running


@contextmanager
def _database(server_url: str, template: str) -> Iterator[str]:
    name = f"test_{uuid4().hex}"
    execute(server_url, f"create database {name} template {template}")
    try:
        yield url_of(server_url, name)
    finally:
        execute(server_url, f"drop database {name} with (force)")


def url_of(server_url: str, database: str) -> str:
    return make_url(server_url).set(database=database).render_as_string(hide_password=False)


def execute(url: str, *statements: str) -> None:
    with psycopg.connect(url, autocommit=True) as connection:
        for statement in statements:
            connection.execute(statement)  # type: ignore[call-overload]
