"""Gather the de-identification of a benchmark into audit.json, the pass token; data of patients pass only if a person signed the review."""

import argparse
from collections.abc import Sequence
from pathlib import Path

from neuralmedbench.config.element_rules import read_element_arguments
from neuralmedbench.deid.audit import AuditRules, audit_cases, audit_pictures, own_rules
from neuralmedbench.deid.review.signature import apply_review, read_reviewed_files, read_signed
from neuralmedbench.files.cases import case_files, read_case, read_pictures, write_audit
from neuralmedbench.files.json_files import record_adapter
from neuralmedbench.records.views import ViewRules
from neuralmedbench.runtime.commands import run_command


def parse_args(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--benchmark", required=True, help="name of the benchmark")
    parser.add_argument("--profile", choices=("pseudonymised", "safe_harbor"), required=True, help="de-identification profile")
    parser.add_argument("--subjects", choices=("phantom", "public", "patient"), required=True, help="kind of subject")
    parser.add_argument("--options", nargs="*", default=[], help="options of PS3.15 Annex E, by code")
    parser.add_argument("--elements", nargs="*", default=[], help="own rules for single elements, each in JSON")
    parser.add_argument(
        "--views", type=record_adapter(ViewRules).validate_json, help="what may be shown on request, in JSON; without it nothing"
    )
    parser.add_argument("--table", type=Path, help="case table of the benchmark (kind: scans)")
    parser.add_argument("--folder", type=Path, help="folder with sub-<case>/case.json of the de-identified cases (kind: scans)")
    parser.add_argument("--pictures", type=Path, help="pictures.json (kind: pictures)")
    parser.add_argument("--shown", type=Path, required=True, help="review.json: the content of the review sheets")
    parser.add_argument("--signed", type=Path, required=True, help="signed review; need not exist")
    parser.add_argument("--out", type=Path, required=True, help="audit.json to write")
    return parser.parse_args(argv)


def main(argv: Sequence[str] | None = None) -> int:
    args = parse_args(argv)
    rules = AuditRules(
        benchmark=args.benchmark,
        profile=args.profile,
        subjects=args.subjects,
        options=tuple(args.options),
        elements=own_rules(read_element_arguments(args.elements)),
        views=args.views,
    )
    if args.pictures:
        audit = audit_pictures(rules, read_pictures(args.pictures))
    else:
        paths = case_files(args.table, args.folder)
        audit = audit_cases(rules, [(read_case(path), path.parent) for path in sorted(paths)])
    write_audit(args.out, apply_review(audit, read_reviewed_files(args.shown), read_signed(args.signed)))
    return 0


if __name__ == "__main__":
    raise SystemExit(run_command(main))
