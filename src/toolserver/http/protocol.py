"""HTTP on one connection: bounded heads, refusals as JSON, no WebSocket handshake without the token."""

from __future__ import annotations

import asyncio
from typing import Any

import httptools
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from toolserver.http.answers import error_body, json_head
from toolserver.http.gate import AUTHENTICATED, Gate
from toolserver.http.unauthenticated import Unauthenticated

MAX_HEAD = 1024 * 1024
"""Bytes of a request's head."""
MAX_FIELDS = 100
"""Header fields of a request, trailers included."""
KEEP_ALIVE_S = 75
"""Seconds that a connection may be silent: before a request, between two, and in the middle of one."""


LINGER_S = 2
"""Seconds that a client has to take a refusal and to stop sending; what it sends is dropped."""


class TooManyFields(Exception):
    """Stops the parser at the header field that is one too many."""


class Protocol(HttpToolsProtocol):
    """One connection. uvicorn's protocol, which parses requests and runs the application, with the bounds added."""

    def __init__(self, *args: Any, unauthenticated: Unauthenticated, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._unauthenticated = unauthenticated
        self._head = 0
        self._fields = 0
        self._upgrade: tuple[list[tuple[bytes, bytes]], bool] | None = None
        """The headers of a request that asks for an upgrade, and whether it gets it."""
        self._declined = False
        self._refusal: tuple[int, str] | None = None

    # --------------------------------------------------------------------------------------------- the connection

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as in uvicorn
        super().connection_made(transport)
        self.app_state[AUTHENTICATED] = self._unauthenticated.add(self)
        self._expect_more()

    def connection_lost(self, exc: Exception | None) -> None:
        self.app_state[AUTHENTICATED]()
        super().connection_lost(exc)

    @property
    def answering(self) -> bool:
        return self.cycle is not None and not self.cycle.response_complete

    def abort(self) -> None:
        self.transport.abort()

    def _expect_more(self) -> None:
        """Close the connection unless something comes in time."""
        self.timeout_keep_alive_task = self.loop.call_later(KEEP_ALIVE_S, self.timeout_keep_alive_handler)

    # ------------------------------------------------------------------------------------------------- the parser

    def data_received(self, data: bytes) -> None:
        if self._refusal is not None:
            return
        self._unset_keepalive_if_required()
        try:
            self.parser.feed_data(data)
        except httptools.HttpParserError:
            if self._fields > MAX_FIELDS:
                self._refuse(431, f"the request has more than {MAX_FIELDS} header fields")
            else:
                self.send_400_response("")
            return
        except httptools.HttpParserUpgrade as upgrade:
            if self._should_upgrade():
                self.handle_websocket_upgrade()
            else:
                self._go_on(data[upgrade.args[0] :])
            return
        if self._in_head():
            self._head += len(data)
            if self._head > MAX_HEAD:
                self._refuse(431, f"the head of the request is over {MAX_HEAD} bytes")
            else:
                self._expect_more()
        elif self.cycle is not None and self.cycle.more_body and not self.flow.read_paused:
            self._expect_more()

    def _in_head(self) -> bool:
        return self.scope is not None and "path" not in self.scope and self.parser is not None

    def on_message_begin(self) -> None:
        self._head = self._fields = 0
        super().on_message_begin()

    def on_header(self, name: bytes, value: bytes) -> None:
        self._fields += 1
        if self._fields > MAX_FIELDS:
            raise TooManyFields
        if "path" not in self.scope:  # else it is a trailer, which nothing here uses
            super().on_header(name, value)

    def on_headers_complete(self) -> None:
        self._declined = self.parser.should_upgrade() and not self._should_upgrade()
        if not self._declined:
            super().on_headers_complete()

    def on_message_complete(self) -> None:
        if not self._declined:
            super().on_message_complete()

    def _should_upgrade(self) -> bool:
        if self._upgrade is None or self._upgrade[0] is not self.headers:
            gate = self.app
            assert isinstance(gate, Gate)
            granted = super()._should_upgrade() and gate.upgrades(self.url, self.headers)
            if granted:
                self.app_state[AUTHENTICATED]()
            self._upgrade = (self.headers, granted)
        return self._upgrade[1]

    def _go_on(self, rest: bytes) -> None:
        """Take a request whose upgrade is declined as the plain request that it also is.

        The parser takes what follows such a head for the other protocol, so the body would be lost. A new parser is
        given the head once more, without the upgrade.
        """
        headers = [(name, value) for name, value in self.headers if name != b"upgrade"]
        if len(headers) == len(self.headers):  # CONNECT
            self.send_400_response("")
            return
        lines = [b"%s %s HTTP/1.1" % (self.parser.get_method(), self.url)]
        lines += [b"%s: %s" % header for header in headers]
        self.parser = httptools.HttpRequestParser(self)
        self.parser.set_dangerous_leniencies(lenient_data_after_close=True)  # as uvicorn sets its own
        self.data_received(b"\r\n".join([*lines, b"", rest]))

    # --------------------------------------------------------------------------------------------------- refusals

    def send_400_response(self, msg: str) -> None:
        self._refuse(400, "this is not a request of HTTP/1.1")

    def _refuse(self, status: int, text: str) -> None:
        """Read nothing more, and send this as the last answer, after those of the requests before."""
        self._refusal = (status, text)
        self.flow.pause_reading()
        if not self.pipeline and (not self.answering or self.cycle.more_body):
            self._send_refusal(status, text)

    def on_response_complete(self) -> None:
        if self._refusal is not None and all(cycle.more_body for cycle, _ in self.pipeline):
            self.pipeline.clear()  # at most the request whose body is refused
            self._send_refusal(*self._refusal)
        super().on_response_complete()

    def _send_refusal(self, status: int, text: str) -> None:
        if self.transport.is_closing():
            return
        if self.answering:
            if self.cycle.response_started:  # the refusal would be taken for a part of that answer
                self.transport.close()
                return
            self.cycle.disconnected = True
            self.cycle.message_event.set()
        body = error_body(text)
        self.transport.write(json_head(status, self.server_state.default_headers, len(body), close=True) + body)
        # Closed with something unread, the connection would be reset, and the client might not see the refusal.
        self.transport.write_eof()
        self.flow.resume_reading()
        self.loop.call_later(LINGER_S, self.transport.abort)
