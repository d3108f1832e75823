"""What would stop a run later, known from its configuration and tables before anything runs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import product
from pathlib import Path

from neuralmedbench.config.model import ModelConfig
from neuralmedbench.config.workflow import Run
from neuralmedbench.errors import ConfigError, DataError
from neuralmedbench.files.cases import case_table
from neuralmedbench.models.budget import check_paid
from neuralmedbench.models.destinations import check_destination
from neuralmedbench.models.registry import cannot_ask, unavailable_reason


def run_mistakes(run: Run) -> list[str]:
    """Return one line for each table of answers that cannot be used, and each model that may not be asked (`refusals`)."""
    return [*_unusable_answers(run), *refusals(run)]


def _unusable_answers(run: Run) -> Iterator[str]:
    """Yield mistakes in tables of answers, such as unknown case ids: items are built from them only after all imaging."""
    for name, benchmark in run.benchmarks.items():
        made_by_a_person = benchmark.source != "phantoms" and benchmark.answers and Path(benchmark.answers).is_file()
        if name in run.tables and made_by_a_person:
            from neuralmedbench.benchmarks.case_items import answers_of

            try:
                answers_of(benchmark, case_table(run.folder, name))
            except (ConfigError, DataError) as error:
                yield f"{name}: {error}"


def refusals(run: Run) -> list[str]:
    """Return why models and graders of a run may not or cannot be asked: host, cap, prices, packages.

    Parameters
    ----------
    run : Run
        The run. Under `replay` nothing is asked, so nothing is refused.

    Returns
    -------
    list of str
        One line per mistake. A grader whose host is not allowed, or whose key is not set, is no mistake: its grades are skipped.
    """
    return [] if run.config.replay else list(dict.fromkeys(_refusals(run)))


def _refusals(run: Run) -> Iterator[str]:
    for model in run.models.values():
        yield from _unpaid(model)
        if (why := cannot_ask(model)) and not _have_ledgers([model], run.benchmarks):
            yield why
        for name in run.benchmarks:
            if refused := _not_allowed(model, run, name):
                yield f"{name}: {refused}"
    for name, informant in run.informants.items():
        yield from _unpaid(informant)
        if (why := cannot_ask(informant)) and not _have_ledgers(run.models.values(), [name]):
            yield why
        if refused := _not_allowed(informant, run, name):
            yield f"{name}: informant: {refused}"
    for grader in run.all_graders.values():
        model_of = grader.model
        if model_of and not unavailable_reason(model_of) and any(not _not_allowed(model_of, run, name) for name in run.benchmarks):
            yield from _unpaid(model_of)


def _have_ledgers(models: Iterable[ModelConfig], benchmarks: Iterable[str]) -> bool:
    """Return True if nothing may be left to ask; if something is, its job says why it cannot."""
    return all(Path(f"data/ledger/{name}/{model.name}.jsonl").is_file() for name, model in product(benchmarks, models))


def _unpaid(model: ModelConfig) -> Iterator[str]:
    try:
        check_paid(model)
    except ConfigError as error:
        yield from map(str, error.args)


def _not_allowed(model: ModelConfig, run: Run, benchmark: str) -> str:
    try:
        check_destination(model, run.benchmarks[benchmark].allowed_destinations)
    except ConfigError as error:
        return str(error)
    return ""
