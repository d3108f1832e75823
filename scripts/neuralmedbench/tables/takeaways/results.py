"""Takeaways of the results: who passes, at what, how reliably and with which errors."""

from __future__ import annotations

from neuralmedbench.records.items import Axis
from neuralmedbench.records.words import capital, counted, percent
from neuralmedbench.tables.study import Study
from neuralmedbench.tables.takeaways.words import (
    Row,
    Said,
    Tables,
    best_of,
    by_benchmark,
    largest,
    models_of,
    share,
    titles_of,
    value_share,
    whole_size,
    without_head,
)
from neuralmedbench.tables.verdict import decomposition_sentence, gap_sentence, picture_sentence


def glance(study: Study, tables: Tables) -> Said:
    """Say how much of what was asked for is there."""
    rows = [row for name in study.benchmarks for row in models_of(tables, name)]
    expected, missing = (sum(row.get(name) or 0 for row in rows) for name in ("expected", "missing"))
    told = f"{counted(len({row['model'] for row in rows}), 'model')} on {counted(len({row['benchmark'] for row in rows}), 'benchmark')}"
    absent = "none is missing" if not missing else f"{missing:,} are missing because of us"
    nothing = "No model has been scored yet, so nothing was found."
    return Said(
        f"{told}: of {counted(expected, 'answer')} to the full request {absent}." if expected else nothing, whole_size(study, tables)
    )


def leaderboard(study: Study, tables: Tables) -> Said:
    """Say who shares the first tier; a tier is all that the order of a leaderboard can claim."""
    told = []
    for name, benchmark in study.benchmarks.items():
        ranked = [row for row in models_of(tables, name) if row.get("rank")]
        first = [row["model"] for row in ranked if row["tier"] == 1]
        words = (
            f"{titles_of(study, first)} {'stands' if len(first) == 1 else 'share'} {'alone in' if len(first) == 1 else ''} the first tier"
        )
        told.append(
            (
                benchmark.config.title,
                f"{' '.join(words.split())} of {counted(len(ranked), 'ranked model')}" if first else "no model has a rank",
            )
        )
    return Said(f"{capital(by_benchmark(told))}." if told else "No model has been scored yet.", whole_size(study, tables))


def axes(study: Study, tables: Tables) -> Said:
    """Say the gap between breadth and depth."""
    rows = tables["axes"]
    if not (sentence := gap_sentence(tables)):
        nothing = "A gap needs a breadth and a depth benchmark that the same model answered; this run has none."
        known = any(row["gap"] is not None for row in rows)
        return Said("No gap has an interval: too few patients, or no model's scores differ between them." if known else nothing, "0 models")
    pairs = sorted({(row["breadth_benchmark"], row["depth_benchmark"]) for row in rows})
    told = counted(len({row["model"] for row in rows}), "model")
    return Said(without_head(sentence), f"{told} on {counted(len(pairs), 'pair')} of sets; {whole_size(study, tables)}")


def perception(study: Study, tables: Tables) -> Said:
    """Say the share of the errors that the findings in words repair."""
    rows = tables["decomposition"]
    told = [without_head(one) for name in study.benchmarks if (one := decomposition_sentence(study, tables, name))]
    if not told and rows:
        told = ["No model's errors can be divided: telling the findings did not help, or no interval is known."]
    return Said(" ".join(told) or "No item was asked with its findings disclosed, so errors cannot be divided.", largest(rows))


def repeats(study: Study, tables: Tables) -> Said:
    """Say whether the right answer ever comes, and whether it always does."""
    told = []
    for name in study.benchmarks:
        row = best_of(tables, name)
        if row and row.get("pass5") is not None and row.get("all_right") is not None:
            always = percent(row["all_right"])
            told.append(
                f"{row['title']}: {share(row, 'pass1')} at the first answer, {share(row, 'pass5')} in any of five, {always} in all five"
            )
    nothing = "No ranked model has five samples of an item at a temperature above 0, so reliability is not known."
    return Said(f"{'; '.join(told)}." if told else nothing, whole_size(study, tables))


