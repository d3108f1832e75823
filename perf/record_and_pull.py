"""Measure recording and pulling 10,000 cases of 20 pictures, a file a picture beside a pack a case: CPU seconds, seconds, memory.

Run on purpose (`python perf/record_and_pull.py`), never a test. Pictures are random bytes of 15 to 30 kB, the remote is a folder; every step is
a process of its own, as `nmb run record` and `nmb run pull` are. It needs 20 GB of disk.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "scripts"))

from neuralmedbench.files.digests import sha256_of_files  # noqa: E402
from neuralmedbench.files.packs import write_pack  # noqa: E402

PICTURES = 20
STAGES = "stages:\n  slices:\n    cmd: 'true'\n    outs:\n    - data/slices/many:\n        persist: true\n"
RECORD = "from neuralmedbench.recording.repository import open_repository\nwith open_repository() as here: here.commit()"
PULL = "from neuralmedbench.recording.repository import pull\npull()"
Figures = dict[str, float]


def parse_args(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cases", type=int, default=10_000)
    parser.add_argument("--forms", nargs="+", choices=("files", "packs"), default=("files", "packs"))
    return parser.parse_args(argv)


def make_case(folder: Path, number: int, form: str) -> None:
    """Write one case: pictures, their pack, and a record that lists them."""
    bits = random.Random(number)
    (folder / "png").mkdir(parents=True)
    for place in range(PICTURES):
        (folder / "png" / f"t1w-z{place:+04d}.png").write_bytes(bits.randbytes(bits.randint(15_000, 30_000)))
    record = {
        "case_id": f"{number:06d}",
        "slices": ["as long as the record of a slice".ljust(900)] * PICTURES,
        "files": sha256_of_files(folder),
    }
    (folder / "case.json").write_text(json.dumps(record))
    if form == "packs":
        write_pack(folder / "png")


def timed(code: Sequence[str], folder: Path) -> Figures:
    """Run Python in a folder; return its CPU seconds, seconds and peak memory."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "scripts")}
    os.sync()
    start = time.monotonic()
    process = subprocess.Popen([sys.executable, *code], cwd=folder, env=environment, stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    if status:
        sys.exit(f"failed: {code}")
    return {
        "cpu_s": round(usage.ru_utime + usage.ru_stime, 1),
        "s": round(time.monotonic() - start, 1),
        "mib": round(usage.ru_maxrss / 1024),
    }


def measure(scratch: Path, cases: int, form: str) -> dict[str, Figures]:
    """Record a tree, push it, pull it into a clone, withdraw a case, and record and pull again."""
    here, clone = scratch / "here", scratch / "clone"
    here.mkdir()

    def git(*words: str) -> None:
        subprocess.run(["git", "-c", "user.name=perf", "-c", "user.email=perf@example.org", *words], cwd=here, check=True)

    def dvc(*words: str) -> list[str]:
        return ["-m", "dvc", *words, "-q"]

    git("init", "-q")
    timed(dvc("init"), here)
    timed(dvc("remote", "add", "-d", "store", str(scratch / "remote")), here)
    (here / "dvc.yaml").write_text(STAGES)
    if form == "packs":
        shutil.copy(ROOT / ".dvcignore", here)
    tree = here / "data" / "slices" / "many"
    for number in range(cases):
        make_case(tree / f"sub-{number:06d}", number, form)
    figures = {"record": timed(["-c", RECORD], here)}
    figures["push"] = timed(dvc("push"), here)
    git("add", "dvc.yaml", "dvc.lock", ".dvc", ".dvcignore")
    git("commit", "-q", "-m", "all cases")
    git("clone", "-q", ".", str(clone))
    figures["pull"] = timed(["-c", PULL], clone)
    figures["pull again"] = timed(["-c", PULL], clone)
    if (pulled := sha256_of_files(clone / tree.relative_to(here))) != sha256_of_files(tree):
        sys.exit(f"the clone differs: {len(pulled)} files")
    shutil.rmtree(tree / "sub-000000")
    figures["record without a case"] = timed(["-c", RECORD], here)
    figures["push without a case"] = timed(dvc("push"), here)
    git("commit", "-q", "-a", "-m", "a case withdrawn")
    subprocess.run(["git", "pull", "-q"], cwd=clone, check=True)
    figures["pull without a case"] = timed(["-c", PULL], clone)
    if (clone / "data" / "slices" / "many" / "sub-000000").exists():
        sys.exit("the withdrawn case is still in the clone")
    return figures


def main(argv: Sequence[str] | None = None) -> int:
    args = parse_args(argv)
    by_form = {}
    for form in args.forms:
        with tempfile.TemporaryDirectory() as scratch:
            by_form[form] = measure(Path(scratch), args.cases, form)
        print(json.dumps({"form": form, "cases": args.cases, **by_form[form]}), flush=True)
    if len(by_form) > 1:
        for step, before in by_form["files"].items():
            after = by_form["packs"][step]
            print(
                f"{step}: {before['cpu_s']} -> {after['cpu_s']} CPU s ({before['cpu_s'] / after['cpu_s']:.1f}x), {before['s']} -> {after['s']} s"
            )
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
