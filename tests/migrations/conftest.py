"""Migrations that a test may add to."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from service.resources import migrations_dir
from service.store import migrate


@pytest.fixture
def scripts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of the migrations that a test may add to."""
    folder = tmp_path / "migrations"
    shutil.copytree(migrations_dir(), folder, ignore=shutil.ignore_patterns("__pycache__"))
    monkeypatch.setattr(migrate, "migrations_dir", lambda: folder)
    return folder
