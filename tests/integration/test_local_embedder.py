"""The real models: exported once, run in ONNX Runtime, compared with sentence-transformers on torch."""

import asyncio
import json
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from service.embed.embedder import open_embedder
from service.embed.local import Exported, open_local
from service.embed.models import find_model
from service.embed.vectors import TextTooLong
from service.errors import Code, SemcacheError
from service.settings import Settings

pytest.importorskip("onnxruntime")

SENTENCES = (
    "Where does the ferry to the outer islands leave on Sundays, and may I take a bicycle?",
    "Ünïcödé, naïve façades & a Straße in Łódź cost 12,50 € — 3 % less than in 1998!",
    "明日の朝、港へ行く最初のバスは何時に出ますか。今天下午三点会下雨吗？ 내일은 날씨가 어때요?",
    "Когда отходит последний паром? متى تغادر آخر عبّارة؟ מתי יוצאת המעבורת האחרונה?",
    "🚢🌊 def area(w, h): return w * h  # SELECT name FROM port WHERE depth > 9.5; \t\n e\u0301 \u200b [SEP] ~~~",
)
ODD = ("", " ", "?", "\x00", "a\x00b", "  twice  spaced  ", "[CLS]", "x" * 300, "\u202e", "🚢" * 30, "A", "a")
WORDS = " ".join(SENTENCES).split(" ")
LATIN = " ".join(SENTENCES[:2]).split(" ")
TEXTS = [
    *(*ODD, *SENTENCES),
    *(" ".join(WORDS[n % 40 : n % 40 + 1 + n // 2]) for n in range(1, 100)),
    *(" ".join(LATIN[n % 20 : n % 20 + 1 + n // 4]) for n in range(1, 100)),
]


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A folder with two small models and the vectors that sentence-transformers gives with them and the bundled one."""
    folder = tmp_path_factory.mktemp("models")
    (folder / "texts.json").write_text(json.dumps(TEXTS))
    script = Path(__file__).with_name("local_models.py")
    subprocess.run([sys.executable, script, folder], check=True, capture_output=True)
    return folder


@pytest.fixture(scope="module")
def models_dir(tmp_path_factory):
    return tmp_path_factory.mktemp("kept")


@pytest.fixture
async def opened(models_dir):
    """Opens local embedders that keep their exports in one folder, and closes them at the end."""
    embedders = []

    async def open_one(model=None, **settings):
        settings = {"embedder_model": model and str(model), "models_dir": models_dir} | settings
        embedders.append(await open_embedder(Settings(**settings)))
        return embedders[-1]

    yield open_one
    for embedder in embedders:
        await embedder.close()


async def test_the_bundled_model_gives_the_vectors_of_sentence_transformers_for_every_kind_of_text(opened, made):
    embedder = await opened()
    assert (embedder.info.name, embedder.info.dimensions, embedder.info.max_tokens) == ("all-MiniLM-L6-v2", 384, 256)
    vectors = await embedder.embed_many(TEXTS)
    wanted = np.load(made / "bundled.npy")
    compared = 0
    for text, vector, expected in zip(TEXTS, vectors, wanted, strict=True):
        if isinstance(vector, SemcacheError):
            assert vector.code in {Code.TEXT_TOO_LONG, Code.TEXT_UNREADABLE}
        else:
            compared += 1
            assert np.abs(vector - expected).max() < 1e-5, text
            assert abs(np.linalg.norm(vector) - 1) < 1e-6
            assert vector.dtype == np.float32
    assert compared > 0.6 * len(TEXTS)


async def test_a_text_has_the_same_vector_alone_and_in_a_batch(opened):
    embedder = await opened(embedder_memory=0)
    texts = [*SENTENCES[:2], "?", "A", "a", "[CLS]", "  twice  spaced  "]
    for text, vector in zip(texts, await embedder.embed_many(texts), strict=True):
        assert np.abs(await embedder.embed(text) - vector).max() < 1e-5


@pytest.mark.parametrize(("name", "processes"), [("encoder", 2), ("static", 1)])
async def test_any_pipeline_is_exported_whole_even_by_two_processes_after_a_crash(
    opened, made, models_dir, name, processes
):
    files = find_model(str(made / name))
    for leftover in (models_dir / files.revision, models_dir / ".export-crashed"):
        leftover.mkdir(parents=True)
        (leftover / "model.onnx").write_bytes(b"half")
    embedder, *others = await asyncio.gather(*(opened(made / name) for _ in range(processes)))
    assert all(other.info == embedder.info for other in others)
    kept = [path.name for path in (models_dir).iterdir()]
    assert files.revision in kept
    assert not [name for name in kept if name.startswith(".export")]
    reads = embedder.info.max_tokens
    for text, vector, expected in zip(
        TEXTS, await embedder.embed_many(TEXTS), np.load(made / f"{name}.npy"), strict=True
    ):
        if isinstance(vector, SemcacheError):
            known = {Code.TEXT_TOO_LONG, Code.TEXT_UNREADABLE} if reads else {Code.TEXT_UNREADABLE}
            assert vector.code in known, text
        else:
            assert np.abs(vector - expected).max() < 1e-5, text


async def test_what_is_kept_starts_without_torch(opened, models_dir):
    await opened()
    code = (
        "import asyncio, sys; from pathlib import Path; from service.embed.local import open_local\n"
        "async def main():\n"
        "    model = await open_local(None, Path(sys.argv[1]))\n"
        "    print(len((await model.embed(['a boat']))[0]))\n"
        "    await model.close()\n"
        "asyncio.run(main())\n"
        "heavy = {'torch', 'transformers', 'sentence_transformers'}\n"
        "print(sorted(heavy & {name.split('.')[0] for name in sys.modules}))\n"
    )
    child = await asyncio.create_subprocess_exec(
        sys.executable, "-c", code, str(models_dir), stdout=asyncio.subprocess.PIPE
    )
    printed, _ = await child.communicate()
    assert printed.split() == [b"384", b"[]"]


async def test_a_text_longer_than_the_model_reads_is_told_and_never_cut(opened):
    embedder = await opened()
    report = " ".join(f"On day {i} the crane moved the blue container to the east quay." for i in range(140))
    endings = ("Task: summarise.", "Task: list every spelling mistake.")
    for result in await embedder.embed_many([f"{report}\n{ending}" for ending in endings]):
        assert isinstance(result, TextTooLong)
        assert result.limit == 256
    assert isinstance(await embedder.embed("boat " * 254), np.ndarray)
    with pytest.raises(TextTooLong) as failure:
        await embedder.embed("boat " * 255)
    assert failure.value.tokens == 257


async def test_of_a_very_long_text_only_the_beginning_is_counted(opened):
    embedder = await opened()
    with pytest.raises(TextTooLong) as failure:
        await embedder.embed("boat " * 200_000)
    assert 256 < failure.value.tokens < 2_000
    with pytest.raises(TextTooLong) as failure:
        await embedder.embed("Decode " + "eA" * 100_000)
    assert failure.value.tokens is None
    assert np.array_equal(await embedder.embed(" " * 100_000 + "boat"), await embedder.embed("boat"))


@pytest.mark.parametrize(
    "text",
    [
        *("Rate this: 👍", "Solve ∑", "What is 龘?", "Decode " + "eA" * 60),
        *("a \ufeff boat", "a bo\u202eat", "a bo\x00at", "a \udfff boat", "boat\u200b", "\ufeff", " "),
    ],
)
async def test_a_text_that_the_vocabulary_cannot_tell_from_another_has_no_vector(opened, text):
    embedder = await opened()
    with pytest.raises(SemcacheError) as failure:
        await embedder.embed(text)
    assert failure.value.code is Code.TEXT_UNREADABLE


@pytest.mark.parametrize(
    "text", ["A ⊂ B → 5 € ≤ 6 °C", "e\u0301te\u0301", "co\u00adoperate", "one\r\n\ttwo\u00a0three "]
)
async def test_symbols_of_the_vocabulary_accents_and_space_are_read(opened, text):
    embedder = await opened()
    assert isinstance(await embedder.embed(text), np.ndarray)


async def test_equal_texts_in_flight_and_remembered_ones_are_embedded_once(opened):
    embedder = await opened()
    await asyncio.gather(*(embedder.embed("a boat of one's own") for _ in range(20)))
    await embedder.embed("a boat of one's own")
    assert embedder.counts.texts == 1
    assert embedder.counts.coalesced == 19
    assert embedder.counts.remembered == 1


async def test_embedding_does_not_block_the_event_loop(opened):
    embedder = await opened()
    embedding = asyncio.create_task(embedder.embed("harbour " * 250))
    turns = 0
    while not embedding.done():
        await asyncio.sleep(0)
        turns += 1
    assert turns > 20


async def test_a_damaged_export_is_refused_with_the_mend(made, tmp_path, models_dir, opened):
    await opened()
    revision = find_model(None).revision
    shutil.copytree(models_dir / revision, tmp_path / revision)
    (tmp_path / revision / "model.onnx").write_bytes(b"no model")
    assert Exported.read(tmp_path / revision) is not None
    with pytest.raises(SemcacheError, match="Delete the folder") as failure:
        await open_local(None, tmp_path)
    assert failure.value.code is Code.EMBEDDER_UNAVAILABLE


async def test_what_cannot_be_exported_says_why_and_leaves_nothing(tmp_path):
    (tmp_path / "broken").mkdir()
    (tmp_path / "broken" / "config.json").write_text('{"model_type": "no-such-architecture"}')
    with pytest.raises(SemcacheError, match="could not be exported") as failure:
        await open_local(str(tmp_path / "broken"), tmp_path / "kept")
    assert failure.value.code is Code.EMBEDDER_UNAVAILABLE
    assert [path.name for path in (tmp_path / "kept").iterdir()] == [".lock"]


@pytest.mark.parametrize("package", ["onnxruntime", "tokenizers", "torch", "sentence_transformers"])
async def test_without_the_packages_the_extra_is_named(monkeypatch, tmp_path, package):
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(SemcacheError, match=r"pip install 'pgsemcache\[local\]'"):
        await open_local(None, tmp_path)


async def test_the_export_of_the_bundled_model_is_enough(opened, monkeypatch):
    whole = await opened()
    monkeypatch.setattr("service.embed.local.bundled_folder", lambda: None)
    monkeypatch.setattr("service.embed.models.bundled_folder", lambda: None)
    alone = await opened()
    assert alone.info == whole.info
    assert np.array_equal(await alone.embed(SENTENCES[0]), await whole.embed(SENTENCES[0]))


async def test_without_model_and_export_the_extra_is_named(tmp_path, monkeypatch):
    monkeypatch.setattr("service.embed.local.bundled_folder", lambda: None)
    monkeypatch.setattr("service.embed.models.bundled_folder", lambda: None)
    with pytest.raises(SemcacheError, match=r"pgsemcache\[local\]"):
        await open_local(None, tmp_path)
