"""Build the report: one offline HTML file from tables, figures and cases."""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from neuralmedbench.files.tables import gc_paused
from neuralmedbench.report.page import incomplete_line, write_report
from neuralmedbench.report.source import read_source
from neuralmedbench.runtime.commands import run_command


def parse_args(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--root", type=Path, default=Path(), help="repository root")
    parser.add_argument("--results", type=Path, required=True, help="folder of tables, figures, cases and provenance.json")
    parser.add_argument("--benchmarks", nargs="*", default=[], help="run list")
    parser.add_argument("--models", nargs="*", default=[], help="run list")
    parser.add_argument("--graders", nargs="*", default=[], help="run list")
    parser.add_argument("--published", nargs="*", default=[], help="names of the published results to compare with")
    parser.add_argument("--profile", choices=("internal", "public"), default="internal")
    parser.add_argument("--max-megabytes", type=float, default=25.0, help="refuse a larger report")
    parser.add_argument("--out", type=Path, required=True)
    return parser.parse_args(argv)


def main(argv: Sequence[str] | None = None) -> int:
    args = parse_args(argv)
    lists = {"benchmarks": args.benchmarks, "models": args.models, "graders": args.graders, "published": args.published}
    with gc_paused():
        source = read_source(args.root, args.results, lists, profile=args.profile, max_megabytes=args.max_megabytes)
        remarks = write_report(args.out, source, args.max_megabytes)
    print(*remarks, incomplete_line(source), sep="\n", file=sys.stderr)
    return 0


if __name__ == "__main__":
    raise SystemExit(run_command(main))
