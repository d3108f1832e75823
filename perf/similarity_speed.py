"""Measure the time to compare free answers with their references, and the time with one encoder call per response instead.

Run on purpose (`python perf/similarity_speed.py`), never a test. The answers are invented: words from the descriptions in the vocabulary, from
several models that answer every item a few times, some of them repeating an earlier answer. Ours is `embed_similarity` in a separate process,
from the tables it reads to the table it writes, including imports. The naive way encodes answer and reference of every response in one call; it
is measured on a sample of the responses, without imports, and scaled. Both use one thread and the same weights.

Measured on 23 November 2026 on 2 cores: 10,000 answers of 60 words take 2.5 minutes if half of them are repeats
(4.5 times less than the naive way), 5 minutes if all differ (2.2 times less).
"""

import argparse
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "tests"), str(ROOT / "scripts")]

from fixtures.prompt import open_question  # noqa: E402
from fixtures.scoring import answered  # noqa: E402
from neuralmedbench.files.tables import write_records  # noqa: E402
from neuralmedbench.files.vocabulary import read_vocabulary  # noqa: E402
from neuralmedbench.records.items import Gold, Item  # noqa: E402
from neuralmedbench.records.responses import Response  # noqa: E402
from neuralmedbench.records.scores import response_key  # noqa: E402
from neuralmedbench.scoring.parse import parse_answer  # noqa: E402
from neuralmedbench.scoring.similarity import (  # noqa: E402
    PACKAGED,
    TransformerEncoder,
    bertscore_f1,
    weights_folder,
)

VOCABULARY = ROOT / "config" / "vocabulary" / "neurology.yaml"
LAYER = 6
MODELS, REPEATS = 4, 5


def parse_args(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--responses", type=int, default=10_000, help=f"answers of {MODELS} models that answer {REPEATS} times")
    parser.add_argument("--words", type=int, default=60, help="words per answer, plus or minus a quarter")
    parser.add_argument("--different", type=float, nargs="*", default=[0.5, 1.0], help="shares of distinct answers; one run each")
    parser.add_argument("--naive", type=int, default=300, help="responses to measure the naive way on")
    return parser.parse_args(argv)


def invent(number: int, words: int, different: float) -> tuple[list[Item], list[Gold], list[Response]]:
    """Invent items, references and `number` responses."""
    draw = random.Random(1)
    source = " ".join(entry.description for entry in read_vocabulary(VOCABULARY).diagnoses.values()).split()

    def text(length: int) -> str:
        place = draw.randrange(len(source) - length)
        return " ".join(draw.sample(source[place : place + length], length)).rstrip(".,;")

    items, gold, responses = [], [], []
    for place in range(-(-number // (MODELS * REPEATS))):
        items.append(replace(open_question(), item_id=f"b/i{place}", case_id=f"c{place}", patient_id=f"p{place}", benchmark="b"))
        gold.append(Gold(item_id=items[-1].item_id, answer=text(draw.randint(4, 12))))
        for model in range(MODELS):
            given: list[str] = []
            for repeat in range(REPEATS):
                new = not given or draw.random() < (different * REPEATS - 1) / (REPEATS - 1)
                given.append(text(draw.randint(words * 3 // 4, words * 5 // 4)) if new else draw.choice(given))
                answer = f"ANSWER: {given[-1]}\nCONFIDENCE: 0.8"
                responses.append(answered(answer, items[-1], model=f"m{model}", repeat=repeat, benchmark="b"))
    return items, gold, responses[:number]


def ours(folder: Path, items: list[Item], gold: list[Gold], responses: list[Response]) -> tuple[float, float, float]:
    """Run the command; return wall seconds, CPU seconds and peak memory in MiB."""
    paths = {name: folder / f"{name}.parquet" for name in ("items", "gold", "out", *(f"m{model}" for model in range(MODELS)))}
    write_records(paths["items"], Item, items, key=lambda row: row.item_id)
    write_records(paths["gold"], Gold, gold, key=lambda row: row.item_id)
    answers = [paths[f"m{model}"] for model in range(MODELS)]
    for path in answers:
        write_records(path, Response, [row for row in responses if row.model == path.stem], key=response_key)
    command = [sys.executable, str(ROOT / "scripts" / "embed_similarity.py"), "--responses", *map(str, answers)]
    command += ["--items", str(paths["items"]), "--gold", str(paths["gold"]), "--vocabulary", str(VOCABULARY)]
    command += ["--settings", json.dumps({"similarity": {"encoder": PACKAGED, "bertscore_layer": LAYER}}), "--out", str(paths["out"])]
    start = time.perf_counter()
    process = subprocess.Popen(command, env={**os.environ, "HF_HUB_OFFLINE": "1"})
    _, status, usage = os.wait4(process.pid, 0)
    wall = time.perf_counter() - start
    if status:
        sys.exit("embed_similarity failed")
    return wall, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024


def naive(items: list[Item], gold: list[Gold], responses: list[Response]) -> tuple[float, float]:
    """Encode both texts of every response in a separate call; return wall and CPU seconds."""
    asked, right = {row.item_id: row for row in items}, {row.item_id: row.answer for row in gold}
    encoder = TransformerEncoder(weights_folder(PACKAGED), layer=LAYER)
    dict(encoder.encode(["the first call is slower"]))
    wall, cpu = time.perf_counter(), time.process_time()
    for row in responses:
        answer = parse_answer(row.text, asked[row.item_id]).differential[0]
        vectors = dict(encoder.encode([answer, right[row.item_id]]))
        first, second = vectors[answer], vectors[right[row.item_id]]
        float(first[0] @ second[0]), bertscore_f1(first[1], second[1])
    return time.perf_counter() - wall, time.process_time() - cpu


def main(argv: Sequence[str] | None = None) -> int:
    args = parse_args(argv)
    for different in args.different:
        items, gold, responses = invent(args.responses, args.words, different)
        sample = random.Random(1).sample(responses, min(args.naive, len(responses)))
        with tempfile.TemporaryDirectory() as scratch:
            wall, cpu, memory = ours(Path(scratch), items, gold, responses)
        naive_wall, naive_cpu = (seconds * len(responses) / len(sample) for seconds in naive(items, gold, sample))
        figures = {
            "responses": len(responses),
            "different": round(len({row.text for row in responses}) / len(responses), 3),
            "ours_wall_s": round(wall, 1),
            "ours_cpu_s": round(cpu, 1),
            "ours_mib": round(memory),
            "naive_wall_s": round(naive_wall, 1),
            "naive_cpu_s": round(naive_cpu, 1),
            "times_faster": round(naive_wall / wall, 2),
            "times_fewer_cpu_s": round(naive_cpu / cpu, 2),
        }
        print(json.dumps(figures, indent=1), flush=True)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
