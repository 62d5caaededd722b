"""A sentence-transformers model in this process: its exported pipeline, run by ONNX Runtime on one thread.

Neither torch nor sentence-transformers is imported here; a child process exports the model once.
"""

from __future__ import annotations

import asyncio
import importlib.util
import json
import sys
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, TypeVar
from unicodedata import combining

import numpy as np

from service.embed.models import BUNDLED_NAME, ModelFiles, bundled_folder, find_model, missing_extra
from service.embed.vectors import Result, TextTooLong, encodable, unavailable, unit
from service.errors import Code, SemcacheError

FORMAT = 1

P = TypeVar("P")

# A text is refused by its beginning, or by a word such as a file in base64, where that alone is too long, so that a
# megabyte costs no second.
_CHARS_PER_TOKEN = 16
# Zero-width joiners and the soft hyphen: a tokenizer may drop them, since they only shape a word.
_SHAPING = frozenset("\u00ad\u200c\u200d")


@dataclass(frozen=True)
class Exported:
    """What `embedder.json` says of the model beside it."""

    format: int
    name: str
    revision: str
    dimensions: int
    max_tokens: int | None
    prompt: str
    pad_id: int
    special_tokens: bool
    inputs: list[str]

    def write(self, folder: Path) -> None:
        (folder / "embedder.json").write_text(json.dumps(asdict(self), indent=2), encoding="utf-8")

    @classmethod
    def read(cls, folder: Path) -> Exported | None:
        """The description, or None where there is none of this release's format."""
        try:
            fields = json.loads((folder / "embedder.json").read_text(encoding="utf-8"))
        except FileNotFoundError:
            return None
        return cls(**fields) if fields.get("format") == FORMAT else None


class Pipeline:
    """An exported model, loaded: texts in, unit vectors out. Blocks; one caller at a time."""

    def __init__(self, folder: Path, exported: Exported, threads: int = 0) -> None:
        self.exported = exported
        self._session, self._tokenizer = load_graph(folder, threads)
        self._unknown = _unknown_id(self._tokenizer)

    def embed(self, texts: Sequence[str], *, unread: bool = False) -> list[Result]:
        """One unit vector or error a text, in order. The texts are padded to the longest of them.

        `unread`: give a vector for what the vocabulary lacks too, as the model does.
        """
        dimensions = self.exported.dimensions
        tokens = [self._tokens(self.exported.prompt + encodable(text), unread=unread) for text in texts]
        good = [ids for ids in tokens if isinstance(ids, list)]
        vectors = iter(self._run(good) if good else ())
        return [unit(next(vectors), dimensions) if isinstance(ids, list) else ids for ids in tokens]

    def _tokens(self, text: str, *, unread: bool) -> list[int] | SemcacheError:
        limit = self.exported.max_tokens
        if limit is not None and len(text) > (most := limit * _CHARS_PER_TOKEN):
            whole_words = " ".join(text[:most].rsplit(None, 1)[:1])
            if (count := len(self._encode(whole_words).ids)) > limit:
                return TextTooLong(count, limit)
            if max(map(len, text.split()), default=0) > most:
                return TextTooLong(None, limit)
        encoding = self._encode(text)
        ids: list[int] = encoding.ids
        if limit is not None and len(ids) > limit:
            return TextTooLong(len(ids), limit)
        if not ids or not (unread or self._reads(text, encoding)):
            return SemcacheError(
                Code.TEXT_UNREADABLE,
                "The embedder's vocabulary lacks a character or a word of the text, and texts that differ only there "
                "would look alike. Match it exactly, or choose an embedder that reads it.",
            )
        return ids

    def _reads(self, text: str, encoding: Any) -> bool:
        return self._unknown not in encoding.ids and _covers(encoding.offsets, text) and not self._drops(text)

    def _drops(self, text: str) -> bool:
        """Whether an invisible character is gone before the text is cut into tokens, perhaps from within a word."""
        normalizer = self._tokenizer.normalizer
        if normalizer is None or text.isprintable():
            return False
        unseen = {c for c in set(text) - _SHAPING if not (c.isprintable() or c.isspace())}
        return any(not normalizer.normalize_str(c) for c in unseen)

    def _encode(self, text: str) -> Any:
        return self._tokenizer.encode(text, add_special_tokens=self.exported.special_tokens)

    def _run(self, tokens: list[list[int]]) -> Any:
        ids = np.full((len(tokens), max(map(len, tokens))), self.exported.pad_id, dtype=np.int64)
        mask = np.zeros_like(ids)
        for row, text in enumerate(tokens):
            ids[row, : len(text)] = text
            mask[row, : len(text)] = 1
        fed = {"input_ids": ids, "attention_mask": mask, "token_type_ids": np.zeros_like(ids)}
        return self._session.run(None, {name: fed[name] for name in self.exported.inputs})[0]


