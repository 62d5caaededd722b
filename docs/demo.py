"""`make demo`: a service on a database of its own, a small FAQ in it, and what becomes of twelve questions.

Everything goes over HTTP, as it would for you; the database is thrown away at the end.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from socket import create_server

import httpx

FAQ = {
    "How do I renew my library card?": "Online under My account, or at any desk with your old card.",
    "When is the reading room open?": "Monday to Saturday, from 9 to 20 o'clock.",
    "Can I borrow magazines?": "Yes, for seven days; the current issue stays in the house.",
    "How many books may I borrow at once?": "Thirty, and ten films beside them.",
    "What do I pay for a lost book?": "Its price and a fee of 5 euros.",
    "Is there a book drop outside?": "Yes, left of the main door, day and night.",
}
ASKED = [
    "How do I renew my library card?",
    "How can I renew my library card?",
    "Can I borrow magazines, please?",
    "When's the reading room open?",
    "How many books may I borrow at once?",
    "How many books can I borrow at one time?",
    "Is there a book drop outside the building?",
    "What do I pay for a lost card?",
    "When is the reading room closed?",
    "May I eat in the reading room?",
    "Who founded the library?",
    "ok thanks",
]
SEARCH = "/v1/caches/faq/entries/search"
START_SECONDS = 300


@contextmanager
def service() -> Iterator[httpx.Client]:
    """A service as `pgsemcache serve` starts it, on a free port."""
    with create_server(("127.0.0.1", 0)) as probe:
        port = probe.getsockname()[1]
    with tempfile.TemporaryDirectory(prefix="pgsemcache-demo-") as folder:
        command = [sys.executable, "-c", "from service.cli import main; main()", "serve"]
        process = subprocess.Popen(  # noqa: S603 - our own command
            [*command, "--port", str(port), "--data-dir", folder],
            stdout=subprocess.DEVNULL,
            env=os.environ | {"SEMCACHE_LOG_LEVEL": "warning"},
        )
        try:
            with httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=30) as client:
                wait_until_ready(client, process)
                yield client
        finally:
            process.terminate()
            process.wait()


def wait_until_ready(client: httpx.Client, process: subprocess.Popen[bytes]) -> None:
    end = time.monotonic() + START_SECONDS
    while time.monotonic() < end:
        if process.poll() is not None:
            sys.exit("the service did not start; its message stands above")
        try:
            if client.get("/readyz").status_code == 200:
                return
        except httpx.TransportError:
            pass
        time.sleep(0.1)
    sys.exit(f"the service was not ready within {START_SECONDS} s")


def kind_of(found: dict[str, object], explanation: dict[str, object]) -> str:
    """hit, semantic hit, near miss (a neighbour that was close to being served) or miss."""
    if found["data"]:
        return str(explanation["outcome"]).replace("_", " ")
    similarity = explanation["similarity"]
    return "near miss" if isinstance(similarity, float) and similarity > 0.8 else "miss"


def main() -> None:
    print("starting a service with a database of its own …", flush=True)
    with service() as client:
        client.post("/v1/caches", json={"name": "faq"}).raise_for_status()
        entries = [{"prompt": prompt, "response": response} for prompt, response in FAQ.items()]
        client.post("/v1/caches/faq/entries/batch", json={"entries": entries}).raise_for_status()
        print(f"\nstored {len(FAQ)} questions with their answers; now {len(ASKED)} are asked:\n")
        print(f"{'asked':<45} {'outcome':<13} {'similarity':>10}  {'reason':<16} served")
        for prompt in ASKED:
            found = client.post(SEARCH, json={"prompt": prompt, "explain": True}).raise_for_status().json()
            explanation = found["explanation"]
            similarity = explanation["similarity"]
            served = found["data"][0]["response"] if found["data"] else "-"
            shown = f"{similarity:.4f}" if similarity is not None else "-"
            print(f"{prompt:<45} {kind_of(found, explanation):<13} {shown:>10}  {found['reason']:<16} {served}")
        stats = client.get("/v1/caches/faq/stats").json()
        print(f"\n{stats['hits']} of {stats['lookups']} served, at a threshold of {found['threshold']}.")


if __name__ == "__main__":
    main()
