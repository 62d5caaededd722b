"""The Dockerfile: by its linter, and stage by stage as Docker would build it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from dockerless import ROOT, Stage, steps

BIN = Path(sys.executable).parent


def test_the_linter_finds_nothing() -> None:
    done = subprocess.run([BIN / "hadolint", ROOT / "Dockerfile"], capture_output=True, text=True, check=False)
    assert (done.stdout + done.stderr, done.returncode) == ("", 0)


def test_everything_that_is_copied_is_in_the_context() -> None:
    sent = {line.removeprefix("!") for line in (ROOT / ".dockerignore").read_text().splitlines() if line[0] == "!"}
    copied = {source for word, rest in steps() if word == "COPY" and "--" not in rest for source in rest.split()[:-1]}
    assert copied == sent


def test_the_image_has_the_command_and_the_exported_model(image: dict[str, Stage]) -> None:
    service = image["service"]
    assert service.user == "10001:10001"
    assert service.run(*service.options["ENTRYPOINT"], "--version").strip()
    models = service.run(
        "/bin/sh", "-c", "cat $SEMCACHE_MODELS_DIR/*/embedder.json && ls $SEMCACHE_MODELS_DIR/*/model.onnx"
    )
    assert '"name": "all-MiniLM-L6-v2"' in models


def test_the_migration_tests_find_what_they_run(image: dict[str, Stage]) -> None:
    stage = image["migration-tests"]
    found = stage.run(*stage.options["CMD"], "--collect-only", "-q", SEMCACHE_TEST_DATABASE_URL="postgresql://nowhere")
    assert "tests/migrations/test_revisions.py::test_the_history_has_one_head" in found
