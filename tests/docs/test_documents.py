"""What the documents say can be checked: settings, commands, links."""

from __future__ import annotations

import re
from pathlib import Path
from runpy import run_path

import pytest
import typer.main

from service.cli import app
from service.settings import Settings

ROOT = Path(__file__).parents[2]
DOCUMENTS = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
# Variables that are no settings of the service.
OTHERS = {"SEMCACHE_BENCH_DATA", "SEMCACHE_TEST_DATABASE_URL", "SEMCACHE_TEST_IMAGE"}


@pytest.mark.parametrize(("script", "document"), [("settings_table", "configuration"), ("metrics_table", "metrics")])
def test_a_page_of_a_table_is_the_one_that_the_code_makes(script: str, document: str) -> None:
    written = (ROOT / "docs" / f"{document}.md").read_text()
    assert written == run_path(str(ROOT / "docs" / f"{script}.py"))["page"](), f"run python docs/{script}.py"


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_every_link_leads_somewhere(document: Path) -> None:
    targets = re.findall(r"\]\(([^)#]+)", document.read_text())
    missing = [t for t in targets if not t.startswith("http") and not (document.parent / t).exists()]
    assert missing == []


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_every_variable_is_a_setting(document: Path) -> None:
    named = set(re.findall(r"SEMCACHE_[A-Z0-9_]*[A-Z0-9]", document.read_text()))
    settings = {f"SEMCACHE_{name.upper()}" for name in Settings.model_fields}
    assert named - settings - OTHERS == set()


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_every_command_exists(document: Path) -> None:
    command = typer.main.get_command(app)
    known = set(getattr(command, "commands", {})) | {"worker"}
    named = set(re.findall(r"`pgsemcache ([a-z]+)", document.read_text()))
    assert named - known == set()


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_every_script_that_is_named_is_there(document: Path) -> None:
    named = set(re.findall(r"(?:benchmarks|docs|tests)/[a-z_/]+\.py", document.read_text()))
    assert [name for name in named if not (ROOT / name).exists()] == []
