"""How long the server waits for a client, and for how many of them: one that stalls takes nothing from the others.

A client is waited for while it sends a request, its head and its body together, while it takes what was sent to it, and
between two requests. Whoever takes longer than ``PATIENCE`` is hung up on; work that it asked for ends with it. The server
itself may take as long as it likes.
"""

from __future__ import annotations

import asyncio

from uvicorn.protocols.http.h11_impl import H11Protocol

PATIENCE = 20.0  # seconds; some 50 kB have to be taken in that time
N_CONNECTIONS = 500  # at once; below the 1,024 files that a process may usually have open


class PatientProtocol(H11Protocol):
    """HTTP for clients that keep up; further connections than ``N_CONNECTIONS`` are closed at once."""

    _hang_up: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        if len(self.connections) > N_CONNECTIONS:
            transport.abort()
            return
        self._look()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        self._look()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        self._look()

    def pause_writing(self) -> None:
        super().pause_writing()
        self._look()

    def resume_writing(self) -> None:
        super().resume_writing()
        self._look()

    def connection_lost(self, exc: Exception | None) -> None:
        self._cancel()
        super().connection_lost(exc)

    def _look(self) -> None:
        """Whose turn is it? The clock runs from when it became the client's until it is the server's."""
        cycle = self.cycle
        waits = cycle is None or cycle.response_complete or cycle.more_body or self.flow.write_paused
        if not waits or self.transport.is_closing():
            self._cancel()
        elif self._hang_up is None:
            self._hang_up = self.loop.call_later(PATIENCE, self.transport.abort)

    def _cancel(self) -> None:
        if self._hang_up is not None:
            self._hang_up.cancel()
            self._hang_up = None
