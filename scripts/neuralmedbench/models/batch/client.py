"""What the batch interfaces of all providers have in common: the client's methods, its results, and the way to send a request."""

from __future__ import annotations

import asyncio
import json
import os
import random
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Container, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Protocol

from yarl import URL

from neuralmedbench.errors import ConfigError
from neuralmedbench.models.api.backend import UNSENDABLE
from neuralmedbench.models.api.replies import UNREADABLE, reply_object
from neuralmedbench.models.api.wire import Exchange, OneHost
from neuralmedbench.models.batch.log import Chunk
from neuralmedbench.models.causes import cause_of
from neuralmedbench.models.provider_waits import failed_call
from neuralmedbench.models.retry import CallError, GaveUpError, answer_with_retries
from neuralmedbench.records.json_objects import json_value

NO_REPLY, BATCH_ERROR = "NoReply", "BatchError"
"""Kinds of failures: no reply; a status, or a request of a batch, that failed."""
LONGEST_RESULTS = 2**30
"""Most bytes of a file of results."""
UPLOAD_S = 1800.0
"""Seconds that an upload or a download may take."""
NO_LIST = frozenset({404, 405, 501})
"""Statuses of a server that has no such list."""
GONE = frozenset({404, 410})
"""Statuses of what the provider does not have."""
ELSEWHERE = "Elsewhere"
"""Kind of an address at another host than the one that is allowed."""
WRONG_FORM = (KeyError, TypeError, AttributeError, ValueError, IndexError, OverflowError)
"""What a reply raises that has not the form of the provider's documents."""
MOST_PAGES = 1000
"""Pages of a list that are looked at."""
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
        False if its state is a word that this client does not know; it is then not repeated.
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
        The reply, as a direct call would have brought it, also that of a failure; empty if there is none.
    error : CallError or None
        Why there is none, and whether the provider may charge it all the same.
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

    async def find(self, chunk: Chunk, known: Container[str]) -> str:
        """Return the provider's name of a chunk that was perhaps received; empty if it has none. Raises CannotListError, CallError.

        `known` are the batches of other chunks.
        """
        ...

    async def status(self, chunk: Chunk) -> BatchStatus:
        """Return what became of a batch."""
        ...

    def results(self, chunk: Chunk, status: BatchStatus) -> AsyncIterator[BatchLine]:
        """Yield the results of a batch that has ended, in any order."""
        ...

    async def delete(self, chunk: Chunk) -> None:
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
        value = json_value(self.body)
        if not isinstance(value, dict):
            raise CallError(UNREADABLE)
        return value


class BatchHttp:
    """Sends requests to the one host that the benchmark allows, through the transport of all calls (`models.api.wire`).

    Parameters
    ----------
    name : str
        Name of the model.
    address : str
        An address at that host.
    key : str
        The API key.
    headers : mapping of str to str
        Of every request, with the key.
    stop : asyncio.Event
        No request is repeated once it is set.
    """

    def __init__(self, name: str, address: str, key: str, headers: Mapping[str, str], stop: asyncio.Event) -> None:
        self._name, self._key = name, key.encode("utf-8", "replace")
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
        try:
            address = URL(url, encoded=True).update_query(query)
        except ValueError:
            raise CallError(UNREADABLE, final=True) from None
        if not await self._host.send(method, address, list(sent.items()), content, exchange):
            if exchange.unsendable:
                raise ConfigError(UNSENDABLE.format(self._name))
            if exchange.elsewhere:
                raise CallError(ELSEWHERE, final=True)
            raise CallError(exchange.unreached or NO_REPLY, sent=exchange.sent and not exchange.unreached)
        status = exchange.status or 0
        if status >= 300:
            raise failed_call(BATCH_ERROR, status, exchange.headers, exchange.body)
        # a server may repeat the key; it must reach no name, log or message
        return Reply(status, exchange.headers, exchange.body.replace(self._key, b"[key]"))

    async def get(self, url: str, method: str = "GET", **content: Any) -> Reply:
        """Send a request that changes nothing, or nothing twice, until there is a reply."""
        return await self._patiently(lambda: self.once(method, url, **content))

    async def rows(
        self, url: str, name: str, after: Callable[[Mapping[str, Any]], dict[str, str]], **query: str
    ) -> AsyncIterator[dict[str, Any]]:
        """Yield the rows of a list, page by page; `after` returns the query of the next page, empty behind the last one."""
        following: dict[str, str] = {}
        for _ in range(MOST_PAGES):
            before = following
            try:
                page = (await self.get(url, query={**query, **following})).value
            except CallError as error:
                if error.status in NO_LIST:
                    raise CannotListError from None
                raise
            rows = page.get(name)
            for row in rows if isinstance(rows, list) else ():
                if isinstance(row, dict):
                    yield row
            if not (following := after(page)):
                return
            if following == before:  # a server that does not turn the page
                break
        raise CannotListError

    async def delete(self, url: str) -> None:
        """Delete something; that it is not there is no error."""
        try:
            await self.get(url, "DELETE")
        except CallError as error:
            if error.status not in GONE:
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
    """Read a file of JSON lines; CallError if the last one is no object, so that half a file is not taken for a whole one.

    Any other line that is none is left out.
    """
    values = [reply_object(line) for line in body.splitlines() if line.strip()]
    if values and not values[-1]:
        raise CallError(UNREADABLE)
    return [value for value in values if value]


def read_lines(rows: Iterable[dict[str, Any]], key: str, read: Callable[[dict[str, Any]], BatchLine]) -> Iterator[BatchLine]:
    """Read the rows of results; one that has not the provider's form is a request without an answer that may have been charged."""
    for row in rows:
        try:
            yield read(row)
        except WRONG_FORM:
            yield BatchLine(str(row.get(key)), error=CallError(UNREADABLE, final=True))


@contextmanager
def readable() -> Iterator[None]:
    """Turn the errors that a reply of another form than the provider's causes into CallError."""
    try:
        yield
    except WRONG_FORM:
        raise CallError(UNREADABLE) from None


def name_of(value: Any) -> str:
    """Return a provider's name of a file or a batch; CallError if it is none, since names go into addresses, logs and messages."""
    if not isinstance(value, str) or not re.fullmatch(r"[A-Za-z0-9_./:=+~-]{1,400}", value) or ".." in value:
        raise CallError(UNREADABLE)
    return value


def part_of(value: Mapping[str, Any], name: str) -> dict[str, Any]:
    """Return the object under a name; empty if there is none."""
    found = value.get(name)
    return found if isinstance(found, dict) else {}


def form_of(fields: Mapping[str, str], name: str, content: bytes) -> tuple[bytes, str]:
    """Return the body of a form with one file, called `file` in it, and its content type."""
    line = os.urandom(16).hex()
    parts = [f'--{line}\r\nContent-Disposition: form-data; name="{field}"\r\n\r\n{value}\r\n' for field, value in fields.items()]
    head = f'--{line}\r\nContent-Disposition: form-data; name="file"; filename="{name}"\r\nContent-Type: application/jsonl\r\n\r\n'
    return b"".join(
        [*(part.encode() for part in parts), head.encode(), content, f"\r\n--{line}--\r\n".encode()]
    ), f"multipart/form-data; boundary={line}"


def failed_line(key: str, kind: str, status: int | None, error: Any, *, later: bool) -> BatchLine:
    """Return the line of a request that failed with an error in the provider's form; `later`: it may pass in another batch."""
    body = json.dumps({"error": error}).encode()
    return BatchLine(key, body, CallError(kind, status, final=not later, sent=False, cause=cause_of(status, body)))
