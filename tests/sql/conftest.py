"""Sessions that call our SQL functions directly, as the role and for the tenant that the service would."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from sessions import Session, open_session


@pytest.fixture
def session(database_url: str) -> Iterator[Callable[..., Session]]:
    """Opens further sessions of the same database, each for a tenant and in a role."""
    opened: list[Session] = []

    def one(tenant: str = "acme", role: str = "semcache_app") -> Session:
        opened.append(open_session(database_url, tenant, role))
        return opened[-1]

    yield one
    for each in opened:
        each.connection.close()


@pytest.fixture
def app(session: Callable[..., Session]) -> Session:
    """The service's session for the tenant `acme`, with its cache `default` and an embedder of three dimensions."""
    return session()


@pytest.fixture
def worker(session: Callable[..., Session]) -> Session:
    """A worker's session."""
    return session(role="semcache_worker")
