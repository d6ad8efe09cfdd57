"""A client that stalls is hung up on; one that keeps up is waited on for as long as its answer takes."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest

from bindscope.web import patience
from bindscope.web.server import listen, serving

GET = b"GET /%s HTTP/1.1\r\nHost: localhost\r\n\r\n"
POST = b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 10\r\n\r\n"
STALLS = {"says nothing": b"", "half a head": GET[:20], "half a body": POST + b"12345", "lies about its body": POST}


class Server:
    """Answers after longer than anyone is waited for; ``/endless`` sends until nobody takes it, ``/held`` waits."""

    def __init__(self) -> None:
        self.ended: list[str] = []
        self.may_go_on = threading.Event()

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "lifespan":
            for step in ("startup", "shutdown"):
                await receive()
                await send({"type": f"lifespan.{step}.complete"})
            return
        while (message := await receive())["type"] == "http.request" and message["more_body"]:
            pass
        self.ended.append(message["type"])
        if message["type"] == "http.disconnect":
            return
        await asyncio.sleep(3 * patience.PATIENCE)
        while scope["path"] == "/held" and not self.may_go_on.is_set():
            await asyncio.sleep(0.01)
        await send({"type": "http.response.start", "status": 200, "headers": []})
        while scope["path"] == "/endless":
            await send({"type": "http.response.body", "body": b"x" * 100_000, "more_body": True})
            if await has_left(asyncio.ensure_future(receive())):
                self.ended.append("left")
                return
        await send({"type": "http.response.body", "body": b"answered"})


async def has_left(receiving: asyncio.Future[Any]) -> bool:
    done, _ = await asyncio.wait({receiving}, timeout=0)
    receiving.cancel()
    return bool(done)


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[Server, int]]:
    monkeypatch.setattr(patience, "PATIENCE", 0.1)
    monkeypatch.setattr(patience, "N_CONNECTIONS", 5)
    app, listening = Server(), listen("127.0.0.1", 0)
    with serving(app, listening):  # type: ignore[arg-type]
        yield app, listening.getsockname()[1]


def connect(port: int) -> socket.socket:
    return socket.create_connection(("127.0.0.1", port), timeout=600)


def read_to_end(client: socket.socket) -> bytes:
    read = b""
    try:
        while part := client.recv(65_536):
            read += part
    except ConnectionResetError:
        pass
    return read


@pytest.mark.parametrize("sent", STALLS.values(), ids=STALLS)
def test_a_client_that_stalls_is_hung_up_on_without_an_answer(sent: bytes, server: tuple[Server, int]) -> None:
    with connect(server[1]) as client:
        client.sendall(sent)
        assert read_to_end(client) == b""


def test_a_client_that_keeps_up_waits_as_long_as_its_answer_takes_again_and_again(server: tuple[Server, int]) -> None:
    with connect(server[1]) as client:
        for _ in range(2):
            client.sendall(GET % b"")
            answer = b""
            while b"answered" not in answer:
                part = client.recv(1000)
                assert part, answer
                answer += part


def test_a_client_that_takes_nothing_is_hung_up_on_and_its_answer_ends(server: tuple[Server, int]) -> None:
    app, port = server
    with connect(port) as client:
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        client.sendall(GET % b"endless")
        while "left" not in app.ended:  # nothing is read meanwhile; the limit of every test ends this
            time.sleep(0.01)


def test_more_connections_than_are_served_are_closed_at_once_and_the_others_stay(server: tuple[Server, int]) -> None:
    app, port = server
    clients = [connect(port) for _ in range(5)]
    for client in clients:
        client.sendall(GET % b"held")
    while len(app.ended) < 5:
        time.sleep(0.01)
    with connect(port) as late:
        with contextlib.suppress(OSError):
            late.sendall(GET % b"")
        assert read_to_end(late) == b""
    app.may_go_on.set()
    for client in clients:
        assert b"200" in client.recv(1000)
        client.close()
