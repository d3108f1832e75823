"""Gather the de-identification of a benchmark into audit.json, the pass token; data of patients pass only if a person signed the review."""

import argparse
from collections.abc import Sequence
from pathlib import Path

from neuralmedbench.deid.audit import add_audit_arguments, audit_cases, audit_pictures, audit_rules
from neuralmedbench.deid.review.signature import apply_review, read_reviewed_files, read_signed
from neuralmedbench.files.cases import case_files, read_case, read_pictures, write_audit
from neuralmedbench.runtime.commands import run_command


def parse_args(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    add_audit_arguments(parser)
    parser.add_argument("--table", type=Path, help="case table of the benchmark (kind: scans)")
    parser.add_argument("--folder", type=Path, help="folder with sub-<case>/case.json of the de-identified cases (kind: scans)")
    parser.add_argument("--pictures", type=Path, help="pictures.json (kind: pictures)")
    parser.add_argument("--shown", type=Path, required=True, help="review.json: the content of the review sheets")
    parser.add_argument("--signed", type=Path, required=True, help="signed review; need not exist")
    parser.add_argument("--out", type=Path, required=True, help="audit.json to write")
    return parser.parse_args(argv)


def main(argv: Sequence[str] | None = None) -> int:
    args = parse_args(argv)
    rules = audit_rules(args)
    if args.pictures:
        audit = audit_pictures(rules, read_pictures(args.pictures))
    else:
        paths = case_files(args.table, args.folder)
        audit = audit_cases(rules, [(read_case(path), path.parent) for path in sorted(paths)])
    write_audit(args.out, apply_review(audit, read_reviewed_files(args.shown), read_signed(args.signed)))
    return 0


if __name__ == "__main__":
    raise SystemExit(run_command(main))
