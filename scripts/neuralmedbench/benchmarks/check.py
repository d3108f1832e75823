"""Check a benchmark before a run: what exists, what is missing, and what a model would be sent, as a report and a page."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from html import escape
from pathlib import Path

from neuralmedbench.benchmarks.answers_table import read_answers
from neuralmedbench.benchmarks.case_items import check_known
from neuralmedbench.benchmarks.question_items import read_questions
from neuralmedbench.config.benchmark import BenchmarkConfig
from neuralmedbench.config.load import load_benchmark
from neuralmedbench.config.pipeline import MAX_QUARANTINED_FRACTION
from neuralmedbench.config.run_names import how_to_make
from neuralmedbench.errors import ConfigError
from neuralmedbench.files.case_flow import stopping_share
from neuralmedbench.files.cases import case_table, read_audit, read_case_table
from neuralmedbench.files.known_lesions import MASK_SUFFIX
from neuralmedbench.files.pages import page, picture_figure, table, warning
from neuralmedbench.files.raw_folder import read_raw_index
from neuralmedbench.files.tables import read_by_item, read_records
from neuralmedbench.records.items import Gold, Item, Kind
from neuralmedbench.records.model_marks import marks_in
from neuralmedbench.records.questions import ANSWERS
from neuralmedbench.records.requests import Request, RequestTurn, long_prompt_line
from neuralmedbench.records.value_rules import problem_of_values

SHOWN = 8
CheckRow = tuple[str, str]

PICTURES = 6
"""Most pictures shown per turn; the others are counted."""


@dataclass
class CheckReport:
    """Results of a check: rows, warnings, the first request of each runner, family, arm and strategy, and references that are diagnoses."""

    benchmark: str
    rows: list[CheckRow] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    requests: list[Request] = field(default_factory=list)
    diagnoses: list[Gold] = field(default_factory=list)


def check_benchmark(benchmark: str, config_folder: Path, data: Path) -> CheckReport:
    """Check the stages of a benchmark that exist so far.

    Parameters
    ----------
    benchmark : str
        Its name.
    config_folder, data : Path
        The folders `config/` and `data/`.

    Returns
    -------
    CheckReport
        Rows and warnings.

    Raises
    ------
    ConfigError, DataError
        At the first error in its YAML, key, case table or answers.
    """
    config = load_benchmark(config_folder, benchmark)
    found = CheckReport(benchmark)
    found.rows.append(("kind, axis, subjects", f"{config.kind}, {config.axis}, {config.subjects}"))
    if config.has_cases:
        table = case_table(config_folder, benchmark)
        _check_cases(found, config, table)
        _check_notes(found, [row.case_id for row in read_case_table(table) if not row.exclude], data / "raw" / benchmark)
        _check_uids(found, [row.case_id for row in read_case_table(table) if not row.exclude], data / "raw" / benchmark)
        if config.kind is Kind.PICTURES:
            _check_listed_pictures(found, [row.case_id for row in read_case_table(table) if not row.exclude], data / "raw" / benchmark)
    if config.questions:
        _check_values(found, Path(config.questions))
    _check_audit(found, data / "deidentified" / benchmark / "audit.json")
    # requests can only be checked with their items
    items = _check_items(found, data, benchmark)
    if items:
        _check_requests(found, data / "prompts" / f"{benchmark}.parquet", config, items)
    return found


def _check_values(found: CheckReport, folder: Path) -> None:
    """Count the references of values by rule, and warn of those that no answer can meet."""
    if not (folder / ANSWERS).is_file():
        return
    asked = read_questions(folder)
    found.diagnoses += asked.diagnoses
    schemas = {question.question_id: question.answer_schema for question in asked.questions}
    rules = Counter(value.rule for gold in asked.gold for value in gold.values)
    if rules:
        found.rows.append(("references of values", _counted(rules)))
    for gold in asked.gold:
        if problem := problem_of_values(schemas.get(gold.item_id, ""), gold):
            found.warnings.append(f"{gold.item_id}: {problem}; correct it in {ANSWERS}, or import the data set again")


def _check_cases(found: CheckReport, config: BenchmarkConfig, table: Path) -> None:
    if config.source != "phantoms" and not Path(config.source).is_dir():
        found.warnings.append("the folder `source` is missing; ingested cases remain usable, but new ones cannot be listed")
    if config.subjects == "patient" and (not config.key_file or not Path(config.key_file).expanduser().is_file()):
        message = f"{found.benchmark}: key_file is not there; make a key with nmb cases list --new-key FILE and name it"
        raise ConfigError(message)
    cases = read_case_table(table)
    used = [row for row in cases if not row.exclude]
    patients = len({row.patient_id for row in used})
    found.rows.append(("cases", f"{len(cases)} listed, {len(cases) - len(used)} excluded, {patients} patients"))
    if config.kind is Kind.SCANS:
        found.rows.append(
            ("quarantine", f"{stopping_share(len(used), MAX_QUARANTINED_FRACTION)}: max_quarantined_fraction of the run's configuration")
        )
    if not config.answers:
        found.warnings.append("no `answers`: the benchmark runs and is not scored")
        return
    if not Path(config.answers).is_file() and config.source == "phantoms":
        found.rows.append(("answers", "made with the phantoms when the workflow runs"))
        return
    answers = read_answers(Path(config.answers))
    check_known(answers, table)
    without = [row.case_id for row in used if row.case_id not in answers]
    found.diagnoses += [Gold(item_id=row.case_id, answer=row.diagnosis, icd10=row.icd10) for row in answers.values()]
    levels = Counter(str(row.level) for row in answers.values())
    found.rows.append(("answers", f"{len(answers)}; levels: {_counted(levels)}"))
    for name in ("differentials", "findings", "lesion_location", "rationale", "must_not"):
        found.rows.append((f"answers with {name}", str(sum(bool(getattr(row, name)) for row in answers.values()))))
    if config.lesion_masks:
        masks = {path.name.removesuffix(MASK_SUFFIX) for path in Path(config.lesion_masks).glob(f"*{MASK_SUFFIX}")}
        found.rows.append(("lesion masks", f"{len(masks & {row.case_id for row in used})} of {len(used)} cases"))
        if unlisted := len(masks - {row.case_id for row in cases}):
            found.warnings.append(f"{unlisted} lesion masks are named as no case of the case table (`<case_id>{MASK_SUFFIX}`)")
    if without:
        found.warnings.append(f"{len(without)} cases have no answer and are not scored: {_some(without)}")


def _check_uids(found: CheckReport, cases: Sequence[str], private: Path) -> None:
    """Warn of cases that are held back, or whose files have UIDs of another patient's, if the private index exists (a clone has none)."""
    indexes = {case: read_raw_index(path) for case in cases if (path := private / case / "files.json").exists()}
    for case, index in indexes.items():
        if index.held_back:
            found.warnings.append(f"{case}: it is held back: {index.held_back}")
        if shared := [other for other in index.same_uids if other in cases]:
            found.warnings.append(f"{case}: its files have the same UIDs as those of another patient ({_some(shared)}); both are used")


