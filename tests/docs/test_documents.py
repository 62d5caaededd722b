"""What the documents say can be checked: settings, commands, links."""

from __future__ import annotations

import re
from pathlib import Path
from runpy import run_path

import pytest
import typer.main

from service.cli import app
from service.errors import Code
from service.identity import tier
from service.policy import decision
from service.settings import Settings

ROOT = Path(__file__).parents[2]
DOCUMENTS = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
TABLES = sorted((ROOT / "docs").glob("*_table.py"))
# Variables that are no settings of the service.
OTHERS = {"SEMCACHE_BENCH_DATA", "SEMCACHE_TEST_DATABASE_URL", "SEMCACHE_TEST_IMAGE"}


@pytest.mark.parametrize("script", TABLES, ids=lambda path: path.stem)
def test_a_page_of_a_table_is_the_one_that_the_code_makes(script: Path) -> None:
    made = run_path(str(script))
    assert made["PAGE"].read_text() == made["page"](), f"run python docs/{script.name}"


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_every_link_leads_somewhere(document: Path) -> None:
    for target, section in re.findall(r"\]\(([^)#]*)#?([^)]*)\)", prose(document)):
        page = document.parent / target if target else document
        assert target.startswith("http") or page.exists(), target
        assert not section or section in sections(page), f"{target}#{section}"


def prose(document: Path) -> str:
    """A page without its code."""
    return re.sub(r"```.*?```|`[^`\n]*`", "", document.read_text(), flags=re.DOTALL)


def sections(document: Path) -> set[str]:
    """The anchors of a page, as GitHub names them."""
    headings = re.findall(r"^#+ (.*)$", document.read_text(), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", heading).lower().replace(" ", "-") for heading in headings}


def test_every_page_is_in_the_index() -> None:
    index = (ROOT / "docs" / "README.md").read_text()
    assert [page.name for page in DOCUMENTS if page.name != "README.md" and f"({page.name}" not in index] == []


def test_every_reason_is_explained() -> None:
    made = run_path(str(ROOT / "docs" / "errors_table.py"))
    code = "".join(path.read_text() for room in ("cache", "api") for path in (ROOT / "service" / room).glob("*.py"))
    told = re.findall(r'Told\("[A-Z-]+", "(\w+)"\)|reason="(\w+)"|reason = "(\w+)"', code)
    words = {word for found in told for word in found if word}
    named = {str(reason) for reason in (*tier.Reason, *decision.Reason)}
    assert (words | named) - {code.slug for code in Code} - set(made["REASONS"]) == set()


def test_every_control_of_a_request_is_explained() -> None:
    code = (ROOT / "service" / "api" / "controls.py").read_text()
    page = (ROOT / "docs" / "proxy.md").read_text()
    section = page[page.index("## What a request may ask") : page.index("## What an answer says")].lower()
    headers = r"((?:x|helicone|cf)-[a-z-]*[a-z])"
    assert set(re.findall(f'(?<!b)"{headers}"', code)) == set(re.findall(f"`{headers}", section))
    members = {f"cache.{name}" for name in re.findall(r'source\.cache\("([a-z-]+)"', code)}
    fields = set(re.findall(r'source\.field\("(\w+)"', code)) | members - {"cache.s-max-age"}  # the same in other words
    assert [name for name in fields if f"`{name}" not in section] == []


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
