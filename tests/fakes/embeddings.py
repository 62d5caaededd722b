"""An OpenAI-compatible embeddings server on loopback, and its faults."""

from __future__ import annotations

import base64
import hashlib
import json
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import numpy as np

SIZE = 16
TOO_LONG = {"error": {"message": "This model's maximum context length is 512 tokens.", "code": 400}}


class EmbeddingServer:
    """An OpenAI-compatible embeddings server: a text's vector is a sum of its words'. Attributes are its faults."""

    def __init__(self):
        self.weights = "first"
        self.models = []
        self.reads = None
        self.refuses_long = True
        self.counts = True
        self.base64 = True
        self.size = SIZE
        self.reply = None
        self.hang = threading.Event()
        self.hang.set()
        self.asked = []
        self.authorizations = set()

    def vector(self, text):
        words = re.findall(r"\S+", text)[: self.reads]
        seeds = [hashlib.sha256(f"{self.weights} {word}".encode()).digest()[:8] for word in words or [""]]
        return sum(np.random.default_rng(int.from_bytes(seed)).normal(size=self.size) for seed in seeds)

    def answer(self, path, body):
        if path == "/v1/models":
            return 200, {"object": "list", "data": self.models}
        texts = body["input"]
        self.asked.append(texts)
        self.hang.wait(10)
        if self.reply is not None:
            return self.reply
        if body["encoding_format"] == "base64" and not self.base64:
            return 400, {"error": {"message": "encoding_format must be float"}}
        counts = [len(text.split()) for text in texts]
        if self.reads and self.refuses_long and max(counts) > self.reads:
            return 400, TOO_LONG
        items = [{"index": i, "embedding": self.encode(text, body)} for i, text in enumerate(texts)]
        used = sum(min(count, self.reads or count) for count in counts)
        return 200, {"data": items[::-1], "usage": {"prompt_tokens": used} if self.counts else None}

    def encode(self, text, body):
        vector = self.vector(text).astype("<f4")
        return base64.b64encode(vector.tobytes()).decode() if body["encoding_format"] == "base64" else vector.tolist()


@contextmanager
def embedding_server() -> Iterator[EmbeddingServer]:
    server = EmbeddingServer()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True

        def respond(self):
            body = self.rfile.read(int(self.headers.get("content-length", 0)))
            server.authorizations.add(self.headers.get("authorization"))
            status, answer = server.answer(self.path, json.loads(body) if body else None)
            if status == 0:
                self.close_connection = True
                return
            data = answer if isinstance(answer, bytes) else json.dumps(answer).encode()
            self.send_response(status)
            self.send_header("content-length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        do_GET = do_POST = respond  # noqa: N815 (http.server's names)

        def log_message(self, *_):
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as http:
        threading.Thread(target=http.serve_forever, args=(0.01,), daemon=True).start()
        server.url = f"http://127.0.0.1:{http.server_port}/v1"
        try:
            yield server
        finally:
            server.hang.set()
            http.shutdown()
