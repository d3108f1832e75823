"""Record where the numbers come from: code, environment, models, prompts and inputs."""

import argparse
from collections.abc import Sequence
from pathlib import Path

from neuralmedbench.files.json_files import write_json
from neuralmedbench.report.provenance import gather_provenance
from neuralmedbench.runtime.commands import run_command


def parse_args(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--root", type=Path, default=Path(), help="repository root")
    parser.add_argument("--results", type=Path, default=Path("results"), help="results of the run, relative to the root (default: results)")
    parser.add_argument("--benchmarks", nargs="*", default=[], help="run list")
    parser.add_argument("--models", nargs="*", default=[], help="run list")
    parser.add_argument("--vocabulary", type=Path, required=True, help="vocabulary, relative to the root")
    parser.add_argument("--inputs", type=Path, nargs="*", default=[], help="files whose digests are recorded, relative to the root")
    parser.add_argument("--bootstrap-seed", type=int, required=True)
    parser.add_argument("--configfiles", nargs="*", default=[], help="configuration files given on the command line")
    parser.add_argument("--limited", action="store_true", help="a run of few answers (`limit`)")
    parser.add_argument("--out", type=Path, required=True)
    return parser.parse_args(argv)


def main(argv: Sequence[str] | None = None) -> int:
    args = parse_args(argv)
    provenance = gather_provenance(
        args.root,
        benchmarks=args.benchmarks,
        models=args.models,
        vocabulary=args.vocabulary,
        inputs=args.inputs,
        seeds={"bootstrap": args.bootstrap_seed},
        configfiles=args.configfiles,
        results=args.results,
        limited=args.limited,
    )
    write_json(args.out, provenance)
    return 0


if __name__ == "__main__":
    raise SystemExit(run_command(main))
