"""The HTTP transport to the one host that a benchmark allows; everything an API backend sends passes here."""

from __future__ import annotations

import os
import ssl
import sys
import urllib.request
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

import aiohttp
import httpx
from yarl import URL

from neuralmedbench.models.api.replies import drop_invalid_statistics

PROXIES = ("http", "https", "all")
NO_CONNECTION, BAD_CERTIFICATE = "NoConnection", "BadCertificate"
OF_THE_BODY = frozenset({"content-encoding", "content-length", "transfer-encoding"})
"""Headers that describe the encoding of a body."""
GRACE_S = 5.0
"""The transport times out this much later than an attempt (`models.retry`), in case the attempt was not cancelled."""


@dataclass
class Exchange:
    """The HTTP traffic of one call.

    Attributes
    ----------
    sent : bool
        True once a request was started; there is no second one, whatever litellm would do after an error.
    elsewhere : str
        Other host to which a request was directed; it was not sent.
    unreached : str
        Why there was no connection, so that nothing was sent: `NO_CONNECTION` or `BAD_CERTIFICATE`.
    status : int or None
        Status of the last response; None if there was none.
    headers : dict of str to str
        Its headers, names in lower case.
    body : bytes
        Its raw body; empty until it is complete.
    """

    sent: bool = False
    elsewhere: str = ""
    unreached: str = ""
    status: int | None = None
    headers: dict[str, str] = field(default_factory=dict)
    body: bytes = b""


EXCHANGE: ContextVar[Exchange] = ContextVar("exchange")
"""The exchange of the call in flight in this task."""


class OneHost(httpx.AsyncBaseTransport):
    """A transport to one origin: no redirect, no proxy, no second attempt, and no request to any other place.

    Parameters
    ----------
    address : str
        An address at that origin, `https://host.domain/v1`: scheme, host and port are compared with those of every request.
    timeout_s : float
        Timeout of a request, in seconds.

    Notes
    -----
    The URL object that is compared is the one that is connected to, so that two URL parsers cannot disagree about it.
    """

    def __init__(self, address: str, timeout_s: float) -> None:
        self._origin = URL(address).origin()
        self._timeout = aiohttp.ClientTimeout(total=timeout_s + GRACE_S)
        self._session: aiohttp.ClientSession | None = None

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Send one request and read its whole response.

        Every failure becomes httpx.ReadError: after an error of another class litellm would send the request again.
        """
        exchange = EXCHANGE.get(None) or Exchange()
        # refuse another origin and a second attempt before anything is sent
        url = URL(str(request.url), encoded=True)
        if url.origin() != self._origin:
            exchange.elsewhere = url.host or "?"
            message = "this host was not checked"
            raise httpx.ReadError(message)
        if exchange.sent:
            message = "one attempt a call"
            raise httpx.ReadError(message)
        exchange.sent = True
        try:
            async with self._opened().request(
                request.method, url, headers=request.headers.multi_items(), data=request.content or None, allow_redirects=False
            ) as response:
                exchange.status = response.status
                exchange.headers = {name.lower(): value for name, value in response.headers.items()}
                body = await response.read()
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            exchange.status = None
            if isinstance(error, aiohttp.ClientConnectorError):
                exchange.unreached = BAD_CERTIFICATE if isinstance(error, aiohttp.ClientConnectorCertificateError) else NO_CONNECTION
            raise httpx.ReadError(type(error).__name__) from None
        reply = httpx.Response(response.status, headers=list(response.headers.items()), content=body, request=request)
        exchange.body = reply.content  # as it came; litellm gets the reply without invalid statistics
        if (body := drop_invalid_statistics(reply.content)) != reply.content:
            headers = [(name, value) for name, value in response.headers.items() if name.lower() not in OF_THE_BODY]
            reply = httpx.Response(response.status, headers=headers, content=body, request=request)
        return reply

    async def aclose(self) -> None:
        """Close the connections."""
        if self._session is not None:
            await self._session.close()

    def _opened(self) -> aiohttp.ClientSession:
        """Return the session, opened with the first request because it belongs to the running event loop."""
        if self._session is None:
            certificates = ssl.create_default_context(cafile=os.environ.get("SSL_CERT_FILE") or _certificates())
            connector = aiohttp.TCPConnector(limit=0, ssl=certificates, ttl_dns_cache=300)
            jar = aiohttp.DummyCookieJar()
            self._session = aiohttp.ClientSession(
                connector=connector, timeout=self._timeout, cookie_jar=jar, auto_decompress=False, trust_env=False
            )
        return self._session


def warn_about_proxies(name: str, address: str) -> None:
    """Warn that proxies of the environment are not used: a proxy would be an unchecked destination."""
    host = urlsplit(address).hostname or ""
    if any(urllib.request.getproxies().get(kind) for kind in PROXIES) and not urllib.request.proxy_bypass(host):
        print(
            f"{name}: the environment names a proxy; it is not used, because its host is not a checked destination."
            " If nothing leaves your network without one, set a gateway of your network as api_base",
            file=sys.stderr,
        )


def _certificates() -> Any:
    import certifi

    return certifi.where()
