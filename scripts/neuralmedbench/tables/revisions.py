"""Changes between two revisions of a model: topic `revisions`, and the sentences about them."""

from __future__ import annotations

from collections.abc import Iterator

from neuralmedbench.estimates.contrasts import Difference
from neuralmedbench.records.results import PASS1_PATIENTS
from neuralmedbench.tables.changes import HEADLINE, PASSED, PairedItems, Side, paired_items
from neuralmedbench.tables.declare import Cells, ContrastRow, CountRow, Measure, MeasureRow, ModelRows, of_models, topic

Row = MeasureRow | ContrastRow | CountRow
SAME_TEXT, DIFFERENCE, GAINED, LOST = "same_text", "pass1_difference", "gained", "lost"


@of_models("revisions")
def revision_rows(made: ModelRows) -> Iterator[Row]:
    """Revisions of a model: the present one against the one before.

    What is compared, passes or leading diagnoses, stands in `value_of_slice`. For every model whose
    ledger holds answers of an earlier revision. `source` and `note` name the revisions.
    """
    benchmark, model = made.benchmark, made.model
    if earlier := benchmark.earlier.get(model):
        old = Side.of(earlier, benchmark.earlier_responses[model])
        new = Side.of(benchmark.scores[model], benchmark.responses[model])
        if sides := dict(paired_items(old, new)).get(HEADLINE):
            yield from _rows(made, sides, old.revision, new.revision)


def _rows(made: ModelRows, sides: PairedItems, old: str, new: str) -> Iterator[Row]:
    both = f"{new} against {old}"
    for metric, (part, answers) in sides.answer_changes(made.study.vocabulary, made.study.settings).items():
        cells: Cells = {"slice": "compared", "value_of_slice": metric}
        size: Cells = cells | sides.sizes(part)
        # where items have repeats, answers are compared over these alone
        repeated: Cells = cells | sides.sizes(part & sides.repeated if answers.repeated else part)
        yield made.plain(SAME_TEXT, value=sides.same_answers(part), source=both, **size)
        yield made.plain("disagreement", value=answers.disagreement, source=both, **repeated)
        if answers.repeated:
            yield made.plain("noise_floor", value=answers.floor, source=both, **repeated)
            yield made.difference("excess", Difference(answers.excess, p_value=answers.p_value), note=both, **repeated)
        if metric == PASSED:
            before, now, change = sides.pass_change(made.study.settings)
            yield made.plain("pass1_before", value=before, source=old, **size)
            yield made.plain(PASS1_PATIENTS, value=now, source=new, **size)
            yield made.difference(DIFFERENCE, change, note=both, **size)
            yield made.count(GAINED, change.only_first or 0, size["n_items"], **size)
            yield made.count(LOST, change.only_second or 0, size["n_items"], **size)


MEASURES = (
    Measure(
        "disagreement",
        "Old, new differ",
        "Chance that an old and a new answer to an item differ.",
    ),
    Measure(
        "noise_floor",
        "Noise floor",
        "Chance that two answers of one revision to an item differ, mean of both revisions.",
    ),
    Measure("excess", "Beyond noise", "`disagreement` minus `noise_floor`.", "points"),
    Measure(
        "pass1_before",
        "pass@1 before",
        "Answers of the earlier revision that pass, patients alike.",
    ),
    Measure(
        PASS1_PATIENTS,
        "pass@1 now",
        "Answers of the present revision that pass, on the same items, patients alike.",
    ),
    Measure(
        DIFFERENCE,
        "New minus old",
        "pass@1 of the present revision minus pass@1 of the one before.",
        "points",
    ),
    Measure(
        GAINED,
        "Gained",
        "Items that turned from fail to pass in most of their answers.",
        "number",
        main=False,
    ),
    Measure(
        LOST,
        "Lost",
        "Items that turned from pass to fail in most of their answers.",
        "number",
        main=False,
    ),
    Measure(
        SAME_TEXT,
        "Same words",
        "Answers that are the same word for word in both revisions.",
        main=False,
    ),
)

TABLE = topic("revisions", revision_rows, MEASURES)
