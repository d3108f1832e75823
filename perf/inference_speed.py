"""Measure the throughput of calls to a model API: this project, a plain loop over litellm, bare HTTP, and inspect_ai, in paired runs.

Run on purpose (`python perf/inference_speed.py`), never a test. A server on this machine, in a separate process and if possible on a
separate core, answers after 200 ms; every request carries a picture of 50 kB. Each figure is the median of paired runs, with each client in
its own process, excluding imports and the first call. Ours is `answer_requests` from the requests to the responses: keys, ledger with its
fsyncs, money caps and rate limits with their logs, checks of pictures and destination. The limit is concurrency / latency.

inspect_ai is installed elsewhere (`python -m venv DIR; DIR/bin/pip install inspect_ai openai`) and named by `--inspect-python DIR/bin/python`:
one `eval()` of a data set of pictures with `generate()` and `includes()`, from the samples to the finished log. `inspect` has its settings as
they come, without a display; `lean` has what its documentation offers to log less (no pictures, no live view, no control channel).
"waited" are the seconds in which the client could have run but had no core: on a busy machine the wall time has them too.
"""

import argparse
import asyncio
import json
import os
import random
import resource
import shutil
import statistics
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from hashlib import sha256
from importlib import import_module
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "scripts"), str(ROOT / "tests")]

LATENCY_S = 0.2
PICTURE_BYTES = 50_000
HEAD = b"\x89PNG\r\n\x1a\n" + struct.pack(">I4sIIBBBBB", 13, b"IHDR", 512, 512, 8, 0, 0, 0, 0)
CLIENTS = ("bare", "plain", "ours")
INSPECT = ("inspect", "lean")
REPLAYED = 10_000
WORDS = "The patient is 54 years old and has had a headache for three weeks. " * 12


