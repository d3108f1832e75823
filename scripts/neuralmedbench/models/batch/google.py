"""Google's batch interface (Gemini API): a file of requests, a batch of it for one model, a file of responses."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable, Container, Mapping
from contextlib import suppress
from typing import Any

from neuralmedbench.models.api.replies import UNREADABLE
from neuralmedbench.models.batch.client import (
    BATCH_ERROR,
    BatchHttp,
    BatchLine,
    BatchStatus,
    CannotListError,
    failed_line,
    lines_of,
    name_of,
    part_of,
    read_lines,
)
from neuralmedbench.models.batch.log import Chunk
from neuralmedbench.models.retry import CallError

ENDED = frozenset({"SUCCEEDED", "FAILED", "CANCELLED", "EXPIRED", "PARTIALLY_SUCCEEDED"})
WITH_RESULTS = frozenset({"SUCCEEDED", "PARTIALLY_SUCCEEDED"})
"""States in which there are results; their file may come a little later."""
GOING_ON = frozenset({"PENDING", "RUNNING", "QUEUED", "UNSPECIFIED", "CANCELLING", "PAUSED", "UPDATING"})
PAGE = "100"
LATER = frozenset({1, 4, 8, 10, 13, 14})
"""Codes of google.rpc that may pass later: cancelled, deadline exceeded, resource exhausted, aborted, internal, unavailable."""


class GoogleBatches:
    """A `BatchClient`; `root` is the address without a path, as `https://generativelanguage.googleapis.com`."""

    most_bytes = 2_000_000_000
    most_requests = 100_000

    def __init__(self, http: BatchHttp, root: str, model: str) -> None:
        self._http, self._root, self._model = http, root.rstrip("/"), model

    def line(self, key: str, body: bytes, headers: Mapping[str, str]) -> bytes:
        """Return the line of one request."""
        return json.dumps({"key": key, "request": json.loads(body)}, ensure_ascii=False).encode()

    async def submit(self, chunk: Chunk, lines: list[bytes], uploaded: Callable[[str], None]) -> str:
        """Upload the file in one piece, then make a batch of it."""
        content = b"\n".join(lines) + b"\n"
        start = {
            "x-goog-upload-protocol": "resumable",
            "x-goog-upload-command": "start",
            "x-goog-upload-header-content-length": str(len(content)),
            "x-goog-upload-header-content-type": "application/jsonl",
        }
        named = {"file": {"display_name": chunk.id}}
        opened = await self._http.once("POST", f"{self._root}/upload/v1beta/files", value=named, headers=start)
        address = opened.headers.get("x-goog-upload-url", "")
        if not address:
            raise CallError(UNREADABLE)
        whole = {"x-goog-upload-offset": "0", "x-goog-upload-command": "upload, finalize"}
        file = name_of(part_of((await self._http.once("POST", address, content=content, headers=whole)).value, "file").get("name"))
        uploaded(file)
        batch = {"batch": {"display_name": chunk.id, "input_config": {"file_name": file}}}
        reply = await self._http.once("POST", f"{self._root}/v1beta/models/{self._model}:batchGenerateContent", value=batch)
        return name_of(reply.value.get("name"))

    async def find(self, chunk: Chunk, known: Container[str]) -> str:
        """Look for a batch with the chunk's name; if there is none, delete a file that was left of it."""
        async for batch in self._http.rows(f"{self._root}/v1beta/batches", "operations", _after, pageSize=PAGE):
            if (part_of(batch, "metadata") or batch).get("displayName") == chunk.id:
                return name_of(batch.get("name"))
        with suppress(CannotListError, CallError):
            async for file in self._http.rows(f"{self._root}/v1beta/files", "files", _after, pageSize=PAGE):
                if file.get("displayName") == chunk.id:
                    await self._http.delete(f"{self._root}/v1beta/{name_of(file.get('name'))}")
        return ""

    async def status(self, chunk: Chunk) -> BatchStatus:
        """Return what became of a batch."""
        operation = (await self._http.get(f"{self._root}/v1beta/{chunk.batch}")).value
        batch = part_of(operation, "metadata")
        state = str(batch.get("state") or "").removeprefix("BATCH_STATE_").removeprefix("JOB_STATE_")
        places = (part_of(operation, "response"), part_of(batch, "output"), part_of(batch, "dest"))
        results = next((name_of(name) for place in places for key in ("responsesFile", "fileName") if (name := place.get(key))), "")
        ended = (state in ENDED or operation.get("done") is True) and bool(results or state not in WITH_RESULTS)
        return BatchStatus(state, ended, state in ENDED | GOING_ON, (results,) if results else (), (results,) if results else ())

    async def results(self, chunk: Chunk, status: BatchStatus) -> AsyncIterator[BatchLine]:
        """Yield the lines of its results."""
        for file in status.results:
            rows = lines_of((await self._http.get(f"{self._root}/download/v1beta/{file}:download", query={"alt": "media"})).body)
            for line in read_lines(rows, "key", _line):
                yield line

    async def delete(self, chunk: Chunk) -> None:
        """Delete the files, then the batch."""
        for name in dict.fromkeys((*chunk.files, *([chunk.batch] if chunk.batch else []))):
            await self._http.delete(f"{self._root}/v1beta/{name}")

    async def close(self) -> None:
        """Close the connections."""
        await self._http.close()


def _after(page: Mapping[str, Any]) -> dict[str, str]:
    return {"pageToken": name_of(page["nextPageToken"])} if page.get("nextPageToken") else {}


def _line(row: Mapping[str, Any]) -> BatchLine:
    key = str(row.get("key") or part_of(row, "metadata").get("key"))
    if row.get("response"):
        return BatchLine(key, json.dumps(row["response"]).encode())
    error = part_of(row, "error")
    later = error.get("code") is None or error["code"] in LATER
    return failed_line(key, BATCH_ERROR, None if later else 400, error, later=later)
