"""What people have on their disks stays good: runs of version 1 (commit d8e717d) are upgraded to the code of today.

`v1.tar.xz` holds them (simulated patients, raters and reviewer, a made-up model); `make_run.py` says how they were made. A user who pulls new code
lays it over the folder of the run and types the same command: every digest of the code differs, so everything is made again from the raw files,
and the ledgers have to answer every question.
"""

from __future__ import annotations

import csv
import json
import pkgutil
import shutil
import subprocess
import sys
import tarfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fnmatch import fnmatch
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pyarrow.parquet as pq
import pytest
import yaml
from make_run import machine
from pydantic import TypeAdapter

import neuralmedbench.records
from conftest import NMB, copy_project, snakemake
from fixtures.models import running_server
from neuralmedbench.benchmarks.question_items import read_questions
from neuralmedbench.deid.review.signature import read_reviewed_files, read_signed
from neuralmedbench.files.cases import read_audit, read_case, read_case_table, read_pictures
from neuralmedbench.files.identity import read_identity
from neuralmedbench.files.json_files import read_json, read_json_record
from neuralmedbench.files.raw_folder import read_raw_index
from neuralmedbench.files.tables import read_records, write_records
from neuralmedbench.models.budget import read_spend_log
from neuralmedbench.models.ledger import read_ledger
from neuralmedbench.ratings.answering.answers import AnswerExport, ReaderRoundKey
from neuralmedbench.ratings.exports import RatingExport, RoundKey, read_file
from neuralmedbench.ratings.imports import AdjudicationKey
from neuralmedbench.records.answer_leaks import AnswerLeaks
from neuralmedbench.records.questions import ImportRecord

HERE = Path(__file__).parent
ARCHIVE = HERE / "v1.tar.xz"
FOLDER = "@PROJECT@"
"""What stands in the archive for the folder of the project (`make_run.py`)."""
OWN, IMPORTED, SCANS = "config/upgrade.yaml", "config/upgrade-mixed.yaml", "config/upgrade-scans.yaml"
ANSWERED = "results/upgrade-mixed/responses/mixed/loop.parquet"
MADE_AGAIN = {
    "ingest_pictures", "deidentify_pictures", "build_review", "gather_audit", "build_items", "assemble_prompts", "find_answer_leaks",
    "run_inference", "grade_responses", "score_responses", "import_ratings", "build_tables", "build_report",
}  # fmt: skip
Rows = list[dict[str, Any]]


def record_of(path: Path) -> type:
    """Find today's record of a table by the name that the table itself holds."""
    metadata = pq.read_schema(path).metadata
    assert metadata[b"schema_version"]
    name = metadata[b"record"].decode()
    modules = [import_module(f"neuralmedbench.records.{module.name}") for module in pkgutil.iter_modules(neuralmedbench.records.__path__)]
    (record,) = {found for module in modules if isinstance(found := getattr(module, name, None), type)}
    return record


def whole_table(path: Path) -> bool:
    """Whether today's record has everything that stands in a table: written anew, nothing of it is lost."""
    record = record_of(path)
    with TemporaryDirectory() as folder:
        again = Path(folder, path.name)
        write_records(again, record, read_records(path, record), key=lambda _: 0)
        return holds(rows_of(again), rows_of(path))


def whole_record(read: Callable[[Path], Any]) -> Callable[[Path], bool]:
    """Make a check of a reader of JSON: what it gives has everything that stands in the file."""

    def check(path: Path) -> bool:
        value = read(path)
        return holds(TypeAdapter(type(value)).dump_python(value, mode="json", by_alias=True), read_json(path))

    return check


def holds(now: Any, before: Any) -> bool:
    """Whether values have all names and values of earlier ones; there may be more."""
    if isinstance(before, dict):
        return isinstance(now, dict) and all(name in now and holds(now[name], value) for name, value in before.items())
    if isinstance(before, list):
        return isinstance(now, list) and len(now) == len(before) and all(map(holds, now, before))
    return bool(now == before)


