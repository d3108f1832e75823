"""Sign the de-identification of patients' data after looking at every sheet (a command for people: no rule calls it)."""

import argparse
from collections.abc import Sequence
from pathlib import Path

from neuralmedbench.config.load import load_benchmark
from neuralmedbench.deid.review.before_signing import check_up_to_date, exclude_cases, read_decisions
from neuralmedbench.deid.review.signature import read_shown, sign, write_signed
from neuralmedbench.runtime.commands import run_command


def parse_args(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--benchmark", required=True, help="name of the benchmark")
    parser.add_argument("--reviewer", required=True, help="your initials")
    parser.add_argument("--digest", required=True, help="the 12 digits that review.html shows: they stand for exactly what you saw")
    parser.add_argument("--accept", nargs="+", default=[], metavar="CASE", help="cases that may be used")
    parser.add_argument("--accept-rest", action="store_true", help="every case that is not named may be used")
    parser.add_argument("--exclude", nargs="+", default=[], metavar="CASE=REASON", help="cases to take out; the case table says why, too")
    parser.add_argument("--config", type=Path, default=Path("config"), help="folder of the configuration")
    parser.add_argument("--data", type=Path, default=Path("data"), help="folder of the data")
    return parser.parse_args(argv)


def main(argv: Sequence[str] | None = None) -> int:
    args = parse_args(argv)
    benchmark = load_benchmark(args.config, args.benchmark)
    reviews = args.data / "reviews"
    sheets = read_shown(reviews / args.benchmark / "review.json")
    excluded = read_decisions(args.exclude, benchmark)
    signed = sign(sheets, args.digest, args.reviewer, accepted=args.accept, accept_rest=args.accept_rest, excluded=excluded)
    check_up_to_date(sheets, benchmark, args.config, args.data)
    write_signed(reviews / f"{args.benchmark}.json", signed)
    exclude_cases(args.config / "benchmarks" / f"{args.benchmark}.cases.tsv", excluded)
    print(f"signed: {len(signed.accepted)} accepted, {len(excluded)} taken out; run the pipeline again")
    return 0


if __name__ == "__main__":
    raise SystemExit(run_command(main))
