"""Cases, questions and files from listed to used, and the composition of the cohort: `case_flow.csv`, `cases.csv`, topic `cohort`."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from neuralmedbench.files.bids import Participant
from neuralmedbench.records.case import State
from neuralmedbench.records.items import DIAGNOSES, Item, Kind
from neuralmedbench.records.words import are, capital, counted, items_of, listing
from neuralmedbench.tables.declare import (
    ALL,
    Cells,
    Count,
    CountRow,
    Measure,
    ModelRows,
    ResultRow,
    Suppression,
    Table,
    Tables,
    Takeaway,
    Text,
    grouped_by,
    of_benchmarks,
    topic,
)
from neuralmedbench.tables.groups import DEMOGRAPHICS, demographics
from neuralmedbench.tables.outcomes import Key as Outcome
from neuralmedbench.tables.study import BenchmarkStudy, Study
from neuralmedbench.tables.words import by_benchmark, case_noun, cluster_of, whole_size

QUARANTINE_STAGES = ("ingest", "deidentify", "normalise", "slices")


NOT_RECORDED = "not recorded"

QUESTION_STEPS = ("refused_import", "quarantined_picture", "example")


WHOLE = ("case", "picture")
"""Units of which a benchmark has one or the other; questions, files and series are counted beside them."""

Fate = tuple[str, str, str, int, int]
"""Unit (file or series), step, reason, count, and the number of the case."""


@dataclass(frozen=True, kw_only=True)
class CaseFlowRow(ResultRow):
    """Number of cases, pictures, questions, raw files or series that stopped at one step for one reason.

    `cases` counts the cases (or pictures) of files and series; of another unit it is `n`.
    """

    benchmark: str
    unit: Text = None
    step: str
    reason: Text = None
    n: Count = None
    cases: Count = None


@of_benchmarks
def case_flow_rows(study: Study, benchmark: BenchmarkStudy) -> Iterator[CaseFlowRow]:
    """Rows of `case_flow.csv`: cases (or pictures) listed, excluded, quarantined by stage and reason, used; then questions, files, series.

    Questions of an imported data set are refused by the import, left out because one of their pictures was quarantined
    (`quarantined_picture`, with the picture's reason), kept as an example, or used. Of the cases that were read, every raw file is
    `set_aside` (by ingest, with the reason), `quarantined_<stage>` (with its case) or `used`; every picture is a file. Series that a later
    stage left out of a case that is used have separate rows: their files count as used.
    """
    unit = "picture" if benchmark.config.kind is Kind.PICTURES and not benchmark.config.has_cases else "case"
    questions = _flow("question", benchmark.questions) if benchmark.questions else []
    for row in (*_flow(unit, _fates(benchmark)), *questions, *_file_flow(benchmark)):
        yield CaseFlowRow(benchmark=benchmark.name, **row)


def _flow(unit: str, fates: Sequence[tuple[str, str]]) -> list[Cells]:
    counts = [("listed", "", len(fates))]
    for step in ("excluded", *(f"quarantined_{stage}" for stage in QUARANTINE_STAGES), *QUESTION_STEPS):
        reasons = Counter(reason for found, reason in fates if found == step)
        counts += [(step, reason, number) for reason, number in sorted(reasons.items())]
    counts.append(("used", "", sum(step == "used" for step, _ in fates)))
    return [{"unit": unit, "step": step, "reason": reason, "n": number, "cases": number} for step, reason, number in counts]


def _fates(benchmark: BenchmarkStudy) -> list[tuple[str, str]]:
    if benchmark.config.has_cases:
        return [(_step(case), case["reason"]) for case in benchmark.flow]
    if benchmark.config.kind is Kind.PICTURES:
        return [("used" if picture.state is State.OK else "quarantined_deidentify", picture.reason) for picture in benchmark.pictures]
    return [("used", "") for _ in {item.case_id for item in benchmark.items}]


def _step(case: dict[str, Any]) -> str:
    if case["excluded"]:
        return "excluded"
    return "used" if case["state"] == State.OK else f"quarantined_{case['quarantined_by']}"


def _file_flow(benchmark: BenchmarkStudy) -> list[Cells]:
    if benchmark.config.has_cases:
        found = [*_files_of_cases(benchmark), *_series_left_out(benchmark)]
    elif benchmark.config.kind is Kind.PICTURES:
        found = [("file", step, reason, 1, number) for number, (step, reason) in enumerate(_fates(benchmark))]
    else:
        return []
    # every file is listed once, with any outcome
    listed = [(unit, "listed", "", n, case) for unit, _, _, n, case in found if unit == "file"]
    return _sum_fates([*listed, *found])


def _files_of_cases(benchmark: BenchmarkStudy) -> Iterator[Fate]:
    for number, case in enumerate(benchmark.flow):
        for reason, n in case["raw_files"].items():
            step = _step(case) if reason == "used" else "set_aside"
            yield "file", step, reason if step == "set_aside" else case["reason"], n, number


def _series_left_out(benchmark: BenchmarkStudy) -> Iterator[Fate]:
    for number, case in enumerate(benchmark.flow):
        for reason in case["set_aside"] if _step(case) == "used" else ():
            yield "series", "set_aside", reason, 1, number


def _sum_fates(fates: Iterable[Fate]) -> list[Cells]:
    """Sum equal outcomes, in the order of the stages."""
    # stages in the order of the data, `used` last
    order = {
        step: place for place, step in enumerate(("listed", "set_aside", *(f"quarantined_{stage}" for stage in QUARANTINE_STAGES), "used"))
    }
    sums: Counter[tuple[str, str, str]] = Counter()
    cases: dict[tuple[str, str, str], set[int]] = defaultdict(set)
    for unit, step, reason, n, case in fates:
        sums[unit, step, reason] += n
        cases[unit, step, reason].add(case)
    keys = sorted(sums, key=lambda key: (key[0], order[key[1]], -sums[key], key[2]))
    return [
        {"unit": unit, "step": step, "reason": reason, "n": sums[unit, step, reason], "cases": len(cases[unit, step, reason])}
        for unit, step, reason in keys
    ]


def flow_takeaway(study: Study, tables: Tables) -> Takeaway:
    """Summarise how many of the listed cases are used."""
    rows = [row for row in tables["case_flow"] if row["unit"] in WHOLE]
    parts = []
    for name in study.benchmarks:
        counts = {step: sum(row["n"] for row in rows if (row["benchmark"], row["step"]) == (name, step)) for step in ("listed", "used")}
        unit = next((row["unit"] for row in rows if row["benchmark"] == name), "case")
        parts.append((name, f"{counts['used']:,} of {counted(counts['listed'], f'listed {unit}')} used"))
    left_out = sum(row["n"] for row in rows if row["step"] not in ("listed", "used"))
    end = "none was left out" if not left_out else f"{left_out:,} left out, each with its reason"
    return Takeaway(f"{by_benchmark(parts)}; {end}." if parts else "No case is listed.", by_benchmark(parts) or "0 cases")


CASE_FLOW = Table(
    name="case_flow",
    row=CaseFlowRow,
    rows=case_flow_rows,
    suppression=Suppression(
        "benchmark unit step",
        mark="cases",
        patients="cases",
        group=grouped_by("benchmark unit", "unit", ("series",)),
        says="reason",
        always="cases",
    ),
    takeaways={"flow": flow_takeaway},
)


@dataclass(frozen=True, kw_only=True)
class CaseStateRow(ResultRow):
    """One case."""

    benchmark: str
    case_id: str
    patient_id: Text = None
    state: Text = None
    quarantined_by: Text = None
    reason: Text = None
    sequences: Text = None
    n_items: Count = None


@of_benchmarks
def case_rows(study: Study, benchmark: BenchmarkStudy) -> Iterator[CaseStateRow]:
    """Rows of `cases.csv`: every case of the case table; for pictures and text the cases that have items."""
    number = Counter(item.case_id for item in benchmark.items)
    if benchmark.config.has_cases:
        for case in sorted(benchmark.flow, key=lambda case: str(case["case_id"])):
            cells = {name: case[name] for name in ("case_id", "patient_id", "state", "quarantined_by", "reason")}
            cells |= {"sequences": " ".join(case["sequences"]), "n_items": number[case["case_id"]]}
            yield CaseStateRow(**({"benchmark": benchmark.name} | cells | ({"state": "excluded"} if case["excluded"] else {})))
        return
    # pictures and text have no case table: their cases are those of the items
    patients, shown = dict[str, str](), defaultdict[str, set[str]](set)
    for item in benchmark.items:
        patients[item.case_id] = item.patient_id
        shown[item.case_id] |= {image.sequence for image in item.images} - {""}
    for case_id, patient in sorted(patients.items()):
        yield CaseStateRow(
            benchmark=benchmark.name,
            case_id=case_id,
            patient_id=patient,
            state="ok",
            sequences=" ".join(sorted(shown[case_id])),
            n_items=number[case_id],
        )


def _people(benchmark: BenchmarkStudy) -> dict[str, dict[str, str]]:
    return {item.case_id: demographics(benchmark.participants.get(item.case_id, Participant())) for item in benchmark.items}


def recorded_demographics(benchmark: BenchmarkStudy) -> list[str]:
    """Return those of `DEMOGRAPHICS` that are recorded of any case."""
    people = _people(benchmark).values()
    return [name for name in DEMOGRAPHICS if any(person[name] for person in people)]


def cohort_values(benchmark: BenchmarkStudy) -> Iterator[tuple[str, str, Item]]:
    """Yield the variables of the cohort with their values and the items that have them; age, sex and scanner where any is recorded."""
    answers = {gold.item_id: gold.answer for gold in benchmark.gold}
    people, recorded = _people(benchmark), recorded_demographics(benchmark)
    for item in benchmark.items:
        yield "level", str(item.level), item
        yield "family", str(item.family), item
        if item.item_id in answers and item.family in DIAGNOSES:
            yield "diagnosis", answers[item.item_id], item
        for sequence in {image.sequence for image in item.images}:
            yield "sequence", sequence, item
        for name in recorded:
            yield name, people[item.case_id][name] or NOT_RECORDED, item


@of_benchmarks
def cohort_rows(study: Study, benchmark: BenchmarkStudy) -> Iterator[CountRow]:
    """Items and patients by level, family, diagnosis, sequence, age, sex and scanner."""
    groups: dict[str, dict[str, list[Item]]] = {}
    for variable, value, item in cohort_values(benchmark):
        groups.setdefault(variable, {}).setdefault(value, []).append(item)
    made = ModelRows("cohort", study, benchmark, "")
    for variable in ("level", "family", "diagnosis", "sequence", *DEMOGRAPHICS):
        for value, items in sorted(groups.get(variable, {}).items()):
            cells = {"slice": variable, "value_of_slice": value, "n_patients": len({item.patient_id for item in items})}
            yield made.count("items", len(items), len(benchmark.items), **cells)


class CaseAnswers(NamedTuple):
    """Answers to one case under the full request: that pass, that are expected, that are missing or not graded, and that are wrong because they were not read."""

    passes: int
    expected: int
    missing: int
    unread: int = 0


def cases_takeaway(study: Study, tables: Tables) -> Takeaway:
    """Summarise how many cases no model, and every model, gets right under the arm full, and of how many this is not known."""
    found = [answers for benchmark in study.benchmarks.values() for answers in answers_by_case(study, benchmark)]
    known = [one for one in found if not one.missing]
    noun = case_noun(cluster_of(tables["leaderboard"]))
    if not found:
        return Takeaway(f"No {noun} has a scored answer.", counted(0, noun))
    failed, always = [one for one in known if one.passes == 0], sum(one.passes == one.expected for one in known)
    never, unread = (sum((one.unread > 0) is kind for one in failed) for kind in (False, True))
    open_ = f", of {unread} more none passes, but some answers could not be read" if unread else ""
    parts = (
        [f"of {counted(len(known), noun)} {never} {are(never)} passed by no model{open_}, and {always} by every model every time"]
        if known
        else []
    )
    if left := len(found) - len(known):
        which = counted(left, f"more {noun}" if known else noun)
        parts.append(f"of {which} it is not known whether a model passes, because answers are missing or not graded")
    size = f"{counted(len(known), noun)} with a grade of every answer; {whole_size(study, tables)}"
    return Takeaway(f"{capital('; '.join(parts))}.", size)


def answers_by_case(study: Study, benchmark: BenchmarkStudy) -> list[CaseAnswers]:
    """Count the answers to every case, of all models but readers; a model without a graded answer in the whole run is left out."""
    runs = [one.outcomes for one in study.benchmarks.values()]
    models = [name for name in study.models if name not in study.readers and not all(run.counts[Outcome(name)].unanswered for run in runs)]
    cases: dict[str, list[int]] = defaultdict(list)
    for place, item in enumerate(benchmark.outcomes.items):
        cases[item.case_id].append(place)
    counts = [benchmark.outcomes.counts[Outcome(name)] for name in models]
    amounts = [[one.passes, one.samples, one.missing, one.unread] for one in counts]
    return [CaseAnswers(*np.sum(amounts, axis=0)[:, places].sum(axis=1).tolist()) for places in (cases.values() if counts else ())]


def cohort_takeaway(study: Study, tables: Tables) -> Takeaway:
    """Summarise the numbers of items and patients, and how the diagnoses were established."""
    parts, size = [], []
    for name, benchmark in study.benchmarks.items():
        patients = len({item.patient_id for item in benchmark.items})
        how = sorted({gold.established for gold in benchmark.gold} - {""})
        parts.append(
            (
                name,
                f"source of the reference: {listing([f'“{one}”' for one in how])}"
                if how
                else "how the reference was established is not recorded",
            )
        )
        size.append((name, items_of(len(benchmark.items), patients, benchmark.cluster)))
    return Takeaway(f"{capital(by_benchmark(parts))}." if parts else "No items.", by_benchmark(size) or "0 items")


CASES = Table(
    name="cases",
    row=CaseStateRow,
    rows=case_rows,
    suppression=Suppression("benchmark", each=True),
    takeaways={"cases": cases_takeaway},
)

MEASURES = (Measure("items", "Items", "Items with this value, of all items.", "number"),)

COHORT = topic(
    "cohort",
    cohort_rows,
    MEASURES,
    labels=lambda row: [(f"{ALL} items", ""), (f"cohort {row['slice']}", row["value_of_slice"])],
    takeaways={"cohort": cohort_takeaway},
)
