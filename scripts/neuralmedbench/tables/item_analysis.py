"""For the authors of a benchmark: what each item shows of models (`items.csv`), and which parts have too few patients (topic `plan`)."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from neuralmedbench.estimates.contrasts import Parts, paired_parts, patients_to_show
from neuralmedbench.estimates.exact import holm_known
from neuralmedbench.estimates.intervals import ByPatient, Floats, Interval, rate_interval
from neuralmedbench.estimates.over_models import FEWEST_MODELS, Discrimination, guessing_p, is_shared, item_discriminations
from neuralmedbench.estimates.suppression import Label
from neuralmedbench.records.items import Arm, Runner
from neuralmedbench.records.results import FEWEST
from neuralmedbench.records.words import are, capital, counted, listing, points
from neuralmedbench.tables.declare import (
    SCORED,
    Cells,
    Count,
    Measure,
    MeasureRow,
    ModelRows,
    Number,
    ResultRow,
    Suppression,
    Table,
    Tables,
    Takeaway,
    Text,
    of_benchmarks,
    topic,
)
from neuralmedbench.tables.groups import Mask
from neuralmedbench.tables.outcomes import Key
from neuralmedbench.tables.study import BenchmarkStudy, Study
from neuralmedbench.tables.words import by_benchmark

NOBODY, EVERYBODY, BLIND, REVERSED, SAME_WRONG = FLAGS = ("nobody", "everybody", "blind", "reversed", "same wrong answer")
"""What may be said of an item, in the column `flags`."""

SOLVED = 0.5
"""An item is solved by a model that passes it in more than this share of its answers. (Our rule.)"""


@dataclass(frozen=True, kw_only=True)
class ItemRow(ResultRow):
    """One item over the models that answered it."""

    benchmark: str
    item_id: str
    family: str
    level: str
    runner: str
    n_models: int
    n_solving: Count = None
    share_right: Number = None
    share_right_low: Number = None
    share_right_high: Number = None
    discrimination: Number = None
    discrimination_low: Number = None
    discrimination_high: Number = None
    n_blind: Count = None
    n_blind_models: Count = None
    blind_p: Number = None
    n_same_wrong: Count = None
    flags: Text = None


def compared_models(study: Study, benchmark: BenchmarkStudy) -> list[str]:
    """Return the models by which items are judged: those with an answer that are neither readers, nor built in, nor of the reference pool.

    Where there is none, all but readers: the table of a run of built-in models is about these.
    """
    counts = benchmark.outcomes.counts
    there = [name for name in study.models if name not in study.readers and not counts[Key(name)].unanswered]
    real = [name for name in there if not study.models[name].baseline and name not in benchmark.config.reference_pool]
    return real or there


@of_benchmarks
def item_rows(study: Study, benchmark: BenchmarkStudy) -> list[ItemRow]:
    """Rows of `items.csv`: every item with a reference that a model answered; arm full, strategy direct.

    Within a benchmark the smallest discrimination comes first, and items without one last.
    """
    return sorted(_rows_of(study, benchmark), key=lambda row: np.inf if row.discrimination is None else row.discrimination)


def _rows_of(study: Study, benchmark: BenchmarkStudy) -> Iterator[ItemRow]:
    outcomes, models = benchmark.outcomes, compared_models(study, benchmark)
    if not models or not outcomes.items:
        return
    shares = np.array([outcomes.pass1_of_complete_items(Key(name)) for name in models])
    numbers = (~np.isnan(shares)).sum(axis=0)
    rates, found = _over_models(shares, study), item_discriminations(shares, outcomes.patients, study.settings.confidence)
    alpha = 1 - study.settings.confidence
    blind, blind_p = _blind(study, benchmark, models)
    wrong = _same_wrong(benchmark, models)
    for place, item in enumerate(outcomes.items):
        known = shares[~np.isnan(shares[:, place]), place]
        if not known.size:
            continue
        models_here, same, p_blind = int(numbers[place]), wrong[item.item_id], blind_p[place]
        enough = models_here >= FEWEST_MODELS
        holds = {
            NOBODY: enough and not known.any(),
            EVERYBODY: enough and bool((known == 1).all()),
            BLIND: p_blind is not None and p_blind < alpha,
            REVERSED: found[place].is_reversed,
            SAME_WRONG: is_shared(same, models_here),
        }
        yield ItemRow(
            benchmark=benchmark.name,
            item_id=item.item_id,
            family=str(item.family),
            level=str(item.level),
            runner=str(item.runner),
            n_models=models_here,
            n_solving=int((known > SOLVED).sum()),
            share_right=float(known.mean()),
            share_right_low=rates[place].low,
            share_right_high=rates[place].high,
            discrimination=found[place].value,
            discrimination_low=found[place].low,
            discrimination_high=found[place].high,
            n_blind=blind[place][0],
            n_blind_models=blind[place][1],
            blind_p=p_blind,
            n_same_wrong=same,
            flags=", ".join(flag for flag in FLAGS if holds[flag]),
        )


def _over_models(shares: Floats, study: Study) -> Sequence[Interval | Discrimination]:
    """Return the interval of each item's share over models as drawn at random; none with fewer than `FEWEST_MODELS`."""
    if len(shares) < FEWEST_MODELS:
        return [Interval()] * shares.shape[1]
    by = ByPatient(np.arange(len(shares)), study.settings)
    return [rate_interval(column, by) for column in shares.T]


