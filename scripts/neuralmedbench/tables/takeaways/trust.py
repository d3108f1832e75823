"""Takeaways of who judged: graders, juries, clinicians, similarity and readers."""

from __future__ import annotations

from neuralmedbench.records.words import capital, counted, percent
from neuralmedbench.tables.study import Study
from neuralmedbench.tables.takeaways.words import Said, Tables, share


def graders(study: Study, tables: Tables) -> Said:
    """Say who graded, and how far the later graders agree with the first."""
    rows = tables["graders"]
    given, failed = (sum(row[name] or 0 for row in rows) for name in ("ok", "failed"))
    active = [name for name in study.all_graders if any(row["grader"] == name and row["ok"] for row in rows)]
    silent = [name for name in study.all_graders if name not in active and any(row["grader"] == name for row in rows)]
    if not active:
        return Said("No answer has been graded.", "0 grades")
    told = [
        f"{study.all_graders[name].title} gave {counted(sum(row['ok'] for row in rows if row['grader'] == name), 'grade')}"
        for name in active
    ]
    agreed = [row["agreement_with_first"] for row in rows if row["grader"] in active[1:] and row["agreement_with_first"] is not None]
    if agreed:
        told.append(f"the others agree with the first on {percent(min(agreed))} to {percent(max(agreed))} of the answers")
    told += [f"{study.all_graders[name].title} gave none" for name in silent]
    missing = f", {failed:,} failed" if failed else ""
    return Said(f"{capital('; '.join(told))}.", f"{counted(given, 'grade')}{missing}, over all arms")


def juries(study: Study, tables: Tables) -> Said:
    """Say how often a jury is of one mind."""
    rows = [row for row in tables["juries"] if not row.get("dropped") and row.get("unanimous") is not None]
    if not rows:
        return Said("No jury graded this run.", "0 answers")
    low, high = (percent(pick(row["unanimous"] for row in rows)) for pick in (min, max))
    span = low if low == high else f"{low} to {high}"
    return Said(
        f"The members of a jury cast equal votes on {span} of the answers, by criterion and model.",
        f"{max(row['n'] for row in rows):,} answers at most",
    )


def ratings(study: Study, tables: Tables) -> Said:
    """Say how far clinicians agree: the most that a grader can be asked for."""
    people = [row for row in tables["ratings"] if not row["simulated"]]
    raters = len({(row["round_id"], row["rater_id"]) for row in tables["raters"] if not row["simulated"]})
    if not people:
        made_up = sum(row["n"] for row in tables["ratings"])
        told = "No clinician has rated an answer: every open score on this page is a grader's word."
        return Said(told, f"0 ratings by clinicians, {counted(made_up, 'simulated value')}" if made_up else "0 ratings")
    alphas = [
        row
        for row in tables["agreement"]
        if not row["simulated"] and (row["measure"], row["axis"]) == ("alpha_ordinal", study.form.passes.axis if study.form.passes else "")
    ]
    known = [row for row in alphas if row.get("value") is not None]
    n = f"{counted(sum(row['n'] for row in people), 'value')} of {counted(raters, 'clinician')}"
    if not known:
        return Said(f"{counted(raters, 'clinician')} rated answers; too few answers were rated twice to say how far they agree.", n)
    row = known[0]
    span = "" if row.get("low") is None else f" ({row['low']:.2f} to {row['high']:.2f})"
    return Said(f"Clinicians agree with alpha {row['value']:.2f}{span} on {row['axis'].replace('_', ' ')}.", n)


def trust(study: Study, tables: Tables) -> Said:
    """Give what the block on trust counts; its sentence is that of `tables.trust.words`."""
    rows = [row for row in tables["grader_vs_clinician"] if row["level"] == "response" and not row["model"]]
    real = [row for row in rows if not row["simulated"]]
    answers, patients = (max((row[name] for row in real or rows), default=0) for name in ("n", "n_patients"))
    made_up = " (simulated ratings)" if rows and not real else ""
    return Said("", f"up to {counted(answers, 'rated answer')}, {counted(patients, 'patient')}{made_up}" if rows else "0 rated answers")


def similarity(study: Study, tables: Tables) -> Said:
    """Say how badly likeness of words tells a right diagnosis from a wrong one."""
    rows = [row for row in tables["similarity"] if row["level"] == "all"]
    n = counted(sum(row["n"] for row in rows if row["metric"] == rows[0]["metric"]), "answer") if rows else "0 answers"
    measured = [row for row in rows if row["auc_vs_clinicians"] is not None]
    if measured:
        row = min(measured, key=lambda row: (row["auc_vs_clinicians"], row["model"]))
        told = f"Likeness of words separates what clinicians pass with an area of {row['auc_vs_clinicians']:.2f} at worst; 0.50 is chance."
        return Said(told, n)
    if not rows:
        return Said("No similarity was measured in this run.", n)
    return Said("Descriptive, never a verdict: no clinician has rated an answer that it could be held against.", n)


def readers(study: Study, tables: Tables) -> Said:
    """Say how people do on the questions of models."""
    rows = [row for row in tables["readers"] if row["slice"] == "all" and not row["simulated"]]
    if not rows:
        return Said("No clinician has answered the questions of this run.", "0 readers")
    row = max(rows, key=lambda row: (row["n_items"], row["reader"]))
    told = f"{row['title']} passes {share(row, 'reader_pass1')} of the questions, {study.models[row['model']].title} {share(row, 'model_pass1')} of the same"
    n = f"{counted(len({row['reader'] for row in rows}), 'reader')}, up to {counted(row['n_items'], 'question')}, {counted(row['n_patients'], 'patient')}"
    return Said(f"{told}.", n)
