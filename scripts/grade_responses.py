"""Grade the open answers and dialogues of one model, and some again with planted errors; or planted answers; with one grader."""

from pathlib import Path

from pydantic import Field

from neuralmedbench.config.load import load_benchmark, load_grader
from neuralmedbench.config.section import Section
from neuralmedbench.files.cases import read_audit
from neuralmedbench.files.tables import read_by_item, read_records, write_records
from neuralmedbench.models.model_run import ModelRun, RunControl, RunLimits
from neuralmedbench.prompts.coverage import check_asked
from neuralmedbench.records.items import Gold, Item
from neuralmedbench.records.scores import Grade, response_key
from neuralmedbench.runtime.commands import run_command
from neuralmedbench.runtime.options import Command
from neuralmedbench.scoring.llm.grader_requests import grader_model, read_model_grader
from neuralmedbench.scoring.llm.model_grading import GraderRun, GraderTests, grade_table


class Settings(Section):
    """How many calls may fail, and how a grader is tested."""

    max_failed_fraction: float
    names: tuple[str, ...] = Field((), description="Names of the answering model, which are hidden from graders.")
    patients: int | None = Field(None, description="Of planted answers: patients per edit.")
    by_default: bool = Field(False, description="Of planted answers: leave a grader untested that graded before.")
    in_answers: int = Field(0, description="Of answers: patients per edit, graded again with planted errors.")


def grade(
    *, benchmark: str, grader: str, audit: Path, responses: Path, items: Path, gold: Path,
    vocabulary: Path, ledger: Path, settings: Settings, control: RunControl, out: Path,
    tested: Path | None = None, config: Path = Path("config"),
) -> None:  # fmt: skip
    check_asked((), read_audit(audit))
    own = load_grader(config / "graders" / f"{grader}.yaml")
    by: str | GraderRun = grader
    if own.kind != "rubric":
        allowed = load_benchmark(config, benchmark).allowed_destinations
        bounds = {"max_failed_fraction": settings.max_failed_fraction, "replay": control.replay}
        run = ModelRun(grader_model(grader, own), ledger=ledger, destinations=allowed, control=RunLimits.of(control), **bounds)
        by = GraderRun(read_model_grader(grader, own, settings.names), run, by_default=settings.by_default)
    in_answers = settings.in_answers if not tested or read_records(tested, Grade) else 0
    tests = GraderTests(settings.patients, in_answers)
    asked, references = read_by_item(items, Item), read_by_item(gold, Gold)
    grades = grade_table(responses, asked, references, vocabulary=vocabulary, grader=by, tests=tests)
    write_records(out, Grade, grades, key=lambda row: (response_key(row), row.criterion))


main = Command(grade)

if __name__ == "__main__":
    raise SystemExit(run_command(main))
