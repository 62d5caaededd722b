"""Functions and views: applied when they changed, and only then."""

from __future__ import annotations

import shutil
from datetime import datetime
from pathlib import Path

import psycopg
import pytest
from schema_text import bodies, describe

from service.errors import SemcacheError
from service.resources import sql_dir
from service.store import migrate, sql_files


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of the folder sql that a test may change."""
    folder = tmp_path / "sql"
    shutil.copytree(sql_dir(), folder)
    monkeypatch.setattr(sql_files, "sql_dir", lambda: folder)
    return folder


def applied(url: str) -> dict[str, datetime]:
    with psycopg.connect(url) as connection:
        return dict(connection.execute("select path, applied_at from semcache.sql_file").fetchall())


def test_every_file_is_noted_and_a_second_upgrade_applies_none(database_url: str) -> None:
    before = applied(database_url)
    assert sorted(before) == sorted(file.path for file in sql_files.sql_files())
    migrate.upgrade(database_url)
    assert applied(database_url) == before


def test_files_applied_twice_leave_the_same_schema(database_url: str) -> None:
    schema, texts = describe(database_url), bodies(database_url)
    with psycopg.connect(database_url) as connection:
        connection.execute("update semcache.sql_file set checksum = ''")
    migrate.upgrade(database_url)
    assert describe(database_url) == schema
    assert bodies(database_url) == texts


def test_a_changed_function_is_applied_and_no_other(database_url: str, files: Path) -> None:
    path = files / "functions" / "flush_cache.sql"
    path.write_text(path.read_text().replace("epoch = c.epoch + 1", "epoch = c.epoch + 2"))
    before = applied(database_url)
    migrate.upgrade(database_url)
    changed = {name for name, at in applied(database_url).items() if at != before[name]}
    assert changed == {"functions/flush_cache.sql"}
    assert "c.epoch + 2" in bodies(database_url)["flush_cache(bigint,bigint)"]


def test_views_change_together_and_a_view_that_is_no_longer_there_goes(database_url: str, files: Path) -> None:
    path = files / "views" / "stale.sql"
    path.write_text(path.read_text().replace("since", "since_when"))
    (files / "views" / "wasteful.sql").unlink()
    before = applied(database_url)
    migrate.upgrade(database_url)
    after = applied(database_url)
    assert "views/wasteful.sql" not in after
    assert {name for name, at in after.items() if at != before[name]} == {n for n in after if n.startswith("views/")}
    assert "since_when" in bodies(database_url)["stale"]
    assert "wasteful" not in bodies(database_url)


def test_what_somebody_built_on_a_view_is_not_dropped(database_url: str, files: Path) -> None:
    with psycopg.connect(database_url) as connection:
        connection.execute("create view public.dashboard as select tenant, cache from semcache.overview")
    path = files / "views" / "overview.sql"
    path.write_text(path.read_text() + "\n-- changed\n")
    with pytest.raises(SemcacheError, match="other objects depend on them"):
        migrate.upgrade(database_url)
    with psycopg.connect(database_url) as connection:
        assert connection.execute("select from public.dashboard").fetchall() == []
    assert migrate.state(database_url).outdated == ("views/overview.sql",)


def test_a_file_that_fails_leaves_all_as_they_were(database_url: str, files: Path) -> None:
    path = files / "functions" / "flush_cache.sql"
    path.write_text(path.read_text() + "\n-- changed\n")
    (files / "functions" / "zz_broken.sql").write_text("select 1 / 0;\n")
    before = applied(database_url)
    with pytest.raises(SemcacheError, match="division by zero"):
        migrate.upgrade(database_url)
    assert applied(database_url) == before
