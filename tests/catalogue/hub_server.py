"""A server on the loopback that speaks as much of the hub's API as its client asks."""

from __future__ import annotations

import hashlib
import json
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

COMMIT = "0123456789abcdef0123456789abcdef01234567"


class Hub:
    """What the server has, and what was asked of it.

    Args:
        files: of its one repository, by name.
        break_at: bytes of the weights after which every connection breaks; 0 for never.
        wrong: a file whose digest it states falsely.
    """

    def __init__(self, files: Mapping[str, bytes], break_at: int = 0, wrong: str = "") -> None:
        self.files, self.break_at, self.wrong = dict(files), break_at, wrong
        self.asked: list[str] = []
        self.given: list[str] = []

    def digest(self, name: str) -> str:
        return hashlib.sha256(self.files[name] + (b"x" if name == self.wrong else b"")).hexdigest()


class _Handler(BaseHTTPRequestHandler):
    hub: Hub
    protocol_version = "HTTP/1.1"

    def log_message(self, *given: Any) -> None:
        """Say nothing."""

    def do_HEAD(self) -> None:
        self._answer(body=False)

    def do_GET(self) -> None:
        self._answer(body=True)

    def _answer(self, *, body: bool) -> None:
        path = self.path.partition("?")[0]
        self.hub.asked.append(path)
        if path.startswith("/api/models/owner/model"):
            siblings: list[dict[str, Any]] = []
            for name, data in self.hub.files.items():
                siblings.append({"rfilename": name, "size": len(data)})
                if name.endswith(".safetensors"):
                    lfs = {"sha256": self.hub.digest(name), "size": len(data), "pointerSize": 100}
                    siblings[-1]["lfs"] = lfs
            said = {
                "id": "owner/model",
                "modelId": "owner/model",
                "sha": COMMIT,
                "siblings": siblings,
                "tags": [],
            }
            self._send(json.dumps(said).encode(), {"Content-Type": "application/json"}, body=body)
            return
        name = path.partition(f"/owner/model/resolve/{COMMIT}/")[2]
        if name not in self.hub.files:
            headers = {"X-Error-Code": "RepoNotFound", "Content-Type": "text/plain"}
            self._send(b"", headers, body=body, status=404)
            return
        self._file(name, body=body)

    def _file(self, name: str, *, body: bool) -> None:
        data = self.hub.files[name]
        headers = {"ETag": f'"{self.hub.digest(name)}"', "X-Repo-Commit": COMMIT, "Accept-Ranges": "bytes"}
        asked = self.headers.get("Range")
        status = 200
        if asked and body:
            begin = int(asked.removeprefix("bytes=").partition("-")[0])
            headers["Content-Range"] = f"bytes {begin}-{len(data) - 1}/{len(data)}"
            data, status = data[begin:], 206
        if body:
            self.hub.given.append(name)
        self._send(data, headers, body=body, status=status, breaks=name.endswith(".safetensors"))

    def _send(
        self, data: bytes, headers: Mapping[str, str], *, body: bool, status: int = 200, breaks: bool = False
    ) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        if not body:
            return
        if breaks and self.hub.break_at:
            self.wfile.write(data[: self.hub.break_at])
            self.wfile.flush()
            self.close_connection = True
            return
        self.wfile.write(data)


@contextmanager
def serving(hub: Hub) -> Iterator[str]:
    """Within: the hub answers at the address that is given."""
    handler = type("Handler", (_Handler,), {"hub": hub})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