def _check_notes(found: CheckReport, cases: Sequence[str], private: Path) -> None:
    """Warn of cases with long notes before their prompts are made, if the private index exists (a clone has none)."""
    indexes = [read_raw_index(path) for case in cases if (path := private / case / "files.json").exists()]
    paths = [[private / index.case_id / note.path for note in index.notes] for index in indexes]
    marked = [
        case
        for case, held in zip(indexes, paths, strict=True)
        if any(path.exists() and marks_in(path.read_text(encoding="utf-8", errors="replace")) for path in held)
    ]
    if marked:
        found.warnings.append(
            f"the notes of {len(marked)} cases hold marks by which models know a picture's place or a turn (`<image>`, `<|im_end|>`); they are sent"
            f" as words: {_some([index.case_id for index in marked])}"
        )
    if line := long_prompt_line([sum(path.stat().st_size for path in notes if path.exists()) for notes in paths], "cases' notes"):
        found.warnings.append(line)


def _counted(counts: Counter[str]) -> str:
    return ", ".join(f"{name} {number}" for name, number in sorted(counts.items()))


def _some(names: Sequence[str]) -> str:
    more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
    return f"{', '.join(names[:SHOWN])}{more}"


def _check_listed_pictures(found: CheckReport, cases: Sequence[str], private: Path) -> None:
    """Count sequences, planes, notes and records in `files.csv`, if the private index exists (a clone has none)."""
    indexes = [read_raw_index(path) for case in cases if (path := private / case / "files.json").exists()]
    pictures = [picture for index in indexes for picture in index.pictures]
    known = [sum(bool(getattr(picture, column)) for picture in pictures) for column in ("sequence", "plane")]
    found.rows.append(("pictures listed", f"{len(pictures)}; with a sequence {known[0]}, with a plane {known[1]}"))
    found.rows.append(
        ("notes, records", f"{sum(len(index.notes) for index in indexes)}, {sum(index.record is not None for index in indexes)}")
    )
    if len(indexes) < len(cases):
        found.warnings.append(
            f"{len(cases) - len(indexes)} cases have no private index on this machine; list the cases again before ingesting them"
        )
    if undated := [index.case_id for index in indexes if index.record is not None and not index.scan_date]:
        found.warnings.append(
            f"{len(undated)} cases have a record but no scan date (files.csv, column date): dated values of the record are not shown: {_some(undated)}"
        )


