"""What it costs to switch from one version of a grader to another: answers that the other version has graded already."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from neuralmedbench.config.load import load_grader
from neuralmedbench.config.model import GraderConfig
from neuralmedbench.errors import ConfigError
from neuralmedbench.models.forecast import forecast_calls
from neuralmedbench.models.ledger import read_ledger
from neuralmedbench.records.requests import Request
from neuralmedbench.records.words import counted


@dataclass(frozen=True)
class GraderSwitch:
    """Calls of a grader for answers that another version of the same task has graded.

    `before` is the other grader, or the same one with another prompt, model or settings; USD is None without prices.
    """

    grader: str
    before: str
    calls: int
    usd: float | None
    most_usd: float | None


def grader_switches(
    grader: str, config: GraderConfig, requests: Sequence[Request], ledgers: Path, config_folder: Path
) -> Iterator[GraderSwitch]:
    """Yield what a grader would grade again, for every version that has graded it.

    Parameters
    ----------
    grader : str
        Its name.
    config : GraderConfig
        Its YAML file, of `kind: llm`.
    requests : sequence of Request
        What it is to grade; a request names its answer by the digest of its text.
    ledgers : Path
        Folder with the ledgers of all graders of one model on one benchmark.
    config_folder : Path
        The folder `config/`.

    Yields
    ------
    GraderSwitch
        One per version with grades of these answers.
    """
    assert config.model
    own = read_ledger(ledgers / f"{grader}.jsonl")
    for path in sorted(ledgers.glob("*.jsonl")):
        if _task_of(path.stem, config_folder) == config.task:
            graded = {(entry.item_id, entry.strategy) for entry in read_ledger(path).values()}
            # what the grader's own ledger answers is no call
            cost = forecast_calls([row for row in requests if (row.item_id, row.strategy) in graded], config.model, own)
            if cost.calls:
                yield GraderSwitch(grader, path.stem, cost.calls, cost.usd, cost.most_usd)


def _task_of(grader: str, folder: Path) -> str:
    """Return the task of a grader that asks a model; empty if its YAML file is gone or it asks none."""
    path = folder / "graders" / f"{grader}.yaml"
    try:
        config = load_grader(path) if path.is_file() else None
    except ConfigError:
        return ""
    return config.task if config is not None and config.kind == "llm" else ""


def switch_lines(switches: Iterable[GraderSwitch]) -> list[str]:
    """Say for each grader and each earlier version what grading again costs, over all models and benchmarks."""
    found: dict[tuple[str, str], list[GraderSwitch]] = {}
    for switch in switches:
        found.setdefault((switch.grader, switch.before), []).append(switch)
    return [_line(grader, before, rows) for (grader, before), rows in found.items()]


def _line(grader: str, before: str, rows: Sequence[GraderSwitch]) -> str:
    version = "it with another prompt, model or settings" if grader == before else before
    known = [(row.usd, row.most_usd) for row in rows if row.usd is not None and row.most_usd is not None]
    price = (
        f"about {sum(usd for usd, _ in known):.2f} USD, at most {sum(most for _, most in known):.2f} USD"
        if known
        else "at an unknown price"
    )
    keep = "" if grader == before else f"; the run list with {before} in its place asks none of them"
    return f"switch to {grader}: {version} graded these answers before; grading them again takes {counted(sum(row.calls for row in rows), 'call')}, {price}{keep}"
