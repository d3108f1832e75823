"""A server on this machine that speaks the OpenAI protocol, well or badly, and requests to send to it."""

from __future__ import annotations

import asyncio
import hashlib
import json
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from aiohttp import web

from neuralmedbench.config.model import ModelConfig
from neuralmedbench.records.requests import Request, RequestImage, RequestTurn

PNG = bytes.fromhex(
    "89504e470d0a1a0a0000000d4948445200000008000000080000000000e164e1570000000b4944415478da63f84f1a0000a0f00fc1b7d7e3c80000000049454e44ae426082"
)
"""Some bytes of a picture; the server never looks inside."""


class Server:
    """What the server was sent, and how it shall answer.

    Attributes
    ----------
    modes : list of str
        Taken from the front, one a request; the last one stays.

        - answers: `ok`, `other` (of another model), `truncated`, `filtered`, `refusal`, `empty`, `surrogate`
        - a status: `429` (wait 0.3 s), `429-date` (wait until a date), `429-bare`, any other number
        - no answer: `hang`, `trickle` (a space every 50 ms, without end), `cut` (before the first byte), `cut-body` (in the middle)
        - nonsense with status 200: `html`, `half-json`, `other-json`, `no-choices`
    bodies, headers : list of dict
        Of the requests, in the order in which they came.
    answered : list of str
        What was asked (the last message) of every request that got a whole answer: these cost money.
    path : str
        Path of the requests that it takes.
    """

    path = "/v1/chat/completions"

    def __init__(self) -> None:
        self.modes = ["ok"]
        self.bodies: list[dict[str, Any]] = []
        self.headers: list[dict[str, str]] = []
        self.answered: list[str] = []
        self.address = ""

    async def handle(self, request: web.Request) -> web.StreamResponse:
        body = await request.json()
        self.bodies.append(body)
        self.headers.append(dict(request.headers))
        mode = self.modes.pop(0) if len(self.modes) > 1 else self.modes[0]
        if mode == "hang":
            await asyncio.sleep(30)
        if mode in {"cut", "cut-body", "trickle"}:
            return await _broken(request, mode)
        if mode in NONSENSE:
            return web.Response(text=NONSENSE[mode], content_type="text/html" if mode == "html" else "application/json")
        status, _, kind = mode.partition("-")
        if status.isdigit():
            wait = {"date": format_datetime(datetime.now(UTC) + timedelta(seconds=WAIT_S), usegmt=True), "": "0.3"}.get(kind)
            headers = {"Retry-After": wait} if status == "429" and wait else {}
            return web.json_response({"error": {"message": json.dumps(body)[:200]}}, status=int(status), headers=headers)
        self.answered.append(_asked(body))
        return web.json_response(_reply(mode, body))


WAIT_S = 20
"""How far the date of `429-date` lies ahead."""
NONSENSE = {
    "html": "<html>gateway</html>",
    "half-json": '{"id": "1", "choices": [{"mess',
    "other-json": '{"detail": "maintenance"}',
    "no-choices": '{"id": "1", "object": "chat.completion", "created": 1, "model": "m", "choices": []}',
}


