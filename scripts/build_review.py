"""Write the files that a person reviews before the data of a benchmark may be used: review.html, one sheet per case, review.json."""

from pathlib import Path

from neuralmedbench.deid.audit import audit_rules
from neuralmedbench.deid.review.write import write_case_review, write_picture_review
from neuralmedbench.files.cases import read_case_table, read_pictures
from neuralmedbench.files.json_files import write_json_record
from neuralmedbench.runtime.commands import run_command
from neuralmedbench.runtime.options import Command


def build_review(
    *,
    benchmark: str,
    out: Path,
    table: Path | None = None,
    data: Path = Path("data"),
    config: Path = Path("config"),
) -> None:
    rules = audit_rules(config, benchmark)
    if table:
        cases = [row.case_id for row in read_case_table(table) if not row.exclude]
        sheets = write_case_review(rules, cases, data, out.parent)
    else:
        folder = data / "deidentified" / benchmark
        sheets = write_picture_review(rules, read_pictures(folder / "pictures.json"), folder, out.parent)
    write_json_record(out, sheets)


main = Command(build_review)

if __name__ == "__main__":
    raise SystemExit(run_command(main))
