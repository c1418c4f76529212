"""What every request must be and what every response says: loopback hosts, reading alone, nothing from elsewhere."""

from collections.abc import Collection

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

LOOPBACK = frozenset({"localhost", "127.0.0.1", "[::1]"})
"""Names under which this machine reaches itself."""
_LONGEST_URL = 16_384
HEADERS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self' 'wasm-unsafe-eval'; connect-src 'self'; "
    "style-src 'self'; img-src 'self' data:; form-action 'self'; base-uri 'none'; "
    "frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}
"""Headers of every response."""


class Guard:
    """An ASGI application behind the rules of a page server on one's own machine.

    Requests other than GET and HEAD get 405. Requests whose Host is not an allowed name get 400, so that a foreign
    site whose name is made to point to this machine (DNS rebinding) reads nothing.

    Examples
    --------
    >>> from starlette.applications import Starlette
    >>> sorted(Guard(Starlette(), {"localhost"}).hosts)
    ['localhost']
    """

    def __init__(self, app: ASGIApp, hosts: Collection[str] = LOOPBACK) -> None:
        self.app = app
        self.hosts = frozenset(hosts)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one connection."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        refusal = self._refusal(scope)

        async def guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                headers.update(HEADERS)
                headers.setdefault("Cache-Control", "no-store")
            await send(message)

        await (refusal or self.app)(scope, receive, guarded)

    def _refusal(self, scope: Scope) -> PlainTextResponse | None:
        host = Headers(scope=scope).get("host", "").lower()
        name, colon, port = host.rpartition(":")
        if (name if colon and port.isdigit() else host) not in self.hosts:
            return PlainTextResponse("This server answers to localhost only.\n", 400)
        if scope["method"] not in {"GET", "HEAD"}:
            return PlainTextResponse("Pages are read, nothing else: GET or HEAD.\n", 405, {"Allow": "GET, HEAD"})
        if len(scope.get("raw_path", b"")) + len(scope["query_string"]) > _LONGEST_URL:
            return PlainTextResponse(f"URLs have at most {_LONGEST_URL} characters.\n", 414)
        return None
