"""Who may ask, and what a page may do. The server is for the person at this machine.

Every request must name a host this server is reached by, which keeps foreign names that resolve to this machine out
(DNS rebinding). Work is only done for pages of this server, and only for JSON: a form on another site can send neither.
"""

from __future__ import annotations

from collections.abc import Iterable
from urllib.parse import urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

LOOPBACK = ("localhost", "127.0.0.1", "[::1]")
MAX_BODY = 64_000  # bytes; a question is a program or two and a few names
HEADERS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data: blob:; "
    "connect-src 'self'; worker-src 'self'; font-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}


class Guard:
    """Checks each request before anything else sees it, and adds the headers that bind the page."""

    def __init__(self, app: ASGIApp, hosts: Iterable[str] = LOOPBACK) -> None:
        self.app = app
        self.hosts = frozenset(hosts)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return

        async def send_guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers[name] = value
            await send(message)

        refusal = self.refuse(scope["method"], Headers(scope=scope))
        if refusal:
            status, sentence = refusal
            await JSONResponse({"error": sentence}, status)(scope, receive, send_guarded)
            return
        await self.app(scope, receive, send_guarded)

    def refuse(self, method: str, headers: Headers) -> tuple[int, str] | None:
        """A status and a sentence for a request that is not answered."""
        if host_of(headers.get("host", "")) not in self.hosts:
            return 421, "this server answers only under the names it was started with."
        if method in ("GET", "HEAD"):
            return None
        origin = headers.get("origin")
        if origin is not None and urlsplit(origin).netloc != headers["host"]:
            return 403, "only pages of this server may ask for work."
        if headers.get("content-type", "").split(";")[0].strip() != "application/json":
            return 415, "send the question as application/json."
        length = headers.get("content-length", "")
        if not length.isdigit():
            return 411, "say how long the question is (Content-Length)."
        if int(length) > MAX_BODY:
            return 413, f"a question may have {MAX_BODY} bytes."
        return None


def host_of(header: str) -> str:
    """The name in a Host header, without the port."""
    name, _, port = header.rpartition(":")
    return name if name and port.isdigit() else header
