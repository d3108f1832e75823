"""What missing answers and missing grades leave open.

Above the allowed share of missing answers there is no rate, only what it would be if all of them had failed or passed. An answer that came
and has no grade is neither right nor wrong: the sentences say why, and what to do.
"""

from __future__ import annotations

import numpy as np

from neuralmedbench.estimates.intervals import Floats
from neuralmedbench.records.scores import CORE_DIAGNOSIS, MAIN_CONDITION
from neuralmedbench.records.words import ONCE, are, counted, listing, percent, percent_span
from neuralmedbench.scoring.other_languages import LANGUAGES
from neuralmedbench.tables.answers import RUBRIC
from neuralmedbench.tables.declare import Cells, Tables
from neuralmedbench.tables.graders import not_used
from neuralmedbench.tables.groups import Mask
from neuralmedbench.tables.outcomes import PAIR_METRICS, PASS1_STRICT, Key, Outcomes
from neuralmedbench.tables.study import BenchmarkStudy, Study
from neuralmedbench.tables.words import begun, models_of

BOUNDED = frozenset({"pass1", PASS1_STRICT, "pass5", "candidates5", "all_right"})
"""Rates of which missing answers are part of the denominator, with the two rates if all of them had failed or passed."""
FALSE_ALARM = "false_alarm"
OF_OPEN = frozenset({MAIN_CONDITION, CORE_DIAGNOSIS})
"""Means over graded answers to open items, in which refused and truncated ones are 0, as are points of a rubric."""
LANGUAGE, OUTSIDE, NO_GRADER, NOT_USED, NO_VERDICT = "language", "outside", "no grader", "not used", "no verdict"
"""Why answers have no grade: their language; the vocabulary does not have the reference; no grader of the run decides whether a free answer is right; those that do missed planted errors;
a grader that is used gave no verdict."""
ANOTHER = "add a grader that asks a model (docs/graders.md) and run again, or have clinicians rate the answers"
STEPS = {
    LANGUAGE: "a grader that asks a model can read them (docs/graders.md)",
    OUTSIDE: "add a grader that asks a model, or add them to the vocabulary (docs/graders.md)",
    NO_GRADER: ANOTHER,
    NOT_USED: ANOTHER,
    NO_VERDICT: "nmb run retry asks the graders again",
}
"""What to do about each."""


def is_left_open(outcomes: Outcomes, key: Key, name: str, items: Mask, limit: float) -> bool:
    """Return True if more than the allowed share of the expected answers to some items has no value of a metric.

    `items` are those over which the metric is; of pairs all their members.
    """
    counts = outcomes.counts[key]
    if name in OF_OPEN | {RUBRIC} and name in counts.graded:  # points are not counted under every arm
        with_rubric = np.array([bool(gold.rubric) for gold in outcomes.gold], dtype=bool)
        asked, given = items & (outcomes.repeatable if name in OF_OPEN else with_rubric), counts.graded[name]
    elif name in BOUNDED or name in PAIR_METRICS or name == FALSE_ALARM:
        asked, given = items, counts.samples - counts.missing
    else:
        return False
    expected = int(counts.samples[asked].sum())
    return expected - int(given[asked].sum()) > limit * expected


def bounds_of(outcomes: Outcomes, key: Key, name: str, values: Floats, *, within_family: bool = False) -> tuple[float | None, float | None]:
    """Return a rate over the items with a value, if all missing answers had failed, and had passed; None of both for a metric without bounds.

    A missing answer that failed is a false alarm, one that passed is none.
    """
    known = ~np.isnan(values)
    if not known.any() or (name not in BOUNDED and name != FALSE_ALARM):
        return None, None
    mean = float(values[known].mean())
    if name == FALSE_ALARM:
        counts = outcomes.counts[key]
        return float((values + counts.mean_of(counts.missing))[known].mean()), mean
    return mean, float(outcomes.metric(name, key, within_family=within_family, best=True)[known].mean())


def case_words(row: Cells) -> str:
    """Say between which rates a rate lies that is left open; empty if that is not known.

    Examples
    --------
    >>> case_words({"worst_case": 0.088, "best_case": 0.706})
    '9 to 71 %'
    """
    return percent_span(row.get("worst_case"), row.get("best_case"), ONCE)


def why_not_graded(study: Study, benchmark: BenchmarkStudy, model: str) -> list[str]:
    """Return the reasons why answers of a model under the full request came and have no grade; none if all have one."""
    counts = benchmark.outcomes.counts[Key(model)]
    outside = int(counts.not_graded[benchmark.outside].sum())
    reasons = [*([LANGUAGE] if counts.foreign else []), *([OUTSIDE] if outside else [])]
    if int(counts.not_graded.sum()) <= counts.foreign + outside:
        return reasons
    deciding = [name for name in study.graders if any(row.criterion == CORE_DIAGNOSIS for row in benchmark.grades.get((model, name), ()))]
    used = [name for name in deciding if CORE_DIAGNOSIS not in study.unused_criteria(benchmark.name, model, name)]
    return [*reasons, NO_VERDICT if used else NOT_USED if deciding else NO_GRADER]


def not_graded_notes(study: Study, benchmark: BenchmarkStudy, model: str) -> list[str]:
    """Return the reasons as notes on a row of the leaderboard."""
    counts, reasons = benchmark.outcomes.counts[Key(model)], why_not_graded(study, benchmark, model)
    words = _causes(benchmark) | {NOT_USED: "no grader of the run is used for core diagnosis, because they missed planted errors"}
    if LANGUAGE in reasons:
        languages = listing([LANGUAGES[code] for code in counts.languages])
        share = percent(counts.foreign / max(int(counts.samples.sum()), 1))
        words[LANGUAGE] = f"{share} of the answers are in {languages}, for which the vocabulary has no names"
    return [f"not graded: {words[reason]}" for reason in reasons]


def not_graded_sentences(study: Study, tables: Tables) -> dict[str, str]:
    """State by benchmark how many answers came and have no grade, why, and what to do; without those of which none is missing a grade."""
    found = {}
    for name, benchmark in study.benchmarks.items():
        rows = [row for row in models_of(tables, name) if row.get("not_graded")]
        if not rows:
            continue
        reasons = list(dict.fromkeys(reason for row in rows for reason in why_not_graded(study, benchmark, row["model"])))
        whose = listing([f"{row['not_graded']:,} of {row['expected']:,} of {row['title']}" for row in rows], len(rows))
        total = sum(row["not_graded"] for row in rows)
        parts = [f"{counted(total, 'answer')} ({whose}) {are(total)} not graded, so neither right nor wrong"]
        parts += [begun(f"{_why(study, tables, benchmark, reason)}: {STEPS[reason]}", study) for reason in reasons]
        found[name] = f"{'. '.join(parts)}."
    return found


def _causes(benchmark: BenchmarkStudy) -> dict[str, str]:
    """Return the words of the reasons."""
    number, of = int(benchmark.outside.sum()), len(benchmark.outcomes.items)
    return {
        LANGUAGE: "the vocabulary has no names in their language",
        OUTSIDE: f"the references of {number:,} of {counted(of, 'item')} are not in the vocabulary",
        NO_GRADER: "no grader of the run decides whether a free answer is right",
        NO_VERDICT: "a grader gave no verdict",
    }


def _why(study: Study, tables: Tables, benchmark: BenchmarkStudy, reason: str) -> str:
    if reason == NOT_USED:
        missed = "; ".join(part for grader in study.graders for part in not_used(study, tables, benchmark.name, grader))
        return f"{missed}, and no other grader of the run decides" if missed else "no grader of the run is used for core diagnosis"
    return _causes(benchmark)[reason]
