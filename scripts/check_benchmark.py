"""Check a benchmark of your own before you run it (a command for people: no rule calls it), and look at what a model would be sent.

Reads its yaml, case table, answers and whatever of it is made already; writes one offline page. A mistake is one line.
"""

import argparse
from collections.abc import Sequence
from pathlib import Path

from neuralmedbench.benchmarks.check import check_benchmark, check_page
from neuralmedbench.config.load import wildcard
from neuralmedbench.files.vocabulary import read_vocabulary
from neuralmedbench.runtime.atomic_write import write_text
from neuralmedbench.runtime.commands import run_command


def parse_args(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--benchmark", required=True, help="name of the benchmark: config/benchmarks/<benchmark>.yaml")
    parser.add_argument("--config", type=Path, default=Path("config"), help="folder of the configuration")
    parser.add_argument("--data", type=Path, default=Path("data"), help="folder of the data")
    parser.add_argument("--vocabulary", type=Path, default=Path("config/vocabulary/neurology.yaml"), help="vocabulary of diagnoses")
    parser.add_argument("--out", type=Path, help="page to write; data/checks/<benchmark>.html when absent")
    return parser.parse_args(argv)


def main(argv: Sequence[str] | None = None) -> int:
    args = parse_args(argv)
    name = wildcard(args.benchmark)
    found = check_benchmark(name, args.config, args.data, read_vocabulary(args.vocabulary))
    out = args.out or args.data / "checks" / f"{name}.html"
    write_text(out, check_page(found, args.data.parent))
    for what, said in found.rows:
        print(f"{what}: {said}")
    for text in found.warnings:
        print(f"look at this: {text}")
    print(f"written: {out.as_posix()}")
    return 0


if __name__ == "__main__":
    raise SystemExit(run_command(main))
