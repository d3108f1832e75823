"""Takeaways of the data: cases, their flow, de-identification, what left the machine, cost and form."""

from __future__ import annotations

from neuralmedbench.records.words import capital, counted, listing, percent
from neuralmedbench.tables.study import Study
from neuralmedbench.tables.takeaways.words import Said, Tables, best_of, by_benchmark, largest, share, whole_size


def cases(study: Study, tables: Tables) -> Said:
    """Say how many cases no model, and every model, gets right under the full request."""
    never = always = total = 0
    for benchmark in study.benchmarks.values():
        for passes, answers in _by_case(study, benchmark.name).values():
            total, never, always = total + 1, never + (passes == 0), always + (passes == answers)
    if not total:
        return Said("No case has a scored answer.", "0 cases")
    told = f"{never} of {counted(total, 'case')} no model ever passes, {always} every model always does."
    return Said(told, f"{counted(total, 'case')} with a scored answer; {whole_size(study, tables)}")


def _by_case(study: Study, benchmark: str) -> dict[str, tuple[int, int]]:
    found: dict[str, tuple[int, int]] = {}
    for model, rows in study.benchmarks[benchmark].scores.items():
        if model in study.readers:
            continue
        for row in rows:
            if (row.arm, row.strategy) == ("full", "direct") and row.passed is not None:
                passes, answers = found.get(row.case_id, (0, 0))
                found[row.case_id] = (passes + row.passed, answers + 1)
    return found


def cohort(study: Study, tables: Tables) -> Said:
    """Say how many items, cases and patients there are, and how their diagnosis was established."""
    told, size = [], []
    for name, benchmark in study.benchmarks.items():
        patients = len({item.patient_id for item in benchmark.items})
        how = sorted({gold.established for gold in benchmark.gold} - {""})
        told.append(
            (
                name,
                f"the reference comes from {listing([f'“{one}”' for one in how])}"
                if how
                else "how the reference was established is not recorded",
            )
        )
        size.append((name, f"{counted(len(benchmark.items), 'item')}, {counted(patients, 'patient')}"))
    return Said(f"{capital(by_benchmark(told))}." if told else "No items.", by_benchmark(size) or "0 items")


def flow(study: Study, tables: Tables) -> Said:
    """Say how many of the listed cases are used."""
    rows = [row for row in tables["case_flow"] if row["unit"] != "question"]
    told = []
    for name in study.benchmarks:
        counts = {step: sum(row["n"] for row in rows if (row["benchmark"], row["step"]) == (name, step)) for step in ("listed", "used")}
        unit = next((row["unit"] for row in rows if row["benchmark"] == name), "case")
        told.append((name, f"{counts['used']:,} of {counted(counts['listed'], f'listed {unit}')} used"))
    left_out = sum(row["n"] for row in rows if row["step"] not in ("listed", "used"))
    end = "none was left out" if not left_out else f"{left_out:,} left out, each with its reason"
    return Said(f"{by_benchmark(told)}; {end}." if told else "No case is listed.", by_benchmark(told) or "0 cases")


def privacy(study: Study, tables: Tables) -> Said:
    """Say whether the audits passed, and how much of what was planted was removed."""
    audits = [benchmark.audit for benchmark in study.benchmarks.values()]
    passed = sum(audit.state == "passed" for audit in audits)
    told = [f"The audit passed for {passed} of {counted(len(audits), 'benchmark')}"]
    for row in tables["deidentification"]:
        if (row["place"], row["action"]) == ("all", "removals"):
            told.append(f"on {row['benchmark']}, {row['right']:,} of {row['required']:,} planted identifiers were removed")
    patients = len({item.patient_id for benchmark in study.benchmarks.values() for item in benchmark.items})
    kinds = listing(sorted({audit.kind for audit in audits})) if audits else "nobody"
    return Said(f"{'; '.join(told)}.", f"{counted(len(audits), 'benchmark')}, {counted(patients, 'patient')}; subjects: {kinds}")


