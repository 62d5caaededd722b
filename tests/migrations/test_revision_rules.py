"""Revisions must not hurt a database at work: timeouts, concurrent indexes, constraints NOT VALID and then VALIDATE.

squawk reads the SQL that Alembic would run for each.
"""

from __future__ import annotations

import io
import json
import subprocess
import sys
from pathlib import Path

import pytest
from alembic import command
from alembic.config import Config
from alembic.script import ScriptDirectory

from service.resources import migrations_dir

SQUAWK = Path(sys.executable).parent / "squawk"
RULES = {
    "adding-field-with-default",
    "adding-foreign-key-constraint",
    "adding-not-nullable-field",
    "ban-char-field",
    "ban-drop-column",
    "ban-drop-database",
    "ban-drop-table",
    "changing-column-type",
    "constraint-missing-not-valid",
    "disallowed-unique-constraint",
    "identifier-too-long",
    "prefer-text-field",
    "prefer-timestamptz",
    "renaming-column",
    "renaming-table",
    "require-concurrent-index-creation",
    "require-concurrent-index-deletion",
    "require-lock-timeout",
    "require-statement-timeout",
    "syntax-error",
}
BACKGROUND = "the table is written in the background, which waits and loses nothing"
EXCEPTIONS = {
    ("0003", "constraint-missing-not-valid"): "observations are few, and written in the background",
    ("0003", "adding-foreign-key-constraint"): "observations are few, and written in the background",
    ("0004", "require-concurrent-index-creation"): BACKGROUND,
    ("0005", "adding-foreign-key-constraint"): BACKGROUND,
    ("0015", "constraint-missing-not-valid"): "jobs are few, and no request waits for one",
    ("0020", "ban-drop-column"): "no release has read it",
}
SCRIPTS = ScriptDirectory(str(migrations_dir()))
LATER = [(str(script.down_revision), script.revision) for script in SCRIPTS.walk_revisions() if script.down_revision]


def found(sql: str) -> set[str]:
    command_line = [SQUAWK, "--reporter=json", "--pg-version=16", "--assume-in-transaction"]
    done = subprocess.run(command_line, input=sql, capture_output=True, text=True, check=False)
    return {finding["rule_name"] for finding in json.loads(done.stdout)} & RULES


def statements(before: str, revision: str) -> str:
    """What the step runs, without what comes before every run."""
    out = io.StringIO()
    config = Config(output_buffer=out)
    config.set_main_option("script_location", str(migrations_dir()))
    command.upgrade(config, f"{before}:{revision}", sql=True)
    return out.getvalue().partition("set role semcache_owner;")[2]


@pytest.mark.parametrize(("before", "revision"), LATER)
def test_a_revision_is_friendly_to_a_database_at_work(before: str, revision: str) -> None:
    excused = {rule for number, rule in EXCEPTIONS if number == revision}
    assert found(statements(before, revision)) == excused


def test_every_exception_is_of_a_revision() -> None:
    assert {number for number, _ in EXCEPTIONS} <= {revision for _, revision in LATER}


@pytest.mark.parametrize(
    ("sql", "rule"),
    [
        ("create index on entry (prompt);", "require-concurrent-index-creation"),
        ("alter table entry add constraint c check (true);", "constraint-missing-not-valid"),
        ("alter table entry alter column prompt set not null;", "adding-not-nullable-field"),
        ("alter table entry alter column prompt type varchar;", "changing-column-type"),
        ("alter table entry rename column prompt to text;", "renaming-column"),
        ("alter table entry add column n integer;", "require-lock-timeout"),
    ],
)
def test_what_hurts_is_found(sql: str, rule: str) -> None:
    assert rule in found(sql)
