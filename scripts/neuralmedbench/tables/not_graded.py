"""Answers that came and have no grade, so that they are neither right nor wrong: why, and what to do."""

from __future__ import annotations

from neuralmedbench.records.words import are, counted, listing, percent
from neuralmedbench.scoring.language import LANGUAGES
from neuralmedbench.scoring.rubric import CORE_DIAGNOSIS
from neuralmedbench.tables.grader_checks import not_used
from neuralmedbench.tables.outcomes import Key
from neuralmedbench.tables.rows import Tables
from neuralmedbench.tables.study import BenchmarkStudy, Study
from neuralmedbench.tables.words import begun, models_of

LANGUAGE, NO_GRADER, NOT_USED, NO_VERDICT = "language", "no grader", "not used", "no verdict"
"""Why answers have no grade: their language; no grader of the run decides whether a free answer is right; those that do missed planted errors;
a grader that is used gave no verdict."""

ANOTHER = "add a grader that asks a model (docs/graders.md) and run again, or have clinicians rate the answers"
STEPS = {
    LANGUAGE: "a grader that asks a model can read them (docs/graders.md)",
    NO_GRADER: ANOTHER,
    NOT_USED: ANOTHER,
    NO_VERDICT: "nmb run retry asks the graders again",
}
"""What to do about each."""


def why_not_graded(study: Study, benchmark: BenchmarkStudy, model: str) -> list[str]:
    """Return the reasons why answers of a model under the full request came and have no grade; none if all have one."""
    counts = benchmark.outcomes.counts[Key(model)]
    reasons = [LANGUAGE] if counts.foreign else []
    if int(counts.not_graded.sum()) <= counts.foreign:
        return reasons
    deciding = [name for name in study.graders if any(row.criterion == CORE_DIAGNOSIS for row in benchmark.grades.get((model, name), ()))]
    used = [name for name in deciding if CORE_DIAGNOSIS not in study.unused_criteria(benchmark.name, model, name)]
    return [*reasons, NO_VERDICT if used else NOT_USED if deciding else NO_GRADER]


def not_graded_notes(study: Study, benchmark: BenchmarkStudy, model: str) -> list[str]:
    """Return the reasons as notes on a row of the leaderboard."""
    counts, reasons = benchmark.outcomes.counts[Key(model)], why_not_graded(study, benchmark, model)
    words = {
        NO_GRADER: "not graded: no grader of the run decides whether a free answer is right",
        NOT_USED: "not graded: no grader of the run is used for core diagnosis, because they missed planted errors",
        NO_VERDICT: "not graded: a grader gave no verdict",
    }
    if LANGUAGE in reasons:
        languages = listing([LANGUAGES[code] for code in counts.languages])
        share = percent(counts.foreign / max(int(counts.samples.sum()), 1))
        words[LANGUAGE] = f"not graded: {share} of the answers are in {languages}, for which the vocabulary has no names"
    return [words[reason] for reason in reasons]


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
        parts += [begun(f"{_why(study, tables, name, reason)}: {STEPS[reason]}", study) for reason in reasons]
        found[name] = f"{'. '.join(parts)}."
    return found


def _why(study: Study, tables: Tables, benchmark: str, reason: str) -> str:
    if reason == NOT_USED:
        missed = "; ".join(part for grader in study.graders for part in not_used(study, tables, benchmark, grader))
        return f"{missed}, and no other grader of the run decides" if missed else "no grader of the run is used for core diagnosis"
    return {
        LANGUAGE: "the vocabulary has no names in their language",
        NO_GRADER: "no grader of the run decides whether a free answer is right",
        NO_VERDICT: "a grader gave no verdict",
    }[reason]
