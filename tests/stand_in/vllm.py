"""A program that behaves like `vllm serve`, well or badly; it needs no package and serves no model.

`--stub-...` are its own arguments: seconds until it is loaded, seconds of an answer, a process of a session of its own that survives SIGTERM,
the name under which it serves whatever it was told, an end after so many answers or while it loads, a signal that ends it, a file in which each answered question
is a line, `--stub-first-port-taken FILE` (a port that another program takes first, once), and `--stub-refuses-schema`.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

CHILD = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); time.sleep(600)"
OUT_OF_MEMORY = (
    "(EngineCore pid=7) torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 3.39 GiB. GPU 0 has a total capacity of 23.6 GiB"
)
PATIENT = "question about Erika Mustermann"
"""A log may repeat what was asked."""


def parse_args() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="vllm")
    parser.add_argument("serve")
    parser.add_argument("weights")
    parser.add_argument("--served-model-name", required=True)
    parser.add_argument("--host", required=True)
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--max-model-len")
    parser.add_argument("--stub-load", type=float, default=0.0)
    parser.add_argument("--stub-answer", type=float, default=0.0)
    parser.add_argument("--stub-child", action="store_true")
    parser.add_argument("--stub-name")
    parser.add_argument("--stub-ends-after", type=int)
    parser.add_argument("--stub-no-memory", action="store_true")
    parser.add_argument("--stub-signal", type=int)
    parser.add_argument("--stub-first-port-taken", type=Path)
    parser.add_argument("--stub-refuses-schema", action="store_true")
    parser.add_argument("--stub-asked", type=Path)
    return parser.parse_args()


class Handler(BaseHTTPRequestHandler):
    """The four paths that are asked for."""

    args: argparse.Namespace
    lock = threading.Lock()
    answered = 0

    def do_GET(self) -> None:
        name = self.args.stub_name or self.args.served_model_name
        lists = {"object": "list", "data": [{"id": name, "object": "model"}]}
        paths = {"/v1/models": lists, "/version": {"version": "0.11.0"}, "/health": {}}
        self._reply(200 if self.path in paths else 404, paths.get(self.path, {}))

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        content = body["messages"][-1]["content"]
        asked = content if isinstance(content, str) else next(part["text"] for part in content if part["type"] == "text")
        if body["model"] != self.args.served_model_name:
            return self._reply(404, {"error": {"message": f"The model `{body['model']}` does not exist."}})
        if self.args.stub_refuses_schema and "response_format" in body:
            return self._reply(400, {"error": {"message": f"response_format is not supported; {asked}"}})
        time.sleep(self.args.stub_answer)
        with self.lock:
            Handler.answered += 1
            if self.args.stub_ends_after is not None and Handler.answered > self.args.stub_ends_after:
                print(f"{PATIENT}\n{OUT_OF_MEMORY}", file=sys.stderr, flush=True)
                os._exit(1)
        keys = {"pictures": sum(part["type"] == "image_url" for part in content) if isinstance(content, list) else 0, **body}
        text = '{"ready": true}' if "response_format" in body else f"answer to {asked}"
        choice = {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": text}}
        usage = {"prompt_tokens": 9, "completion_tokens": 9, "total_tokens": 18}
        value = {"id": "1", "object": "chat.completion", "created": 1, "model": body["model"], "choices": [choice], "usage": usage}
        if self.args.stub_asked:
            with self.lock, self.args.stub_asked.open("a", encoding="utf-8") as stream:
                stream.write(json.dumps({"asked": asked, "pictures": keys["pictures"], "format": body.get("response_format")}) + "\n")
        return self._reply(200, value)

    def _reply(self, status: int, value: object) -> None:
        data = json.dumps(value).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_: object) -> None:
        """Say nothing."""


def main() -> int:
    args = Handler.args = parse_args()
    if args.stub_child:
        subprocess.Popen([sys.executable, "-I", "-S", "-c", CHILD, str(args.weights)], start_new_session=True)
    if args.stub_first_port_taken and not args.stub_first_port_taken.exists():
        args.stub_first_port_taken.touch()
        print(f"OSError: [Errno 98] Address already in use: ('{args.host}', {args.port})", file=sys.stderr)
        return 1
    time.sleep(args.stub_load)
    if args.stub_signal:
        os.kill(os.getpid(), args.stub_signal)
    if args.stub_no_memory:
        print(f"{PATIENT}\n{OUT_OF_MEMORY}", file=sys.stderr)
        return 1
    ThreadingHTTPServer((args.host, args.port), Handler).serve_forever()
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
