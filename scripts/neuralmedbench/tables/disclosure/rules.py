"""What a public run hides of each table, in one place."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from neuralmedbench.tables.disclosure.parts import ALL, RANKED, REPEATABLE, SCORED
from neuralmedbench.tables.disclosure.sets import Label

Row = dict[str, Any]

UNIVERSES = {"pass5": REPEATABLE, "all_right": REPEATABLE, "candidates5": RANKED}
"""Items over which a rate of `rates.csv` is taken; of the others all that have a reference."""


EXACT = frozenset({"pass1", "false_alarm", *UNIVERSES})
"""Rates over all items of such a universe."""


def _nothing(row: Row) -> list[Label]:
    return []


def _nothing_of(row: Row) -> object:
    return None


def _group(names: str, part: str = "", alone: tuple[str, ...] = ()) -> Callable[[Row], object]:
    """Group rows by some columns; those with one of the `alone` values in the column `part` are in no group."""
    return lambda row: None if part and row[part] in alone else tuple(row[name] for name in names.split())


def _of_arm(row: Row) -> list[Label]:
    return [(f"asked {row['arm']} {row.get('strategy', 'direct')}", "")]


def _of_rate(row: Row) -> list[Label]:
    universe, part, value = UNIVERSES.get(row["metric"], SCORED), row["slice"], row["value_of_slice"]
    labels = [*_of_arm(row), (f"{ALL} {universe}", "")]
    if part == "field":
        return [*labels, (f"field {value}", "")]
    return labels if part == ALL else [*labels, (f"{universe} {part}", value)]


def _of_differential(row: Row) -> list[Label]:
    family, level = row["family"], row["level"]
    labels = [(f"{ALL} {RANKED}", "")]
    if level == ALL:
        return labels if family == ALL else [*labels, ("differential", family)]
    return [*labels, (f"differential {family}", level)]


def _of_level(row: Row) -> list[Label]:
    return [] if row["level"] == ALL else [(f"{REPEATABLE} level", row["level"]), (f"{SCORED} level", row["level"])]


def _group_of_rate(row: Row) -> object:
    """Group the rates of a grouping over the answers that were graded, or items that are pairs: of the other metrics the parts decide."""
    exact = row["metric"] in EXACT or row["slice"] in (ALL, "field")
    return None if exact else tuple(row[name] for name in ("benchmark", "model", "arm", "strategy", "slice", "metric"))


@dataclass(frozen=True)
class Rule:
    """How one table is hidden.

    Attributes
    ----------
    keys : str
        Columns that say what a row is about; they stay.
    mark : str
        The column that says that a row is hidden. Without one the row goes.
    patients : str
        The column that counts the row's patients (cases, where patients are not counted); empty: the parts alone decide.
    labels : callable
        The parts of the benchmark (`parts.py`) that a row is about.
    group : callable
        Rows of one group add up to something that is shown, so a hidden one takes another one with it; None for a row that is in no group.
    each : bool
        Every row is about one case: none is left.
    always : str
        Columns that name cases: always emptied.
    says : str
        A column of words that says `not shown` in a hidden row.
    rated : str
        Columns about the answers that clinicians rated; the first counts their patients, and says so when they are too few.
    surest : bool
        Rows are about growing parts of the answers: what lies between two of them has to be enough, too.
    whole : bool
        Whether its rows are hidden where the whole benchmark is about few patients; else small counts alone.
    """

    keys: str
    mark: str = "n_patients"
    patients: str = "n_patients"
    labels: Callable[[Row], list[Label]] = _nothing
    group: Callable[[Row], object] = _nothing_of
    each: bool = False
    always: str = ""
    says: str = ""
    rated: str = ""
    surest: bool = False
    whole: bool = True


MODEL = "benchmark model in_reference_pool"
RULES: dict[str, Rule] = {
    "leaderboard": Rule("benchmark axis model in_reference_pool title revision baseline reader open_weights note"),
    "rates": Rule(
        "benchmark axis model in_reference_pool arm strategy slice value_of_slice metric",
        labels=_of_rate,
        group=_group_of_rate,
    ),
    "arms": Rule(f"{MODEL} arm reference_arm", labels=_of_arm),
    "decomposition": Rule(MODEL, labels=lambda row: _of_arm({"arm": "findings_disclosed"})),
    "turns": Rule(f"{MODEL} measure turn"),
    "differential": Rule(f"{MODEL} family level", labels=_of_differential),
    "confidence": Rule(f"{MODEL} arm source", labels=_of_arm),
    "reliability": Rule(f"{MODEL} arm source bin", labels=_of_arm, group=_group("benchmark model arm source")),
    "risk_coverage": Rule(f"{MODEL} source measure coverage", surest=True),
    "pairwise": Rule("benchmark model_a a_in_reference_pool model_b b_in_reference_pool"),
    "axes": Rule("model title breadth_benchmark breadth_in_reference_pool depth_benchmark depth_in_reference_pool", mark="", patients=""),
    "similarity": Rule(f"{MODEL} level metric note", mark="n", patients="", labels=_of_level),
    "fields": Rule(f"{MODEL} field", labels=lambda row: [(f"field {row['field']}", "")]),
    "validity": Rule(f"{MODEL} runner step", mark="n", patients="", labels=lambda row: [(f"{ALL} items", ""), ("runner", row["runner"])]),
    "graders": Rule(f"{MODEL} grader note", mark="ok", patients=""),
    "calibrated": Rule(
        f"{MODEL} grader simulated",
        rated="n_patients_rated calibrated calibrated_low calibrated_high if_unjudged_failed if_unjudged_passed n_rated n_unjudged",
    ),
    "grader_vs_clinician": Rule("benchmark judge kind level model in_reference_pool same_maker simulated"),
    "errors": Rule(f"{MODEL} source kind simulated level code group paper_class"),
    "reasoning": Rule(f"{MODEL} grader measure"),
    "juries": Rule(f"{MODEL} jury rule criterion"),
    "case_flow": Rule("benchmark unit step", mark="n", patients="n", group=_group("benchmark unit"), says="reason"),
    "file_flow": Rule(
        "benchmark unit step",
        mark="cases",
        patients="cases",
        group=_group("benchmark unit", "unit", ("series",)),
        says="reason",
        always="cases",
    ),
    "cases": Rule("benchmark", each=True),
    "contamination": Rule(f"{MODEL} cutoff metric note", mark="", patients=""),
    "deid_audit": Rule("benchmark profile kind state check", mark="value", patients="value", whole=False),
    "deidentification": Rule("benchmark place action category", mark="patients", patients="patients"),
    "cohort": Rule(
        "benchmark variable value",
        mark="n",
        patients="",
        labels=lambda row: [(f"{ALL} items", ""), (f"cohort {row['variable']}", row["value"])],
    ),
    "cost": Rule(f"{MODEL} title priced_on note"),
    "readers": Rule(
        "benchmark reader title simulated model in_reference_pool slice value_of_slice",
        labels=lambda row: [] if row["slice"] == ALL else [(f"{SCORED} {row['slice']}", row["value_of_slice"])],
        group=_group("benchmark reader model slice", "slice", (ALL,)),
    ),
    "ratings": Rule("round_id model in_reference_pool axis simulated", mark="n", patients=""),
    "agreement": Rule("round_id simulated axis between rater_a rater_b measure note"),
    "readiness": Rule(
        f"{MODEL} use group condition limit stated",
        labels=lambda row: [] if row["group"] == ALL else [(f"group {row['group']}", "")],
        always="cases",
        says="verdict",
    ),
    "revisions": Rule(f"{MODEL} metric earlier_revision revision"),
    "flips": Rule("benchmark", each=True),
}
"""By table. Tables that are not here tell of no patient: see `OF_NO_PATIENT`."""

OF_NO_PATIENT = frozenset({"raters", "efficiency", "destinations"})
"""Tables about the people who rate and about calls: what left the machine is told whoever it was about."""
