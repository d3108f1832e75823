"""How far answers get on a ladder of stages, each of which counts only if those before it are right: topic `ladder`."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from neuralmedbench.records.items import Item
from neuralmedbench.tables.declare import ALL, Measure, MeasureRow, ModelRows, no_labels, of_models, topic
from neuralmedbench.tables.reasoning import Values

LADDER, RETRY = "ladder", "retry"
"""The stages as they are asked first, and those of the guided retry."""

CLIMBED, IF_REACHED, ALONE = "climbed", "if_reached", "alone"
"""Measures of a stage: it and all stages before it are right; it is right, of the answers with all stages before it right; it is right, whatever
came before."""

DEPTH, RESCUED = "depth", "rescued"
"""Measures of all stages: the share of the stages climbed; of answers that did not climb the whole ladder, those that climb the whole retry."""


class Climb(NamedTuple):
    """One answer on one part of its ladder: its item and number, the names of the stages in order, and whether each is right."""

    place: int
    repeat: int
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


@of_models("ladder")
def ladder_rows(made: ModelRows) -> Iterator[MeasureRow]:
    """Stages of a question (`value_of_slice`), each of which builds on those before it.

    A stage is right if all values that it asks for are right. All stages are asked whatever the
    answers are, so that no prompt depends on a reference; that later ones do not count is decided
    here. A missing answer does not count. `slice` is the ladder or its retry.
    """
    climbs = {part: climbs_of(made, retry=part == RETRY) for part in (LADDER, RETRY)}
    for part, own in climbs.items():
        for stage, measure, values in _measures(own, climbs[LADDER] if part == RETRY else ()):
            yield made.mean(measure, values, slice=part, value_of_slice=stage)


def climbs_of(made: ModelRows, *, retry: bool) -> list[Climb]:
    """Return the answers on the ladder or on its retry; none of items without such stages."""
    stages = [_stages(item, retry=retry) for item in made.outcomes.items]
    climbs = []
    for place, row in made.answers.there.rows():
        right = row.fields_right
        if not stages[place] or not right:
            continue
        # a stage without any reference is not part of the ladder
        known = {stage: [right[name] for name in names if name in right] for stage, names in stages[place].items()}
        named = tuple(stage for stage, found in known.items() if found)
        if named:
            climbs.append(Climb(place, row.repeat, named, tuple(all(known[stage]) for stage in named)))
    return climbs


def _stages(item: Item, *, retry: bool) -> dict[str, list[str]]:
    """Return the fields of each stage, in the order of the turns."""
    fields: dict[str, list[str]] = defaultdict(list)
    for turn in item.turns:
        if turn.stage and turn.retry is retry:
            fields[turn.stage] += turn.asks
    return dict(fields)


def _measures(climbs: Sequence[Climb], first: Sequence[Climb]) -> Iterator[tuple[str, str, Values]]:
    """Yield stage, measure and values; `first` are the answers on the ladder that a retry follows."""
    # the order of the stages is that of the longest ladder
    longest = max([climb.stages for climb in climbs], key=len) if climbs else ()
    for stage in longest:
        own = [(climb, climb.stages.index(stage)) for climb in climbs if stage in climb.stages]
        yield stage, CLIMBED, [(climb.place, climb.climbed > at) for climb, at in own]
        yield stage, IF_REACHED, [(climb.place, climb.right[at]) for climb, at in own if climb.climbed >= at]
        yield stage, ALONE, [(climb.place, climb.right[at]) for climb, at in own]
    if climbs:
        yield ALL, DEPTH, [(climb.place, climb.climbed / len(climb.stages)) for climb in climbs]
    fell = {(climb.place, climb.repeat) for climb in first if not climb.complete}
    if climbs and first:
        rescued = [climb for climb in climbs if (climb.place, climb.repeat) in fell]
        yield ALL, RESCUED, [(climb.place, climb.complete) for climb in rescued]


MEASURES = (
    Measure(CLIMBED, "Right up to here", "Answers with this stage and all before it right."),
    Measure(
        IF_REACHED,
        "Right, if reached",
        "Answers with this stage right, of those with all stages before it right.",
    ),
    Measure(ALONE, "Right by itself", "Answers with this stage right, whatever came before."),
    Measure(
        DEPTH,
        "Stages climbed",
        "Stages before the first wrong one, as a share of the stages of the item.",
    ),
    Measure(
        RESCUED,
        "Rescued by retry",
        "Answers whose whole retry is right, of those that did not climb the whole ladder.",
    ),
)

TABLE = topic("ladder", ladder_rows, MEASURES, labels=no_labels)