def errors(study: Study, tables: Tables) -> Said:
    """Say what wrong answers are made of, by people's labels if there are any; labels of simulated raters are never summed up."""
    rows = [row for row in tables["errors"] if row["level"] == "class"]
    real = [row for row in rows if not row["simulated"]]
    answers = sum(max(row["n"] for row in own) for own in _by_sheet(rows).values())
    n = f"{counted(answers, 'labelled answer')}" + (" (simulated labels)" if rows and not real else "")
    if not rows:
        return Said("Nobody labelled errors in this run.", n)
    labelled = [row for row in real if row["n_wrong"] and row["per_wrong"] is not None]
    if not real:
        return Said("Only simulated raters labelled errors: their labels exercise the form and say nothing about a model.", n)
    if not labelled:
        return Said("No answer that was labelled is wrong.", n)
    first = min(labelled, key=lambda row: (row["kind"] != "round", list(study.benchmarks).index(row["benchmark"])))
    own = [row for row in labelled if all(row[name] == first[name] for name in ("source", "benchmark", "model"))]
    top = max(own, key=lambda row: (row["per_wrong"], row["paper_class"]))
    by = "clinicians" if top["kind"] == "round" else study.all_graders[top["source"]].title
    wrong = share({"p": top["per_wrong"], "p_low": top["wrong_low"], "p_high": top["wrong_high"]}, "p")
    title, kind = study.models[top["model"]].title, top["paper_class"].replace("_", " ")
    return Said(f"By {by}, {wrong} of {counted(top['n_wrong'], 'wrong answer')} of {title} hold a {kind}, the commonest class.", n)


def _by_sheet(rows: list[Row]) -> dict[tuple[str, ...], list[Row]]:
    found: dict[tuple[str, ...], list[Row]] = {}
    for row in rows:
        found.setdefault((row["benchmark"], row["model"], row["source"]), []).append(row)
    return found


def steps(study: Study, tables: Tables) -> Said:
    """Say how much of the reasoning the evidence of the case supports."""
    rows = [row for row in tables["reasoning"] if row["value"] is not None]
    factual = [row for row in rows if row["measure"].endswith("factuality")]
    n = counted(sum(row["n"] for row in factual or rows[:1]), "labelled answer")
    if not factual:
        return Said("No steps of the reasoning were labelled in this run.", n)
    told = [f"{study.models[row['model']].title} {value_share(row)}" for row in factual[:4]]
    return Said(f"Of the steps that the evidence decides, it supports: {', '.join(told)}.", n)


def arms(study: Study, tables: Tables) -> Said:
    """Say whether a model was shown to look."""
    sentence = picture_sentence(study, tables)
    nothing = "No answer to a depth benchmark without its pictures stands beside one with them, so it is not known whether a model looks."
    return Said(without_head(sentence).replace(" without them", " without the pictures") if sentence else nothing, largest(tables["arms"]))


def pairs(study: Study, tables: Tables) -> Said:
    """Say how many pairs of models differ."""
    rows = tables["pairwise"]
    if not rows:
        return Said("A comparison needs two models that answered the same items.", "0 pairs")
    alpha = 1 - study.settings.confidence
    tested = [row for row in rows if row["p_holm"] is not None]
    if not tested:
        return Said("No pair of models answered the same items.", largest(rows))
    differ = sum(row["p_holm"] < alpha for row in tested)
    told = f"{differ} of {counted(len(tested), 'pair')} of models differ after Holm's correction; the others were not shown to be alike."
    all_differ = f"All {len(tested)} pairs of models differ" if len(tested) != 1 else "The only pair of models differs"
    return Said(told if differ < len(tested) else f"{all_differ} after Holm's correction.", largest(rows))


def groups(study: Study, tables: Tables) -> Said:
    """Say how many groups are too small to read a rate from."""
    rows = [row for row in tables["rates"] if row["metric"] == "pass1" and row["slice"] not in ("all", "diagnosis")]
    keys = {(row["benchmark"], row["slice"], row["value_of_slice"]): row["n_patients"] for row in rows}
    known = {key: n for key, n in keys.items() if isinstance(n, int)}
    small = sum(n < 10 for n in known.values())
    told = f"{small} of {counted(len(keys), 'group')} hold fewer than 10 patients; no difference between groups was tested."
    return Said(told if known else "No group of this run has a rate.", whole_size(study, tables))


def abstention(study: Study, tables: Tables) -> Said:
    """Say what answering only when sure would have been worth to the model that stands first."""
    rows = [row for row in tables["risk_coverage"] if row["measure"] == "accuracy" and row["value"] is not None]
    n = counted(sum(row["n"] for row in rows if row["coverage"] == 1), "answer")
    for name, benchmark in sorted(study.benchmarks.items(), key=lambda pair: pair[1].config.axis is not Axis.DEPTH):
        best = best_of(tables, name)
        own = {
            row["coverage"]: row
            for row in rows
            if best and (row["benchmark"], row["model"], row["source"]) == (name, best["model"], "stated")
        }
        if best and 0.5 in own and 1.0 in own:
            told = f"{best['title']} is right in {value_share(own[0.5])} of the surest half of its answers and in {value_share(own[1.0])} of all"
            return Said(f"{told} ({benchmark.config.title}).", n)
    return Said("No ranked model states how sure it is, so nothing can be said about answering only when sure.", n)
