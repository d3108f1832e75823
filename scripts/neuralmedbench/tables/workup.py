"""What models do in a work-up, in which they ask for the evidence: topic `workup`."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence

from neuralmedbench.records.items import Runner, Strategy
from neuralmedbench.records.responses import MISSING_STATES
from neuralmedbench.records.results import PASS1_PATIENTS
from neuralmedbench.scoring.matching import ReferenceAnswer
from neuralmedbench.scoring.workup import MOST_BRIER, MOST_LOG_LOSS, WorkUp, measures_of_asking, read_work_up
from neuralmedbench.tables.declare import ContrastRow, Measure, MeasureRow, ModelRows, of_models, topic
from neuralmedbench.tables.outcomes import FULL
from neuralmedbench.tables.study import BenchmarkStudy

LARGEST = {"brier": MOST_BRIER, "log_loss": MOST_LOG_LOSS}
"""Largest value of measures that are not shares."""

TURNS = "turns_to_diagnosis"
"""The measure that counts messages from 1."""

CHOICE = "choice_gain"
"""pass@1 of the final answers of a model that chooses the evidence, minus that where it gets all of it at once."""

ASKING = ("questions", "facts_asked", "not_answered", "no_option", "informant_corrected", "informant_unusable")
"""Measures of questions with options whose facts are asked for (strategy `ask`)."""

ASKING_GAIN = "asking_gain"
"""pass@1 of a model that asks for the facts, minus that where it gets all or none of them."""

OF_INFORMANT = ("informant_corrected", "informant_unusable")

WITHHELD, TOGETHER = "history", "together"
"""Orders of evidence that asking is compared with: none of it, and all of it at once."""

GAINS = {
    (CHOICE, TOGETHER): "Choosing the evidence itself, against all of it at once",
    (ASKING_GAIN, WITHHELD): "Asking for the facts, against none of them",
    (ASKING_GAIN, TOGETHER): "Asking for the facts, against all of them at once",
}
"""What a model does under `full`, and what it is compared with, by measure and order of the evidence."""


Row = MeasureRow | ContrastRow


@of_models("workup")
def work_up_rows(made: ModelRows) -> Iterator[Row]:
    """Work-ups: the evidence that models ask for, and the diagnoses that they draw from it.

    Measures of each answer (`scoring.workup`), mean by item, then over items. By message (slice
    `turn`), an answer that has ended keeps its last statement, so that all are over the same
    answers.
    """
    benchmark = made.benchmark
    gold = {row.item_id: row for row in benchmark.gold}
    requests = {(row.item_id, row.arm): row for row in benchmark.requests if row.inquiry is not None and row.inquiry.is_work_up}
    places = benchmark.outcomes.places
    answers: dict[str, list[tuple[int, WorkUp]]] = defaultdict(list)
    for response in benchmark.responses.get(made.model, []):
        request = requests.get((response.item_id, response.arm)) if response.strategy == Strategy.WORKUP else None
        if request is None or request.inquiry is None or response.state in MISSING_STATES or response.item_id not in gold:
            continue
        row = gold[response.item_id]
        read = read_work_up(
            request.inquiry, response.turns or (response.text,), ReferenceAnswer.of(row, benchmark.vocabulary), row.essential
        )
        answers[response.arm].append((places[response.item_id], read))
    for arm, found in sorted(answers.items(), key=lambda pair: (pair[0] != FULL, pair[0])):
        yield from _measures(made, arm, found)
    yield from _choice(made, CHOICE, Strategy.WORKUP, TOGETHER)
    yield from _asking(made)


def _asking(made: ModelRows) -> Iterator[Row]:
    """Measure how a model asks for the facts of questions with options, and what it makes of them, beside all of them and none."""
    benchmark = made.benchmark
    asked = [row for row in benchmark.requests if row.inquiry is not None and not row.inquiry.is_work_up]
    requests = {
        (row.item_id, row.arm): row.inquiry for row in asked if row.inquiry and (row.runner == Runner.CHOICE or row.inquiry.informant)
    }
    found: dict[str, list[tuple[int, dict[str, float | None]]]] = defaultdict(list)
    for response in benchmark.responses.get(made.model, []) if requests else ():
        inquiry = requests.get((response.item_id, response.arm)) if response.strategy == Strategy.ASK else None
        if inquiry is None or response.state in MISSING_STATES:
            continue
        place, turns = benchmark.outcomes.places[response.item_id], response.turns or (response.text,)
        item = benchmark.outcomes.items[place]
        measures = measures_of_asking(inquiry, turns, item.options, response.informed)
        # a dialogue that ends in a differential has only those of its informant
        found[response.arm].append((place, measures if item.options else {name: measures[name] for name in OF_INFORMANT}))
    for arm, answers in sorted(found.items(), key=lambda pair: (pair[0] != FULL, pair[0])):
        most = max(1.0, *(values.get("questions") or 0.0 for _, values in answers))
        for name in ASKING:
            values = [(place, of_answer[name]) for place, of_answer in answers if name in of_answer]
            if not values or (name in OF_INFORMANT and all(value is None for _, value in values)):
                continue  # a dialogue, or words decided
            yield made.mean(name, values, arm=arm, strategy=Strategy.ASK, most=most if name == "questions" else 1.0)
        key = made.key(arm, Strategy.ASK)
        if key in made.outcomes.counts and any("questions" in values for _, values in answers):
            yield made.passes(key, made.outcomes.expected(key))
    for order in (WITHHELD, TOGETHER):
        yield from _choice(made, ASKING_GAIN, Strategy.ASK, order)


def _choice(made: ModelRows, measure: str, strategy: Strategy, order: str) -> Iterator[ContrastRow]:
    """Compare what a model makes of the evidence that it asks for with what it makes of all (or nothing) of it, if it was asked both ways."""
    keys = [made.key(arm, strategy) for arm in (FULL, *arms_of_order(made.benchmark, order))][:2]
    if len(keys) == 2 and all(key in made.outcomes.counts for key in keys):
        yield made.passes_contrast(measure, keys[0], keys[1])


def arms_of_order(benchmark: BenchmarkStudy, order: str) -> list[str]:
    """Return the arms of a benchmark that give the evidence of a work-up in an order."""
    return [name for name, arm in benchmark.arms.items() if arm.config.evidence == "ordered" and arm.values["order"] == order]


def _measures(made: ModelRows, arm: str, found: Sequence[tuple[int, WorkUp]]) -> Iterator[MeasureRow]:
    of_answers = [(place, work_up.measures()) for place, work_up in found]
    cells = {"arm": arm, "strategy": Strategy.WORKUP}
    longest = max(len(work_up.turns) for _, work_up in found)
    for name in of_answers[0][1]:
        values = [(place, of_answer[name]) for place, of_answer in of_answers]
        most = 1.0 + longest if name == TURNS else LARGEST.get(name, 1.0)
        yield made.mean(name, values, most=most, least=float(name == TURNS), **cells)
    for turn in range(1, longest + 1):
        at = [(place, work_up.turns[min(turn, len(work_up.turns)) - 1]) for place, work_up in found]
        by_turn: dict[str, list[tuple[int, float | None]]] = {
            "mass": [(place, one.mass) for place, one in at],
            "brier": [(place, one.brier) for place, one in at],
            "log_loss": [(place, one.log_loss) for place, one in at],
        }
        for name, values in by_turn.items():
            yield made.mean(name, values, slice="turn", value_of_slice=str(turn), most=LARGEST.get(name, 1.0), **cells)


MEASURES = (
    Measure(
        "essential_recall",
        "Essential asked for",
        "Examinations given, of those that the author of the case calls essential.",
    ),
    Measure(
        "not_needed",
        "Given, not essential",
        "Examinations that are not essential, of those given.",
    ),
    Measure(
        "invalid_requests",
        "Brought nothing",
        "Requests for what the case does not hold, what was given already, or nothing; of all.",
    ),
    Measure(
        "premature_closure",
        "Ended too early",
        "Answers that end with requests left and essential evidence not given.",
    ),
    Measure(
        TURNS,
        "Leads from message",
        "Number of the message from which the reference leads to the end.",
        "number",
    ),
    Measure(
        "mass_moved_right",
        "Evidence helped",
        "Examinations after which the probability of the reference rose or stayed at 1.",
    ),
    Measure(
        CHOICE,
        "Asked minus all",
        "pass@1 when a model asks for the evidence minus pass@1 when it gets all of it at once.",
        "points",
    ),
    Measure(
        "authors_order",
        "In author's order",
        "Pairs of essential examinations in the author's order, of all such pairs given.",
        main=False,
    ),
    Measure(
        "leader_changed_without_evidence",
        "Changed without evidence",
        "Messages with another first diagnosis, of those after a reply without evidence.",
        main=False,
    ),
    Measure(
        "mass",
        "Probability of reference",
        "Probability that the model states for the reference, by message.",
        main=False,
    ),
    Measure(
        "brier",
        "Brier score",
        "Squared distance of the probabilities from 1 for the reference and 0 for others: 0 to 2.",
        "number",
        main=False,
    ),
    Measure(
        "log_loss",
        "Log loss",
        "Minus the natural logarithm of the probability of the reference, which is 0.01 at least.",
        "number",
        main=False,
    ),
    Measure(
        PASS1_PATIENTS,
        "pass@1",
        "Answers that pass where the facts are asked for, patients alike.",
        main=False,
    ),
    Measure(
        ASKING_GAIN,
        "Asking minus other",
        "pass@1 when a model asks for facts minus pass@1 with all or none of them (`other_arm`).",
        "points",
        main=False,
    ),
    Measure(
        "questions",
        "Questions",
        "Questions that an answer asks, on average.",
        "number",
        main=False,
    ),
    Measure(
        "facts_asked",
        "Facts told",
        "Facts that were told, of all facts of the case.",
        main=False,
    ),
    Measure(
        "not_answered",
        "Not answered",
        "Questions that the case does not answer, of all questions.",
        main=False,
    ),
    Measure("no_option", "No option", "Final answers that choose no option.", main=False),
    Measure(
        "informant_corrected",
        "Informant corrected",
        "Questions to which the informant's first reply could not be used, of all questions.",
        main=False,
    ),
    Measure(
        "informant_unusable",
        "Informant unusable",
        "Questions to which no reply of the informant could be used, of all questions.",
        main=False,
    ),
)

TABLE = topic("workup", work_up_rows, MEASURES)
