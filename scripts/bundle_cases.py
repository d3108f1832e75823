"""Bundle the cases of one benchmark for the case browser of the report."""

from collections.abc import Sequence
from pathlib import Path

from neuralmedbench.config.section import Section
from neuralmedbench.files.tables import gc_paused, read_records, write_records
from neuralmedbench.files.vocabulary import read_vocabulary
from neuralmedbench.records.bundle import CaseBundle
from neuralmedbench.records.items import Gold, Item, ShownLesion
from neuralmedbench.records.requests import Request
from neuralmedbench.records.responses import Response, current_rows
from neuralmedbench.records.scores import Grade, Score
from neuralmedbench.runtime.commands import run_command
from neuralmedbench.runtime.options import Command
from neuralmedbench.tables.bundle import AskedOf, bundle_cases


class Settings(Section):
    """Whether items that no model was asked are left out (limited runs)."""

    asked_alone: bool = False


def bundle(
    *,
    items: Path,
    gold: Path,
    responses: Sequence[Path],
    scores: Sequence[Path],
    grades: Sequence[Path],
    settings: Settings,
    out: Path,
    lesions: Path | None = None,
    prompts: Path | None = None,
    vocabulary: Path | None = None,
) -> None:
    with gc_paused():
        answers = [row for path in responses for row in current_rows(read_records(path, Response))]
        asked = {row.item_id for row in answers}
        cases = bundle_cases(
            [row for row in read_records(items, Item) if not settings.asked_alone or row.item_id in asked],
            read_records(gold, Gold),
            answers,
            [row for path in scores for row in read_records(path, Score)],
            [row for path in grades for row in read_records(path, Grade)],
            known=AskedOf(
                lesions=read_records(lesions, ShownLesion) if lesions else [],
                requests=read_records(prompts, Request) if prompts else [],
                vocabulary=read_vocabulary(vocabulary) if vocabulary else None,
            ),
        )
        write_records(out, CaseBundle, cases, key=lambda case: case.item_id)


main = Command(bundle)

if __name__ == "__main__":
    raise SystemExit(run_command(main))