def left(study: Study, tables: Tables) -> Said:
    """Say who received de-identified data."""
    rows = tables["destinations"]
    abroad = sorted({row["destination"] for row in rows if row["requests"] and row["destination"] != "local"})
    calls = counted(sum(row["calls"] or 0 for row in rows), "call")
    pictures = counted(sum(row["pictures"] or 0 for row in rows), "picture")
    nothing = "Nothing left this machine for the answers and grades of this run."
    return Said(f"De-identified data went to {listing(abroad)}." if abroad else nothing, f"{calls}, {pictures}")


def cost(study: Study, tables: Tables) -> Said:
    """Say what was paid, as far as prices are known."""
    rows = tables["efficiency"]
    requests = counted(sum(row["requests"] or 0 for row in rows), "request")
    paid = [row for row in rows if row["cost_usd"] is not None]
    priced = len({row["model"] for row in paid})
    models = counted(len({row["model"] for row in rows}), "model")
    told = (
        f"{sum(row['cost_usd'] for row in paid):,.2f} USD by the prices of {priced} of {models}."
        if paid
        else "No price is known for a model of this run."
    )
    return Said(told, f"{requests} to {models}")


def fields(study: Study, tables: Tables) -> Said:
    """Say what the model that stands first reads well and what it does not."""
    rows = tables["fields"]
    for name in study.benchmarks:
        best = best_of(tables, name)
        own = [row for row in rows if best and (row["benchmark"], row["model"]) == (name, best["model"]) and row["accuracy"] is not None]
        if best and len(own) > 1:
            top, low = (pick(own, key=lambda row: (row["accuracy"], row["field"])) for pick in (max, min))
            ends = [
                f"{row['field']} in {share({'p': row['accuracy'], 'p_low': row['low'], 'p_high': row['high']}, 'p')}" for row in (top, low)
            ]
            return Said(f"{best['title']} reads {ends[0]} of the items right, and {ends[1]}.", largest(rows))
    return Said("No ranked model of this run gave structured answers.", largest(rows))


def form(study: Study, tables: Tables) -> Said:
    """Say how many answers came in the form that was asked for."""
    rows = [row for row in tables["validity"] if row["step"] == "parse_strict"]
    kept, asked = (sum(row[name] or 0 for row in rows) for name in ("count", "n"))
    if not asked:
        return Said("No answer has been asked for yet.", "0 answers")
    return Said(f"{percent(kept / asked)} of the answers came in the form that was asked for.", counted(asked, "answer"))


def methods(study: Study, tables: Tables) -> Said:
    """Say what is counted as independent, and how often it was resampled."""
    settings = study.settings
    told = f"Patients are what is independent: {percent(settings.confidence)} intervals, {settings.resamples:,} resamples of patients, Holm's correction within a benchmark."
    return Said(told, whole_size(study, tables))


def readiness(study: Study, tables: Tables) -> Said:
    """Say how many conditions of the site are met; never a recommendation."""
    rows = tables["readiness"]
    stated = [row for row in rows if row.get("use")]
    patients = max((row["n_patients"] for row in rows if isinstance(row["n_patients"], int)), default=0)
    n = f"up to {counted(patients, 'patient')} a group, {counted(len(stated), 'stated condition')}"
    if not stated:
        return Said("No condition is stated, so nothing is met or not met: thresholds belong to the site.", n)
    met, not_met = (sum(row["verdict"] == verdict for row in stated) for verdict in ("met", "not met"))
    verb = {1: "is"}
    told = (
        f"{met} {verb.get(met, 'are')} met, {not_met} {verb.get(not_met, 'are')} not met and {len(stated) - met - not_met} cannot be told"
    )
    return Said(f"Of {counted(len(stated), 'verdict')}, {told}.", n)


def changed(study: Study, tables: Tables) -> Said:
    """Say whether a new revision was compared with the one before."""
    rows = tables["revisions"]
    if not rows:
        return Said("No earlier revision of a model stands beside the present one.", "0 revisions")
    models = sorted({row["model"] for row in rows})
    return Said("", f"{counted(len(models), 'model')} with an earlier revision; {largest(rows)}")