async def _broken(request: web.Request, mode: str) -> web.StreamResponse:
    """Begin an answer that never becomes whole."""
    whole = json.dumps(reply("answer")).encode()
    response = web.StreamResponse(headers={"Content-Type": "application/json", "Content-Length": str(len(whole) + 10**6)})
    with suppress(ConnectionError):  # the client has left
        if mode != "cut":
            await response.prepare(request)
        for _ in range(600 if mode == "trickle" else 0):
            await response.write(b" ")
            await asyncio.sleep(0.05)
        if mode == "cut-body":
            await response.write(whole[: len(whole) // 2])
    if request.transport is not None:
        request.transport.abort()
    return response


def _reply(mode: str, body: dict[str, Any]) -> dict[str, Any]:
    text = f"answer {hashlib.sha256(json.dumps(body).encode()).hexdigest()[:8]}"
    text = {"empty": "", "filtered": "", "refusal": "", "surrogate": "half \ud83d"}.get(mode, text)
    found = reply(text, {"truncated": "length", "filtered": "content_filter"}.get(mode, "stop"))
    if mode == "refusal":
        found["choices"][0]["message"] |= {"content": None, "refusal": "I cannot help with that."}
    return found | ({"model": "served-2026-02", "system_fingerprint": "fp-8"} if mode == "other" else {})


def _asked(body: dict[str, Any]) -> str:
    content = body["messages"][-1]["content"]
    return content if isinstance(content, str) else "\n".join(part.get("text", "") for part in content)


def reply(text: str, reason: str = "stop") -> dict[str, Any]:
    """Give an answer as the protocol carries it."""
    choice = {"index": 0, "finish_reason": reason, "message": {"role": "assistant", "content": text}}
    usage = {"prompt_tokens": 100, "completion_tokens": 10, "total_tokens": 110}
    head = {"id": "1", "object": "chat.completion", "created": 1, "model": "served-2026-01", "system_fingerprint": "fp-7"}
    return {**head, "choices": [choice], "usage": usage}


@contextmanager
def running_server(server: Server | None = None, tls: ssl.SSLContext | None = None) -> Iterator[Server]:
    """Run a server in a thread, a plain one when none is given; `tls` makes it speak https."""
    server, loop, ready = server or Server(), asyncio.new_event_loop(), threading.Event()

    async def start() -> web.AppRunner:
        app = web.Application(client_max_size=2**26)
        app.router.add_post(server.path, server.handle)
        runner = web.AppRunner(app, shutdown_timeout=0.1)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0, ssl_context=tls)
        await site.start()
        server.address = f"{'https' if tls else 'http'}://127.0.0.1:{runner.addresses[0][1]}/v1"
        return runner

    def serve() -> None:
        asyncio.set_event_loop(loop)
        runner = loop.run_until_complete(start())
        loop.call_soon(ready.set)  # not before it runs for good: a test that ends at once would stop it too early
        loop.run_forever()
        loop.run_until_complete(runner.cleanup())

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    ready.wait(10)
    try:
        yield server
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join(10)


@contextmanager
def redirecting_server(target: str) -> Iterator[str]:
    """Run a server that sends every request on to `target`, whatever its path; give its address."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers.get("Content-Length", 0)))
            self.send_response(307)
            self.send_header("Location", f"{target.replace('127.0.0.1', 'localhost')}/chat/completions")
            self.end_headers()

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/v1"
    finally:
        server.shutdown()
        thread.join(10)


def model_config(**changes: object) -> ModelConfig:
    """Give a model that is asked through litellm."""
    base: dict[str, object] = {"title": "T", "backend": "litellm", "id": "openai/m", "revision": "1", "timeout_s": 20, "max_attempts": 3}
    return ModelConfig.model_validate({**base, **changes})


def picture(root: Path, number: int) -> RequestImage:
    """Write a picture of its own below `root`."""
    png = PNG + bytes([number])
    path = root / f"p{number}.png"
    path.write_bytes(png)
    return RequestImage(path=path.name, sha256=hashlib.sha256(png).hexdigest(), label=f"Picture {number + 1}: FLAIR")


def request(item: str, *turns: RequestTurn, samples: int = 1, arm: str = "full") -> Request:
    """Give a request of one or several turns."""
    return Request(
        item_id=f"b/{item}",
        case_id=item,
        patient_id=f"p-{item}",
        benchmark="b",
        arm=arm,
        strategy="direct",
        request_id="r",
        runner="open" if len(turns) == 1 else "dialogue",
        system="You are a neurologist.",
        turns=turns or (RequestTurn(text=f"What is it? ({item})"),),
        answer_schema="",
        samples=samples,
    )
