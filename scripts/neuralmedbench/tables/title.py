"""Does a model know a diagnosis when it is offered, and not find it alone? The same cases as a choice and as an open question (topic `title`)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

import numpy as np

from neuralmedbench.estimates.contrasts import ALIKE, DIFFERENT, INCONCLUSIVE
from neuralmedbench.estimates.intervals import Floats, patients_rate
from neuralmedbench.records.arm_changes import CHOICE, in_form
from neuralmedbench.records.items import Arm, Axis, Strategy
from neuralmedbench.records.results import PRIOR, by_measure
from neuralmedbench.records.words import apart, percent, points, points_span
from neuralmedbench.tables.declare import Cells, ContrastRow, CountRow, Measure, MeasureRow, ModelRows, Tables, needs, of_benchmarks, topic
from neuralmedbench.tables.family import Compared, FamilyTest, corrected_family
from neuralmedbench.tables.floors import options_only
from neuralmedbench.tables.groups import Mask
from neuralmedbench.tables.outcomes import Outcomes
from neuralmedbench.tables.recognition import BLIND_ARMS, CHOICE_ARMS, asks_choice, found, least_of, recognised, scaled_difference
from neuralmedbench.tables.study import BenchmarkStudy, Study
from neuralmedbench.tables.takeaways import FEWEST_PATIENTS
from neuralmedbench.tables.words import best_of, is_closed

Row = MeasureRow | ContrastRow | CountRow

CHOSEN, BLIND = " ".join(CHOICE_ARMS), " ".join(BLIND_ARMS)

RECOGNISED, FOUND, OPTIONS_ONLY, CONTRAST = "recognised", "found", "options_only", "recognised_minus_found"
QUADRANTS = ("recognises_and_finds", "recognises_only", "finds_only", "neither")
"""Counts of items, by whether more than half of the repeats recognise, and of the open answers find."""

MOST_LEFT_OUT = 0.10
"""Share of the open answers that were not read or not graded, above which nothing is said. (Our rule.)"""

MOST_ABOVE_CHANCE = 0.05
"""By so much a guess from the options alone may be better than chance. (Our rule.)"""

DRAWN = "it draws its answers, and four draws are all right less often than one"
"""Why a model that draws is not said to find more than it recognises."""


@needs(corrected_family)
@of_benchmarks
def title_rows(study: Study, benchmark: BenchmarkStudy, family: Mapping[Compared, FamilyTest]) -> Iterator[Row]:
    """Compare what models recognise and what they find, on the items that are asked as a choice and openly.

    `recognised` is right in all rotations, less what a guess gets right; a repeat counts where no rotation lacks an answer. `found` is pass@1 of
    the open answers that were read and graded. `bounds` is the difference if the others had passed, and failed.
    """
    models = [model for model in study.models if asks_choice(benchmark.outcomes, model)]
    if not models:
        return
    guess = _options_only(study, benchmark)
    yield guess
    for model in models:
        yield from _rows(ModelRows("title", study, benchmark, model), family, guess)


def _options_only(study: Study, benchmark: BenchmarkStudy) -> MeasureRow:
    """Return what the best guess from the options alone gets right."""
    outcomes = benchmark.outcomes
    values = np.full(len(outcomes.items), np.nan)
    asked = [place for place, item in enumerate(outcomes.items) if item.rivals]
    items = [in_form(outcomes.items[place], CHOICE_ARMS[0]) for place in asked]
    values[asked] = options_only(items, [outcomes.gold[place] for place in asked], outcomes.patients[asked])
    made = ModelRows("title", study, benchmark, PRIOR)
    return made.rate(OPTIONS_ONLY, values, arm=CHOSEN, interval_of=patients_rate)


def chance_of(outcomes: Outcomes) -> Floats:
    """Return the share of options that are right, by item; NaN where none are offered."""
    return np.array([1 / len(item.rivals) if item.rivals else np.nan for item in outcomes.items])


def _rows(made: ModelRows, family: Mapping[Compared, FamilyTest], guess: MeasureRow) -> Iterator[Row]:
    outcomes, model = made.outcomes, made.model
    known, alone = recognised(outcomes, model), found(outcomes, model)
    yield _recognised_row(made, RECOGNISED, known.value, CHOSEN)
    yield made.rate("right_in_all", known.in_all, arm=CHOSEN, interval_of=patients_rate)
    yield made.rate(FOUND, alone.value, interval_of=patients_rate)
    yield made.rate("left_out", alone.left_out, interval_of=patients_rate)
    if made.key(strategy=Strategy.COT) in outcomes.counts:
        stepwise = found(outcomes, model, strategy=Strategy.COT).value
        yield made.rate("found_with_steps", stepwise, strategy=Strategy.COT, interval_of=patients_rate)
    if asks_choice(outcomes, model, BLIND_ARMS):
        blind = recognised(outcomes, model, BLIND_ARMS).value
        yield _recognised_row(made, "recognised_without_pictures", blind, BLIND)
        worth = scaled_difference(known.value, blind, made.by(f"{CHOSEN} {BLIND}"), least_of(outcomes))
        yield made.difference("picture_in_choice", worth, ~np.isnan(known.value + blind), arm=CHOSEN, other_arm=BLIND)
    if made.key(Arm.NO_IMAGE) in outcomes.counts:
        blind = found(outcomes, model, Arm.NO_IMAGE).value
        yield made.rate("found_without_pictures", blind, arm=Arm.NO_IMAGE, interval_of=patients_rate)
        yield made.contrast("picture_in_open", alone.value, blind, other_arm=Arm.NO_IMAGE)
    both = ~np.isnan(known.value + alone.value)
    yield from _quadrants(made, known.in_all > 0.5, alone.value > 0.5, both)
    low, high = (made.contrast("bounds", known.value, end, arm=CHOSEN) for end in (alone.most, alone.least))
    yield made.plain("bounds", ~np.isnan(known.value + alone.most), arm=CHOSEN, low=low.difference, high=high.difference)
    yield _contrast(made, (known.value, alone.value), family, _why_not(made, alone.left_out, guess))


def _recognised_row(made: ModelRows, measure: str, values: Floats, arms: str) -> MeasureRow:
    """Return a rate of which a guess may take off more than there is."""
    return made.rate(measure, values, arm=arms, interval_of=patients_rate, least=least_of(made.outcomes))


def _quadrants(made: ModelRows, recognises: Mask, finds: Mask, both: Mask) -> Iterator[CountRow]:
    masks = (recognises & finds, recognises & ~finds, ~recognises & finds, ~recognises & ~finds)
    for measure, mask in zip(QUADRANTS, masks, strict=True):
        yield made.count(measure, int((mask & both).sum()), int(both.sum()), arm=CHOSEN, **made.sizes(both))


def _contrast(made: ModelRows, sides: tuple[Floats, Floats], family: Mapping[Compared, FamilyTest], why_not: str) -> ContrastRow:
    difference = scaled_difference(*sides, made.by(CHOSEN), least_of(made.outcomes))
    row = made.difference(CONTRAST, difference, ~np.isnan(sides[0] + sides[1]), arm=CHOSEN, note=why_not)
    row = made.tested(row, difference, family.get(Compared(made.benchmark.name, made.model, title=True)))
    leans = made.outcomes.counts[made.key()].sampled and row.answer in DIFFERENT and (row.difference or 0.0) < 0
    return replace(row, answer=INCONCLUSIVE, note=why_not or DRAWN) if leans else row


def _why_not(made: ModelRows, left_out: Floats, guess: MeasureRow) -> str:
    """Return why nothing is said of a model; empty where something is."""
    by = made.by(CHOSEN)
    unread = patients_rate(left_out, by).value or 0.0
    chance = patients_rate(chance_of(made.outcomes), by).value or 0.0
    if made.sizes(~np.isnan(left_out))["n_patients"] < FEWEST_PATIENTS:
        return f"fewer than {FEWEST_PATIENTS} patients"
    if unread > MOST_LEFT_OUT:
        return f"{percent(unread)} of its open answers could not be read or graded"
    if (guess.value or 0.0) > chance + MOST_ABOVE_CHANCE:
        return f"a guess from the options alone is right in {percent(guess.value)}"
    return ""


def title_sentence(study: Study, tables: Tables) -> str:
    """Answer the question of the title in one sentence, of the model of rank 1 where it was asked, or say why there is no answer.

    Of the first benchmark of depth that asks its cases both ways, else of the first one; empty where none was to.
    """
    order = sorted(study.benchmarks.values(), key=lambda benchmark: benchmark.config.axis is not Axis.DEPTH)
    asking = [benchmark for benchmark in order if any(map(CHOICE.fullmatch, benchmark.config.arms))]
    for benchmark in asking:
        if rows := {row["model"]: row for row in tables["title"] if (row["benchmark"], row["measure"]) == (benchmark.name, CONTRAST)}:
            best = best_of(tables, benchmark.name)
            model = best["model"] if best and best["model"] in rows else next(name for name in study.models if name in rows)
            return _sentence(study, tables, rows[model])
    return "No case could be asked as a choice among five diagnoses." if asking else ""


def _sentence(study: Study, tables: Tables, row: Cells) -> str:
    title = study.models[row["model"]].title
    if why_not := row["note"] or ("" if row["difference"] is not None else "no case has answers both ways"):
        return f"No answer for {title}: {why_not}."
    measures = by_measure([own for own in tables["title"] if own["model"] == row["model"]])[row["benchmark"], row["model"]]
    recognises, finds = (percent(max(measures[name]["value"] or 0.0, 0.0)) for name in (RECOGNISED, FOUND))
    head = f"{title} picks {recognises} of {row['n_patients']} patients' diagnoses from five options and names {finds} unprompted"
    return f"{head}: {'not tested, because the stated comparison is inconclusive' if is_closed(tables) else _compared(study, row)}."


def _compared(study: Study, row: Cells) -> str:
    """Compare what is found alone with what is recognised: the second side with the first."""
    margin = points(study.settings.margin, plus="")
    # what a guess takes off is no part of a rate: no words go beyond 100 points
    low, high, size = (min(max(row[name], -1.0), 1.0) for name in ("low", "high", "difference"))
    if row["answer"] in DIFFERENT:
        return apart(-size, -high, -low)
    if row["answer"] == ALIKE:
        return f"no, within {margin} points ({points_span(-high, -low)})"
    if low * high > 0:
        return f"{apart(-size, -high, -low)}, not significant after correction"
    return f"inconclusive ({points_span(-high, -low)})"


MEASURES = (
    Measure(
        RECOGNISED,
        "Recognised",
        "Items whose right option, of five, is chosen in all four option orders, corrected for guessing.",
    ),
    Measure(FOUND, "Named unprompted", "Open answers that name the diagnosis first, of those that were read and graded."),
    Measure(
        CONTRAST,
        "Recognised minus named",
        "Share of the same items that is recognised, minus the share that is named unprompted; one number per patient.",
        "points",
    ),
    Measure("recognises_only", "Recognises only", "Items that are recognised and not named unprompted, of those asked both ways."),
    Measure("finds_only", "Named only", "Items that are named unprompted and not recognised, of those asked both ways."),
    Measure("found_with_steps", "Found with steps", "As found alone, where steps before the answer are asked for."),
    Measure(
        "picture_in_choice",
        "Pictures, choice",
        "Share recognised with the pictures, minus the share recognised without them.",
        "points",
    ),
    Measure(
        "picture_in_open",
        "Pictures, open",
        "Share named unprompted with the pictures, minus the share without them.",
        "points",
    ),
    Measure("recognises_and_finds", "Recognises and finds", "Items that are recognised and found.", main=False),
    Measure("neither", "Neither", "Items that are neither recognised nor found.", main=False),
    Measure("right_in_all", "Right in all orders", "Items chosen rightly in all four orders, guesses included.", main=False),
    Measure(
        "recognised_without_pictures",
        "Recognised without pictures",
        "As recognised, where no picture is sent.",
        main=False,
    ),
    Measure("found_without_pictures", "Found without pictures", "As found alone, where no picture is sent.", main=False),
    Measure("left_out", "Left out", "Open answers that were not read or not graded; they leave both sides.", main=False),
    Measure(
        "bounds",
        "Bounds",
        "The contrast if all open answers that were left out had passed, and had failed.",
        "points",
        main=False,
    ),
    Measure(
        OPTIONS_ONLY,
        "Options alone",
        "What the best guess from the options alone gets right, chosen on other patients.",
        main=False,
    ),
)

TABLE = topic(
    "title",
    title_rows,
    MEASURES,
    group=lambda row: (row["benchmark"], row["model"]) if row["measure"] in QUADRANTS else None,
)