def whole_ledger(path: Path) -> bool:
    return len(read_ledger(path)) == path.read_bytes().count(b"\n") > 0


def right_sum(path: Path) -> bool:
    """Whether the book gives what its settled calls cost."""
    settled = sum(entry["usd"] for entry in map(json.loads, path.read_text(encoding="utf-8").splitlines()) if "account" not in entry)
    return sum(read_spend_log(path).by_account.values()) == pytest.approx(settled * 1e9) != 0


READERS: dict[str, Callable[[Path], object]] = {
    "*/sub-*/case.json": whole_record(read_case),
    "data/*/pictures.json": whole_record(read_pictures),
    "data/*/audit.json": whole_record(read_audit),
    "data/ingested/*/identity.json": whole_record(read_identity),
    "data/raw/*/files.json": whole_record(read_raw_index),
    "data/reviews/*/review.json": whole_record(read_reviewed_files),
    "data/reviews/*.json": whole_record(read_signed),
    "data/leaks/*.json": whole_record(lambda path: read_json_record(path, AnswerLeaks, remedy="")),
    "data/questions/*/questions.jsonl": lambda path: read_questions(path.parent),
    "data/questions/*/import.json": whole_record(lambda path: read_json_record(path, ImportRecord, remedy="")),
    "data/ledger/*.jsonl": whole_ledger,
    "data/spending/money.jsonl": right_sum,
    "data/ratings/h01/key.json": whole_record(lambda path: read_file(path, ReaderRoundKey)),
    "data/ratings/h01/answers_*.json": whole_record(lambda path: read_file(path, AnswerExport)),
    "data/ratings/r01/key.json": whole_record(lambda path: read_file(path, RoundKey)),
    "data/ratings/r01/adjudication/key.json": whole_record(lambda path: read_file(path, AdjudicationKey)),
    "data/ratings/r01/rating_*.json": whole_record(lambda path: read_file(path, RatingExport)),
    "config/*.cases.tsv": read_case_table,
    "*.parquet": whole_table,
    "data/slices/*/flow.json": lambda path: read_json(path)["cases"],
}
"""Today's reader of every kind of file that code reads again; the first pattern that fits counts."""
READ_ELSEWHERE = (
    "data/questions/*",  # with questions.jsonl
    "*/review/*.json",  # shown on the sheets, which are made with them
    "*_rigid.json",
    "data/deidentified/*/anat/*.json",  # BIDS
    "data/deidentified/*/dwi/*.json",
    "data/deidentified/*/dataset_description.json",
    "data/deidentified/*/participants.json",
    "data/deidentified/*.tsv",
    "data/raw/*/listing.tsv",  # for people
    "results/*.json",  # made again with the tables; see the upgraded run
    "machine.json",
)


def rows_of(path: Path) -> Rows:
    rows: Rows = pq.read_table(path).to_pylist()
    return rows