def _check_audit(found: CheckReport, path: Path) -> None:
    if not path.exists():
        found.rows.append(("de-identification", f"not run; {how_to_make(path, found.benchmark)}"))
        return
    audit = read_audit(path)
    flow = ", ".join(f"{name} {number}" for name, number in audit.flow.items())
    found.rows.append(("de-identification", f"{audit.state}; {flow}"))
    if audit.state != "passed":
        found.warnings.append(f"no request may be sent: the audit is {audit.state}: {audit.reason}")


def _check_items(found: CheckReport, data: Path, benchmark: str) -> dict[str, Item]:
    path, gold_path = data / "items" / f"{benchmark}.parquet", data / "gold" / f"{benchmark}.parquet"
    if not (path.exists() and gold_path.exists()):
        found.rows.append(("items", f"not made; {how_to_make(Path('data/prompts', f'{benchmark}.parquet'), benchmark)}"))
        return {}
    items = read_by_item(path, Item)
    gold = {row.item_id for row in read_records(gold_path, Gold)}
    kinds = Counter(f"{item.runner} {item.family} {item.level}" for item in items.values())
    found.rows.append(("items", f"{len(items)}: {_counted(kinds)}"))
    found.rows.append(("items without an answer", str(len(set(items) - gold))))
    images = [len(item.images) for item in items.values()]
    found.rows.append(("pictures of an item", f"{min(images)} to {max(images)}"))
    return items


def _check_requests(found: CheckReport, path: Path, config: BenchmarkConfig, items: dict[str, Item]) -> None:
    if not path.exists():
        found.rows.append(("requests", f"not rendered; {how_to_make(path, found.benchmark)}"))
        return
    requests = read_records(path, Request)
    # one example per runner, family, arm and strategy
    first: dict[tuple[str, ...], Request] = {}
    for request in requests:
        item = items.get(request.item_id)
        if item is not None:
            first.setdefault((request.runner, item.family, request.arm, request.strategy), request)
    found.requests = [first[kind] for kind in sorted(first)]
    answers = sum(request.samples for request in requests)
    found.rows.append(("requests", f"{len(requests)}: {_counted(Counter(f'{row.arm} {row.strategy}' for row in requests))}"))
    found.rows.append(("answers requested from each model", str(answers)))
    if line := long_prompt_line([request.characters for request in requests], "prompts"):
        found.warnings.append(line)
    for arm in sorted(set(config.arms) - {request.arm for request in requests}):
        found.warnings.append(f"arm {arm}: no request; it changes no item, or the prompts are older than the yaml")


def check_page(found: CheckReport, root: Path) -> str:
    """Render the page of a check.

    Parameters
    ----------
    found : CheckReport
        Result of `check_benchmark`.
    root : Path
        Folder to which the paths of pictures are relative.

    Returns
    -------
    str
        HTML without scripts, all text escaped.
    """
    warnings = "".join(warning(text) for text in found.warnings) or "<p>Nothing is missing.</p>"
    prompts = "".join(_request(request, root) for request in found.requests)
    intro = (
        "<p>One request per runner, family, arm and strategy, as it would be sent to a model. Pictures are reduced here and follow their"
        " text in the order shown.</p>"
    )
    return page(f"Benchmark {found.benchmark}", [table(found.rows), warnings, f"<h2>Prompts</h2>{intro}{prompts}" if prompts else ""])


def _request(request: Request, root: Path) -> str:
    head = f"<h2>{escape(f'{request.runner}, arm {request.arm}, strategy {request.strategy}')}</h2><p>{escape(request.item_id)}</p>"
    turns = "".join(_turn(turn, root) for turn in request.turns)
    schema = f"<h3>Answer schema</h3><pre>{escape(request.answer_schema)}</pre>" if request.answer_schema else ""
    return f"{head}<h3>System</h3><pre dir='auto'>{escape(request.system)}</pre>{turns}{schema}"


def _turn(turn: RequestTurn, root: Path) -> str:
    figures = "".join(
        picture_figure(root / image.path, image.label)
        if (root / image.path).exists()
        else warning(f"{image.label}: the picture is not there")
        for image in turn.images[:PICTURES]
    )
    more = f"<p>and {len(turn.images) - PICTURES} more pictures</p>" if len(turn.images) > PICTURES else ""
    after = f"<pre dir='auto'>{escape(turn.after)}</pre>" if turn.after else ""
    return f"<h3>User</h3><pre dir='auto'>{escape(turn.text)}</pre>{figures}{more}{after}"
