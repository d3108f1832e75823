"""What a run left without an answer or a grade: final for Snakemake, until `nmb run retry` asks again."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from neuralmedbench.config.workflow import Run
from neuralmedbench.files.tables import read_records
from neuralmedbench.records.responses import MISSING_STATES, Response
from neuralmedbench.records.scores import Grade, GradeState


@dataclass(frozen=True)
class IncompleteFile:
    """One table with rows that are missing because of us: its path, and how many of them in which state."""

    path: str
    states: dict[str, int]


def incomplete_files(run: Run, root: Path = Path()) -> list[IncompleteFile]:
    """Find the tables of responses and grades that have missing rows.

    Parameters
    ----------
    run : Run
        The run; what it has not made yet is passed over, Snakemake makes that anyway.
    root : Path
        The repository root.

    Returns
    -------
    list of Incomplete
        Responses first, in the order of the run lists.
    """
    pairs = [(benchmark, model) for benchmark in run.benchmarks for model in run.models]
    # nobody can be asked again for what a reader was not shown
    responses = [f"results/responses/{benchmark}/{model}.parquet" for benchmark, model in pairs if not run.models[model].reader]
    grades = [f"results/grades/{benchmark}/{model}/{grader}.parquet" for benchmark, model in pairs for grader in run.all_graders]
    found = [IncompleteFile(path, _missing_answers(root / path)) for path in responses if (root / path).is_file()]
    found += [IncompleteFile(path, _missing_grades(root / path)) for path in grades if (root / path).is_file()]
    return [entry for entry in found if entry.states]


def _missing_answers(path: Path) -> dict[str, int]:
    return dict(Counter(str(row.state) for row in read_records(path, Response) if row.state in MISSING_STATES))


def _missing_grades(path: Path) -> dict[str, int]:
    return dict(Counter(str(row.state) for row in read_records(path, Grade) if row.state is not GradeState.OK))


def incomplete_line(found: list[IncompleteFile]) -> str:
    """Say in one line how much is missing; empty when nothing is."""
    words = []
    for kind, folder in (("answers", "results/responses/"), ("grades", "results/grades/")):
        states: Counter[str] = Counter()
        for entry in found:
            if entry.path.startswith(folder):
                states.update(entry.states)
        if states:
            words.append(f"{states.total()} {kind} ({', '.join(f'{count} {state}' for state, count in sorted(states.items()))})")
    return f"missing: {' and '.join(words)}; `nmb run retry` asks for them again" if words else ""
