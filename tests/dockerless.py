"""Builds the stages of the Dockerfile without Docker: each an overlay over this machine's files, in a chroot.

It knows what our Dockerfile uses. The base image is stood in for by this machine with this Python first on its PATH.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import mkdtemp

import pytest

ROOT = Path(__file__).parents[1]
MOUNT = """
set -e
mount --types overlay overlay --options "lowerdir=/,upperdir=$UPPER,workdir=$WORK" "$MERGED"
for place in proc dev; do mount --rbind "/$place" "$MERGED/$place"; done
exec chroot --userspec="$USERSPEC" "$MERGED" /usr/bin/env --chdir="$FOLDER" --ignore-environment "$@"
"""
Step = tuple[str, str]


@dataclass
class Stage:
    """What lies over the machine's own files in `place/layer`, and what the instructions have set."""

    place: Path
    environment: dict[str, str]
    folder: str = "/"
    user: str = "0:0"
    options: dict[str, list[str]] = field(default_factory=dict)

    @property
    def layer(self) -> Path:
        return self.place / "layer"

    def start(self, *command: str, **variables: str) -> subprocess.Popen[str]:
        """A process in the stage."""
        environment = self.environment | variables
        given = os.environ | {
            "UPPER": str(self.layer),
            # Its own: two that mount at once would each clear the other's.
            "WORK": mkdtemp(dir=self.place, prefix="work-"),
            "MERGED": mkdtemp(dir=self.place, prefix="merged-"),
            "USERSPEC": self.user,
            "FOLDER": self.folder,
        }
        assignments = [f"{name}={value}" for name, value in environment.items()]
        return subprocess.Popen(
            ["unshare", "--mount", "sh", "-c", MOUNT, "sh", *assignments, *command],
            env=given,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def run(self, *command: str, **variables: str) -> str:
        with self.start(*command, **variables) as process:
            out, _ = process.communicate(timeout=900)
        assert process.returncode == 0, f"{shlex.join(command)}: {out}"
        return out


def require_overlays(folder: Path) -> None:
    """Skip where this user may not mount: a build needs what Docker's own has."""
    stage = Stage(folder, {})
    stage.layer.mkdir()
    with stage.start("/bin/true") as process:
        out, _ = process.communicate()
    if process.returncode != 0:
        pytest.skip(f"overlays cannot be mounted here: {out.strip()}")


def build(folder: Path, **variables: str) -> dict[str, Stage]:
    """All stages by their names. `variables` are in the environment of every RUN, as pip's settings."""
    stages: dict[str, Stage] = {}
    arguments: dict[str, str] = {}
    stage: Stage | None = None
    for word, rest in steps():
        if word == "FROM":
            origin, _, name = rest.partition(" AS ")
            stage = stages[name] = _stage(folder / name, stages.get(origin), variables)
        elif word == "ARG":
            name, _, value = rest.partition("=")
            arguments[name] = value
        elif stage is not None:
            _do(stage, word, rest, stages, {n: v for n, v in arguments.items() if v})
    return stages


def steps() -> list[Step]:
    """The instructions of the Dockerfile, without comments, their lines joined."""
    lines = [line for line in (ROOT / "Dockerfile").read_text().splitlines() if not line.startswith("#")]
    joined = re.sub(r"\\\n\s*", "", "\n".join(lines))
    return [(word, rest) for word, _, rest in (line.partition(" ") for line in joined.splitlines() if line)]


def _stage(place: Path, origin: Stage | None, variables: dict[str, str]) -> Stage:
    place.mkdir()
    if origin is not None:
        # A copy: the kernel takes no second layer from within this machine's own files.
        subprocess.run(["cp", "--archive", origin.layer, place / "layer"], check=True)
        return Stage(place, dict(origin.environment), origin.folder)
    # Here every user of the image finds this Python, though it may lie in a home that is closed to others.
    (place / "layer" / Path(sys.executable).resolve().parent.relative_to("/")).mkdir(parents=True)
    python = str(Path(sys.executable).parent)
    return Stage(place, {"PATH": f"{python}:/usr/local/bin:/usr/bin:/bin", "HOME": "/tmp"} | variables)


def _do(stage: Stage, word: str, rest: str, stages: dict[str, Stage], arguments: dict[str, str]) -> None:
    match word:
        case "ENV":
            for assignment in shlex.split(rest):
                name, _, value = assignment.partition("=")
                stage.environment[name] = value.replace("$PATH", stage.environment["PATH"])
        case "WORKDIR":
            (stage.layer / rest.lstrip("/")).mkdir(parents=True, exist_ok=True)
            stage.folder = rest
        case "USER":
            stage.user = rest
        case "RUN":
            stage.run("/bin/sh", "-c", rest, **arguments)
        case "COPY":
            _copy(stage, rest, stages)
        case "HEALTHCHECK":
            stage.options[word] = json.loads(rest[rest.index("[") :])
        case "CMD" | "ENTRYPOINT":
            stage.options[word] = json.loads(rest)
        case _:
            assert word == "EXPOSE", f"{word} is not known here"


def _copy(stage: Stage, rest: str, stages: dict[str, Stage]) -> None:
    *sources, target = rest.split()
    into = stage.layer / Path(stage.folder, target).relative_to("/")
    if sources[0].startswith("--from="):
        origin = stages[sources.pop(0).removeprefix("--from=")]
        sources = [str(origin.layer / source.lstrip("/")) for source in sources]
    for source in sources:
        path = ROOT / source
        if path.is_dir():
            shutil.copytree(path, into, symlinks=True, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(path, into / source)
