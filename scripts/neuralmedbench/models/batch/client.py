"""What the batch interfaces of all providers have in common: the client's methods, its results, and the way to send a request."""

from __future__ import annotations

import asyncio
import json
import os
import random
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from yarl import URL

from neuralmedbench.models.api.replies import UNREADABLE
from neuralmedbench.models.api.wire import Exchange, OneHost
from neuralmedbench.models.batch.log import Chunk
from neuralmedbench.models.causes import cause_of
from neuralmedbench.models.retry import CallError, GaveUpError, answer_with_retries, parse_retry_after

NO_REPLY, BATCH_ERROR = "NoReply", "BatchError"
"""Kinds of failures: no reply; a status, or a request of a batch, that failed."""
LONGEST_RESULTS = 2**30
"""Most bytes of a file of results."""
UPLOAD_S = 1800.0
"""Seconds that an upload or a download may take."""
NO_LIST = frozenset({404, 405, 501})
"""Statuses of a server that has no such list."""
ATTEMPTS = 6
"""Of a request that changes nothing at the provider; one that hands something in is sent once."""


@dataclass(frozen=True)
class BatchStatus:
    """What a provider says of a batch.

    Attributes
    ----------
    state : str
        Its own word.
    ended : bool
        True if no more answers will come.
    known : bool
        False if its state is a word that this client does not know.
    results : tuple of str
        Files or addresses of the results; empty if it has none.
    files : tuple of str
        Files to delete after the results were read.
    """

    state: str
    ended: bool
    known: bool = True
    results: tuple[str, ...] = ()
    files: tuple[str, ...] = ()


@dataclass(frozen=True)
class BatchLine:
    """The result of one request: the body of the reply, or why there is none.

    Attributes
    ----------
    key : str
        Key of the request.
    body : bytes
        The reply, as a direct call would have brought it; empty if there is none.
    error : CallError or None
        Why there is none.
    """

    key: str
    body: bytes = b""
    error: CallError | None = None


class CannotListError(Exception):
    """The provider has no list of batches, so it cannot say whether it has received one."""


class BatchClient(Protocol):
    """The batch interface of one provider.

    Attributes
    ----------
    most_bytes, most_requests : int
        Limits of one batch, as the provider documents them.
    """

    most_bytes: int
    most_requests: int

    def line(self, key: str, body: bytes, headers: Mapping[str, str]) -> bytes:
        """Return the line of one request, made of the body of a direct call; its headers may name features that it uses."""
        ...

    async def submit(self, chunk: Chunk, lines: list[bytes], uploaded: Callable[[str], None]) -> str:
        """Hand in a chunk and return the provider's name of the batch; `uploaded` is called with each file that it has taken.

        Raises CallError; with a status that refuses (below 500) the provider has taken no batch.
        """
        ...

    async def find(self, chunk: Chunk) -> str:
        """Return the provider's name of a chunk that was perhaps received; empty if it has none. Raises CannotListError, CallError."""
        ...

    async def status(self, chunk: Chunk) -> BatchStatus:
        """Return what became of a batch."""
        ...

    def results(self, chunk: Chunk, status: BatchStatus) -> AsyncIterator[BatchLine]:
        """Yield the results of a batch that has ended, in any order."""
        ...

    async def delete(self, chunk: Chunk, files: tuple[str, ...]) -> None:
        """Delete what the provider keeps of a chunk; what is gone already is no error."""
        ...

    async def close(self) -> None:
        """Close the connections."""
        ...


