"""Gather the de-identification of a benchmark into audit.json, the pass token, and review.html for the person who signs."""

import argparse
from collections.abc import Sequence
from pathlib import Path

from neuralmedbench.deid.audit import apply_review, audit_cases, audit_pictures, read_review, review_digest, text_digests
from neuralmedbench.deid.review import case_section, picture_section, review_page
from neuralmedbench.io.cases import case_files, read_case, read_pictures, write_audit
from neuralmedbench.io.commands import run_command
from neuralmedbench.io.files import write_text


def parse_args(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--benchmark", required=True, help="name of the benchmark")
    parser.add_argument("--profile", choices=("pseudonymised", "safe_harbor"), required=True, help="de-identification profile")
    parser.add_argument("--subjects", choices=("phantom", "public", "patient"), required=True, help="whose data it is")
    parser.add_argument("--table", type=Path, help="case table of the benchmark (kind: scans)")
    parser.add_argument("--folder", type=Path, help="folder with sub-<case>/case.json of the de-identified cases (kind: scans)")
    parser.add_argument("--pictures", type=Path, help="pictures.json (kind: pictures)")
    parser.add_argument("--signed", type=Path, required=True, help="signed review; need not exist")
    parser.add_argument("--out-review", type=Path, required=True, help="review.html to write")
    parser.add_argument("--out", type=Path, required=True, help="audit.json to write")
    return parser.parse_args(argv)


def main(argv: Sequence[str] | None = None) -> int:
    args = parse_args(argv)
    if args.pictures:
        manifest = read_pictures(args.pictures)
        audit, texts = audit_pictures(args.profile, args.subjects, manifest), list[str]()
        body = [picture_section(manifest, args.pictures.parent)]
    else:
        cases = sorted(((read_case(path), path.parent) for path in case_files(args.table, args.folder)), key=lambda case: case[0].case_id)
        records = [case for case, _ in cases]
        audit, texts = audit_cases(args.benchmark, args.profile, args.subjects, records), text_digests(records)
        body = [case_section(case, folder) for case, folder in cases]
    digest = review_digest(audit, texts)
    audit = apply_review(audit, digest, read_review(args.signed))
    write_text(args.out_review, review_page(audit, digest, body))
    write_audit(args.out, audit)
    return 0


if __name__ == "__main__":
    raise SystemExit(run_command(main))
