"""Curation in four stages: complete cases, expert decisions, structured ground truth, and no question that a pool of models solves.

Its result says which questions were kept and removed, stage by stage.
"""

from __future__ import annotations

import csv
import shutil
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path

from neuralmedbench.benchmarks.importing import write_new
from neuralmedbench.benchmarks.question_items import read_questions
from neuralmedbench.config.load import load_benchmark, load_model, nearest, read_yaml
from neuralmedbench.config.mappings import CurationConfig
from neuralmedbench.errors import ConfigError, DataError
from neuralmedbench.files.digests import sha256_of
from neuralmedbench.files.json_files import write_json_record, write_lines
from neuralmedbench.files.tables import read_records, write_table
from neuralmedbench.records.items import Arm, Disclosure, Gold, Runner, Strategy
from neuralmedbench.records.questions import ANSWERS, DISCLOSURES, IMAGES, QUESTIONS, ImportedQuestion, QuestionSet
from neuralmedbench.records.scores import Score

Verdict = Callable[[ImportedQuestion], str]
"""Returns why a question is removed; empty if it is kept."""
SCHEMA_VERSION = 1
KEPT, REMOVED, RECORD = "kept.csv", "removed.csv", "curation.json"
"""Files that a curation writes beside the questions."""
DECISION_COLUMNS = ("case_id", "expert", "decision", "credibility", "complexity", "teaching_value")
"""Columns of the table of expert decisions; the three ratings (1 to 5) are optional."""


@dataclass(frozen=True, kw_only=True)
class Decision:
    """Decision of one expert on one case."""

    case_id: str
    expert: str
    keep: bool


@dataclass(frozen=True, kw_only=True)
class KeptQuestion:
    """A question that passed all stages, and the number of models in the pool that solved it."""

    question_id: str
    case_id: str
    solved_by: int
    pool: int


@dataclass(frozen=True, kw_only=True)
class RemovedQuestion:
    """A question removed by a stage, with the reason."""

    question_id: str
    case_id: str
    stage: str
    reason: str


@dataclass(frozen=True, kw_only=True)
class PoolModel:
    """A model of the reference pool, whose answers selected the questions and therefore must not be scored on the curated set."""

    model: str
    revision: str
    questions: int
    solved: int


@dataclass(frozen=True, kw_only=True)
class StageCount:
    """Number of questions that entered a stage, and that it removed."""

    stage: str
    entered: int
    removed: int


@dataclass(frozen=True, kw_only=True)
class CurationRecord:
    """Summary of a curation (`curation.json`).

    Attributes
    ----------
    benchmark, curated : str
        Names of the original and the curated set; the latter empty if none was written.
    settings : dict of str to object
        As in `CurationConfig`.
    sources : dict of str to str
        SHA-256 of the files that were read.
    stages : tuple of StageCount
        In order.
    kept : int
        Remaining questions.
    pool : tuple of PoolModel
        Empty without the stage `challenge`.
    """

    benchmark: str
    curated: str
    settings: dict[str, object]
    sources: dict[str, str]
    stages: tuple[StageCount, ...]
    kept: int
    pool: tuple[PoolModel, ...] = ()


@dataclass(frozen=True, kw_only=True)
class CurationEvidence:
    """Evidence for the stages: gold by question id, decisions of all experts, scores by model of the pool.

    Scores are of the model's current revision and of all arms; the question id is the part of `item_id` after the last `/`.
    """

    gold: Mapping[str, Gold]
    decisions: Sequence[Decision] = ()
    scores: Mapping[str, Sequence[Score]] = field(default_factory=dict)


@dataclass(frozen=True)
class CurationResult:
    """Kept and removed questions, and counts per stage."""

    kept: tuple[KeptQuestion, ...]
    removed: tuple[RemovedQuestion, ...]
    stages: tuple[StageCount, ...]
    pool: tuple[PoolModel, ...]


