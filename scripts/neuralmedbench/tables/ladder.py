"""How far answers get on a ladder of stages, each of which counts only if those before it are right: `ladder.csv`."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from neuralmedbench.records.items import Item
from neuralmedbench.records.scores import Score
from neuralmedbench.tables.declare import ALL, MODEL, Suppression, Table, of_study
from neuralmedbench.tables.outcomes import headline
from neuralmedbench.tables.reasoning import Values, value_cells
from neuralmedbench.tables.rows import ModelRow
from neuralmedbench.tables.study import BenchmarkStudy, Study

LADDER, RETRY = "ladder", "retry"
"""The stages as they are asked first, and those of the guided retry."""

CLIMBED, IF_REACHED, ALONE = "climbed", "if_reached", "alone"
"""Measures of a stage: it and all stages before it are right; it is right, of the answers with all stages before it right; it is right, whatever
came before."""

DEPTH, RESCUED = "depth", "rescued"
"""Measures of all stages: the share of the stages climbed; of answers that did not climb the whole ladder, those that climb the whole retry."""


@dataclass(frozen=True, kw_only=True)
class LadderRow(ModelRow):
    """One measure of one stage, or of all stages, for one model."""

    part: str
    stage: str
    place: int | None = None
    measure: str
    value: float | None = None
    low: float | None = None
    high: float | None = None
    n_items: int | None = None
    n_patients: int | None = None
    samples: int | None = None


class Climb(NamedTuple):
    """One answer on one part of its ladder: the names of the stages in order, and whether each is right."""

    score: Score
    stages: tuple[str, ...]
    right: tuple[bool, ...]

    @property
    def climbed(self) -> int:
        """Number of stages up to the first that is wrong."""
        return next((place for place, one in enumerate(self.right) if not one), len(self.right))

    @property
    def complete(self) -> bool:
        """True if every stage is right."""
        return all(self.right)


def ladder_rows(study: Study) -> list[LadderRow]:
    """Rows of `ladder.csv`: structured items that are asked in stages; arm full, strategy direct.

    A stage is right if all values that it asks for are right. All stages are asked whatever the answers are, so that no prompt depends on a
    reference; that later ones do not count is decided here. An item counts as the mean of its samples, and intervals are clustered by
    patient. A missing answer does not count.
    """
    rows = []
    for benchmark in study.benchmarks.values():
        for model, scores in benchmark.scores.items():
            climbs = {part: climbs_of(benchmark, scores, retry=part == RETRY) for part in (LADDER, RETRY)}
            for part, own in climbs.items():
                for stage, place, measure, values in _measures(own, climbs[LADDER] if part == RETRY else ()):
                    cells = value_cells(study, values)
                    rows.append(
                        LadderRow(benchmark=benchmark.name, model=model, part=part, stage=stage, place=place, measure=measure, **cells)
                    )
    return rows


def climbs_of(benchmark: BenchmarkStudy, scores: Sequence[Score], *, retry: bool) -> list[Climb]:
    """Return the answers on the ladder or on its retry; none of items without such stages."""
    stages = {item.item_id: found for item in benchmark.items if (found := _stages(item, retry=retry))}
    climbs = []
    for row in headline(list(scores)):
        right = row.fields_right
        if row.item_id not in stages or row.missing or not right:
            continue
        # a stage without any reference is not part of the ladder
        known = {stage: [right[name] for name in names if name in right] for stage, names in stages[row.item_id].items()}
        named = tuple(stage for stage, found in known.items() if found)
        if named:
            climbs.append(Climb(row, named, tuple(all(known[stage]) for stage in named)))
    return climbs


def _stages(item: Item, *, retry: bool) -> dict[str, list[str]]:
    """Return the fields of each stage, in the order of the turns."""
    fields: dict[str, list[str]] = defaultdict(list)
    for turn in item.turns:
        if turn.stage and turn.retry is retry:
            fields[turn.stage] += turn.asks
    return dict(fields)


def _measures(climbs: Sequence[Climb], first: Sequence[Climb]) -> Iterator[tuple[str, int | None, str, Values]]:
    """Yield stage, place, measure and values; `first` are the answers on the ladder that a retry follows."""
    # the order of the stages is that of the longest ladder
    longest = max([climb.stages for climb in climbs], key=len) if climbs else ()
    for place, stage in enumerate(longest, start=1):
        own = [(climb, climb.stages.index(stage)) for climb in climbs if stage in climb.stages]
        yield stage, place, CLIMBED, [(climb.score, climb.climbed > at) for climb, at in own]
        yield stage, place, IF_REACHED, [(climb.score, climb.right[at]) for climb, at in own if climb.climbed >= at]
        yield stage, place, ALONE, [(climb.score, climb.right[at]) for climb, at in own]
    if climbs:
        yield ALL, None, DEPTH, [(climb.score, climb.climbed / len(climb.stages)) for climb in climbs]
    fell = {(climb.score.item_id, climb.score.repeat) for climb in first if not climb.complete}
    if climbs and first:
        rescued = [climb for climb in climbs if (climb.score.item_id, climb.score.repeat) in fell]
        yield ALL, None, RESCUED, [(climb.score, climb.complete) for climb in rescued]


TABLE = Table(
    name="ladder",
    row=LadderRow,
    rows=of_study(ladder_rows),
    suppression=Suppression(f"{MODEL} part stage measure"),
)
