"""Measure tokens generated per second by local weights: our backend and plain batched `generate` of transformers, with the same prompts.

Run on purpose (`python perf/local_generation.py`, on a machine with a graphics card `--size 7b`), never a test. The model is a LLaVA with
random weights, made on the device and never saved: its answers mean nothing and all have the maximum length (the end token is suppressed, so
that both generate equally much), but the work is that of a real model. Plain means: `batch_size` prompts at a time in their given order, the
same temperature and top-p, pictures scaled before each batch. Both start from encoded PNG pictures, are warmed up and take turns; medians
are reported.
"""

import argparse
import asyncio
import contextlib
import hashlib
import io
import json
import resource
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from statistics import median
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "tests"), str(ROOT / "scripts")]

from fixtures.weights import SIZES, llava, picture_bytes  # noqa: E402
from neuralmedbench.models.local.backend import BatchingBackend  # noqa: E402
from neuralmedbench.models.local.generation import GenerationSettings, Weights  # noqa: E402
from neuralmedbench.models.protocol import Answer, Call, Message, MessageImage  # noqa: E402


def parse_args(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--size", choices=sorted(SIZES), default="tiny", help="size of the LLaVA; 7b needs about 20 GB of a card's memory")
    parser.add_argument("--prompts", type=int, default=64, help="conversations, one answer each")
    parser.add_argument("--batch", type=int, default=8, help="answers generated at once, for both")
    parser.add_argument("--tokens", type=int, default=128, help="longest answer")
    parser.add_argument("--pictures", type=int, default=3, help="most pictures per prompt: 1, 2, ... in turn")
    parser.add_argument("--words", type=int, default=60, help="most words per prompt")
    parser.add_argument("--rounds", type=int, default=3, help="measurements of each")
    parser.add_argument("--temperature", type=float, default=1.0)
    parser.add_argument("--top-p", type=float, default=0.95)
    return parser.parse_args(argv)


def conversations(args: argparse.Namespace) -> list[tuple[Message, ...]]:
    """Make prompts of different lengths with different numbers of pictures, all distinct."""
    side = 2 * SIZES[args.size].picture
    talks = []
    for number in range(args.prompts):
        pngs = [picture_bytes(number * args.pictures + place, side, side) for place in range(1 + number % args.pictures)]
        shown = tuple(MessageImage(f"Picture {place}.", png, hashlib.sha256(png).hexdigest()) for place, png in enumerate(pngs))
        words = " ".join(["finding"] * (1 + number * 37 % args.words))
        talks.append((Message("system", "You look."), Message("user", f"{number}: {words}", shown)))
    return talks


def ours(backend: BatchingBackend, talks: Sequence[tuple[Message, ...]]) -> int:
    """Answer all prompts as the engine would, `in_flight` at once; return the number of generated tokens."""

    async def all_of_them() -> list[Answer]:
        waiting, answers = iter(talks), []

        async def work() -> None:
            for talk in waiting:
                answers.extend(await backend.answer(Call(talk, (0,), 1)))

        await asyncio.gather(*(work() for _ in range(backend.in_flight)))
        return answers

    return sum(answer.completion_tokens or 0 for answer in asyncio.run(all_of_them()))


def plain(model: Any, processor: Any, talks: Sequence[tuple[Message, ...]], args: argparse.Namespace) -> int:
    """Answer all prompts with `generate` only; return the number of generated tokens."""
    import torch
    from PIL import Image

    def parts(message: Message) -> list[dict[str, Any]]:
        shown = []
        for image in message.images:
            shown += [{"type": "text", "text": image.label}, {"type": "image", "image": Image.open(io.BytesIO(image.png)).convert("RGB")}]
        return [{"type": "text", "text": message.text}, *shown]

    sampling = {"do_sample": True, "temperature": args.temperature, "top_p": args.top_p, "top_k": 0} if args.temperature else {}
    total = 0
    for start in range(0, len(talks), args.batch):
        batch = [[{"role": message.role, "content": parts(message)} for message in talk] for talk in talks[start : start + args.batch]]
        options = {"tokenize": True, "add_generation_prompt": True, "return_dict": True, "return_tensors": "pt"}
        inputs = processor.apply_chat_template(batch, **options, processor_kwargs={"padding": True}).to(model.device, dtype=model.dtype)
        with torch.inference_mode():
            tokens = model.generate(**inputs, max_new_tokens=args.tokens, pad_token_id=0, **sampling)
        answers = tokens[:, inputs["input_ids"].shape[1] :]
        processor.batch_decode(answers, skip_special_tokens=True)
        total += answers.numel()
    return total


@contextlib.contextmanager
def utilisation() -> Iterator[list[int]]:
    """Collect the utilisation of the first graphics card from nvidia-smi, in percent, about twice per second; empty without a card."""
    seen: list[int] = []
    over = threading.Event()
    command = ["nvidia-smi", "-i", "0", "--query-gpu=utilization.gpu", "--format=csv,noheader,nounits"]

    def look() -> None:  # a new process each time: output of a long-running one may be lost when it is ended
        while not over.wait(0.5):
            try:
                output = subprocess.run(command, capture_output=True, text=True, timeout=10, check=False).stdout
            except (OSError, subprocess.TimeoutExpired):
                return
            seen.extend(int(line) for line in output.split() if line.isdigit())

    thread = threading.Thread(target=look, daemon=True)
    thread.start()
    try:
        yield seen
    finally:
        over.set()
        thread.join()


def measured(run: Any) -> dict[str, float]:
    """Run once; return tokens, wall and CPU seconds, and the mean utilisation if there is a card."""
    before, start = resource.getrusage(resource.RUSAGE_SELF), time.perf_counter()
    with utilisation() as seen:
        tokens = run()
    wall, after = time.perf_counter() - start, resource.getrusage(resource.RUSAGE_SELF)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    busy = {"busy_percent": sum(seen) / len(seen)} if seen else {}
    return {"tokens": tokens, "wall_s": wall, "cpu_s": cpu, "tokens_per_s": tokens / wall, "tokens_per_cpu_s": tokens / cpu, **busy}


def main(argv: Sequence[str] | None = None) -> int:
    args = parse_args(argv)
    import torch
    import transformers

    device = "cuda" if torch.cuda.is_available() else "cpu"
    model, processor = llava(SIZES[args.size], device=device, dtype="bfloat16" if device == "cuda" else "float32")
    model.generation_config.suppress_tokens = [processor.tokenizer.eos_token_id]
    settings = GenerationSettings(max_tokens=args.tokens, temperature=args.temperature, top_p=args.top_p, batch_size=args.batch)
    backend, talks = BatchingBackend("perf", Weights(model, processor, settings), settings), conversations(args)
    runs = {"ours": lambda: ours(backend, talks), "plain": lambda: plain(model, processor, talks, args)}
    ours(backend, talks[: args.batch])
    plain(model, processor, talks[: args.batch], args)
    figures: dict[str, list[dict[str, float]]] = {name: [] for name in runs}
    for number in range(args.rounds):
        for name in sorted(runs, reverse=bool(number % 2)):
            figures[name].append(measured(runs[name]))
    report: dict[str, Any] = {
        "model": f"LLaVA {args.size}, {sum(each.numel() for each in model.parameters()) / 1e6:.1f} million random weights",
        "device": torch.cuda.get_device_name() if device == "cuda" else f"cpu, {torch.get_num_threads()} threads",
        "versions": f"torch {torch.__version__}, transformers {transformers.__version__}",
        "what": {
            name: getattr(args, name) for name in ("prompts", "batch", "tokens", "pictures", "words", "temperature", "top_p", "rounds")
        },
    }
    for name, rows in figures.items():
        keys = dict.fromkeys(key for row in rows for key in row)
        report[name] = {key: round(median(row[key] for row in rows if key in row), 2) for key in keys}
    for key in ("tokens_per_s", "tokens_per_cpu_s"):
        report[f"ratio of {key}"] = round(median(a[key] / b[key] for a, b in zip(figures["ours"], figures["plain"], strict=True)), 3)
    if device == "cuda":
        report["memory_gb"] = round(torch.cuda.max_memory_allocated() / 1e9, 1)
    print(json.dumps(report, indent=1))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