def curate(questions: Iterable[ImportedQuestion], evidence: CurationEvidence, config: CurationConfig) -> CurationResult:
    """Run the curation stages: each question is kept, or removed by the first stage that rejects it; few-shot examples are skipped.

    ConfigError if the stage `challenge` has no pool.
    """
    left = [question for question in questions if not question.exemplar]
    solved = _solved_by_model(evidence.scores, config) if "challenge" in config.stages else {}
    removed: list[RemovedQuestion] = []
    stages = []
    for stage in config.stages:
        verdict = _verdict(stage, evidence, config, solved)
        # later stages see only what earlier ones kept
        reasons = {question.question_id: verdict(question) for question in left}
        rejected = [question for question in left if reasons[question.question_id]]
        removed += [
            RemovedQuestion(question_id=one.question_id, case_id=case_of(one), stage=stage, reason=reasons[one.question_id])
            for one in rejected
        ]
        stages.append(StageCount(stage=stage, entered=len(left), removed=len(rejected)))
        left = [question for question in left if not reasons[question.question_id]]
    kept = [
        KeptQuestion(
            question_id=one.question_id,
            case_id=case_of(one),
            solved_by=sum(bool(rows.get(one.question_id)) for rows in solved.values()),
            pool=len(solved),
        )
        for one in left
    ]
    return CurationResult(tuple(kept), tuple(removed), tuple(stages), _pool(solved, evidence))


def case_of(question: ImportedQuestion) -> str:
    """Return the case of a question; a question without one is its own case."""
    return question.case_id or question.question_id


def _verdict(stage: str, evidence: CurationEvidence, config: CurationConfig, solved: Mapping[str, Mapping[str, bool]]) -> Verdict:
    if stage == "completeness":
        return lambda question: _incomplete(question, evidence.gold.get(question.question_id), config)
    if stage == "experts":
        return lambda question: _rejected(case_of(question), evidence.decisions, config)
    if stage == "ground_truth":
        return lambda question: _unstructured(question, evidence.gold.get(question.question_id), config)
    return lambda question: _too_easy(question.question_id, solved, config)


def _incomplete(question: ImportedQuestion, gold: Gold | None, config: CurationConfig) -> str:
    has = {
        "text": bool(question.text or question.record or any(turn.reveal for turn in question.turns)),
        "images": bool(question.images),
        "answer": gold is not None and bool(gold.answer or gold.fields),
    }
    missing = [need for need in config.needs if not has[need]]
    return f"no {', no '.join(missing)}" if missing else ""


def _rejected(case_id: str, decisions: Iterable[Decision], config: CurationConfig) -> str:
    votes = [decision.keep for decision in decisions if decision.case_id == case_id]
    if len(votes) < config.min_experts:
        return f"{len(votes)} expert decisions, {config.min_experts} needed"
    drops = votes.count(False)
    # a tie drops the case
    return f"dropped by {drops} of {len(votes)} experts" if 2 * drops >= len(votes) else ""


def _unstructured(question: ImportedQuestion, gold: Gold | None, config: CurationConfig) -> str:
    if gold is None:
        return "no ground truth"
    has = {
        "answer": bool(gold.answer),
        "differentials": bool(gold.differentials),
        "findings": bool(gold.findings),
        "lesion": gold.lesion is not None,
        "findings_or_lesion": bool(gold.findings) or gold.lesion is not None,
        "rationale": bool(gold.rationale),
        "turn_leaders": question.runner is not Runner.DIALOGUE or len(gold.turn_leaders) == len(question.turns),
    }
    missing = [part for part in config.ground_truth if not has[part]]
    return f"ground truth without {', '.join(missing)}" if missing else ""


def _too_easy(question_id: str, solved: Mapping[str, Mapping[str, bool]], config: CurationConfig) -> str:
    # difficulty is only known with an answer from every model of the pool
    if missing := [model for model, rows in solved.items() if question_id not in rows]:
        return f"no scored answer of {', '.join(missing)}"
    models = [model for model, rows in solved.items() if rows[question_id]]
    return f"solved by {len(models)} of {len(solved)}: {', '.join(models)}" if len(models) >= config.max_solved * len(solved) else ""


def _solved_by_model(scores: Mapping[str, Sequence[Score]], config: CurationConfig) -> dict[str, dict[str, bool]]:
    """Return, by model and question, whether the share of passed answers reaches `solved_from` (arm `full`, strategy `direct`)."""
    if not config.pool:
        message = "the stage challenge needs reference models; name them under `pool`, or take the stage out of `stages`"
        raise ConfigError(message)
    solved: dict[str, dict[str, bool]] = {}
    for model in config.pool:
        passes: dict[str, list[bool]] = {}
        for row in scores[model]:
            # the standard condition; failed calls do not count
            if row.arm == Arm.FULL and row.strategy == Strategy.DIRECT and row.passed is not None and not row.missing:
                passes.setdefault(row.item_id.rpartition("/")[2], []).append(row.passed)
        solved[model] = {question: sum(values) >= config.solved_from * len(values) for question, values in passes.items()}
    return solved


