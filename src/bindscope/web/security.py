"""Who may ask, and what a page may do. The server is for the person at this machine.

- Every request must name a host this server is reached by, which keeps foreign names that resolve to this machine out
  (DNS rebinding). The port is free: a forwarded one is another.
- Work is only done for pages of this server, and only for JSON: a page of another site can send neither. A browser says
  where a request comes from in ``Origin`` and ``Sec-Fetch-Site``; a program on this machine sends none of them.
- A question is read up to a limit before anything else sees it, however long it says it is.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

LOOPBACK = ("localhost", "127.0.0.1", "[::1]")
MAX_BODY = 64_000  # bytes; a question is a program or two and a few names
POLICY = {
    "default-src": "'none'",
    "script-src": "'self'",
    "style-src": "'self'",
    "img-src": "'self' data: blob:",  # figures drawn in the page and handed over as files
    "connect-src": "'self'",
    "worker-src": "'self'",
    "font-src": "'self'",
    "base-uri": "'none'",
    "form-action": "'none'",
    "frame-ancestors": "'none'",
}
HEADERS = {
    "Content-Security-Policy": "; ".join(f"{name} {value}" for name, value in POLICY.items()),
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}
_HOST = re.compile(r"(?P<name>\[[0-9a-f:.]+\]|[a-z0-9_.-]+)(?::(?P<port>[0-9]{1,5}))?")
_OWN = ("same-origin", "none")  # what a browser says of a page of this server, and of an address that was typed


class Refusal(NamedTuple):
    """Why a request is not answered."""

    status: int
    sentence: str


class Guard:
    """Checks each request before anything else sees it, and adds the headers that bind the page."""

    def __init__(self, app: ASGIApp, hosts: Iterable[str] = LOOPBACK) -> None:
        self.app = app
        self.hosts = frozenset(name.lower() for name in hosts)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self.app(scope, receive, send)
        elif scope["type"] == "http":
            await self._answer(scope, receive, _with_headers(send, HEADERS))
        else:  # a web socket
            await send({"type": "websocket.close", "code": 1008})

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        refusal = self.refuse(scope["method"], scope["path"], Headers(scope=scope))
        if refusal is None and scope["method"] not in ("GET", "HEAD"):
            body = await _read_body(receive)
            if body is None:
                return  # who asked has left
            receive = _replay(body, receive)
            if len(body) > MAX_BODY:
                refusal = Refusal(413, f"a question may have {MAX_BODY:,} bytes.")
        if refusal is not None:
            await JSONResponse({"error": refusal.sentence}, refusal.status)(scope, receive, send)
            return
        await self.app(scope, receive, send)

    def refuse(self, method: str, path: str, headers: Headers) -> Refusal | None:
        """Why this request is not answered, as far as its headers tell."""
        named = headers.getlist("host")
        host = named[0].lower() if len(named) == 1 else ""
        if host_of(host) not in self.hosts:
            return Refusal(421, "this server answers only under the names it was started with.")
        reads = method in ("GET", "HEAD")
        if (not reads or path.startswith("/api/")) and not is_own_page(headers, host):
            return Refusal(403, "only pages of this server may ask it.")
        if method == "POST" and headers.get("content-type", "").split(";")[0].strip().lower() != "application/json":
            return Refusal(415, "send the question as application/json.")
        length = headers.get("content-length", "0")
        if not (length.isascii() and length.isdigit()):
            return Refusal(400, "Content-Length is not a number.")
        if not reads and int(length[:20]) > MAX_BODY:
            return Refusal(413, f"a question may have {MAX_BODY:,} bytes.")
        return None


def host_of(header: str) -> str | None:
    """The name in a Host header without its port; None when it is not a name and a port.

    >>> host_of("[::1]:8420")
    '[::1]'
    """
    match = _HOST.fullmatch(header)
    if match is None or int(match["port"] or 1) not in range(1, 65_536):
        return None
    return match["name"]


def is_own_page(headers: Headers, host: str, *, sure: bool = False) -> bool:
    """Whether a request comes from a page of this server, or from a program that is no browser.

    With ``sure`` only a request that says so itself counts.
    """
    origin = headers.get("origin")
    if origin is None:
        return not sure and headers.get("sec-fetch-site", "none") in _OWN
    same = origin.lower() in (f"http://{host}", f"https://{host}")
    return same and headers.get("sec-fetch-site", "same-origin") in _OWN


def _with_headers(send: Send, added: Mapping[str, str]) -> Send:
    async def send_with_headers(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = MutableHeaders(scope=message)
            for name, value in added.items():
                headers[name] = value
        await send(message)

    return send_with_headers


async def _read_body(receive: Receive) -> bytes | None:
    """The body, or as much of it as shows that it is too long; None when who sent it has left."""
    body = b""
    while len(body) <= MAX_BODY:
        message = await receive()
        if message["type"] == "http.disconnect":
            return None
        body += message.get("body", b"")
        if not message.get("more_body", False):
            break
    return body


def _replay(body: bytes, receive: Receive) -> Receive:
    """Hand out a body that was read already, then whatever comes after it."""
    read = False

    async def replay() -> Message:
        nonlocal read
        if read:
            return await receive()
        read = True
        return {"type": "http.request", "body": body, "more_body": False}

    return replay