@dataclass(frozen=True)
class Reply:
    """Status, headers (names in lower case) and body of a response."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def value(self) -> dict[str, Any]:
        """Its JSON object; CallError if it is none."""
        try:
            value = json.loads(self.body)
        except (ValueError, RecursionError):
            value = None
        if not isinstance(value, dict):
            raise CallError(UNREADABLE)
        return value


class BatchHttp:
    """Sends requests to the one host that the benchmark allows, through the transport of all calls (`models.api.wire`).

    Parameters
    ----------
    address : str
        An address at that host.
    headers : mapping of str to str
        Of every request, with the key.
    stop : asyncio.Event
        No request is repeated once it is set.
    """

    def __init__(self, address: str, headers: Mapping[str, str], stop: asyncio.Event) -> None:
        self._host, self._headers = (
            OneHost(address, UPLOAD_S),
            {"user-agent": "neuralmedbench", "accept-encoding": "gzip, deflate", **headers},
        )
        self._stop, self._jitter = stop, random.Random(0)

    async def once(
        self,
        method: str,
        url: str,
        *,
        value: Any = None,
        content: bytes | None = None,
        query: Mapping[str, str] = {},
        headers: Mapping[str, str] = {},
    ) -> Reply:
        """Send one request; CallError for every status from 300 up, and without a status if there was no reply.

        Parameters
        ----------
        method, url : str
            Of the request.
        value : JSON value, optional
            Its body.
        content : bytes, optional
            Its body, in place of `value`.
        query : mapping of str to str
            Added to the address.
        headers : mapping of str to str
            More headers.
        """
        exchange = Exchange(longest=LONGEST_RESULTS)
        sent = {**self._headers, **headers}
        if value is not None:
            content, sent["content-type"] = json.dumps(value).encode(), "application/json"
        address = URL(url, encoded=True).update_query(query)
        if not await self._host.send(method, address, list(sent.items()), content, exchange):
            raise CallError(exchange.unreached or NO_REPLY, final=bool(exchange.elsewhere), sent=exchange.sent and not exchange.unreached)
        status = exchange.status or 0
        if status >= 300:
            raise CallError(BATCH_ERROR, status, parse_retry_after(exchange.headers), cause=cause_of(status, exchange.body))
        return Reply(status, exchange.headers, exchange.body)

    async def get(self, url: str, method: str = "GET", **content: Any) -> Reply:
        """Send a request that changes nothing, or nothing twice, until there is a reply."""
        return await self._patiently(lambda: self.once(method, url, **content))

    async def rows(
        self, url: str, name: str, after: Callable[[Mapping[str, Any]], dict[str, str]], **query: str
    ) -> AsyncIterator[dict[str, Any]]:
        """Yield the rows of a list, page by page; `after` returns the query of the next page, empty behind the last one."""
        following: dict[str, str] = {}
        while True:
            try:
                page = (await self.get(url, query={**query, **following})).value
            except CallError as error:
                if error.status in NO_LIST:
                    raise CannotListError from None
                raise
            for row in page.get(name) or ():
                yield row
            if not (following := after(page)):
                return

    async def delete(self, url: str) -> None:
        """Delete something; that it is not there is no error."""
        try:
            await self.get(url, "DELETE")
        except CallError as error:
            if error.status not in {404, 410}:
                raise

    async def _patiently(self, send: Callable[[], Awaitable[Reply]]) -> Reply:
        try:
            outcome = await answer_with_retries(send, max_attempts=ATTEMPTS, timeout_s=UPLOAD_S, jitter=self._jitter, stop=self._stop)
        except GaveUpError as error:
            raise CallError(error.kind, error.status, final=True) from None
        return outcome.answer

    async def close(self) -> None:
        """Close the connections."""
        await self._host.close()


def lines_of(body: bytes) -> list[dict[str, Any]]:
    """Read a file of JSON lines; CallError if one of them is no object, so that half a file is not taken for a whole one."""
    found = []
    for line in body.splitlines():
        if line.strip():
            try:
                value = json.loads(line)
            except (ValueError, RecursionError):
                value = None
            if not isinstance(value, dict):
                raise CallError(UNREADABLE)
            found.append(value)
    return found


def form_of(fields: Mapping[str, str], name: str, content: bytes) -> tuple[bytes, str]:
    """Return the body of a form with one file, called `file` in it, and its content type."""
    line = os.urandom(16).hex()
    parts = [f'--{line}\r\nContent-Disposition: form-data; name="{field}"\r\n\r\n{value}\r\n' for field, value in fields.items()]
    head = f'--{line}\r\nContent-Disposition: form-data; name="file"; filename="{name}"\r\nContent-Type: application/jsonl\r\n\r\n'
    return b"".join(
        [*(part.encode() for part in parts), head.encode(), content, f"\r\n--{line}--\r\n".encode()]
    ), f"multipart/form-data; boundary={line}"


def error_of(kind: str, status: int | None = None, *, later: bool = False) -> CallError:
    """Return the error of one request of a batch; `later`: the same request may pass in another batch."""
    return CallError(kind, status, final=not later, sent=True)
