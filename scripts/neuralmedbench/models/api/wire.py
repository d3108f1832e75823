"""The HTTP transport to the one host that a benchmark allows; everything an API backend sends passes here."""

from __future__ import annotations

import os
import ssl
import sys
import urllib.request
import zlib
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

import aiohttp
import httpx
from yarl import URL

from neuralmedbench.models.api.replies import readable_by_litellm
from neuralmedbench.models.retry import CONNECTION_REFUSED, UNKNOWN_HOST

PROXIES = ("http", "https", "all")
NO_CONNECTION, BAD_CERTIFICATE = "NoConnection", "BadCertificate"
OF_THE_BODY = frozenset({"content-encoding", "content-length", "transfer-encoding"})
"""Headers that describe the encoding of a body."""
LONGEST_REPLY = 2**25
"""Most bytes of a reply, as received and decompressed: more than any answer with its log-probabilities, and little enough to hold
several in memory."""
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
        Why there was no connection, so that nothing was sent: `CONNECTION_REFUSED`, `UNKNOWN_HOST`, `NO_CONNECTION` or `BAD_CERTIFICATE`.
    unsendable : bool
        True if HTTP does not allow the address or a header of the request, so that nothing was sent.
    too_long : bool
        True if a successful reply had more than `LONGEST_REPLY` bytes; the rest was not read.
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
    unsendable: bool = False
    too_long: bool = False
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
                body = await _read_at_most(response, LONGEST_REPLY)
        except (aiohttp.ClientError, TimeoutError, OSError, ValueError) as error:
            if isinstance(error, aiohttp.ClientConnectorError):  # one of its kinds, a bad certificate, is a ValueError too
                exchange.unreached = _why_unreached(error)
            elif isinstance(error, ValueError) and exchange.status is None:  # an address or a header that aiohttp does not send
                exchange.sent, exchange.unsendable = False, True
            exchange.status = None
            raise httpx.ReadError(type(error).__name__) from None
        body = _decompress(body, exchange.headers.get("content-encoding", ""), LONGEST_REPLY) if body is not None else None
        if body is None and response.status < 300:
            exchange.too_long = True
            message = "the reply is too long"
            raise httpx.ReadError(message)
        exchange.body = (
            body or b""
        )  # as it came; litellm gets the reply without invalid statistics. Of a failure only status and cause count
        headers = [(name, value) for name, value in response.headers.items() if name.lower() not in OF_THE_BODY]
        return httpx.Response(response.status, headers=headers, content=readable_by_litellm(exchange.body), request=request)

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


async def _read_at_most(response: aiohttp.ClientResponse, most: int) -> bytes | None:
    """Read a body; None if it has more bytes."""
    parts, length = [], 0
    async for part in response.content.iter_any():
        parts.append(part)
        length += len(part)
        if length > most:
            return None
    return b"".join(parts)


def _decompress(body: bytes, encoding: str, most: int) -> bytes | None:
    """Decompress a body; None if it has more bytes, the body itself if its encoding is not one that was offered, or is broken."""
    if encoding.strip().lower() not in {"gzip", "x-gzip", "deflate"}:
        return body
    for window in (zlib.MAX_WBITS | 32, -zlib.MAX_WBITS):  # gzip or zlib by its header; some servers send deflate without one
        reader = zlib.decompressobj(window)
        try:
            plain = reader.decompress(body, most + 1)
        except zlib.error:
            continue
        return plain if len(plain) <= most else None
    return body


def _why_unreached(error: aiohttp.ClientConnectorError) -> str:
    if isinstance(error, aiohttp.ClientConnectorCertificateError):
        return BAD_CERTIFICATE
    if isinstance(error, aiohttp.ClientConnectorDNSError):
        return UNKNOWN_HOST
    return CONNECTION_REFUSED if isinstance(error.os_error, ConnectionRefusedError) else NO_CONNECTION


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