@pytest.fixture(scope="module")
def old(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Give the folder with the two projects of version 1 as they were; do not change it."""
    folder = tmp_path_factory.mktemp("version-1")
    with tarfile.open(ARCHIVE) as archive:
        archive.extractall(folder, filter="data")
    write_paths(folder / "pictures", FOLDER)
    return folder


def write_paths(project: Path, before: str) -> None:
    """Let the index of own files name this folder: they are named by their paths, which are others here."""
    for path in (project / "data" / "raw").glob("*/*/files.json"):
        path.write_text(path.read_text(encoding="utf-8").replace(before, str(project)), encoding="utf-8")


def files_of(project: Path) -> list[Path]:
    """Give all files that a program may read again."""
    suffixes = {".parquet", ".json", ".jsonl", ".tsv"}
    return sorted(path for path in project.rglob("*") if path.suffix in suffixes and ".snakemake" not in path.parts)


@pytest.mark.parametrize(("project", "expected"), [("pictures", 60), ("scans", 20)])
def test_every_kind_of_file_of_version_1_is_read_by_the_code_of_today(old: Path, project: str, expected: int) -> None:
    read = 0
    for path in files_of(old / project):
        name = path.relative_to(old / project).as_posix()
        reader = next((found for pattern, found in READERS.items() if fnmatch(name, pattern)), None)
        if reader is None:
            assert any(fnmatch(name, pattern) for pattern in READ_ELSEWHERE), f"{name}: nothing reads it"
        else:
            assert reader(path) is not False, name
            read += 1
    assert read > expected


@dataclass(frozen=True)
class Upgraded:
    """A run of version 1 over which today's code was laid and that has run again.

    Attributes
    ----------
    folder : Path
        The project.
    asked : list of dict
        Requests that reached the server of the model and its graders.
    said : str
        What Snakemake said.
    """

    folder: Path
    asked: list[dict[str, Any]]
    said: str


def point_to(folder: Path, address: str) -> None:
    """Write where the model and its graders are asked now, and under which name they answered: version 1 did not compare names."""
    for name in ("models/loop", "graders/main", "graders/steps"):
        path = folder / "config" / f"{name}.yaml"
        value = yaml.safe_load(path.read_text(encoding="utf-8"))
        value.get("model", value).update(api_base=address, served_as=["served"])
        path.write_text(yaml.safe_dump(value), encoding="utf-8")


@pytest.fixture(scope="module")
def upgraded(old: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Upgraded]:
    """Give the upgraded run of pictures; tests that change it change a copy."""
    folder = copy_project(tmp_path_factory.mktemp("upgraded") / "project")
    shutil.copytree(old / "pictures", folder, dirs_exist_ok=True)
    write_paths(folder, str(old / "pictures"))
    with running_server() as server:
        server.modes = ["400"]  # who asks is refused at once: the job fails, and the request is counted
        point_to(folder, server.address)
        runs = [
            snakemake(folder, "-p", "--configfile", OWN),
            # every answer has to be in the ledger, and no second is lost with opening what could ask
            snakemake(folder, "-p", "--configfile", IMPORTED, "--config", "replay=true", "--", ANSWERED),
        ]
        yield Upgraded(folder, server.bodies, "".join(run.stdout + run.stderr for run in runs))


def must(folder: Path, *command: str) -> str:
    """Run a command in a project, `nmb` or one of a rule; give what it said. It has to end well."""
    program = [*NMB] if command[0] == "nmb" else [sys.executable, f"scripts/{command[0]}.py"]
    done = subprocess.run([*program, *command[1:]], cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def calls(plan: Path) -> dict[str, int]:
    """Give how many calls a plan has for everything that is asked over the network, by who answers or grades whom."""
    with plan.open(encoding="utf-8", newline="") as file:
        rows = [row for row in csv.DictReader(file) if "reader" not in row["model"]]
    return {f"{row['benchmark']}/{row['model']}/{row['grader']}": int(row["calls"]) for row in rows}


@pytest.mark.long
@pytest.mark.workflow
def test_an_upgraded_run_is_made_again_from_raw_files_without_one_request(upgraded: Upgraded) -> None:
    assert upgraded.asked == []
    assert "Error in rule" not in upgraded.said, upgraded.said[-6000:]
    missing = {rule for rule in MADE_AGAIN if f"rule {rule}:" not in upgraded.said}
    assert not missing, "they were not made again, so nothing was shown of them"
    assert (upgraded.folder / "results/upgrade/report.html").is_file()
    assert (upgraded.folder / ANSWERED).is_file()


def made_now(path: Path) -> Path:
    """Return where a result of version 1, which had one folder for all runs, is made now."""
    run = "upgrade-mixed" if "mixed" in path.parts else "upgrade"
    return Path("results", run, *path.parts[1:])


@pytest.mark.long
@pytest.mark.workflow
def test_results_of_version_1_stay_where_they_are_and_are_listed(old: Path, upgraded: Upgraded) -> None:
    for path in files_of(old / "pictures/results"):
        here = upgraded.folder / path.relative_to(old / "pictures")
        assert here.read_bytes() == path.read_bytes(), path.name


@pytest.mark.long
@pytest.mark.workflow
def test_answers_and_grades_of_an_upgraded_run_are_those_that_were_paid_for(old: Path, upgraded: Upgraded) -> None:
    results = [path for part in ("responses", "grades") for path in sorted((old / "pictures/results" / part).rglob("*.parquet"))]
    assert len(results) == 8
    results = [path for path in results if path.stem not in ("rubric", "steps")]  # rules that may become others; not made again here
    for path in results:
        before, now = rows_of(path), rows_of(upgraded.folder / made_now(path.relative_to(old / "pictures")))
        assert [{name: row[name] for name in before[0]} for row in now] == before, path.name
    for path in sorted((old / "pictures/data/ledger").rglob("*.jsonl")):
        assert (upgraded.folder / path.relative_to(old / "pictures")).read_bytes() == path.read_bytes(), f"{path.name}: a line more or less"


@pytest.mark.long
@pytest.mark.workflow
def test_ratings_of_an_upgraded_run_are_all_there_and_none_is_stale(old: Path, upgraded: Upgraded) -> None:
    path = Path("results/ratings/ratings.parquet")
    before, now = rows_of(old / "pictures" / path), rows_of(upgraded.folder / made_now(path))
    assert len(now) > 100
    assert [row for row in now if row["stale"]] == []
    assert [{name: row[name] for name in before[0]} for row in now] == before


@pytest.mark.long
@pytest.mark.workflow
def test_the_signature_of_an_upgraded_run_is_valid(old: Path, upgraded: Upgraded) -> None:
    signed = "data/reviews/ward.json"
    assert (upgraded.folder / signed).read_bytes() == (old / "pictures" / signed).read_bytes()
    audit = read_json(upgraded.folder / "data/deidentified/ward/audit.json")
    assert (audit["kind"], audit["state"]) == ("patient", "passed")
    assert audit["reason"].startswith("signed on ")
    assert len(set(audit["covered"].values())) == 3


@pytest.mark.long
@pytest.mark.workflow
def test_the_audit_of_an_upgraded_run_finds_nothing(upgraded: Upgraded) -> None:
    assert "nothing found" in must(upgraded.folder, "nmb", "run", "audit", "--configfiles", OWN)


@pytest.fixture(scope="module")
def changed(upgraded: Upgraded, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Give a copy of the upgraded run that may be changed."""
    folder = tmp_path_factory.mktemp("changed") / "project"
    shutil.copytree(upgraded.folder, folder, ignore=shutil.ignore_patterns(".snakemake", "report.html"))
    return folder


@pytest.mark.long
@pytest.mark.workflow
def test_answers_of_a_reader_of_version_1_can_be_imported_again_and_are_the_same(upgraded: Upgraded, changed: Path) -> None:
    must(changed, "nmb", "ratings", "import-readers", "--round", "h01")
    for path in sorted((upgraded.folder / "data/ledger/ward").glob("*.jsonl")):
        assert (changed / path.relative_to(upgraded.folder)).read_bytes() == path.read_bytes()


@pytest.mark.long
@pytest.mark.workflow
def test_a_plan_of_an_upgraded_run_has_nothing_to_ask_and_knows_what_was_spent(changed: Path) -> None:
    must(changed, "nmb", "model", "plan", "--configfiles", IMPORTED, "--out", "plan.csv")
    assert calls(changed / "plan.csv") == {"mixed/loop/": 0, "mixed/loop/steps": 0}
    ledger = changed / "data/ledger/ward/loop.jsonl"
    ledger.write_bytes(b"".join(ledger.read_bytes().splitlines(keepends=True)[1:]))
    model = changed / "config/models/loop.yaml"
    model.write_text(model.read_text(encoding="utf-8").replace("max_cost_usd: 5", "max_cost_usd: 0.001"), encoding="utf-8")
    said = must(changed, "nmb", "model", "plan", "--configfiles", OWN, "--out", "plan.csv")
    counted = calls(changed / "plan.csv")
    assert counted["ward/loop/main"] == 0
    assert counted["ward/loop/"] > 0, "without a line of the ledger there is something to ask"
    assert "loop: max_cost_usd 0.0010 leaves 0.00 USD" in said, "the book of version 1 says that more than that was spent"


@pytest.mark.long
@pytest.mark.workflow
def test_without_the_private_zone_prompts_are_made_again_from_the_shareable_one_and_nothing_is_asked(
    old: Path, upgraded: Upgraded, tmp_path: Path
) -> None:
    folder = tmp_path / "project"
    shutil.copytree(upgraded.folder, folder, ignore=shutil.ignore_patterns("data", "results", "own", "logs", ".snakemake"))
    shutil.copytree(old / "pictures", folder, ignore=shutil.ignore_patterns("raw", "ingested", "own", "packets", "h01"), dirs_exist_ok=True)
    # as in a clone of somebody who records own data: the answers are shared too (docs/own-data.md)
    (folder / "data/answers").mkdir()
    shutil.copy(old / "pictures/own/answers.csv", folder / "data/answers/ward.csv")
    former = [path for path in (folder / "results").iterdir() if path.name != "README.md"]
    (folder / "results/upgrade").mkdir()
    for path in former:  # the answers as today's inference takes them from the ledger
        shutil.move(path, folder / "results/upgrade" / path.name)
    ward = folder / "config/benchmarks/ward.yaml"
    shared = yaml.safe_load(ward.read_text(encoding="utf-8")) | {"record": True, "answers": "data/answers/ward.csv"}
    ward.write_text(yaml.safe_dump(shared), encoding="utf-8")
    # a digest of other code would plan everything again from the raw files, which are not here
    without_raw = ("--rerun-triggers", "mtime", "--forcerun", "build_items", "--configfile", OWN)
    done = snakemake(folder, "-p", *without_raw, "--", "data/prompts/ward.parquet")
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-4000:]
    assert "rule assemble_prompts:" in done.stdout + done.stderr
    assert not (folder / "data/raw/ward").exists()
    must(folder, "nmb", "model", "plan", "--configfiles", OWN, "--out", "plan.csv")
    assert calls(folder / "plan.csv") == {"ward/loop/": 0, "ward/loop/main": 0}


