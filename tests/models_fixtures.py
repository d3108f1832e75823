"""A server on this machine that speaks the OpenAI protocol, well or badly, and requests to send to it."""

from __future__ import annotations

import asyncio
import hashlib
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
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
        Taken from the front, one a request; the last one stays: `ok`, `429`, `503`, `400`, `401`, `hang`, `truncated`,
        `filtered`, `empty`, `html`, `surrogate`.
    bodies, headers : list of dict
        Of the requests, in the order in which they came.
    """

    def __init__(self) -> None:
        self.modes = ["ok"]
        self.bodies: list[dict[str, Any]] = []
        self.headers: list[dict[str, str]] = []
        self.address = ""

    async def handle(self, request: web.Request) -> web.StreamResponse:
        body = await request.json()
        self.bodies.append(body)
        self.headers.append(dict(request.headers))
        mode = self.modes.pop(0) if len(self.modes) > 1 else self.modes[0]
        if mode == "hang":
            await asyncio.sleep(30)
        if mode == "html":
            return web.Response(text="<html>gateway</html>", content_type="text/html")
        if mode.isdigit():
            headers = {"Retry-After": "0.3"} if mode == "429" else {}
            return web.json_response({"error": {"message": json.dumps(body)[:200]}}, status=int(mode), headers=headers)
        text = (
            ""
            if mode in {"empty", "filtered"}
            else "half \ud83d"
            if mode == "surrogate"
            else f"answer {hashlib.sha256(json.dumps(body).encode()).hexdigest()[:8]}"
        )
        reason = {"truncated": "length", "filtered": "content_filter"}.get(mode, "stop")
        return web.json_response(reply(text, reason))


def reply(text: str, reason: str = "stop") -> dict[str, Any]:
    """Give an answer as the protocol carries it."""
    choice = {"index": 0, "finish_reason": reason, "message": {"role": "assistant", "content": text}}
    usage = {"prompt_tokens": 100, "completion_tokens": 10, "total_tokens": 110}
    head = {"id": "1", "object": "chat.completion", "created": 1, "model": "served-2026-01", "system_fingerprint": "fp-7"}
    return {**head, "choices": [choice], "usage": usage}


@contextmanager
def running_server(server: Server | None = None) -> Iterator[Server]:
    """Run a server in a thread; a plain one when none is given."""
    server, loop, ready = server or Server(), asyncio.new_event_loop(), threading.Event()

    async def start() -> web.AppRunner:
        app = web.Application(client_max_size=2**26)
        app.router.add_post("/v1/chat/completions", server.handle)
        runner = web.AppRunner(app, shutdown_timeout=0.1)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        server.address = f"http://127.0.0.1:{runner.addresses[0][1]}/v1"
        ready.set()
        return runner

    def serve() -> None:
        asyncio.set_event_loop(loop)
        runner = loop.run_until_complete(start())
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
