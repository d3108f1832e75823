"""Anthropic's batch interface: the requests in the call that makes the batch, the results in one file that goes with it."""

from __future__ import annotations

import datetime
import json
from collections.abc import AsyncIterator, Callable, Container, Mapping
from typing import Any

from neuralmedbench.models.batch.client import (
    BATCH_ERROR,
    BatchHttp,
    BatchLine,
    BatchStatus,
    failed_line,
    lines_of,
    name_of,
    part_of,
    read_lines,
)
from neuralmedbench.models.batch.log import Chunk
from neuralmedbench.models.retry import CallError

NOT_KNOWN_YET = "NotKnownYet"
VERSION = "2023-06-01"
PAGE = "100"
BETA = "anthropic-beta"
MARGIN_S = 3600.0
GOING_ON = frozenset({"in_progress", "canceling"})


class AnthropicBatches:
    """A `BatchClient`; `base` is the address without a path, as `https://api.anthropic.com`.

    A batch has no name of ours. One that was perhaps received is recognised by its results, which name the keys, and until it has ended by its
    time and number of requests.
    """

    most_bytes = 256_000_000
    most_requests = 100_000

    def __init__(self, http: BatchHttp, base: str) -> None:
        self._http, self._base = http, f"{base.rstrip('/')}/v1/messages/batches"
        self._betas: set[str] = set()

    def line(self, key: str, body: bytes, headers: Mapping[str, str]) -> bytes:
        """Return one request of the call; features in beta are named once for the whole batch."""
        self._betas |= {name for name in headers.get(BETA, "").split(",") if name}
        return json.dumps({"custom_id": key, "params": json.loads(body)}, ensure_ascii=False).encode()

    async def submit(self, chunk: Chunk, lines: list[bytes], uploaded: Callable[[str], None]) -> str:
        """Make a batch."""
        content = b'{"requests":[' + b",".join(lines) + b"]}"
        headers = {"content-type": "application/json"} | ({BETA: ",".join(sorted(self._betas))} if self._betas else {})
        reply = await self._http.once("POST", self._base, content=content, headers=headers)
        return name_of(reply.value.get("id"))

    async def find(self, chunk: Chunk, known: Container[str]) -> str:
        """Look through the batches since the chunk was noted for one with its keys; CallError while one that may be it has not ended."""
        going_on = False
        async for batch in self._http.rows(self._base, "data", _after, limit=PAGE):
            if _time(batch.get("created_at"), chunk.created) < chunk.created - MARGIN_S:
                continue
            counts = [number for number in part_of(batch, "request_counts").values() if isinstance(number, int)]
            if batch.get("id") in known or sum(counts) != len(chunk.entries):
                continue
            if batch.get("processing_status") != "ended" or not batch.get("results_url"):
                going_on = True
                continue
            rows = lines_of((await self._http.get(str(batch["results_url"]))).body)
            if {str(row.get("custom_id")) for row in rows} == set(chunk.entries):
                return name_of(batch.get("id"))
        if going_on:
            raise CallError(NOT_KNOWN_YET, final=True)
        return ""

    async def status(self, chunk: Chunk) -> BatchStatus:
        """Return what became of a batch."""
        batch = (await self._http.get(f"{self._base}/{chunk.batch}")).value
        state = str(batch.get("processing_status"))
        results = (str(batch["results_url"]),) if batch.get("results_url") else ()
        return BatchStatus(state, state == "ended" and bool(results), state == "ended" or state in GOING_ON, results)

    async def results(self, chunk: Chunk, status: BatchStatus) -> AsyncIterator[BatchLine]:
        """Yield the lines of its results."""
        for address in status.results:
            for line in read_lines(lines_of((await self._http.get(address)).body), "custom_id", _line):
                yield line

    async def delete(self, chunk: Chunk) -> None:
        """Delete the batch with its requests and results."""
        if chunk.batch:
            await self._http.delete(f"{self._base}/{chunk.batch}")

    async def close(self) -> None:
        """Close the connections."""
        await self._http.close()


def _after(page: Mapping[str, Any]) -> dict[str, str]:
    return {"after_id": name_of(page["last_id"])} if page.get("has_more") and page.get("last_id") else {}


def _time(text: Any, default: float) -> float:
    try:
        return datetime.datetime.fromisoformat(str(text)).timestamp()
    except ValueError:
        return default


def _line(row: Mapping[str, Any]) -> BatchLine:
    key, result = str(row.get("custom_id")), row.get("result") or {}
    kind = result.get("type")
    if kind == "succeeded" and result.get("message"):
        return BatchLine(key, json.dumps(result["message"]).encode())
    if kind in {"canceled", "expired"}:
        return BatchLine(key, error=CallError("Expired" if kind == "expired" else "Cancelled", sent=False))
    # an invalid request stays one; anything else is the provider's trouble
    error = part_of(result, "error")
    error = part_of(error, "error") or error
    invalid = error.get("type") in {"invalid_request_error", "request_too_large", "permission_error", "not_found_error"}
    return failed_line(key, BATCH_ERROR, 400 if invalid else None, error, later=not invalid)
