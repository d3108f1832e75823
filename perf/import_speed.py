"""Measure an import of 30,000 single pictures (seconds, memory), and the number of prompts rendered per second.

Run on purpose (`python perf/import_speed.py`), never a test. The pictures are tiny and all different, so that the
work per question is measured, not the disk.
"""

import argparse
import json
import os
import struct
import subprocess
import sys
import tempfile
import time
import zlib
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "tests"), str(ROOT / "scripts")]

from fixtures.imports import built, put_table  # noqa: E402
from fixtures.items import benchmark_config  # noqa: E402
from neuralmedbench.benchmarks.importing import ImportPaths  # noqa: E402
from neuralmedbench.files.templates import Templates  # noqa: E402
from neuralmedbench.prompts.assemble import CaseMaterial, assemble  # noqa: E402


def parse_args(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--questions", type=int, default=30_000, help="pictures to import, one question each")
    parser.add_argument("--prompts", type=int, default=5_000, help="items to render prompts for")
    return parser.parse_args(argv)


def png(number: int) -> bytes:
    """Encode a grey picture of 8 x 8 pixels that is unique to the number."""

    def chunk(kind: bytes, body: bytes) -> bytes:
        return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))

    rows = b"".join(b"\0" + struct.pack(">Q", number + row) for row in range(8))
    head = chunk(b"IHDR", struct.pack(">IIBBBBB", 8, 8, 8, 0, 0, 0, 0))
    return b"\x89PNG\r\n\x1a\n" + head + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")


def write_set(folder: Path, number: int) -> None:
    """Write a data set in the format of NeuroVLM-Bench: 30 slices per patient, one subset."""
    labels = {"class": "stroke", "original_class": "", "subclass": "ischemic", "modality": "CT", "modality_subtype": "", "plane": "axial"}
    rows = [{"dataset": "aisd", "file_path": f"aisd/image/{place // 30:07d}/{place % 30:03d}.png", **labels} for place in range(number)]
    for place, row in enumerate(rows):
        path = folder / row["file_path"]
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(png(place))
    put_table(folder / "image_mapping.csv", rows)
    put_table(folder / "subsets" / "subset_1.csv", rows[: number // 10])


def run_import(folder: Path, scratch: Path) -> tuple[float, float, float, str]:
    """Run the import; return wall seconds, CPU seconds, peak memory in MiB, and the first line of its output."""
    command = [sys.executable, "-m", "neuralmedbench", "benchmark", "import", "neurovlm", "--from", str(folder), "--part"]
    with tempfile.TemporaryFile("w+") as output:
        start = time.perf_counter()
        places = ["--config", str(scratch / "config"), "--data", str(scratch / "data")]
        process = subprocess.Popen(
            [*command, *places], stdout=output, stderr=subprocess.STDOUT, env={**os.environ, "PYTHONPATH": str(ROOT / "scripts")}
        )
        _, status, usage = os.wait4(process.pid, 0)
        wall = time.perf_counter() - start
        output.seek(0)
        text = output.read()
    if status:
        sys.exit(text[-5000:])
    return wall, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024, text.splitlines()[0]


def write_prompts(places: ImportPaths, number: int) -> tuple[float, float]:
    """Return prompts per second of wall time and of CPU time, over the first items, arm full."""
    items = built(places, "none").items[:number]
    templates = Templates(ROOT / "config" / "prompts")
    wall, cpu = time.perf_counter(), time.process_time()
    requests = assemble(items, CaseMaterial(), benchmark_config(arms=["full"], label_policy="none"), templates)
    return len(requests) / (time.perf_counter() - wall), len(requests) / (time.process_time() - cpu)


def main(argv: Sequence[str] | None = None) -> int:
    args = parse_args(argv)
    with tempfile.TemporaryDirectory() as name:
        scratch = Path(name)
        write_set(scratch / "set", args.questions)
        wall, cpu, memory, summary = run_import(scratch / "set", scratch)
        by_wall, by_cpu = write_prompts(
            ImportPaths(tables=scratch / "data/questions/neurovlm", pictures=scratch / "data/raw/neurovlm"), args.prompts
        )
    figures = {"summary": summary, "import_wall_s": round(wall, 1), "import_cpu_s": round(cpu, 1), "import_mib": round(memory)}
    print(json.dumps(figures | {"prompts": args.prompts, "prompts_per_s": round(by_wall), "prompts_per_cpu_s": round(by_cpu)}, indent=1))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
