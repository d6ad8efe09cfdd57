"""Requests as the server sees them, for tests that decide what each header says and when the asker leaves."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import orjson

from bindscope.web.security import LOOPBACK

HOST = f"{LOOPBACK[0]}:8420"
ORIGIN = f"http://{HOST}"


@dataclass
class Reply:
    status: int = 0
    headers: dict[str, str] = field(default_factory=dict)
    parts: list[bytes] = field(default_factory=list)

    @property
    def body(self) -> bytes:
        return b"".join(self.parts)

    @property
    def error(self) -> str:
        return str(orjson.loads(self.body)["error"])


async def request(
    app: Any,
    method: str,
    path: str,
    headers: Iterable[tuple[str, str]] = (),
    chunks: Iterable[bytes] = (b"",),
    leave: asyncio.Event | None = None,
    reply: Reply | None = None,
) -> Reply:
    """One request straight to the application, with exactly these headers; it is left once ``leave`` is set."""
    reply, waiting, leave = reply or Reply(), list(chunks), leave or asyncio.Event()
    scope = {
        "type": "http",
        "asgi": {"version": "3.0", "spec_version": "2.3"},
        "http_version": "1.1",
        "method": method,
        "scheme": "http",
        "path": path,
        "raw_path": path.encode(),
        "query_string": b"",
        "root_path": "",
        "headers": [(name.lower().encode(), value.encode("latin-1")) for name, value in headers],
        "client": ("127.0.0.1", 5000),
        "server": ("127.0.0.1", 8420),
    }

    async def receive() -> dict[str, Any]:
        if waiting:
            return {"type": "http.request", "body": waiting.pop(0), "more_body": bool(waiting)}
        await leave.wait()
        return {"type": "http.disconnect"}

    async def send(message: dict[str, Any]) -> None:
        if message["type"] == "http.response.start":
            reply.status = message["status"]
            reply.headers = {name.decode().lower(): value.decode() for name, value in message["headers"]}
        elif message.get("body"):
            reply.parts.append(message["body"])

    await app(scope, receive, send)
    return reply


def ask(
    app: Any, method: str, path: str, headers: Iterable[tuple[str, str]], chunks: Iterable[bytes] = (b"",)
) -> Reply:
    return asyncio.run(request(app, method, path, headers, chunks))
