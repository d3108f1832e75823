"""Gather the de-identification of a benchmark into audit.json, the pass token; data of patients pass only if a person signed the review."""

from pathlib import Path

from neuralmedbench.deid.audit import audit_cases, audit_pictures, audit_rules
from neuralmedbench.deid.review.signature import apply_review, read_reviewed_files, read_signed
from neuralmedbench.files.cases import case_files, read_case, read_pictures, write_audit
from neuralmedbench.runtime.commands import run_command
from neuralmedbench.runtime.options import Command


def gather_audit(
    *,
    benchmark: str,
    shown: Path,
    signed: Path,
    folder: Path,
    out: Path,
    table: Path | None = None,
    config: Path = Path("config"),
) -> None:
    rules = audit_rules(config, benchmark)
    if table:
        cases = [(read_case(path), path.parent) for path in sorted(case_files(table, folder))]
        audit = audit_cases(rules, cases)
    else:
        audit = audit_pictures(rules, read_pictures(folder / "pictures.json"))
    write_audit(out, apply_review(audit, read_reviewed_files(shown), read_signed(signed)))


main = Command(gather_audit)

if __name__ == "__main__":
    raise SystemExit(run_command(main))
