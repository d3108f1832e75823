"""Models of a run that the engine would refuse to ask: known from the configuration, before anything runs."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from neuralmedbench.config.model import ModelConfig
from neuralmedbench.config.workflow import Run
from neuralmedbench.errors import ConfigError
from neuralmedbench.models.budget import check_paid
from neuralmedbench.models.destinations import check_destination
from neuralmedbench.models.registry import missing_packages, unavailable_reason


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
        # with a ledger it may be that nothing is left to ask; if something is, its job says this line
        if (lacking := missing_packages(model)) and not all(
            Path(f"data/ledger/{name}/{model.name}.jsonl").is_file() for name in run.benchmarks
        ):
            yield lacking
        for name in run.benchmarks:
            if refused := _not_allowed(model, run, name):
                yield f"{name}: {refused}"
    for name, informant in run.informants.items():
        yield from _unpaid(informant)
        if lacking := missing_packages(informant):
            yield lacking
        if refused := _not_allowed(informant, run, name):
            yield f"{name}: informant: {refused}"
    for grader in run.all_graders.values():
        model_of = grader.model
        if model_of and not unavailable_reason(model_of) and any(not _not_allowed(model_of, run, name) for name in run.benchmarks):
            yield from _unpaid(model_of)


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
