"""Sign the de-identification of patients' data after looking at review.html (a command for people)."""

import argparse
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

from neuralmedbench.deid.audit import SignedReview, review_digest, text_digests, write_review
from neuralmedbench.errors import DeidentificationError
from neuralmedbench.io.cases import read_audit, read_case
from neuralmedbench.io.commands import run_command


def parse_args(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--benchmark", required=True, help="name of the benchmark")
    parser.add_argument("--reviewer", required=True, help="your initials")
    parser.add_argument("--digest", required=True, help="the 12 digits that review.html shows: they stand for exactly what you saw")
    parser.add_argument("--data", type=Path, default=Path("data"), help="folder of the data")
    return parser.parse_args(argv)


def main(argv: Sequence[str] | None = None) -> int:
    args = parse_args(argv)
    folder = args.data / "deidentified" / args.benchmark
    audit = read_audit(folder / "audit.json")
    if audit.state == "failed":
        message = f"{args.benchmark}: the audit failed ({audit.reason}); a signature cannot change that"
        raise DeidentificationError(message)
    cases = sorted(set(audit.covered.values()))  # a case that was excluded since may still lie in the folder, and is no part of the sheet
    digest = review_digest(audit, text_digests([read_case(folder / f"sub-{case}" / "case.json") for case in cases]))
    if len(args.digest) < 12 or not digest.startswith(args.digest):
        message = "the digest is not that of the data as it is now: open review.html again and take the digits from there"
        raise DeidentificationError(message)
    signed = SignedReview(benchmark=args.benchmark, digest=digest, reviewer=args.reviewer, signed_on=f"{datetime.now(UTC):%Y-%m-%d}")
    write_review(args.data / "reviews" / f"{args.benchmark}.json", signed)
    print("signed; run the pipeline again")
    return 0


if __name__ == "__main__":
    raise SystemExit(run_command(main))
