"""Requests to the one host that a benchmark allows; everything an API backend sends passes here."""

from __future__ import annotations

import os
import ssl
import sys
import urllib.request
import zlib
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

import aiohttp
from yarl import URL

from neuralmedbench.models.retry import CONNECTION_REFUSED, UNKNOWN_HOST

PROXIES = ("http", "https", "all")
NO_CONNECTION, BAD_CERTIFICATE = "NoConnection", "BadCertificate"
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
    longest : int or None
        Most bytes of a reply; None: `LONGEST_REPLY`.
    capture : bool
        True to keep body and headers of the request in `request` and `request_headers` and send nothing: a batch is made of such bodies.
    given : bytes or None
        A reply that came with a batch; it is read as if it came now, and nothing is sent.
    sent : bool
        True once a request was started; there is no second one, whatever follows an error.
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

    longest: int | None = None
    capture: bool = False
    given: bytes | None = None
    request: bytes = b""
    request_headers: dict[str, str] = field(default_factory=dict)
    sent: bool = False
    elsewhere: str = ""
    unreached: str = ""
    unsendable: bool = False
    too_long: bool = False
    status: int | None = None
    headers: dict[str, str] = field(default_factory=dict)
    body: bytes = b""


class UnansweredError(Exception):
    """A request without a reply that can be read.

    Parameters
    ----------
    kind : str
        Class of the failure, for example `RateLimitError`; never a provider's text.
    cause : Exception or None
        The error of litellm, if it was asked to send the request.
    """

    def __init__(self, kind: str, cause: Exception | None = None) -> None:
        super().__init__(kind)
        self.kind, self.cause = kind, cause


class OneHost:
    """Connections to one origin: no redirect, no proxy, no second attempt, and no request to any other place.

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

    async def send(self, method: str, url: URL, headers: Iterable[tuple[str, str]], body: bytes | None, exchange: Exchange) -> bool:
        """Send the one request of an exchange and read its whole reply; False if there is none, and the exchange has the reason."""
        # refuse another origin and a second attempt before anything is sent
        if not url.absolute or url.origin() != self._origin:
            exchange.elsewhere = url.host or "?"
            return False
        if exchange.capture:
            exchange.request, exchange.request_headers = body or b"", {name.lower(): value for name, value in headers}
        if exchange.sent or exchange.capture:
            return False
        if exchange.given is not None:
            exchange.status, exchange.body = 200, exchange.given
            return True
        longest = exchange.longest or LONGEST_REPLY
        exchange.sent = True
        try:
            async with self._opened().request(method, url, headers=headers, data=body, allow_redirects=False) as response:
                exchange.status = response.status
                exchange.headers = {name.lower(): value for name, value in response.headers.items()}
                received = await _read_at_most(response, longest)
        except (aiohttp.ClientError, TimeoutError, OSError, ValueError) as error:
            if isinstance(error, aiohttp.ClientConnectorError):  # one of its kinds, a bad certificate, is a ValueError too
                exchange.unreached = _why_unreached(error)
            elif isinstance(error, ValueError) and exchange.status is None:  # an address or a header that aiohttp does not send
                exchange.sent, exchange.unsendable = False, True
            exchange.status = None
            return False
        if received is not None:
            try:
                received = _decompress(received, exchange.headers.get("content-encoding", ""), longest)
            except EOFError:  # it broke off
                exchange.status = None
                return False
        exchange.too_long = received is None and response.status < 300
        exchange.body = received or b""  # of a failure only status and cause count
        return not exchange.too_long

    async def close(self) -> None:
        """Close the connections."""
        if self._session is not None:
            await self._session.close()

    def _opened(self) -> aiohttp.ClientSession:
        """Return the session, opened with the first request because it belongs to the running event loop."""
        if self._session is None:
            encrypted = self._origin.scheme == "https"
            certificates = ssl.create_default_context(cafile=os.environ.get("SSL_CERT_FILE") or _certificates()) if encrypted else True
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
    """Decompress a body; None if it has more bytes, the body itself if its encoding is not one that was offered, or is broken.

    Raises EOFError if it ends before its end.
    """
    if encoding.strip().lower() not in {"gzip", "x-gzip", "deflate"}:
        return body
    for window in (zlib.MAX_WBITS | 32, -zlib.MAX_WBITS):  # gzip or zlib by its header; some servers send deflate without one
        parts, length, left = list[bytes](), 0, body
        try:
            while left:  # a body may have several members
                reader = zlib.decompressobj(window)
                parts.append(reader.decompress(left, most + 1 - length))
                length += len(parts[-1])
                if length > most:
                    return None
                if not reader.eof:
                    raise EOFError
                left = reader.unused_data
        except zlib.error:
            continue
        return b"".join(parts)
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