def load_graph(folder: Path, threads: int) -> tuple[Any, Any]:
    """The ONNX Runtime session and the tokenizer of an exported model."""
    import onnxruntime  # type: ignore[import-untyped]  # noqa: PLC0415 (optional, and ships no types)
    from tokenizers import Tokenizer  # noqa: PLC0415

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    # Spinning threads take the cores from Postgres and from the event loop between two texts.
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    session = onnxruntime.InferenceSession(folder / "model.onnx", options, providers=["CPUExecutionProvider"])
    return session, Tokenizer.from_file(str(folder / "tokenizer.json"))


def _unknown_id(tokenizer: Any) -> int | None:
    """The id that stands for whatever is not in the vocabulary; None where the model reads every byte."""
    model = json.loads(tokenizer.to_str())["model"]
    token = model.get("unk_token")
    found: int | None = model.get("unk_id") if token is None else tokenizer.token_to_id(token)
    return found


def _covers(offsets: Sequence[tuple[int, int]], text: str) -> bool:
    """Whether some token holds each character, but for space and accents, and there is one at all."""
    end, left = 0, ""
    for start, stop in offsets:
        left += text[end:start]
        end = max(end, stop)
    return end > 0 and all(c.isspace() or combining(c) for c in left + text[end:])


class LocalModel:
    """A pipeline with a thread of its own, so that the event loop never waits for it."""

    def __init__(self, files: ModelFiles, pipeline: Pipeline) -> None:
        self.files = files
        self.exported = pipeline.exported
        self._pipeline = pipeline
        self._thread = ThreadPoolExecutor(1, "semcache-embed")

    async def embed(self, texts: Sequence[str]) -> list[Result]:
        """One unit vector or error a text, in order."""
        return await asyncio.get_running_loop().run_in_executor(self._thread, self._pipeline.embed, texts)

    async def close(self) -> None:
        """Let the running texts end and stop the thread."""
        await asyncio.to_thread(self._thread.shutdown, cancel_futures=True)


async def open_local(model: str | None, models_dir: Path, threads: int = 0) -> LocalModel:
    """The model by name or path (None: the bundled one), from `models_dir/<revision>`, exported if need be.

    Of the bundled one its export is enough, as in the container image. Raises EMBEDDER_UNAVAILABLE with what to do.
    """
    files = await asyncio.to_thread(_find, model, models_dir)
    return LocalModel(files, await open_pipeline("embedder", Pipeline, files, models_dir, threads))


async def open_pipeline(
    kind: str, pipeline: Callable[[Path, Exported, int], P], files: ModelFiles, models_dir: Path, threads: int
) -> P:
    """A model's pipeline from `models_dir/<revision>`, exported as this kind if need be.

    Raises EMBEDDER_UNAVAILABLE with what to do.
    """
    for package in ("onnxruntime", "tokenizers"):
        if importlib.util.find_spec(package) is None:
            raise missing_extra("a local model")
    kept = models_dir / files.revision
    if Exported.read(kept) is None:
        await _export(kind, files, models_dir)
    return await asyncio.to_thread(_load, pipeline, kept, threads)


def _find(model: str | None, models_dir: Path) -> ModelFiles:
    if model is None and bundled_folder() is None:
        for folder in sorted(models_dir.glob("*/")):
            exported = Exported.read(folder)
            if exported is not None and exported.name == BUNDLED_NAME:
                return ModelFiles(exported.name, folder, exported.revision)
    return find_model(model)


def _load(pipeline: Callable[[Path, Exported, int], P], kept: Path, threads: int) -> P:
    exported = Exported.read(kept)
    if exported is None:
        raise unavailable(f"The export left no model in {kept}.")
    try:
        return pipeline(kept, exported, threads)
    except Exception as error:
        raise unavailable(
            f"The exported model in {kept} cannot be loaded ({type(error).__name__}). Delete the folder; it is "
            "made again at the next start."
        ) from error


async def _export(kind: str, files: ModelFiles, models_dir: Path) -> None:
    """Export in a child process: torch's memory goes with it, and a cancelled start ends it."""
    for package in ("torch", "sentence_transformers", "onnxscript"):
        if importlib.util.find_spec(package) is None:
            raise missing_extra("exporting a model")
    child = await asyncio.create_subprocess_exec(
        *(sys.executable, "-P", "-m", "service.embed.export"),
        *(kind, str(files.folder), str(models_dir), files.revision, files.name),
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.PIPE,
    )
    try:
        _, errors = await child.communicate()
    except asyncio.CancelledError:
        child.kill()
        await child.wait()
        raise
    if child.returncode != 0:
        last = (errors.decode(errors="replace").strip().splitlines() or [f"exit status {child.returncode}"])[-1]
        raise unavailable(f"The model {files.name!r} could not be exported to ONNX: {last}")


__all__ = ["FORMAT", "Exported", "LocalModel", "Pipeline", "load_graph", "open_local", "open_pipeline"]
