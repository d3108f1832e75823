"""What would stop a run later, known from its configuration and tables before anything runs."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from neuralmedbench.config.workflow import Run
from neuralmedbench.errors import ConfigError, DataError
from neuralmedbench.models.refusals import refusals


def run_mistakes(run: Run) -> list[str]:
    """Return one line for each table of answers that cannot be used, and each model that may not be asked (`models.refusals`)."""
    return [*_unusable_answers(run), *refusals(run)]


def _unusable_answers(run: Run) -> Iterator[str]:
    """Yield mistakes in tables of answers, such as unknown case ids: items are built from them only after all imaging."""
    for name, benchmark in run.benchmarks.items():
        made_by_a_person = benchmark.source != "phantoms" and benchmark.answers and Path(benchmark.answers).is_file()
        if name in run.tables and made_by_a_person:
            from neuralmedbench.benchmarks.case_items import answers_of

            try:
                answers_of(benchmark, run.folder / "benchmarks" / f"{name}.cases.tsv")
            except (ConfigError, DataError) as error:
                yield f"{name}: {error}"
