"""Write the files that a person reviews before the data of a benchmark may be used: review.html, one sheet per case, review.json."""

import argparse
from collections.abc import Sequence
from pathlib import Path

from neuralmedbench.deid.audit import add_audit_arguments, audit_rules
from neuralmedbench.deid.review.write import write_case_review, write_picture_review
from neuralmedbench.files.cases import read_case_table, read_pictures
from neuralmedbench.files.json_files import write_json_record
from neuralmedbench.runtime.commands import run_command


def parse_args(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    add_audit_arguments(parser)
    parser.add_argument("--table", type=Path, help="case table of the benchmark (kind: scans)")
    parser.add_argument("--pictures", type=Path, help="pictures.json (kind: pictures)")
    parser.add_argument("--data", type=Path, default=Path("data"), help="folder of the data")
    parser.add_argument("--out", type=Path, required=True, help="review.json to write; review.html and sheets/ are written next to it")
    return parser.parse_args(argv)


def main(argv: Sequence[str] | None = None) -> int:
    args = parse_args(argv)
    rules = audit_rules(args)
    out: Path = args.out.parent
    if args.pictures:
        sheets = write_picture_review(rules, read_pictures(args.pictures), args.pictures.parent, out)
    else:
        cases = [row.case_id for row in read_case_table(args.table) if not row.exclude]
        sheets = write_case_review(rules, cases, args.data, out)
    write_json_record(args.out, sheets)
    return 0


if __name__ == "__main__":
    raise SystemExit(run_command(main))
