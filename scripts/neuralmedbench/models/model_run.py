"""One model in one run: the model, its limits and its ledger.

Limits change no answer, so changing them replans nothing.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field
from pathlib import Path

from pydantic import Field

from neuralmedbench.config.load import group_limit
from neuralmedbench.config.model import ModelConfig
from neuralmedbench.config.pipeline import PipelineConfig, RateLimit
from neuralmedbench.config.section import Section
from neuralmedbench.models.budget import Budget, SpendTotals, read_spend_log
from neuralmedbench.models.conversation import ViewSource, stored_view
from neuralmedbench.models.rate_limits import Pace, RateLimits
from neuralmedbench.records.responses import Response
from neuralmedbench.records.vocabulary import Vocabulary
from neuralmedbench.runtime.one_writer import this_run

SPENDING = Path("data/spending")
"""Folder of the spending and rate logs. Like the ledgers it belongs to this copy of the project, so jobs on several machines share it;
unlike them it is not recorded: what one group spent does not count against the caps of another group that pulls its run."""
MONEY = "money.jsonl"
LEDGERS, OF_GRADERS = "ledger", "graders"


def place_of(ledger: Path) -> tuple[str, str, str]:
    """Return benchmark, model, and grader or empty, of a ledger.

    Examples
    --------
    >>> place_of(Path("data/ledger/demo/fusion.jsonl")), place_of(Path("data/ledger/demo/graders/fusion/judge.jsonl"))
    (('demo', 'fusion', ''), ('demo', 'fusion', 'judge'))
    """
    folder = ledger.parent
    if folder.parent.name == OF_GRADERS:
        return folder.parent.parent.name, folder.name, ledger.stem
    return folder.name, ledger.stem, ""


def spent_here() -> SpendTotals:
    """Return what was spent on the ledgers of this project so far."""
    return read_spend_log(spending_folder(Path("data/ledger/any")) / MONEY)


def spending_folder(ledger: Path, folder: Path = SPENDING) -> Path:
    """Return the folder of the spending and rate logs that belong to a ledger.

    Copies of the project that share ledgers by a link share their caps and limits too: the logs are those of the copy that has the ledgers,
    or stand in the folder that is linked to.

    Parameters
    ----------
    ledger : Path
        The ledger, or any path in `data/ledger`.
    folder : Path
        Folder of this copy, for ledgers of its own.

    Returns
    -------
    Path
        `folder`, or one beside the ledgers that are linked to.
    """
    given, real = ledger.absolute(), ledger.resolve()
    root = next((place for place in given.parents if place.name == LEDGERS), None)
    if root is None or real.is_relative_to(root.parent.resolve() / LEDGERS):
        return folder
    linked = root.resolve()
    home = linked if real.is_relative_to(linked) else next((place for place in real.parents if place.name == LEDGERS), real.parent)
    return (home.parent if home.name == LEDGERS else home) / SPENDING.name


class RunControl(Section):
    """What bounds the calls of a run and changes no answer: keys of the configuration."""

    replay: bool = False
    max_run_cost_usd: float | None = None
    rate_limits: dict[str, RateLimit] = Field(default_factory=dict)


@dataclass(frozen=True)
class RunLimits:
    """Spending cap and rate limits of a run.

    Attributes
    ----------
    max_run_cost_usd : float or None
        Cap of the run, over all models and graders.
    rate_limits : mapping of str to RateLimit
        Rate limits by group of models.
    folder : Path or None
        Folder of the spending and rate logs; None: caps and limits hold within this process only.
    """

    max_run_cost_usd: float | None = None
    rate_limits: Mapping[str, RateLimit] = field(default_factory=dict)
    folder: Path | None = None

    @classmethod
    def of(cls, config: PipelineConfig | RunControl, folder: Path = SPENDING) -> RunLimits:
        """Take the limits from the configuration."""
        return cls(config.max_run_cost_usd, config.rate_limits, folder)

    def budget(self, model: ModelConfig, ledger: Path, root: Path = Path()) -> Budget:
        """Return the budget of a model with this ledger; see `models.budget`."""
        log = spending_folder(ledger, self.folder) / MONEY if self.folder else None
        before = self.folder / MONEY if self.folder else None  # what this copy spent before its ledgers became a link
        return Budget(model, log=log, before=before, run=this_run(), run_cap=self.max_run_cost_usd, root=root)

    def limits(self, model: ModelConfig, ledger: Path, stop: asyncio.Event) -> RateLimits:
        """Return the rate limits of a model's group; see `models.rate_limits`.

        Raises
        ------
        ConfigError
            If the model's group is not one of `rate_limits`.
        """
        limit = group_limit(model, self.rate_limits)
        log = spending_folder(ledger, self.folder) / "rates" / f"{model.rate_limit_group}.jsonl" if self.folder else None
        pace = Pace(model.concurrency) if model.backend in ("litellm", "server") else None
        return RateLimits(model.rate_limit_group, limit, log, stop=stop, pace=pace)


UNLIMITED = RunLimits()
"""Only the models' own caps, and those within this process only."""


@dataclass(frozen=True)
class ModelRun:
    """One model in one run.

    Attributes
    ----------
    model : ModelConfig
        The model's yaml, with its name.
    ledger : Path
        Ledger file of this benchmark and model, one writer at a time.
    destinations : sequence of str
        `allowed_destinations` of the benchmark.
    max_failed_fraction : float or None
        A larger share of failed answers is an error, raised after all other answers are in the ledger; None: never.
    root : Path
        Folder to which the paths of pictures are relative.
    vocabulary : Vocabulary or None
        For built-in models.
    replay : bool
        Take every answer from the ledger and make no call; see `models.replay`.
    first_repeat : int
        Number of the first sample. Each sample number has its own key and, if the model has a seed, its own seed: with unused
        numbers everything is asked again.
    control : RunLimits
        Caps and rate limits of the run; by default the model's own cap, within this process only.
    views : callable
        Source of the slices that a model asks for (strategy `viewer`); by default those that were cut before.
    why_unread : callable or None
        Returns why an answer cannot be read, empty if it can: after the first of these a warning is printed. None: nobody is warned.
    informant : ModelConfig or None
        The model that tells the facts under the strategy `ask`, where the requests have one; its calls are in the same ledger, and its own
        caps, limits and destination hold for it.
    """

    model: ModelConfig
    _: KW_ONLY
    ledger: Path
    destinations: Sequence[str]
    max_failed_fraction: float | None
    root: Path = Path()
    vocabulary: Vocabulary | None = None
    replay: bool = False
    first_repeat: int = 0
    control: RunLimits = UNLIMITED
    views: ViewSource = stored_view
    why_unread: Callable[[Response], str] | None = None
    informant: ModelConfig | None = None