@pytest.mark.long
@pytest.mark.workflow
def test_names_of_numbers_that_are_kept_are_those_of_version_1(old: Path, upgraded: Upgraded) -> None:
    folders = old / "pictures/results", upgraded.folder / "results/upgrade"
    before, now = (read_json(folder / "metrics.json") for folder in folders)
    assert names_in(before) <= names_in(now)
    assert len(names_in(before)) > 10
    before, now = (read_json(folder / "provenance.json") for folder in folders)
    assert before.keys() <= now.keys()


def names_in(value: Any, above: str = "") -> set[str]:
    """Give the names of all values of nested objects."""
    if not isinstance(value, dict):
        return {above}
    return {name for key, entry in value.items() for name in names_in(entry, f"{above}/{key}")}


@pytest.fixture(scope="module")
def scans(old: Path, finished_run: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Give a run of today from raw scans with the ledgers, answers and the signature of version 1 beside it.

    One thing is as it was in version 1: what stood next to a known number stayed in a note. The mend changes notes, so such cases have to be
    reviewed, and models asked, again; nothing else may have that effect.
    """
    folder = tmp_path_factory.mktemp("scans") / "project"
    shutil.copytree(finished_run, folder, ignore=shutil.ignore_patterns("report.html"))
    patterns = folder / "scripts/neuralmedbench/deid/notes/patterns.py"
    before, start, rest = patterns.read_text(encoding="utf-8").partition("BESIDE_NUMBER = ")
    assert rest.count("{{0,20}}") == 4
    patterns.write_text(before + start + rest.replace("{{0,20}}", "{0, 20}"), encoding="utf-8")
    made = ("data/prompts/demo-tiny.parquet", "data/prompts/demo-tiny-slices.parquet")
    done = snakemake(folder, "--configfile", "config/test.yaml", "--", *made)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-5000:]
    for part in (".snakemake", "data/raw", "data/ingested"):
        shutil.rmtree(folder / part)
    for part in ("config", "data/ledger", "data/spending", "data/reviews/demo-tiny.json", "results/responses", "machine.json"):
        source = old / "scans" / part
        if source.is_dir():
            shutil.copytree(source, folder / part.replace("results", "results/upgrade-scans"), dirs_exist_ok=True)
        else:
            shutil.copy(source, folder / part)
    # version 1 took two models of one title; today one of them has to get another, which asks nothing anew
    strict = folder / "config" / "models" / "strict.yaml"
    strict.write_text(strict.read_text(encoding="utf-8").replace("Loop (made-up)", "Loop, strict (made-up)"), encoding="utf-8")
    return folder


@pytest.mark.long
@pytest.mark.workflow
def test_the_words_that_are_sent_about_scans_are_those_of_version_1(old: Path, scans: Path) -> None:
    for path in ("data/prompts/demo-tiny.parquet", "data/prompts/demo-tiny-slices.parquet"):
        before, now = rows_of(old / "scans" / path), rows_of(scans / path)
        assert len(now) == len(before)
        assert [without_digests(as_recorded(row, then)) for row, then in zip(now, before, strict=True)] == [
            without_digests(row) for row in before
        ]


def as_recorded(value: Any, before: Any) -> Any:
    """Leave out fields that a record has got since then; they must be empty, so that nothing more is sent."""
    if isinstance(value, dict) and isinstance(before, dict):
        assert not any(value[name] for name in value.keys() - before.keys())
        return {name: as_recorded(value[name], before[name]) for name in before}
    if isinstance(value, list) and isinstance(before, list) and len(value) == len(before):
        return [as_recorded(one, then) for one, then in zip(value, before, strict=True)]
    return value


def without_digests(value: Any) -> Any:
    """Leave out what depends on the last bit of a picture."""
    if isinstance(value, dict):
        return {name: without_digests(entry) for name, entry in value.items() if name not in ("sha256", "volume_sha256", "request_id")}
    return [without_digests(entry) for entry in value] if isinstance(value, list) else value


@pytest.mark.long
@pytest.mark.workflow
def test_scans_that_are_made_again_from_raw_files_keep_their_signature_and_ask_nothing(old: Path, scans: Path) -> None:
    path = "data/slices/demo-tiny/slices.parquet"
    before, now = ({row["path"]: row["sha256"] for row in rows_of(folder / path)} for folder in (old / "scans", scans))
    if before != now and machine() != read_json(scans / "machine.json"):
        pytest.skip("another processor or other packages than those of version 1 rounded the last bits of the pictures otherwise")
    must(scans, "nmb", "model", "plan", "--configfiles", SCANS, "--out", "plan.csv")
    asked = [f"{benchmark}/{model}/" for benchmark in ("demo-tiny", "demo-tiny-slices") for model in ("loop", "strict")]
    assert calls(scans / "plan.csv").items() >= {**dict.fromkeys(asked, 0), "demo-tiny/loop/main": 0}.items()
    folder, reviews = "data/deidentified/demo-tiny", "data/reviews/demo-tiny"
    rules = ["--benchmark", "demo-tiny", "--folder", folder]
    cases = ["--table", "config/benchmarks/demo-tiny.cases.tsv", "--shown", f"{reviews}/review.json", "--signed", f"{reviews}.json"]
    must(scans, "gather_audit", *rules, *cases, "--out", "audit.json")
    audit = read_json(scans / "audit.json")
    assert (audit["state"], len(set(audit["covered"].values()))) == ("passed", 2)
    assert audit["reason"].startswith("signed on ")
