"""What models do in a work-up, in which they ask for the evidence: `workup.csv`."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from neuralmedbench.estimates.contrasts import paired_difference
from neuralmedbench.estimates.intervals import Interval, patients_rate, rate_interval
from neuralmedbench.estimates.suppression import Label
from neuralmedbench.records.items import Runner, Strategy
from neuralmedbench.records.responses import MISSING_STATES
from neuralmedbench.records.results import PASS1_PATIENTS
from neuralmedbench.records.words import counted, listing
from neuralmedbench.scoring.matching import ReferenceAnswer
from neuralmedbench.scoring.workup import MOST_BRIER, MOST_LOG_LOSS, WorkUp, measures_of_asking, read_work_up
from neuralmedbench.tables.declare import MODEL, Suppression, Table, arm_labels, of_study
from neuralmedbench.tables.outcomes import FULL, Key
from neuralmedbench.tables.rows import Cells, ModelRow, Tables
from neuralmedbench.tables.study import BenchmarkStudy, Study
from neuralmedbench.tables.words import Takeaway, exploratory, size_of, value_share

LARGEST = {"brier": MOST_BRIER, "log_loss": MOST_LOG_LOSS}
"""Largest value of measures that are not shares."""

TURNS = "turns_to_diagnosis"
"""The measure that counts messages from 1."""

CHOICE = "choice_gain"
"""pass@1 of the final answers of a model that chooses the evidence, minus that where it gets all of it at once."""

ASKING = (
    *("questions", "facts_asked", "not_answered", "no_option", "informant_corrected", "informant_unusable"),
    PASS1_PATIENTS,
    ASKING_GAIN := "asking_gain",
)
"""Measures of questions with options whose facts are asked for (strategy `ask`)."""

OF_INFORMANT = ("informant_corrected", "informant_unusable")

WITHHELD, TOGETHER = "history", "together"
"""Orders of evidence that asking is compared with: none of it, and all of it at once."""

GAINS = {
    (CHOICE, TOGETHER): "Choosing the evidence itself, against all of it at once",
    (ASKING_GAIN, WITHHELD): "Asking for the facts, against none of them",
    (ASKING_GAIN, TOGETHER): "Asking for the facts, against all of them at once",
}
"""What a model does under `full`, and what it is compared with, by measure and order of the evidence."""


@dataclass(frozen=True, kw_only=True)
class WorkUpRow(ModelRow):
    """One measure of one model under one arm; `turn` is the message, from 1, of measures by turn."""

    arm: str
    measure: str
    turn: int | None = None
    value: float | None = None
    low: float | None = None
    high: float | None = None
    p_value: float | None = None
    n_answers: int | None = None
    n_undefined: int | None = None
    n_items: int | None = None
    n_patients: int | None = None


def work_up_rows(study: Study) -> list[WorkUpRow]:
    """Rows of `workup.csv`: the measures of each answer (`scoring.workup`), mean by item, then over items.

    By turn (`mass`, `brier`, `log_loss`), an answer that has ended keeps its last statement, so that every turn is over the same answers.
    """
    return [row for benchmark in study.benchmarks.values() if benchmark.requests for row in _rows(study, benchmark)]


def _rows(study: Study, benchmark: BenchmarkStudy) -> Iterator[WorkUpRow]:
    gold = {row.item_id: row for row in benchmark.gold}
    requests = {(row.item_id, row.arm): row for row in benchmark.requests if row.inquiry is not None and row.inquiry.is_work_up}
    places = {item.item_id: place for place, item in enumerate(benchmark.outcomes.items)}
    for model in study.models:
        answers: dict[str, list[tuple[int, WorkUp]]] = defaultdict(list)
        for response in benchmark.responses.get(model, []):
            request = requests.get((response.item_id, response.arm)) if response.strategy == Strategy.WORKUP else None
            if request is None or request.inquiry is None or response.state in MISSING_STATES or response.item_id not in gold:
                continue
            row = gold[response.item_id]
            read = read_work_up(
                request.inquiry, response.turns or (response.text,), ReferenceAnswer.of(row, benchmark.vocabulary), row.essential
            )
            answers[response.arm].append((places[response.item_id], read))
        for arm, found in sorted(answers.items(), key=lambda pair: (pair[0] != FULL, pair[0])):
            head: Cells = {"benchmark": benchmark.name, "model": model, "arm": arm}
            yield from (WorkUpRow(**head, **cells) for cells in _measures(study, benchmark, model, found))
        if cells := _choice(study, benchmark, model):
            yield WorkUpRow(benchmark=benchmark.name, model=model, measure=CHOICE, **cells)
        yield from (WorkUpRow(benchmark=benchmark.name, model=model, **cells) for cells in _asking(study, benchmark, model))


def _asking(study: Study, benchmark: BenchmarkStudy, model: str) -> Iterator[Cells]:
    """Measure how a model asks for the facts of questions with options, and what it makes of them, beside all of them and none."""
    asked = [row for row in benchmark.requests if row.inquiry is not None and not row.inquiry.is_work_up]
    requests = {
        (row.item_id, row.arm): row.inquiry for row in asked if row.inquiry and (row.runner == Runner.CHOICE or row.inquiry.informant)
    }
    items = {item.item_id: (place, item) for place, item in enumerate(benchmark.outcomes.items)}
    found: dict[str, list[tuple[int, dict[str, float | None]]]] = defaultdict(list)
    for response in benchmark.responses.get(model, []) if requests else ():
        inquiry = requests.get((response.item_id, response.arm)) if response.strategy == Strategy.ASK else None
        if inquiry is None or response.state in MISSING_STATES:
            continue
        (place, item), turns = items[response.item_id], response.turns or (response.text,)
        measures = measures_of_asking(inquiry, turns, item.options, response.informed)
        # a dialogue that ends in a differential has only those of its informant
        found[response.arm].append((place, measures if item.options else {name: measures[name] for name in OF_INFORMANT}))
    for arm, answers in sorted(found.items(), key=lambda pair: (pair[0] != FULL, pair[0])):
        most = max(1.0, *(values.get("questions") or 0.0 for _, values in answers))
        for name in ASKING[:-2]:
            values = [(place, of_answer[name]) for place, of_answer in answers if name in of_answer]
            if not values or (name in OF_INFORMANT and all(value is None for _, value in values)):
                continue  # a dialogue, or words decided
            yield {"arm": arm, "measure": name} | mean_over_items(
                study, benchmark, model, values, most=most if name == "questions" else 1.0
            )
        if (key := Key(model, arm, Strategy.ASK)) in benchmark.outcomes.counts and any("questions" in values for _, values in answers):
            yield {"arm": arm, "measure": PASS1_PATIENTS} | _passes(study, benchmark, key)
    for order in (WITHHELD, TOGETHER):
        if cells := _choice(study, benchmark, model, Strategy.ASK, order):
            yield {"measure": ASKING_GAIN} | cells


def _passes(study: Study, benchmark: BenchmarkStudy, key: Key) -> Cells:
    outcomes = benchmark.outcomes
    values = outcomes.pass1_of_complete_items(key)
    known = ~np.isnan(values)
    value, low, high = patients_rate(values, outcomes.by_patient(study.settings, key))[:3]
    cells: Cells = {"value": value, "low": low, "high": high, "n_answers": len(values), "n_undefined": int((~known).sum())}
    return cells | {"n_items": int(known.sum()), "n_patients": len(np.unique(outcomes.patients[known]))}


def _choice(study: Study, benchmark: BenchmarkStudy, model: str, strategy: Strategy = Strategy.WORKUP, order: str = TOGETHER) -> Cells:
    """Compare what a model makes of the evidence that it asks for with what it makes of all (or nothing) of it, on the same items; nothing if it was not asked both ways."""
    outcomes = benchmark.outcomes
    keys = [Key(model, arm, strategy) for arm in (FULL, *arms_of_order(benchmark, order))][:2]
    if len(keys) < 2 or not all(key in outcomes.counts for key in keys):
        return {}
    chosen, together = (outcomes.pass1_of_complete_items(key) for key in keys)
    found = paired_difference(chosen, together, outcomes.by_patient(study.settings, *keys))
    both = ~np.isnan(chosen + together)
    answers = sum(int(outcomes.counts[key].samples[both].sum()) for key in keys)
    cells: Cells = {"arm": " ".join(key.arm for key in keys), "value": found.value, "low": found.low, "high": found.high}
    return cells | {"p_value": found.p_value, "n_answers": answers, "n_undefined": 0, "n_items": found.items, "n_patients": found.patients}


def arms_of_order(benchmark: BenchmarkStudy, order: str) -> list[str]:
    """Return the arms of a benchmark that give the evidence of a work-up in an order."""
    return [name for name, arm in benchmark.arms.items() if arm.config.evidence == "ordered" and arm.values["order"] == order]


def _measures(study: Study, benchmark: BenchmarkStudy, model: str, found: Sequence[tuple[int, WorkUp]]) -> Iterator[Cells]:
    of_answers = [(place, work_up.measures()) for place, work_up in found]
    for name in of_answers[0][1]:
        values = [(place, of_answer[name]) for place, of_answer in of_answers]
        most = 1.0 + max(len(work_up.turns) for _, work_up in found) if name == TURNS else LARGEST.get(name, 1.0)
        yield {"measure": name} | mean_over_items(study, benchmark, model, values, most=most, least=float(name == TURNS))
    for turn in range(1, max(len(work_up.turns) for _, work_up in found) + 1):
        at = [(place, work_up.turns[min(turn, len(work_up.turns)) - 1]) for place, work_up in found]
        by_turn = {
            "mass": [(place, one.mass) for place, one in at],
            "brier": [(place, one.brier) for place, one in at],
            "log_loss": [(place, one.log_loss) for place, one in at],
        }
        for name, values in by_turn.items():
            yield {"measure": name, "turn": turn} | mean_over_items(study, benchmark, model, values, most=LARGEST.get(name, 1.0))


def mean_over_items(
    study: Study,
    benchmark: BenchmarkStudy,
    model: str,
    values: Sequence[tuple[int, float | None]],
    *,
    most: float = 1.0,
    least: float = 0.0,
) -> Cells:
    """Return a mean over items with its interval, by patient; `least` and `most` are the smallest and the largest possible value."""
    outcomes = benchmark.outcomes
    sums, numbers = np.zeros(len(outcomes.items)), np.zeros(len(outcomes.items))
    for place, value in values:
        if value is not None:
            sums[place] += (value - least) / (most - least)
            numbers[place] += 1
    means = np.where(numbers > 0, sums / np.maximum(numbers, 1), np.nan)
    known = numbers > 0
    rate = rate_interval(means, outcomes.by_patient(study.settings, Key(model))) if known.any() else Interval()
    scaled = [None if end is None else least + end * (most - least) for end in rate[:3]]
    return {
        "value": scaled[0],
        "low": scaled[1],
        "high": scaled[2],
        "n_answers": len(values),
        "n_undefined": sum(value is None for _, value in values),
        "n_items": int(known.sum()),
        "n_patients": len(np.unique(outcomes.patients[known])),
    }


def takeaway(study: Study, tables: Tables) -> Takeaway:
    """State how much of the essential evidence the models ask for, and whose list it is."""
    whole = [row for row in tables["workup"] if row["arm"] == FULL and row["turn"] is None and row["value"] is not None]
    rows = [row for row in whole if row["model"] not in study.readers]
    people = readers_sentence(study, whole)
    if not rows:
        return Takeaway(f"No model was asked for a work-up. {people}".rstrip(), "0 items")
    largest = max(rows, key=lambda row: row["n_items"])
    models = counted(len({row["model"] for row in rows}), "model")
    n = f"{models}, up to {size_of(largest)}"
    asked = [row for row in rows if row["measure"] == "essential_recall"]
    further = " ".join(filter(None, (people, choice_sentence(study, tables))))
    if not asked:
        return Takeaway(f"Which evidence a case needs was not stated, so what models ask for is only counted. {further}".rstrip(), n)
    best = max(asked, key=lambda row: (row["value"], row["model"]))
    title = study.models[best["model"]].title
    return Takeaway(
        f"{title} asks for {value_share(best)} of the examinations that the case's author calls essential, the most of all models"
        f" (intervals are not corrected); no expert reviewed that list. {further}".rstrip(),
        n,
    )


def readers_sentence(study: Study, rows: Sequence[Cells]) -> str:
    """State how much of the essential evidence people ask for; empty if none worked up a case with a list."""
    asked = [row for row in rows if row["model"] in study.readers and row["measure"] == "essential_recall"]
    several = len({row["benchmark"] for row in asked}) > 1
    parts = [
        f"{study.models[row['model']].title} asks for {value_share(row)} of the essential examinations on {size_of(row)}"
        + (f" of {study.benchmarks[row['benchmark']].config.title}" if several else "")
        for row in asked
    ]
    return f"{listing(parts)}." if parts else ""


def choice_sentence(study: Study, tables: Tables) -> str:
    """State what models gain by choosing the evidence, or by asking for facts; empty if none was asked both ways."""
    sentences = []
    for (measure, order), words in GAINS.items():
        rows = [row for row in tables["workup"] if row["measure"] == measure and row["arm"].endswith(f"-{order}")]
        sentences.append(exploratory(study, words, rows))
    return " ".join(filter(None, sentences))


def _labels(row: Cells) -> list[Label]:
    strategy = Strategy.ASK if row["measure"] in ASKING else Strategy.WORKUP
    return [label for arm in row["arm"].split() for label in arm_labels({"arm": arm, "strategy": strategy})]


TABLE = Table(
    name="workup",
    row=WorkUpRow,
    rows=of_study(work_up_rows),
    suppression=Suppression(f"{MODEL} arm measure turn", labels=_labels),
    takeaways={"workup": takeaway},
)
