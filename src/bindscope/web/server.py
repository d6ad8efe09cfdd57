"""The server as a process: an address, a page that answers there, and a clean end.

>>> with serving(create_app(lab), listen("127.0.0.1", 8420)) as address:
...     wait_for_interrupt()
"""

from __future__ import annotations

import ipaddress
import signal
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from bindscope.errors import BindscopeError

if TYPE_CHECKING:
    from fastapi import FastAPI

HOST, PORT = "127.0.0.1", 8420
N_PORTS = 20  # how many are tried, one after the other, when nobody asked for a certain one
START = 30.0  # seconds a server may take to come up


def listen(host: str = HOST, port: int | None = None) -> socket.socket:
    """A socket at this port; when none is asked for, at the usual one or the next that is free."""
    wanted = range(PORT, PORT + N_PORTS) if port is None else (port,)
    for number in wanted:
        try:
            return _bind(host, number)
        except PermissionError:
            raise BindscopeError(
                f"--port {number}: this machine does not let you listen there; take 1024 or above."
            ) from None
        except OSError as problem:
            if isinstance(problem, socket.gaierror) or number == wanted[-1]:
                reason = (problem.strerror or str(problem)).lower()
                raise BindscopeError(
                    f"cannot listen at {host}, port {number}: {reason}; give another --host or --port."
                ) from None
    raise AssertionError("one port at least was tried")


def is_loopback(host: str) -> bool:
    """Whether only this machine itself can reach a server at ``host``."""
    if host.lower() == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


def address_of(listening: socket.socket, name: str | None = None) -> str:
    """What to type into a browser."""
    host, port = listening.getsockname()[:2]
    shown = name or (f"[{host}]" if ":" in host else host)
    return f"http://{shown}:{port}/"


@contextmanager
def serving(app: FastAPI, listening: socket.socket) -> Iterator[None]:
    """Answer in a thread of its own for as long as the block lasts."""
    import uvicorn

    from bindscope.web.patience import PatientProtocol

    settings: dict[str, Any] = {"log_level": "error", "access_log": False, "server_header": False, "ws": "none"}
    settings["http"] = PatientProtocol
    server = uvicorn.Server(uvicorn.Config(app, lifespan="on", timeout_graceful_shutdown=1, **settings))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]}, name="server", daemon=True)
    thread.start()
    try:
        _await_start(server, thread)
        yield
    finally:
        server.should_exit = True
        thread.join(timeout=5)
        listening.close()


def wait_for_interrupt() -> None:
    """Until Ctrl-C; being told to end counts as that."""
    while True:
        time.sleep(3600)


@contextmanager
def ended_politely() -> Iterator[None]:
    """Ctrl-C is heard also where a shell made a process in the background deaf to it: all stops in order.

    Being told to end is as Ctrl-C to every command (``cli/failure.py``).
    """
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def _bind(host: str, port: int) -> socket.socket:
    family, kind, protocol, _, address = socket.getaddrinfo(
        host.strip("[]"), port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
    )[0]
    listening = socket.socket(family, kind, protocol)
    try:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind(address)
        listening.listen(128)
    except BaseException:
        listening.close()
        raise
    return listening


def _await_start(server: Any, thread: threading.Thread) -> None:
    deadline = time.monotonic() + START
    while not server.started:
        if not thread.is_alive() or time.monotonic() > deadline:
            raise BindscopeError("the server did not start; the lines above say why.")
        time.sleep(0.005)
