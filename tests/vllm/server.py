"""A real vLLM on loopback, on the CPU, started and stopped as an operator would."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import httpx
from processes import CHECKOUT

PYTHON = CHECKOUT / ".venv-vllm" / "bin" / "python"
MODEL, EMBEDDER = "tiny", "tiny-embedder"
START_SECONDS, STOP_SECONDS = 400, 30

_ENVIRONMENT = {
    "HF_HUB_OFFLINE": "1",
    "TRANSFORMERS_OFFLINE": "1",
    "VLLM_NO_USAGE_STATS": "1",
    "VLLM_CPU_KVCACHE_SPACE": "1",  # GiB; unset, it takes nearly all memory
}
_FLAGS = (
    "--host=127.0.0.1",
    "--dtype=float32",
    "--enforce-eager",
    "--max-model-len=2048",
    "--max-num-seqs=8",
)


class Vllm:
    """One server; `serve` may be called again with another model behind the same address and path."""

    def __init__(self, models: Path, folder: Path, flags: Sequence[str]) -> None:
        self._models, self._folder, self._flags = models, folder, flags
        self._process: subprocess.Popen[bytes] | None = None
        self._log = folder / "vllm.log"
        self.port = _free_port()
        self.root = f"http://127.0.0.1:{self.port}"
        self.url = f"{self.root}/v1"

    def serve(self, variant: str = "base") -> None:
        """Stop, and start with this variant of the model."""
        self.stop()
        served = self._folder / "model"
        shutil.rmtree(served, ignore_errors=True)
        shutil.copytree(self._models / variant, served)
        # Elsewhere it has a GPU, and leaves the cores to the service and Postgres.
        command = ["nice", "-n", "10", PYTHON, "-m", "vllm.entrypoints.openai.api_server"]
        command += [f"--model={served}", f"--port={self.port}"]
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                [*command, *_FLAGS, *self._flags],
                env=os.environ | _ENVIRONMENT,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        self._wait(self._process)

    def stop(self) -> None:
        """End the server and its engine."""
        process, self._process = self._process, None
        if process is None:
            return
        process.terminate()
        with suppress(subprocess.TimeoutExpired):
            process.wait(STOP_SECONDS)
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)  # the engine is a process of its own
        process.wait()

    def metric(self, name: str, **labels: str) -> float:
        """The sum of a metric's samples with these labels."""
        lines = httpx.get(f"{self.root}/metrics").text.splitlines()
        named = [line for line in lines if line.startswith(f"{name}{{")]
        wanted = [f'{label}="{value}"' for label, value in labels.items()]
        return sum(float(line.rsplit(" ", 1)[1]) for line in named if all(label in line for label in wanted))

    def _wait(self, process: subprocess.Popen[bytes]) -> None:
        end = time.monotonic() + START_SECONDS
        while time.monotonic() < end and process.poll() is None:
            try:
                if httpx.get(f"{self.root}/health", timeout=5).status_code == 200:
                    return
            except httpx.TransportError:
                time.sleep(0.5)
        self.stop()
        tail = self._log.read_text(errors="replace")[-4000:]
        raise AssertionError(f"vLLM did not start within {START_SECONDS} s:\n{tail}")


def _free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


__all__ = ["EMBEDDER", "MODEL", "PYTHON", "Vllm"]