def _pool(solved: Mapping[str, Mapping[str, bool]], evidence: CurationEvidence) -> tuple[PoolModel, ...]:
    return tuple(
        PoolModel(
            model=model,
            revision=next((row.revision for row in evidence.scores[model]), ""),
            questions=len(rows),
            solved=sum(rows.values()),
        )
        for model, rows in solved.items()
    )


RATINGS = range(1, 6)


def read_decisions(path: Path, cases: Iterable[str]) -> list[Decision]:
    """Read the table of expert decisions, a CSV with `DECISION_COLUMNS`, in file order.

    ConfigError if it is missing or has other columns; DataError, with the line, for an unknown case, a decision other than keep or drop, a
    rating outside 1 to 5, or a repeated expert.
    """
    known, decisions, seen = set(cases), [], set[tuple[str, str]]()
    for line, row in _decision_rows(path):
        where = f"{path.name}, line {line}"
        case, expert, word = (row[column].strip() for column in DECISION_COLUMNS[:3])
        problem = ""
        if case not in known:
            problem = "column case_id: no such case among the questions"
        elif not expert:
            problem = "column expert: expected the expert's pseudonym"
        elif word.lower() not in {"keep", "drop"}:
            problem = "column decision: expected keep or drop"
        elif bad := [column for column in DECISION_COLUMNS[3:] if row.get(column, "").strip() not in {"", *map(str, RATINGS)}]:
            problem = f"column {bad[0]}: expected a number from 1 to 5, or nothing"
        elif (case, expert) in seen:
            problem = "this expert has decided about this case before; keep one row"
        if problem:
            message = f"{where}, {problem}" if problem.startswith("column") else f"{where}: {problem}"
            raise DataError(message)
        seen.add((case, expert))
        decisions.append(Decision(case_id=case, expert=expert, keep=word.lower() == "keep"))
    return decisions


def _decision_rows(path: Path) -> list[tuple[int, dict[str, str]]]:
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            reader = csv.DictReader(file, restval="")
            columns = list(reader.fieldnames or ())
            rows = [(reader.line_num, row) for row in reader]
    except OSError:
        message = "the table of the experts' decisions is not there; name it with --decisions"
        raise ConfigError(message) from None
    except (csv.Error, UnicodeDecodeError):
        message = f"{path.name}: not a CSV file in UTF-8"
        raise DataError(message) from None
    # DictReader puts surplus cells under the key None
    if wide := [line for line, row in rows if None in row]:
        message = f"{path.name}, line {wide[0]}: more cells than the header has columns"
        raise DataError(message)
    for column in columns:
        if column not in DECISION_COLUMNS:
            message = f"{path.name}: unknown column {column!r}{nearest(column, DECISION_COLUMNS)}"
            raise ConfigError(message)
    if missing := [column for column in DECISION_COLUMNS[:3] if column not in columns]:
        message = f"{path.name}: the column {missing[0]!r} is missing in the first line"
        raise ConfigError(message)
    return rows


def read_scores(folder: Path, config: Path, pool: Sequence[str]) -> dict[str, list[Score]]:
    """Read the scores of every model of the pool, for the revision in its YAML; DataError if a model has none."""
    scores = {}
    for model in pool:
        path, revision = folder / f"{model}.parquet", load_model(config / "models" / f"{model}.yaml").revision
        rows = [row for row in read_records(path, Score) if row.revision == revision] if path.is_file() else []
        if not rows:
            message = f"the reference model {model} has no scores of its current revision; run the set with it first"
            raise DataError(message)
        scores[model] = rows
    return scores