def _blind(
    study: Study, benchmark: BenchmarkStudy, models: Sequence[str]
) -> tuple[list[tuple[int | None, int | None]], list[float | None]]:
    """Count the models that solve each item without its pictures, of how many, with the corrected chance that all of them guess.

    The chance of one guess is that among the options, or else the share of the items of the family that have the same reference; of an item
    that the best constant answer gets right it is 1, as models may share the habit.
    """
    outcomes = benchmark.outcomes
    references = Counter((item.family, gold.answer) for item, gold in zip(outcomes.items, outcomes.gold, strict=True))
    families = Counter(item.family for item in outcomes.items)
    counts, p_values = list[tuple[int | None, int | None]](), list[float | None]()
    keys = [key for name in models if (key := Key(name, Arm.NO_IMAGE)) in outcomes.counts]
    shares = np.array([outcomes.pass1_of_complete_items(key) for key in keys]).reshape(len(keys), len(outcomes.items))
    for place, item in enumerate(outcomes.items):
        known = shares[~np.isnan(shares[:, place]), place]
        if not known.size:
            counts.append((None, None))
            p_values.append(None)
            continue
        solving = int((known > SOLVED).sum())
        constant = float(benchmark.floors["pass1"].chosen[place])
        alike = references[item.family, outcomes.gold[place].answer] / families[item.family]
        chance = max(constant, 1 / len(item.options) if item.runner is Runner.CHOICE else alike)
        samples = max(int(outcomes.counts[key].samples[place]) for key in keys)
        counts.append((solving, len(known)))
        p_values.append(guessing_p(solving, len(known), chance, samples))
    return counts, holm_known(p_values)


def _same_wrong(benchmark: BenchmarkStudy, models: Sequence[str]) -> Counter[str]:
    """Count for each item the models that share a wrong answer, each in more than half of its answers: a sign of a wrong reference."""
    sharing: dict[str, Counter[str]] = defaultdict(Counter)
    outcomes = benchmark.outcomes
    for name in models:
        for item, rows in zip(outcomes.items, outcomes.answers.of(Key(name)).by_item(), strict=True):
            named = [
                row.differential[0].strip().casefold() for row in rows if row.passed is False and row.state == "ok" and row.differential
            ]
            if named and not any(row.missing for row in rows):
                ((answer, number),) = Counter(named).most_common(1)
                if number > SOLVED * len(rows):
                    sharing[item.item_id][answer] += 1
    return Counter({item: max(answers.values()) for item, answers in sharing.items()})


FEW_IN_PART = "spread of the whole benchmark, as fewer than {} answered both"
"""Note on a part whose own patients are too few to say how much two models differ."""


CHANGED, NEEDED = "changed", "needed"
"""Measures of topic `plan`: the share of patients on whom the median pair of models differs, and the patients that the margin needs."""


@of_benchmarks
def plan_rows(study: Study, benchmark: BenchmarkStudy) -> Iterator[MeasureRow]:
    """Patients that each part of a benchmark needs to show a difference of the margin."""
    outcomes, models = benchmark.outcomes, compared_models(study, benchmark) if benchmark.outcomes.items else []
    values = [outcomes.pass1_of_complete_items(Key(name)) for name in models]
    by, made = outcomes.by_patient(study.settings), ModelRows("plan", study, benchmark, "")
    whole = _typical_parts(values, by, np.ones(len(outcomes.items), dtype=bool))
    for part, value, mask in _parts(benchmark):
        own = _typical_parts(values, by, mask)
        typical = own if own.clusters >= FEWEST else whole
        enough = typical.clusters >= FEWEST
        needed = patients_to_show(study.settings.margin, typical.error, typical.clusters, 1 - study.settings.confidence) if enough else None
        note = (
            "no two models with answers of enough patients"
            if not enough
            else "the difference of the median pair does not vary over patients"
            if needed is None
            else FEW_IN_PART.format(FEWEST)
            if typical is whole and own is not whole and own.clusters < FEWEST
            else ""
        )
        cells: Cells = {"slice": part, "value_of_slice": value, "note": note}
        yield made.plain(CHANGED, mask, value=typical.differing / typical.clusters if enough else None, **cells)
        yield made.plain(NEEDED, mask, value=needed, **cells)


