"""Agreement of graders and similarity with clinicians, beside that of clinicians with each other: topic `grader_vs_clinician`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from neuralmedbench.config.model import GraderConfig, ModelConfig
from neuralmedbench.estimates.concordance import COEFFICIENTS, Level, Pairs, concordance
from neuralmedbench.estimates.intervals import ByPatient, Interval, IntervalSettings, codes_of
from neuralmedbench.records.results import is_simulated
from neuralmedbench.records.scores import Key, Score, response_key
from neuralmedbench.records.words import counted, decimal
from neuralmedbench.tables.clinicians.opinions import RATERS, Opinions, grades_of, opinions_of
from neuralmedbench.tables.declare import Cells, Measure, MeasureRow, ModelRows, Tables, Takeaway, no_labels, topic
from neuralmedbench.tables.outcomes import headline
from neuralmedbench.tables.study import BenchmarkStudy, Study
from neuralmedbench.tables.takeaways import SIMULATED_ALONE
from neuralmedbench.tables.words import begun, largest

MAKERS = {
    "anthropic": "anthropic",
    "cohere": "cohere",
    "deepseek": "deepseek",
    "gemini": "google",
    "google": "google",
    "meta-llama": "meta",
    "meta_llama": "meta",
    "mistral": "mistral",
    "mistralai": "mistral",
    "openai": "openai",
    "qwen": "alibaba",
    "x-ai": "xai",
    "xai": "xai",
}
"""Maker by the first part of an id (`openai/gpt-5`)."""

SELLERS = frozenset({"bedrock", "deepinfra", "fireworks_ai", "groq", "openrouter", "together_ai"})
"""First parts of an id that name a host; the maker may follow (`openrouter/google/...`)."""

UNKNOWN = "not known"
MAKER_NOTE = "same maker: "


def maker_of(model: ModelConfig) -> str:
    """Return the maker of a model; empty where its id does not name one.

    The maker is not known for a server with an address of its own (`api_base`), nor for a folder with weights.
    """
    # ids have the form maker/model or host/maker/model
    parts = model.id.casefold().split("/")
    if model.backend != "litellm" or model.api_base is not None or len(parts) == 1:
        return ""
    return MAKERS.get(parts[1] if parts[0] in SELLERS and len(parts) > 2 else parts[0], "")


def same_maker(grader: GraderConfig, model: ModelConfig, graders: Mapping[str, GraderConfig]) -> str:
    """Return `yes` if a grader (or a member of a jury) and a candidate are of one maker, else `no`; `not known` where an id names no maker."""
    if grader.kind == "rubric":
        return "no"
    if grader.kind == "jury":
        parts = [same_maker(graders[name], model, graders) if name in graders else UNKNOWN for name in grader.members]
        return next((word for word in ("yes", UNKNOWN) if word in parts), "no")
    makers = ("" if grader.model is None else maker_of(grader.model)), maker_of(model)
    return UNKNOWN if "" in makers else ("yes" if makers[0] == makers[1] else "no")


METRICS = ("cosine", "bertscore_f1")
"""Measures of similarity."""

CLINICIAN = "clinician"
"""The judge that gives the ceiling: one clinician compared with another."""

FEWEST_UNITS = 8
"""Fewest answers, items or models for a coefficient; a mean difference needs one. (Our rule.)"""


RESPONSE = "response"
"""Level of single answers."""

OVER: dict[str, Level] = {RESPONSE: "pairs", "item": "units", "model": "shared units"}
"""Unit of a coefficient by level, in the column `slice`."""

OF_MEANS = ("pearson", "spearman", "icc", "bias")
"""Coefficients of means over items or models."""


@dataclass(frozen=True)
class _Judge:
    """A source of values to compare with clinicians: a grader, a measure of similarity, or another clinician; and its coefficients."""

    name: str
    values: Mapping[Key, float]
    wanted: tuple[str, ...]


def trust_rows(study: Study) -> list[MeasureRow]:
    """Agreement of judges (`source`) with raters (`value_of_slice`), by level (`slice`).

    Raters are clinicians or simulated. `response`: single answers of all models (without a model),
    then of each; `item` and `model`: means. Every rated answer has the same weight: the numbers are
    about these answers, not weighted for their draw. `note` counts the models of a mean over
    models, and says of a grader's `bias` on one model whether one maker made both.
    """
    rows = list[MeasureRow]()
    for simulated, raters in RATERS.items():
        opinions = opinions_of(study, simulated=simulated)
        for benchmark in study.benchmarks.values():
            scores = [row for table in benchmark.scores.values() for row in headline(table) if response_key(row) in opinions]
            for judge in _judges(study, benchmark, scores, opinions):
                known = [row for row in scores if response_key(row) in judge.values]
                for level, model, part in _parts(known):
                    made = ModelRows("grader_vs_clinician", study, benchmark, model)
                    rows += _rows(made, judge, part, opinions, level=level, value_of_slice=raters)
    return rows


def _judges(study: Study, benchmark: BenchmarkStudy, scores: Sequence[Score], opinions: Mapping[Key, Opinions]) -> Iterator[_Judge]:
    passes = study.form.passes
    if not scores or passes is None:
        return
    axis = study.form.axes[passes.axis]
    every = tuple(name for name in COEFFICIENTS if name != "kappa")
    for grader in study.all_graders:
        values = {key: value for model in study.models for key, value in grades_of(benchmark, model, grader, scores).items()}
        # grades as points of the clinicians' scale
        steps = np.array(list(values.values())) * (axis.highest - axis.lowest)
        # kappa needs the points of the scale, so a grader with values between them has none
        wanted = COEFFICIENTS if np.allclose(steps, steps.round(), atol=1e-9) else every
        yield _Judge(grader, values, wanted)
    # similarity counts only for the text that was scored
    near = {(response_key(row), row.text_sha256): row for row in benchmark.similarity}
    for metric in METRICS:
        found = {response_key(row): near.get((response_key(row), row.text_sha256)) for row in scores}
        known = {key: getattr(row, metric) for key, row in found.items() if row is not None and getattr(row, metric) is not None}
        yield _Judge(metric, known, ("pearson", "spearman", "auc"))
    # the ceiling: answers with more than one clinician
    several = {key: 0.0 for key, one in opinions.items() if len(one.values) > 1}
    yield _Judge(CLINICIAN, several, tuple(name for name in COEFFICIENTS if name != "bias"))


def _parts(scores: Sequence[Score]) -> Iterator[tuple[str, str, Sequence[Score]]]:
    """Yield level, model and answers of each part."""
    if scores:
        yield RESPONSE, "", scores
        for model in sorted({row.model for row in scores}):
            yield RESPONSE, model, [row for row in scores if row.model == model]
        yield "item", "", scores
        yield "model", "", scores


def _rows(
    made: ModelRows, judge: _Judge, scores: Sequence[Score], opinions: Mapping[Key, Opinions], *, level: str, **cells: Any
) -> Iterator[MeasureRow]:
    study = made.study
    pairs = _pairs(judge, scores, opinions, level, study.settings)
    units = len(scores) if level == RESPONSE else int(pairs.units.max()) + 1
    wanted = [name for name in judge.wanted if level == RESPONSE or name in OF_MEANS]
    # with too few units only the mean difference is computed
    coefficients = concordance(pairs, [name for name in wanted if units >= FEWEST_UNITS or name == "bias"], OVER[level])
    cells |= {"source": judge.name, "slice": level, "n_answers": len(scores)}
    cells |= {"n_items": len({row.item_id for row in scores}), "n_patients": len({row.patient_id for row in scores})}
    for name in wanted:
        note = counted(units, "model") if level == "model" else ""
        if name == "bias" and made.model and judge.name in study.all_graders:
            note = MAKER_NOTE + same_maker(study.all_graders[judge.name], study.models[made.model], study.all_graders)
        value, low, high, method = coefficients.get(name, Interval())
        yield made.plain(name, value=value, low=low, high=high, method="" if value is None else method, note=note, **cells)


def _pairs(judge: _Judge, scores: Sequence[Score], opinions: Mapping[Key, Opinions], level: str, settings: IntervalSettings) -> Pairs:
    """Pair a judge's value of each answer with each clinician's.

    A clinician is paired with every other one, in both orders. In means over several answers both sides would then be the same, so there
    the first half of an answer's raters, by pseudonym, is paired with the rest.
    """
    rows: list[tuple[float, float, bool, float, int]] = []
    for place, score in enumerate(scores):
        key = response_key(score)
        opinion = list(zip(opinions[key].values, opinions[key].passes, strict=True))
        half = len(opinion) // 2
        if judge.name != CLINICIAN:
            own = [(judge.values[key], *other) for other in opinion]
        elif level == RESPONSE:
            own = [(one, *other) for a, (one, _) in enumerate(opinion) for b, other in enumerate(opinion) if a != b]
        else:
            own = [(one, *other) for one, _ in opinion[:half] for other in opinion[half:]]
        rows += [(*pair, 1 / len(own), place) for pair in own]
    value, clinician, passed, weight, places = (np.array(column) for column in zip(*rows, strict=True))
    names = [score.item_id if level == "item" else score.model for score in scores]
    by = ByPatient([score.patient_id for score in scores], settings).at(places)
    return Pairs(value, clinician, passed, weight, codes_of(names)[places], by)


def _over_all_models(tables: Tables) -> list[Cells]:
    return [row for row in tables["grader_vs_clinician"] if row["slice"] == RESPONSE and not row["model"]]


def trust_takeaway(study: Study, tables: Tables) -> Takeaway:
    """State how far graders follow clinicians, or why that is not known."""
    rows = tables["grader_vs_clinician"]
    of_clinicians = [row for row in rows if not is_simulated(row)]
    if text := follow_words(study, tables):
        words = begun(text, study)
    elif of_clinicians:
        words = "Clinicians have rated too few answers to compare a grader with them."
    else:
        words = SIMULATED_ALONE if rows else "No clinician has rated an answer."
    return Takeaway(words, largest(of_clinicians or rows))


def follow_words(study: Study, tables: Tables) -> str:
    """State the agreement of the first grader with one clinician by benchmark, compared with that of another clinician; empty without ratings."""
    rows = [row for row in _over_all_models(tables) if not is_simulated(row) and row["measure"] == "icc" and row["value"] is not None]
    parts = []
    for benchmark in study.benchmarks.values():
        by_judge = {row["source"]: row for row in rows if row["benchmark"] == benchmark.name}
        grader = next((by_judge[name] for name in study.graders if name in by_judge), None)
        if grader:
            title, answers = study.graders[grader["source"]].title, grader["n_answers"]
            follows = (
                f"{title} follows one clinician with an ICC of {_coefficient(grader)} on {answers} answers of {benchmark.config.title}"
            )
            ceiling = "no answer has a second clinician to compare with"
            if CLINICIAN in by_judge:
                ceiling = f"one clinician follows another with {_coefficient(by_judge[CLINICIAN])}"
            parts.append(f"{follows}; {ceiling}")
    return "; ".join(parts) + "." if parts else ""


def _coefficient(row: Cells) -> str:
    value = decimal(row["value"])
    return value if row["low"] is None else f"{value} ({decimal(row['low'])} to {decimal(row['high'])})"


MEASURES = (
    Measure(
        "pearson",
        "Pearson r",
        "Pearson's correlation of the grader's values with those of one clinician.",
        "number",
    ),
    Measure(
        "spearman",
        "Spearman",
        "Spearman's rank correlation of the grader's values with those of one clinician.",
        "number",
    ),
    Measure(
        "icc",
        "ICC(2,1)",
        "Agreement of the grader's values with those of one clinician: intraclass correlation.",
        "number",
    ),
    Measure(
        "kappa",
        "Kappa, quadratic",
        "Agreement with one clinician beyond chance, with quadratic weights.",
        "number",
    ),
    Measure(
        "auc",
        "AUROC, pass",
        "Chance that an answer that the clinician passes has a higher value than one that the clinician does not pass.",
        "number",
    ),
    Measure(
        "bias",
        "Grader bias",
        "Mean value of the grader minus mean value of the clinician.",
        "points",
    ),
)

TABLE = topic(
    "grader_vs_clinician",
    trust_rows,
    MEASURES,
    labels=no_labels,
    takeaways={"grader_vs_clinician": trust_takeaway},
)
