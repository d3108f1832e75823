"""OpenAI's batch interface, also of servers that are compatible with it: a file of requests, a batch of it, files of results."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable, Container, Mapping
from contextlib import suppress
from typing import Any

from neuralmedbench.models.batch.client import (
    BATCH_ERROR,
    BatchHttp,
    BatchLine,
    BatchStatus,
    CannotListError,
    failed_line,
    form_of,
    lines_of,
    name_of,
    part_of,
    read_lines,
)
from neuralmedbench.models.batch.log import Chunk
from neuralmedbench.models.retry import CallError

ENDED = frozenset({"completed", "failed", "expired", "cancelled"})
GOING_ON = frozenset({"validating", "in_progress", "finalizing", "cancelling"})
ENDPOINT = "/v1/chat/completions"
MARK = "nmb_chunk"
"""Key of the metadata by which a batch is found again."""
PAGE = "100"


class OpenAIBatches:
    """A `BatchClient`; `base` is the address with its version, as `https://api.openai.com/v1`."""

    most_bytes = 200_000_000
    most_requests = 50_000

    def __init__(self, http: BatchHttp, base: str) -> None:
        self._http, self._base = http, base.rstrip("/")

    def line(self, key: str, body: bytes, headers: Mapping[str, str]) -> bytes:
        """Return the line of one request."""
        return json.dumps({"custom_id": key, "method": "POST", "url": ENDPOINT, "body": json.loads(body)}, ensure_ascii=False).encode()

    async def submit(self, chunk: Chunk, lines: list[bytes], uploaded: Callable[[str], None]) -> str:
        """Upload the file, then make a batch of it."""
        form, kind = form_of({"purpose": "batch"}, f"{chunk.id}.jsonl", b"\n".join(lines) + b"\n")
        reply = await self._http.once("POST", f"{self._base}/files", content=form, headers={"content-type": kind})
        name = name_of(reply.value.get("id"))
        uploaded(name)
        batch = {"input_file_id": name, "endpoint": ENDPOINT, "completion_window": "24h", "metadata": {MARK: chunk.id}}
        return name_of((await self._http.once("POST", f"{self._base}/batches", value=batch)).value.get("id"))

    async def find(self, chunk: Chunk, known: Container[str]) -> str:
        """Look for a batch with the chunk's name or file; if there is none, delete a file that was left of it."""
        async for batch in self._http.rows(f"{self._base}/batches", "data", _after, limit=PAGE):
            if part_of(batch, "metadata").get(MARK) == chunk.id or batch.get("input_file_id") in chunk.files:
                return name_of(batch.get("id"))
        with suppress(CannotListError, CallError):  # some servers list batches and no files
            async for file in self._http.rows(f"{self._base}/files", "data", _after, limit=PAGE, purpose="batch"):
                if file.get("filename") == f"{chunk.id}.jsonl":
                    await self._http.delete(f"{self._base}/files/{name_of(file.get('id'))}")
        return ""

    async def status(self, chunk: Chunk) -> BatchStatus:
        """Return what became of a batch."""
        batch = (await self._http.get(f"{self._base}/batches/{chunk.batch}")).value
        state = str(batch.get("status"))
        results = tuple(name_of(batch[name]) for name in ("output_file_id", "error_file_id") if batch.get(name))
        inputs = (name_of(batch["input_file_id"]),) if batch.get("input_file_id") else ()
        ended = state in ENDED and bool(results or state != "completed")  # its files may come a little later
        return BatchStatus(state, ended, state in ENDED | GOING_ON, results, (*inputs, *results))

    async def results(self, chunk: Chunk, status: BatchStatus) -> AsyncIterator[BatchLine]:
        """Yield the lines of both files."""
        for file in status.results:
            rows = lines_of((await self._http.get(f"{self._base}/files/{file}/content")).body)
            for line in read_lines(rows, "custom_id", read_result):
                yield line

    async def delete(self, chunk: Chunk) -> None:
        """Delete the files of a batch; the batch itself has no content."""
        for file in dict.fromkeys(chunk.files):
            await self._http.delete(f"{self._base}/files/{file}")

    async def close(self) -> None:
        """Close the connections."""
        await self._http.close()


def _after(page: Mapping[str, Any]) -> dict[str, str]:
    rows = page.get("data") or ()
    return (
        {"after": name_of(part_of({"row": rows[-1]}, "row").get("id"))} if isinstance(rows, list) and rows and page.get("has_more") else {}
    )


def read_result(row: Mapping[str, Any]) -> BatchLine:
    """Return the result of one request from its row in a file of results."""
    key, response = str(row.get("custom_id")), row.get("response") or {}
    status = int(response.get("status_code") or 0)
    if 200 <= status < 300 and response.get("body"):
        return BatchLine(key, json.dumps(response["body"]).encode())
    error = row.get("error") or response.get("body")
    if status == 0:  # no answer was made: it expired or was cancelled with its batch
        code = str(part_of(row, "error").get("code") or "")
        return failed_line(
            key, "Expired" if "expired" in code else "Cancelled" if "cancel" in code else BATCH_ERROR, None, error, later=True
        )
    return failed_line(key, BATCH_ERROR, status, error, later=status >= 500 or status == 429)
