"""What models look at when they look through the scans themselves, whether they find the lesion, and what that is worth: topic `viewer`."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from neuralmedbench.records.case import Plane
from neuralmedbench.records.items import Lesion, Strategy
from neuralmedbench.records.requests import Request
from neuralmedbench.records.responses import MISSING_STATES
from neuralmedbench.records.results import PASS1_PATIENTS
from neuralmedbench.records.views import SliceView, ViewStep, view_steps
from neuralmedbench.tables.declare import ContrastRow, Measure, MeasureRow, ModelRows, of_models, topic
from neuralmedbench.tables.outcomes import FULL, Key
from neuralmedbench.tables.study import BenchmarkStudy

INVISIBLE = "isointense"
TO_LESION = "views_to_lesion"
"""The measure that is the number of a view, from 1."""
DIFFERENCE = "pass1_difference"
"""pass@1 of a model that looks for itself, minus that with the chosen slices."""
ORACLE_ITEMS = "oracle_items"
"""Slice of the items with oracle slices."""
ORACLE_DIFFERENCE = "oracle_difference"
"""pass@1 with oracle slices, minus that of the same model that looks for itself."""
GAINS = {
    DIFFERENCE: "Looking for itself, against the chosen slices",
    ORACLE_DIFFERENCE: "Shown the slices at the lesion (oracle, an upper bound), against views that are asked for",
}
"""What the differences compare."""


def shows_lesion(view: SliceView, lesion: Lesion) -> bool:
    """Return True if a view shows a lesion of known place, on a sequence that shows it.

    The slice is within half the lesion's width across it (or half its distance to the next slice, if that is more) of the lesion's centre, as
    in `benchmarks.shown_lesions`, and the centre lies within the picture.
    """
    if lesion.position_mm is None or lesion.behaviour.get(view.scan.sequence) == INVISIBLE or not view.shows(lesion.position_mm):
        return False
    slices, axis = view.scan.of_plane(view.plane), "xyz".index(Plane(view.plane).axis)
    across = lesion.extent_mm[axis] if lesion.extent_mm else lesion.size_mm or 0.0
    return abs(slices.position_mm(view.number) - lesion.position_mm[axis]) <= max(across, abs(slices.step_mm)) / 2


def viewer_measures(steps: Sequence[ViewStep], lesion: Lesion | None) -> dict[str, float | None]:
    """Return the measures of one answer by name; None where one is not defined (`docs/metrics.md`)."""
    views = [view for step in steps for view in step.views]
    placed = lesion if lesion is not None and lesion.position_mm is not None else None
    found = [shows_lesion(view, placed) for view in views] if placed else []
    wasted = [view in views[:place] or not _in_head(view) for place, view in enumerate(views)]
    return {
        "lesion_found": float(any(found)) if placed else None,
        "views_on_lesion": sum(found) / len(found) if found else None,
        TO_LESION: found.index(True) + 1.0 if any(found) else None,
        "wasted_views": sum(wasted) / len(wasted) if wasted else None,
        "corrections": sum(step.mistake is not None for step in steps) / len(steps) if steps else None,
        "views": float(len(views)),
    }


def _in_head(view: SliceView) -> bool:
    slices = view.scan.of_plane(view.plane)
    return slices.first_in_head <= view.number <= slices.last_in_head


@of_models("viewer")
def viewer_rows(made: ModelRows) -> Iterator[MeasureRow | ContrastRow]:
    """Slices that models ask for, and whether the lesion was before them.

    Measures of each answer, mean by item, then over items.
    """
    benchmark = made.benchmark
    lesions = {row.item_id: row.lesion for row in benchmark.gold}
    requests: dict[str, Request] = {row.item_id: row for row in benchmark.requests if row.viewer is not None}
    budget = max((row.viewer.max_views for row in requests.values() if row.viewer), default=1)
    places = benchmark.outcomes.places
    answers: dict[str, list[tuple[int, float | None]]] = defaultdict(list)
    for response in benchmark.responses.get(made.model, []):
        request = requests.get(response.item_id) if response.strategy == Strategy.VIEWER else None
        if request is None or request.viewer is None or response.state in MISSING_STATES or response.item_id not in places:
            continue
        # the last message is the final answer, or came after the last view
        steps = view_steps(request.viewer, (response.turns or (response.text,))[:-1], made.study.models[made.model].max_images)
        for name, value in viewer_measures(steps, lesions.get(response.item_id)).items():
            answers[name].append((places[response.item_id], value))
    for name, values in answers.items():
        most = {"views": float(budget), TO_LESION: budget + 1.0}.get(name, 1.0)
        yield made.mean(name, values, strategy=Strategy.VIEWER, most=most, least=float(name == TO_LESION))
    if answers:
        yield from _passes(made)


def oracle_arm(benchmark: BenchmarkStudy) -> str:
    """Return the arm of a benchmark that differs from `full` by oracle slices alone; empty if it has none."""
    return next((name for name, arm in benchmark.arms.items() if arm.is_oracle), "")


def _passes(made: ModelRows) -> Iterator[MeasureRow | ContrastRow]:
    """Compare pass@1 with that of the same items shown by the chosen slices, and of those that have them by oracle slices."""
    looks, fixed, oracle = made.key(FULL, Strategy.VIEWER), made.key(), made.key(oracle_arm(made.benchmark))
    asked = [key for key in (looks, fixed, oracle) if key in made.outcomes.counts]
    if looks not in asked or fixed not in asked:
        return
    yield from _compared(made, [looks, fixed], {DIFFERENCE: (looks, fixed)})
    if oracle in asked:
        differences = {DIFFERENCE: (looks, fixed), ORACLE_DIFFERENCE: (oracle, looks)}
        yield from _compared(made, [looks, fixed, oracle], differences, slice=ORACLE_ITEMS, value_of_slice="true")


def _compared(
    made: ModelRows, keys: Sequence[Key], differences: Mapping[str, tuple[Key, Key]], **cells: Any
) -> Iterator[MeasureRow | ContrastRow]:
    """Give pass@1 under each key, and the differences of pairs; only of items that are answered under all keys."""
    answered = made.outcomes.complete(*keys)
    yield from (made.passes(key, answered, **cells) for key in keys)
    yield from (made.passes_contrast(name, *pair, answered, **cells) for name, pair in differences.items())


MEASURES = (
    Measure(
        "lesion_found",
        "Lesion in a view",
        "Answers with the lesion in a view, of those whose lesion has a known place.",
    ),
    Measure(
        TO_LESION,
        "First seen in view",
        "Number of the first view that shows the lesion.",
        "number",
    ),
    Measure(
        "wasted_views",
        "Repeated or outside",
        "Views that were shown before or lie beside the brain, of all views.",
    ),
    Measure(
        PASS1_PATIENTS,
        "pass@1",
        "Answers that pass with own views, chosen or oracle slices, patients alike.",
    ),
    Measure(
        DIFFERENCE,
        "Own minus chosen",
        "pass@1 with own views minus pass@1 with the slices that the pipeline chose.",
        "points",
    ),
    Measure(
        ORACLE_DIFFERENCE,
        "Oracle minus own",
        "pass@1 with slices at the lesion, an upper bound, minus pass@1 with own views.",
        "points",
    ),
    Measure(
        "views_on_lesion",
        "Views with lesion",
        "Views that show the lesion, of all views.",
        main=False,
    ),
    Measure(
        "corrections",
        "Failed actions",
        "Actions that could not be carried out, of all actions.",
        main=False,
    ),
    Measure("views", "Views", "Views of an answer, on average.", "number", main=False),
)

TABLE = topic("viewer", viewer_rows, MEASURES)
