"""Agreement of graders and similarity with clinicians, beside that of clinicians with each other: `grader_vs_clinician.csv`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from neuralmedbench.config.model import GraderConfig, ModelConfig
from neuralmedbench.estimates.concordance import COEFFICIENTS, Level, Pairs, concordance
from neuralmedbench.estimates.intervals import ByPatient, IntervalSettings, codes_of
from neuralmedbench.records.scores import Key, Score, response_key
from neuralmedbench.records.words import counted, decimal
from neuralmedbench.tables.clinicians.opinions import Opinions, grades_of, opinions_of
from neuralmedbench.tables.declare import Suppression, Table, of_study
from neuralmedbench.tables.outcomes import headline
from neuralmedbench.tables.rows import Cells, ResultRow, Tables, with_ends
from neuralmedbench.tables.study import BenchmarkStudy, Study
from neuralmedbench.tables.words import Takeaway, begun, cluster_of

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


OVER: dict[str, Level] = {"response": "pairs", "item": "units", "model": "shared units"}
"""Unit of a coefficient by the column `level`."""


@dataclass(frozen=True)
class _Judge:
    """A source of values to compare with clinicians: a grader, a measure of similarity, or another clinician; and its coefficients."""

    name: str
    kind: str
    values: Mapping[Key, float]
    wanted: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class GraderVsClinicianRow(ResultRow):
    """Agreement of one judge with clinicians, over answers, items or models."""

    benchmark: str
    judge: str
    kind: str | None = None
    level: str | None = None
    model: str
    in_reference_pool: bool | None = None
    pearson: float | None = None
    pearson_low: float | None = None
    pearson_high: float | None = None
    spearman: float | None = None
    spearman_low: float | None = None
    spearman_high: float | None = None
    icc: float | None = None
    icc_low: float | None = None
    icc_high: float | None = None
    kappa: float | None = None
    kappa_low: float | None = None
    kappa_high: float | None = None
    auc: float | None = None
    auc_low: float | None = None
    auc_high: float | None = None
    bias: float | None = None
    bias_low: float | None = None
    bias_high: float | None = None
    same_maker: str | None = None
    n: int | None = None
    n_patients: int | None = None
    simulated: bool | None = None


def trust_rows(study: Study) -> list[GraderVsClinicianRow]:
    """Rows of `grader_vs_clinician.csv`.

    By benchmark, judge and level: `response` (all models, then each), `item` and `model` (means). Simulated raters have separate rows.
    Every rated answer has the same weight: the table is about these answers, not weighted for their draw.
    """
    rows = []
    for simulated in (False, True):
        opinions = opinions_of(study, simulated=simulated)
        for benchmark in study.benchmarks.values():
            scores = [row for table in benchmark.scores.values() for row in headline(table) if response_key(row) in opinions]
            for judge in _judges(study, benchmark, scores, opinions):
                rows += [
                    GraderVsClinicianRow(benchmark=benchmark.name, judge=judge.name, kind=judge.kind, simulated=simulated, **row)
                    for row in _rows_of_judge(study, judge, scores, opinions)
                ]
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
        yield _Judge(grader, "grader", values, wanted)
    # similarity counts only for the text that was scored
    near = {(response_key(row), row.text_sha256): row for row in benchmark.similarity}
    for metric in METRICS:
        found = {response_key(row): near.get((response_key(row), row.text_sha256)) for row in scores}
        known = {key: getattr(row, metric) for key, row in found.items() if row is not None and getattr(row, metric) is not None}
        yield _Judge(metric, "similarity", known, ("pearson", "spearman", "auc"))
    # the ceiling: answers with more than one clinician
    several = {key: 0.0 for key, one in opinions.items() if len(one.values) > 1}
    yield _Judge(CLINICIAN, CLINICIAN, several, tuple(name for name in COEFFICIENTS if name != "bias"))


def _rows_of_judge(study: Study, judge: _Judge, scores: Sequence[Score], opinions: Mapping[Key, Opinions]) -> Iterator[Cells]:
    known = [row for row in scores if response_key(row) in judge.values]
    if not known:
        return
    yield _row(study, judge, known, opinions, level="response")
    models = sorted({row.model for row in known})
    for model in models:
        yield _row(study, judge, [row for row in known if row.model == model], opinions, level="response", model=model)
    yield _row(study, judge, known, opinions, level="item")
    yield _row(study, judge, known, opinions, level="model")


def _row(study: Study, judge: _Judge, scores: Sequence[Score], opinions: Mapping[Key, Opinions], *, level: str, model: str = "") -> Cells:
    pairs = _pairs(judge, scores, opinions, level, study.settings)
    # with too few units only the mean difference is computed
    units = len(scores) if level == "response" else int(pairs.units.max()) + 1
    wanted = judge.wanted if level == "response" else tuple(name for name in judge.wanted if name in ("pearson", "spearman", "icc", "bias"))
    if units < FEWEST_UNITS:
        wanted = tuple(name for name in wanted if name == "bias")
    found = concordance(pairs, wanted, OVER[level])
    row: Cells = {"level": level, "model": model} | with_ends(found)
    same = same_maker(study.all_graders[judge.name], study.models[model], study.all_graders) if judge.kind == "grader" and model else ""
    return row | {"n": units, "n_patients": len({score.patient_id for score in scores}), "same_maker": same}


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
        if judge.kind != CLINICIAN:
            own = [(judge.values[key], *other) for other in opinion]
        elif level == "response":
            own = [(one, *other) for a, (one, _) in enumerate(opinion) for b, other in enumerate(opinion) if a != b]
        else:
            own = [(one, *other) for one, _ in opinion[:half] for other in opinion[half:]]
        rows += [(*pair, 1 / len(own), place) for pair in own]
    value, clinician, passed, weight, places = (np.array(column) for column in zip(*rows, strict=True))
    names = [score.item_id if level == "item" else score.model for score in scores]
    by = ByPatient([score.patient_id for score in scores], settings).at(places)
    return Pairs(value, clinician, passed, weight, codes_of(names)[places], by)


def trust_line(study: Study, tables: Tables) -> str:
    """State how far graders follow clinicians, or why that is not known."""
    if text := _follow_text(study, tables):
        return begun(text, study)
    if any(not row["simulated"] for row in tables["grader_vs_clinician"]):
        return "Clinicians have rated too few answers to say how well a grader follows them."
    if tables["grader_vs_clinician"]:
        return "No clinician has rated an answer. What stands here is of simulated raters, and says nothing about a grader or a model."
    return "No clinician has rated an answer: every open score on this page is a grader's word alone."


def _follow_text(study: Study, tables: Tables) -> str:
    rows = [row for row in tables["grader_vs_clinician"] if not row["simulated"] and row["level"] == "response" and not row["model"]]
    parts = []
    for benchmark in study.benchmarks.values():
        own = {row["judge"]: row for row in rows if row["benchmark"] == benchmark.name}
        grader = next((own[name] for name in study.graders if name in own and own[name].get("icc") is not None), None)
        if grader:
            title, ceiling = study.graders[grader["judge"]].title, own.get(CLINICIAN, {})
            one = (
                f"{title} follows one clinician with an ICC of {_coefficient(grader)} on {grader['n']} answers of {benchmark.config.title}"
            )
            other = "no answer has a second clinician to compare with"
            if ceiling.get("icc") is not None:
                other = f"one clinician follows another with {_coefficient(ceiling)}"
            parts.append(f"{one}; {other}")
    return "; ".join(parts) + "." if parts else ""


def _coefficient(row: Cells) -> str:
    value = decimal(row["icc"])
    if row["icc_low"] is None:
        return value
    low, high = (decimal(row[name]) for name in ("icc_low", "icc_high"))
    return f"{value} ({low} to {high})"


def trust_takeaway(study: Study, tables: Tables) -> Takeaway:
    """Summarise how far graders follow clinicians, and over how many answers."""
    rows = [row for row in tables["grader_vs_clinician"] if row["level"] == "response" and not row["model"]]
    real = [row for row in rows if not row["simulated"]]
    answers, patients = (max((row[name] for row in real or rows), default=0) for name in ("n", "n_patients"))
    made_up = " (simulated ratings)" if rows and not real else ""
    return Takeaway(
        trust_line(study, tables),
        f"up to {counted(answers, 'rated answer')}, {counted(patients, cluster_of(real or rows))}{made_up}" if rows else "0 rated answers",
    )


TABLE = Table(
    name="grader_vs_clinician",
    row=GraderVsClinicianRow,
    rows=of_study(trust_rows),
    suppression=Suppression("benchmark judge kind level model in_reference_pool same_maker simulated"),
    takeaways={"trust": trust_takeaway},
)