def parse_args(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--requests", type=int, default=1000, help="requests per run (a tenth at concurrency 1)")
    parser.add_argument("--concurrency", type=int, nargs="*", default=[1, 16, 64, 256])
    parser.add_argument("--runs", type=int, default=3, help="paired runs")
    parser.add_argument("--clients", nargs="*", choices=[*CLIENTS, *INSPECT], help="all by default, those of inspect_ai if it is there")
    parser.add_argument("--inspect-python", type=Path, help="Python of an environment with inspect_ai and openai")
    parser.add_argument("--no-replay", action="store_true", help="leave out the replay of the ledger")
    parser.add_argument("--one", nargs="*", help=argparse.SUPPRESS)
    return parser.parse_args(argv)


def serve(core: int) -> None:
    """Print the port, then answer every request with the same text after the delay."""

    class Protocol(asyncio.Protocol):
        def connection_made(self, transport: asyncio.BaseTransport) -> None:
            self.transport, self.buffer = transport, bytearray()

        def data_received(self, data: bytes) -> None:
            self.buffer += data
            end = self.buffer.find(b"\r\n\r\n")
            if end < 0:
                return
            head = bytes(self.buffer[:end]).lower()
            length = int(head.partition(b"content-length:")[2].partition(b"\r\n")[0])
            if len(self.buffer) >= end + 4 + length:
                del self.buffer[: end + 4 + length]
                asyncio.get_running_loop().call_later(LATENCY_S, self.transport.write, answer)

    async def run() -> None:
        server = await asyncio.get_running_loop().create_server(Protocol, "127.0.0.1", 0, backlog=1024)
        print(server.sockets[0].getsockname()[1], flush=True)
        await server.serve_forever()

    from fixtures.models import reply

    body = json.dumps(reply("The most likely diagnosis is a glioblastoma. " * 20)).encode()
    answer = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(body) + body
    pin(core)
    asyncio.run(run())


def pin(core: int) -> None:
    """Pin this process to one core, if there are several."""
    cores = sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_setaffinity") else []
    if len(cores) > 1:
        os.sched_setaffinity(0, {cores[core]})


async def loop(number: int, concurrency: int, ask: Callable[[int], Awaitable[object]]) -> None:
    """Make `number` calls, `concurrency` at a time: the usual loop."""
    slots = asyncio.Semaphore(concurrency)

    async def one(place: int) -> None:
        async with slots:
            await ask(place)

    await asyncio.gather(*(one(place) for place in range(number)))


def messages(folder: Path, place: int) -> list[dict[str, object]]:
    """Return the messages of one request in the OpenAI format."""
    import base64

    url = "data:image/png;base64," + base64.b64encode((folder / f"{place}.png").read_bytes()).decode()
    parts = [{"type": "text", "text": f"{WORDS} ({place})"}, {"type": "text", "text": "Picture"}]
    return [
        {"role": "system", "content": "You are a neurologist."},
        {"role": "user", "content": [*parts, {"type": "image_url", "image_url": {"url": url}}]},
    ]


def bare(folder: Path, address: str, number: int, concurrency: int) -> None:
    """Post with aiohttp and read the answer."""
    import aiohttp

    async def run() -> None:
        async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as session:

            async def ask(place: int) -> object:
                body = {"model": "m", "messages": messages(folder, place), "max_tokens": 1024, "seed": 1}
                async with session.post(f"{address}/chat/completions", json=body) as reply:
                    return (await reply.json())["choices"][0]["message"]["content"]

            await loop(number, concurrency, ask)

    asyncio.run(run())


def plain(folder: Path, address: str, number: int, concurrency: int) -> None:
    """Call litellm as documented, with its default (aiohttp) transport."""
    import litellm

    litellm.suppress_debug_info = True

    async def run() -> None:
        async def ask(place: int) -> object:
            reply = await litellm.acompletion(
                model="openai/m",
                messages=messages(folder, place),
                api_base=address,
                api_key="k",
                max_tokens=1024,
                seed=1,
                max_retries=0,
                num_retries=0,
            )
            return reply.choices[0].message.content

        await loop(number, concurrency, ask)

    asyncio.run(run())


def ours(folder: Path, address: str, number: int, concurrency: int, *, replay: bool = False) -> None:
    """Ask as the pipeline does."""
    from fixtures.models import model_config
    from neuralmedbench.config.pipeline import RateLimit
    from neuralmedbench.models.engine import answer_requests
    from neuralmedbench.models.model_run import ModelRun, RunLimits
    from neuralmedbench.records.requests import Request, RequestImage, RequestTurn

    prices = {"usd_per_million_prompt_tokens": 1, "usd_per_million_completion_tokens": 2, "dated": "2026-01-01"}
    changes = {"concurrency": concurrency, "seed": 1, "prices": prices, "max_cost_usd": 10**6, "rate_limit_group": "g"}
    limits = {"g": RateLimit(requests_per_minute=10**8, tokens_per_minute=10**12)}
    names = {"case_id": "c", "patient_id": "p", "benchmark": "b", "arm": "full", "strategy": "direct", "request_id": "r"}
    rest = {"runner": "open", "system": "You are a neurologist.", "answer_schema": "", "samples": 1}
    digests = [sha256((folder / f"{place}.png").read_bytes()).hexdigest() for place in range(min(number, 1000))]
    requests = []
    for place in range(number):
        image = RequestImage(path=f"{place % 1000}.png", sha256=digests[place % 1000], label="Picture")
        turn = RequestTurn(text=f"{WORDS} ({place})", images=(image,))
        requests.append(Request(item_id=f"b/i{place}", turns=(turn,), **names, **rest))
    rows = answer_requests(
        requests,
        ModelRun(
            model_config(api_base=address, **changes),
            ledger=Path(folder, f"ledger-{number}.jsonl"),
            destinations=["local"],
            max_failed_fraction=0,
            root=folder,
            replay=replay,
            control=RunLimits(10**6, limits, folder / f"spending-{os.getpid()}"),
        ),
    )
    if any(row.state != "ok" for row in rows) or len(rows) != number:
        message = "not every request was answered"
        raise SystemExit(message)


def inspect(folder: Path, address: str, number: int, concurrency: int, *, lean: bool = False) -> None:
    """Evaluate with inspect_ai a data set of which every sample has a picture."""
    # of another environment: none of our packages
    names = ("inspect_ai", *(f"inspect_ai.{name}" for name in ("dataset", "model", "scorer", "solver")))
    harness, made, models, judged, solved = map(import_module, names)

    def sample(place: int) -> object:
        parts = [models.ContentText(text=f"{WORDS} ({place})"), models.ContentText(text="Picture")]
        asked = models.ChatMessageUser(content=[*parts, models.ContentImage(image=str(folder / f"{place % 1000}.png"))])
        system = models.ChatMessageSystem(content="You are a neurologist.")
        return made.Sample(id=place + 1, input=[system, asked], target="glioblastoma")

    less = {"log_images": False, "log_realtime": False, "ctl_server": False} if lean else {}
    (log,) = harness.eval(
        harness.Task(dataset=[sample(place) for place in range(number)], solver=solved.generate(), scorer=judged.includes()),
        model=models.get_model("openai-api/local/m", base_url=address, api_key="k"),
        display="none",
        log_dir=str(folder / "inspect"),
        max_connections=concurrency,
        max_tokens=1024,
        seed=1,
        **less,
    )
    if log.status != "success" or not log.results or log.results.completed_samples != number:
        message = "not every sample was answered"
        raise SystemExit(message)


def one(client: str, folder: Path, address: str, number: int, concurrency: int) -> dict[str, float]:
    """Measure one client in this process."""
    pin(0)
    asked = {"bare": bare, "plain": plain, "ours": ours, "replay": ours, "inspect": inspect, "lean": partial(inspect, lean=True)}[client]
    if client == "replay":
        for module in ("fixtures.models", "neuralmedbench.models.engine"):
            import_module(module)
        begin = time.perf_counter(), time.process_time(), waited_s()
        ours(folder, address, number, concurrency, replay=True)
    else:
        asked(folder, address, 2, 1)
        begin = time.perf_counter(), time.process_time(), waited_s()
        asked(folder, address, number, concurrency)
    wall, cpu, waited = time.perf_counter() - begin[0], time.process_time() - begin[1], waited_s() - begin[2]
    return {"wall_s": wall, "cpu_s": cpu, "waited_s": waited, "peak_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024}


def waited_s() -> float:
    """Return the seconds in which the main thread could have run but had no core, where the system counts them."""
    counted = Path("/proc/self/schedstat")
    return int(counted.read_text(encoding="ascii").split()[1]) / 1e9 if counted.is_file() else 0.0


def measured(*words: object, python: Path | str = sys.executable) -> dict[str, float]:
    """Measure in a separate process."""
    command = [str(python), __file__, "--one", *map(str, words)]
    environment = {**os.environ, "LITELLM_LOCAL_MODEL_COST_MAP": "True"}
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    if done.returncode:
        raise SystemExit(done.stderr[-2000:])
    figures: dict[str, float] = json.loads(done.stdout)
    return figures


def write_ledger(folder: Path) -> None:
    """Fill the ledger to be replayed, without any call."""
    from fixtures.models import model_config
    from neuralmedbench.models.call_keys import call_key
    from neuralmedbench.models.conversation import PromptMessage
    from neuralmedbench.models.ledger import LedgerEntry, open_ledger, picture_digests, text_digests
    from neuralmedbench.records.requests import RequestImage

    model = model_config(seed=1)
    with open_ledger(folder / f"ledger-{REPLAYED}.jsonl") as ledger:
        for place in range(REPLAYED):
            digest = sha256((folder / f"{place % 1000}.png").read_bytes()).hexdigest()
            image = RequestImage(path="", sha256=digest, label="Picture")
            prompt = (PromptMessage("system", "You are a neurologist."), PromptMessage("user", f"{WORDS} ({place})", (image,)))
            text = "The most likely diagnosis is a glioblastoma. " * 20
            sent = {"words": text_digests(prompt), "pictures": picture_digests(prompt), "prompt_tokens": 1, "completion_tokens": 1}
            ledger.add(LedgerEntry(key=call_key(model, prompt, 0), state="ok", text=text, item_id=f"b/i{place}", **sent))


def compare(args: argparse.Namespace, folder: Path, address: str) -> None:
    """Print one row per client and concurrency."""
    print("concurrency  client  req/s  of limit  CPU s  waited s  peak MB  of plain")
    for concurrency in args.concurrency:
        number = args.requests if concurrency > 1 else max(10, args.requests // 10)
        runs: dict[str, list[dict[str, float]]] = {client: [] for client in args.clients}
        for _ in range(args.runs):
            for client in args.clients:
                (folder / f"ledger-{number}.jsonl").unlink(missing_ok=True)
                (folder / "ledger-2.jsonl").unlink(missing_ok=True)
                shutil.rmtree(folder / "inspect", ignore_errors=True)
                python = args.inspect_python if client in INSPECT else sys.executable
                runs[client].append(measured(client, folder, address, number, concurrency, python=python))
        for client, figures in runs.items():
            rate = [number / figure["wall_s"] for figure in figures]
            beside = [number / figure["wall_s"] for figure in runs.get("plain", figures)]
            ratio = statistics.median(mine / other for mine, other in zip(rate, beside, strict=True))
            cpu, waited, peak = (statistics.median(figure[name] for figure in figures) for name in ("cpu_s", "waited_s", "peak_mb"))
            speed = statistics.median(rate)
            row = f"{speed:6.1f} {speed * LATENCY_S / concurrency:9.2f} {cpu:6.2f} {waited:9.2f} {peak:8.0f} {ratio:9.2f}"
            print(f"{concurrency:11} {client:>7} {row}", flush=True)


def inspect_version(python: Path | None) -> str:
    """Return the version of inspect_ai that a Python has; nothing if there is none."""
    if python is None:
        return ""
    names = "import importlib.metadata as m, openai; print(m.version('inspect_ai'), 'with openai', m.version('openai'))"
    done = subprocess.run([python, "-c", names], capture_output=True, text=True, check=False)
    return done.stdout.strip() if not done.returncode else ""


def main(argv: Sequence[str] | None = None) -> int:
    args = parse_args(argv)
    if args.one and args.one[0] == "serve":
        serve(-1)
    if args.one:
        client, folder, address, number, concurrency = args.one
        print(json.dumps(one(client, Path(folder), address, int(number), int(concurrency))))
        return 0
    version = inspect_version(args.inspect_python)
    args.clients = args.clients or [*CLIENTS, *(INSPECT if version else ())]
    if version:
        print(f"inspect_ai {version}")
    elif set(args.clients) & set(INSPECT):
        message = f"inspect_ai and openai cannot be imported by {args.inspect_python}"
        raise SystemExit(message)
    else:
        print("inspect_ai is left out: name a Python that has it and openai with --inspect-python")
    with tempfile.TemporaryDirectory() as scratch:
        folder, source = Path(scratch), random.Random(1)
        for place in range(max(args.requests, 1000)):
            (folder / f"{place}.png").write_bytes(HEAD + source.randbytes(PICTURE_BYTES - len(HEAD)))
        server = subprocess.Popen([sys.executable, __file__, "--one", "serve"], stdout=subprocess.PIPE, text=True)
        try:
            assert server.stdout
            compare(args, folder, f"http://127.0.0.1:{server.stdout.readline().strip()}/v1")
        finally:
            server.kill()
        if not args.no_replay:
            write_ledger(folder)
            replayed = [measured("replay", folder, "http://127.0.0.1:9/v1", REPLAYED, 1) for _ in range(args.runs)]
            middle = {name: statistics.median(figure[name] for figure in replayed) for name in replayed[0]}
            print(f"replay of {REPLAYED} answers: {middle['wall_s']:.2f} s, {middle['cpu_s']:.2f} CPU s, {middle['peak_mb']:.0f} MB")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
