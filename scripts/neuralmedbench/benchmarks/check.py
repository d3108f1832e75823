"""Check a benchmark before a run: what exists, what is missing, and what a model would be sent, as a report and a page."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from neuralmedbench.benchmarks.answers_table import read_answers
from neuralmedbench.benchmarks.case_items import check_known
from neuralmedbench.benchmarks.question_items import read_questions
from neuralmedbench.benchmarks.templates import TEMPLATES
from neuralmedbench.config.benchmark import BenchmarkConfig
from neuralmedbench.config.load import load_benchmark
from neuralmedbench.config.pipeline import MAX_QUARANTINED_FRACTION
from neuralmedbench.config.run_names import how_to_make
from neuralmedbench.errors import ConfigError
from neuralmedbench.files.case_flow import stopping_share
from neuralmedbench.files.cases import case_table, read_audit, read_case_table
from neuralmedbench.files.known_lesions import MASK_SUFFIX
from neuralmedbench.files.pages.page import render_page
from neuralmedbench.files.pages.pictures import PagePicture, reduced_picture
from neuralmedbench.files.raw_folder import RawIndex, read_raw_index
from neuralmedbench.files.tables import read_by_item, read_records
from neuralmedbench.records.items import Gold, Item, Kind
from neuralmedbench.records.model_marks import marks_in
from neuralmedbench.records.questions import ANSWERS
from neuralmedbench.records.requests import Request, RequestImage, long_prompt_line
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
        table, private = case_table(config_folder, benchmark), data / "raw" / benchmark
        _check_cases(found, config, table)
        cases = [row.case_id for row in read_case_table(table) if not row.exclude]
        # a clone has no private index
        indexes = [read_raw_index(path) for case in cases if (path := private / case / "files.json").exists()]
        _check_notes(found, indexes, private)
        _check_uids(found, indexes, cases)
        if config.kind is Kind.PICTURES:
            _check_listed_pictures(found, indexes, cases)
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


def _check_uids(found: CheckReport, indexes: Sequence[RawIndex], cases: Sequence[str]) -> None:
    """Warn of cases that are held back, or whose files have UIDs of another patient's."""
    for index in indexes:
        if index.held_back:
            found.warnings.append(f"{index.case_id}: it is held back: {index.held_back}")
        if shared := [other for other in index.same_uids if other in cases]:
            found.warnings.append(
                f"{index.case_id}: its files have the same UIDs as those of another patient ({_some(shared)}); both are used"
            )


def _check_notes(found: CheckReport, indexes: Sequence[RawIndex], private: Path) -> None:
    """Warn of cases with long notes before their prompts are made."""
    notes = {index.case_id: [private / index.case_id / note.path for note in index.notes] for index in indexes}
    here = {case: [path for path in paths if path.exists()] for case, paths in notes.items()}
    marked = [case for case, paths in here.items() if any(marks_in(path.read_text(encoding="utf-8", errors="replace")) for path in paths)]
    if marked:
        found.warnings.append(
            f"the notes of {len(marked)} cases hold marks by which models know a picture's place or a turn (`<image>`, `<|im_end|>`); they are sent"
            f" as words: {_some(marked)}"
        )
    if line := long_prompt_line([sum(path.stat().st_size for path in paths) for paths in here.values()], "cases' notes"):
        found.warnings.append(line)


def _counted(counts: Counter[str]) -> str:
    return ", ".join(f"{name} {number}" for name, number in sorted(counts.items()))


def _some(names: Sequence[str]) -> str:
    more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
    return f"{', '.join(names[:SHOWN])}{more}"


def _check_listed_pictures(found: CheckReport, indexes: Sequence[RawIndex], cases: Sequence[str]) -> None:
    """Count sequences, planes, notes and records in `files.csv`."""
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
        An HTML file without scripts.
    """
    values = {
        "title": f"Benchmark {found.benchmark}",
        "report": found,
        "shown": PICTURES,
        "pictures": partial(_reduced, root),
    }
    return render_page(TEMPLATES / "check.html.j2", values)


def _reduced(root: Path, images: Sequence[RequestImage]) -> Iterator[PagePicture]:
    """Yield pictures of a request as thumbnails, without pixels where the file is absent."""
    for image in images:
        path = root / image.path
        yield reduced_picture(path, image.label) if path.exists() else PagePicture(caption=image.label)