def _parts(benchmark: BenchmarkStudy) -> Iterator[tuple[str, str, Mask]]:
    """Yield the whole benchmark, its families, and the levels of each; a part that is the whole of the one above it is left out."""
    families, levels = (np.array([str(getattr(item, name)) for item in benchmark.outcomes.items]) for name in ("family", "level"))
    yield "", "", np.ones(len(families), dtype=bool)
    for family in sorted(set(families.tolist())):
        own = families == family
        if not own.all():
            yield "family", family, own
        if len(inside := sorted(set(levels[own].tolist()))) > 1:
            yield from ((level_of(family), level, own & (levels == level)) for level in inside)


def level_of(family: str) -> str:
    """Return the slice of the levels of one family."""
    return f"level of {family}"


def _typical_parts(values: Sequence[Floats], by: ByPatient, mask: Mask) -> Parts:
    """Return the parts of the pair of models whose spread over patients is the median of all pairs; none without a pair."""
    inside = [np.where(mask, column, np.nan) for column in values]
    pairs = [parts for first, second in combinations(inside, 2) if (parts := paired_parts(first, second, by)).clusters]
    return sorted(pairs, key=lambda parts: parts.error * parts.clusters**0.5)[len(pairs) // 2] if pairs else Parts(np.zeros(0), np.zeros(0))


def plan_labels(row: Cells) -> list[Label]:
    """Return the part of the benchmark that a row of the plan is about."""
    if not row["slice"]:
        return []
    return [(f"{SCORED} family" if row["slice"] == "family" else row["slice"], row["value_of_slice"])]


def items_takeaway(study: Study, tables: Tables) -> Takeaway:
    """Count the flagged items, and name the benchmarks with too few patients for the margin."""
    rows = tables["items"]
    parts, sizes = [], []
    for name in study.benchmarks:
        own = [row for row in rows if row["benchmark"] == name]
        if own:
            flagged = Counter(flag for row in own for flag in (row["flags"] or "").split(", ") if flag)
            models = max(row["n_models"] for row in own)
            words = [f"{flagged[flag]} {WORDS[flag]}" for flag in FLAGS if flagged[flag]]
            if words:
                number = sum(bool(row["flags"]) for row in own)
                parts.append((name, f"{counted(number, 'item')} {are(number)} flagged ({listing(words, len(words))})"))
            else:
                few = f", but most flags could not be computed: they need {FEWEST_MODELS} models" if models < FEWEST_MODELS else ""
                parts.append((name, f"no item is flagged{few}"))
            sizes.append((name, f"{counted(len(own), 'item')}, {counted(models, 'model')}"))
    text = f"{capital(by_benchmark(parts), study.benchmarks)}." if parts else "No item was answered by a model."
    known = [row for row in tables["plan"] if row["measure"] == NEEDED and row["value"] is not None]
    short = [row for row in known if row["value"] > row["n_patients"]]
    if known:
        difference = points(study.settings.margin, plus="")
        enough = f"{len(short)} of {counted(len(known), 'group')} {are(len(short))} too small to detect a difference of {difference} points"
        text = f"{text} {enough if short else f'Every group is large enough to detect a difference of {difference} points'}."
    return Takeaway(text, by_benchmark(sizes) or "0 items")


WORDS = {
    NOBODY: "solved by no model",
    EVERYBODY: "solved by every model in every answer",
    BLIND: "solved without pictures by more models than guess",
    REVERSED: "solved by weak models rather than by strong ones",
    SAME_WRONG: "with one and the same wrong answer",
}
"""The flags in a sentence, after a number."""


ITEMS = Table(
    name="items",
    row=ItemRow,
    rows=item_rows,
    suppression=Suppression("benchmark", each=True),
    takeaways={"items": items_takeaway},
)

MEASURES = (
    Measure(
        CHANGED,
        "Differ between models",
        "Patients on whom the two models of the median pair differ, of all patients.",
    ),
    Measure(
        NEEDED,
        "Patients needed",
        "Patients needed for 80 % power to detect a difference as large as the margin.",
        "count",
    ),
)

PLAN = topic("plan", plan_rows, MEASURES, labels=plan_labels, takeaways={})
