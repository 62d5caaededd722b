"""What the peers of `peers.py` share: a process that looks up and inserts what its parent names, and tells the times.

Its folder holds vectors.npy, the first `size` of them to be stored before it starts, and queries.npy. It says what it
is; then each line that it reads, [call, first, count, clients], is answered by a line of [number, answer, seconds].
Needs numpy only, so that it runs in an environment without the service.
"""

from __future__ import annotations

import json
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping

ANSWER = "An answer of some length. " * 8

Call = Callable[[int], int | None]
Timed = tuple[int, int | None, float]


def answer(number: int) -> str:
    return f"{number} {ANSWER}"


def number(answer: str) -> int:
    return int(answer.split(maxsplit=1)[0])


def serve(what: str, calls: Mapping[str, Call]) -> None:
    """Until the parent closes the pipe. `what` names the peer and its versions."""
    print(json.dumps(what), flush=True)
    for line in sys.stdin:
        name, first, count, clients = json.loads(line)
        print(json.dumps(_threads(calls[name], iter(range(first, first + count)), clients)), flush=True)


def _threads(call: Call, numbers: Iterator[int], clients: int) -> tuple[list[Timed], float]:
    """What each call gave, and the seconds that all took together."""
    done: list[Timed] = []

    def work() -> None:
        for number in numbers:
            start = time.perf_counter()
            found = call(number)
            done.append((number, found, time.perf_counter() - start))

    threads = [threading.Thread(target=work) for _ in range(clients)]
    begun = time.perf_counter()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return done, time.perf_counter() - begun