def curate_folder(
    folder: Path, settings: tuple[Path, CurationConfig], decisions: Path | None, scores: dict[str, list[Score]], curated: str
) -> tuple[CurationRecord, CurationResult]:
    """Curate the imported set of a folder, and write `kept.csv`, `removed.csv` and `curation.json` into it.

    Parameters
    ----------
    folder : Path
        `data/questions/<benchmark>`.
    settings : tuple of Path and CurationConfig
        YAML file and its content.
    decisions : Path or None
        Table of expert decisions.
    scores : dict of str to list of Score
        By model of the pool.
    curated : str
        Name of the curated set, or empty.

    Returns
    -------
    record : CurationRecord
        Settings, sources and counts.
    result : CurationResult
        Kept and removed questions.

    Raises
    ------
    ConfigError, DataError
        As in `read_decisions` and `curate`, and if no question is left.
    """
    path, config = settings
    if curated == folder.name:
        message = f"{curated} is the name of the set itself; give the curated set another name"
        raise ConfigError(message)
    asked = read_questions(folder)
    votes: list[Decision] = []
    if "experts" in config.stages:
        if decisions is None:
            message = "the stage experts needs the table of their decisions; name it with --decisions, or take the stage out of `stages`"
            raise ConfigError(message)
        votes = read_decisions(decisions, (case_of(question) for question in asked.questions))
    gold = {row.item_id: row for row in asked.gold}
    result = curate(asked.questions, CurationEvidence(gold=gold, decisions=votes, scores=scores), config)
    # the record names settings and sources with digests
    read = [path, folder / QUESTIONS, folder / ANSWERS, *([decisions] if decisions else [])]
    record = CurationRecord(
        benchmark=folder.name,
        curated=curated,
        settings=config.model_dump(mode="json"),
        sources={file.name: sha256_of(file) for file in read},
        stages=result.stages,
        kept=len(result.kept),
        pool=result.pool,
    )
    kept = sorted(result.kept, key=lambda row: row.question_id)
    write_table(folder / KEPT, [asdict(row) for row in kept], [one.name for one in fields(KeptQuestion)])
    removed = sorted(result.removed, key=lambda row: row.question_id)
    write_table(folder / REMOVED, [asdict(row) for row in removed], [one.name for one in fields(RemovedQuestion)])
    write_json_record(folder / RECORD, record)
    if not result.kept:
        message = f"{folder.name}: no question is left; {REMOVED} says why"
        raise DataError(message)
    return record, result


def write_curated(asked: QuestionSet, result: CurationResult, source: Path, target: Path) -> None:
    """Write the kept questions and the few-shot examples as a separate imported set with the same pictures."""
    ids = {row.question_id for row in result.kept} | {question.question_id for question in asked.questions if question.exemplar}
    write_lines(target / QUESTIONS, ImportedQuestion, (row for row in asked.questions if row.question_id in ids))
    write_lines(target / ANSWERS, Gold, (row for row in asked.gold if row.item_id in ids))
    write_lines(target / DISCLOSURES, Disclosure, (row for row in asked.disclosures if row.item_id in ids))
    for name in (IMAGES, RECORD):
        shutil.copyfile(source / name, target / name)


def write_curated_yaml(config: Path, benchmark: str, curated: str, questions: Path, pool: Sequence[str]) -> bool:
    """Write the YAML of a curated set: that of the whole set with another title and folder, and the pool added to earlier pools.

    Returns
    -------
    bool
        True if it was written; an existing file is never replaced.

    Raises
    ------
    ConfigError
        If the existing file does not name the whole pool: its tables would not show which models selected the items.
    """
    values = dict(read_yaml(config / "benchmarks" / f"{benchmark}.yaml"))
    values |= {"title": f"{values['title']}, curated", "questions": questions.as_posix()}
    # models that selected items in earlier curations stay in the pool
    chose = list(dict.fromkeys([*values.get("reference_pool", ()), *pool]))
    path = config / "benchmarks" / f"{curated}.yaml"
    if path.exists() and (lacking := sorted(set(chose) - set(load_benchmark(config, curated).reference_pool))):
        message = (
            f"{path.as_posix()}: `reference_pool` lacks {', '.join(lacking)}, whose answers selected the questions; add the missing models"
        )
        raise ConfigError(message)
    if chose:
        values["reference_pool"] = chose
    head = f"# {benchmark} after curation (nmb benchmark curate); removed questions and reasons are in the folder of the whole set.\n"
    return write_new(path, head, values)
