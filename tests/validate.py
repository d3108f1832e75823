"""Run the long series of which the tests run a slice, and keep what they said: `make validate`.

A result lies in `tests/validation/<series>.json` with the digest of the code that it was made with: the series itself and the modules that it
reaches, found by the walk of `code_hash`. The summary of the tests names each series whose code has changed since.
"""

from __future__ import annotations

import argparse
import datetime
import hashlib
import json
import subprocess
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
if str(ROOT / "scripts") not in sys.path:
    sys.path.insert(0, str(ROOT / "scripts"))

from neuralmedbench.config.code_hash import files_reached_from  # noqa: E402
from neuralmedbench.config.load import load_grader, load_model  # noqa: E402
from neuralmedbench.config.model import ModelConfig  # noqa: E402
from neuralmedbench.models.life import life_lines  # noqa: E402


@dataclass(frozen=True)
class Series:
    """A series: what it runs beside its script in `perf/` (files, or folders of modules), and the tests that run a slice of it."""

    code: tuple[str, ...]
    slice: str


SERIES = {
    "perception_split": Series(("tests/fixtures/perception.py",), "tests/unit/tables/test_decomposition.py"),
    "claims": Series(("tests/fixtures/families.py",), "tests/unit/estimates/test_step_down.py"),
    "floors": Series(("tests/fixtures/floors.py",), "tests/unit/tables/test_floors.py"),
    "confidence_intervals": Series(("tests/fixtures/coverage.py",), "tests/unit/estimates/test_coverage.py"),
    "contrast_coverage": Series(("tests/fixtures/contrast_studies.py",), "tests/unit/estimates/test_contrasts.py"),
    "title_contrast": Series(("tests/fixtures/title_contrast.py",), "tests/unit/tables/test_title.py"),
    "names_in_phrases": Series(("tests/property/test_vocabulary_property.py",), "tests/property/test_vocabulary_property.py"),
    "item_analysis": Series(("tests/fixtures/item_analysis.py",), "tests/unit/estimates/test_item_statistics.py"),
    "update_gate": Series(("tests/fixtures/updates.py",), "tests/unit/tables/test_update_gate.py"),
    "foreign_readers": Series(("tests/fixtures/exports.py",), "tests/unit/exports/test_exports.py"),
    "server_kills": Series(
        ("tests/fixtures/own_servers.py", "tests/stand_in/vllm.py", "scripts/neuralmedbench/runtime/supervisor.py"),
        "tests/unit/models/test_own_server.py",
    ),
    "batch_kills": Series(
        ("tests/fixtures/batch_kills.py", "tests/fixtures/anthropic_batches.py", "tests/fixtures/gemini_batches.py"),
        "tests/unit/models/test_batch.py",
    ),
    "deface_phantoms": Series(("tests/fixtures/face.py",), "tests/unit/deid/test_deface.py"),
    "crash_rounds": Series(
        ("tests/fixtures/crashes.py", "tests/fixtures/loopback.py", "scripts/run_inference.py", "scripts/neuralmedbench/runtime"),
        "tests/workflow/test_crashes.py",
    ),
    "long_tests": Series(
        ("Snakefile", "rules", "scripts", "tests"),
        "tests/workflow/test_workflow.py",
    ),
}
"""By the name of the script in `perf/`; the quickest comes first."""


def digest(name: str, root: Path = ROOT) -> str:
    """Digest of the code of a series: the first 16 hex digits of a SHA-256."""
    named = {root / "perf" / f"{name}.py"}
    for place in SERIES[name].code:
        path = root / place
        named |= {file for file in path.rglob("*") if file.suffix in {".py", ".smk"}} if path.is_dir() else {path}
    modules = {file for file in named if file.suffix == ".py"}
    made = hashlib.sha256()
    for file in sorted(files_reached_from(root / "scripts", modules) | named):
        made.update(file.relative_to(root).as_posix().encode() + b"\0" + file.read_bytes() + b"\0")
    return made.hexdigest()[:16]


def result_file(name: str, root: Path = ROOT) -> Path:
    """Where the result of a series lies."""
    return root / "tests" / "validation" / f"{name}.json"


def outdated(names: Iterable[str] = SERIES, root: Path = ROOT) -> Iterator[tuple[str, str]]:
    """Give the series without a result of the code of today, each with the reason."""
    for name in names:
        path = result_file(name, root)
        if not path.is_file():
            yield name, "was never run"
        elif json.loads(path.read_text(encoding="utf-8"))["code"] != digest(name, root):
            yield name, "was run with other code"


def run(name: str) -> bool:
    """Run a series and keep what it said; whether it passed."""
    code = digest(name)
    done = subprocess.run([sys.executable, f"perf/{name}.py"], cwd=ROOT, stdout=subprocess.PIPE, text=True, check=False)
    result = {"code": code, "passed": done.returncode == 0, "output": done.stdout.splitlines()}
    result_file(name).parent.mkdir(exist_ok=True)
    result_file(name).write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
    return done.returncode == 0


def shipped_models() -> list[ModelConfig]:
    """Models of the shipped files, and those of the graders, each by the name of its file."""
    models = [load_model(path) for path in sorted((ROOT / "config/models").glob("*.yaml"))]
    graders = {path.stem: load_grader(path).model for path in sorted((ROOT / "config/graders").glob("*.yaml"))}
    return [*models, *(model.named(name) for name, model in graders.items() if model)]


def main(argv: Sequence[str] | None = None) -> int:
    """Run the series that are named, or those that are out of date."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("series", nargs="*", help=f"{', '.join(SERIES)}; those that are out of date when none is named")
    parser.add_argument("--list", action="store_true", help="say what is out of date and run nothing")
    args = parser.parse_args(argv)
    if unknown := sorted(set(args.series) - set(SERIES)):
        parser.error(f"no series is called {', '.join(unknown)}")
    old = dict(outdated())
    for name in SERIES:
        print(f"{name} {old.get(name, 'is up to date')}", flush=True)
    print(*life_lines(shipped_models(), datetime.datetime.now(datetime.UTC).date()), sep="\n", flush=True)
    if args.list:
        return 0
    failed = [name for name in args.series or old if not run(name)]
    for name in failed:
        print(f"{name} FAILED: {result_file(name).relative_to(ROOT)} says what it found", file=sys.stderr)
    return int(bool(failed))


if __name__ == "__main__":
    raise SystemExit(main())
