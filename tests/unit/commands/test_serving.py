import gc
import socket

import pytest
import uvicorn

from service.commands import serve
from service.commands.target import Target
from service.settings import Settings


def test_no_collection_of_garbage_goes_through_what_was_loaded(monkeypatch: pytest.MonkeyPatch) -> None:
    left: list[int] = []
    monkeypatch.setattr(uvicorn.Server, "run", lambda *_, **__: left.append(len(gc.get_objects())))
    loaded = len(gc.get_objects())
    with socket.create_server(("127.0.0.1", 0)) as listener:
        try:
            serve._run(Settings(), Target("postgresql://nowhere", embedded=False, psql=[]), listener)
        finally:
            gc.unfreeze()
    assert left[0] < loaded / 100
