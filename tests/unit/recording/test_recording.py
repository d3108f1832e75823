"""The record of a run: content of `dvc.yaml`, append-only ledgers, and missing answers."""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import subprocess
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
import yaml

from conftest import ROOT, VERSIONING, copy_project
from fixtures.models import model_config
from neuralmedbench.config.model import ModelConfig
from neuralmedbench.config.run_names import extra_configfiles
from neuralmedbench.config.workflow import Run, read_run
from neuralmedbench.errors import ConfigError, DataError, ProviderError
from neuralmedbench.files.cases import write_case
from neuralmedbench.files.digests import sha256_of_files
from neuralmedbench.files.dvc_lock import DvcOut, read_dvc_lock
from neuralmedbench.files.packs import PACKED, packed_files, write_pack
from neuralmedbench.files.tables import write_records
from neuralmedbench.models.ledger import LedgerEntry, add_missing, check_recorded_ledger, open_ledger, read_ledger
from neuralmedbench.recording import record, repository
from neuralmedbench.recording.audit import changed_answers
from neuralmedbench.recording.finished_runs import list_runs, run_lines
from neuralmedbench.recording.metadata import METADATA, OutputRecord, read_metadata, record_name
from neuralmedbench.recording.record import incomplete_files, incomplete_line, missing_lines, restore_results
from neuralmedbench.recording.stages import dvc_yaml, leftovers, recorded_runs
from neuralmedbench.records.case import CaseRecord
from neuralmedbench.records.responses import Response, ResponseState

LEDGER = Path("data/ledger/demo/m.jsonl")


@pytest.fixture
def shipped(monkeypatch: pytest.MonkeyPatch) -> Run:
    """Read the run of config/config.yaml."""
    monkeypatch.chdir(ROOT)
    return read_run()


def records_of(run: Run, *more: str, lost: str = "") -> list[OutputRecord]:
    """Return Snakemake's records of a small run: one job a line, its outputs and its inputs; `more` are inputs of the answers."""
    results, folder = run.results, run.round_folder("simulated")
    jobs = {
        "data/raw/demo/a/files.json data/answers/demo/a.json": "config/demo.key",
        "data/ingested/demo/sub-a/case.json": "data/raw/demo/a/files.json",
        "data/deidentified/demo/sub-a/case.json": "data/ingested/demo/sub-a/case.json",
        "data/deidentified/demo/audit.json": "data/deidentified/demo/sub-a/case.json",
        "data/prompts/demo.parquet": "data/deidentified/demo/audit.json data/answers/demo/a.json config/benchmarks/demo.yaml",
        "data/leaks/demo.json data/leaks/demo.html": "data/prompts/demo.parquet",
        f"{results}/responses/demo/text.parquet": " ".join(["data/leaks/demo.json", "config/models/text.yaml", *more]),
        f"{results}/scores/demo/text.parquet": f"{results}/responses/demo/text.parquet",
        f"{folder}/key.json {folder}/simulated-1.json": f"{results}/responses/demo/text.parquet",
        f"{results}/ratings/ratings.parquet": f"{folder}/key.json",
        f"{results}/tables/rates.csv {results}/metrics.json": f"{results}/scores/demo/text.parquet {results}/ratings/ratings.parquet",
        f"{results}/figures/a.svg": f"{results}/tables/rates.csv",
        f"{results}/report.html": f"{results}/figures/a.svg {results}/tables/rates.csv",
        "results/gone/report.html": "data/items/gone.parquet",
    }
    return [
        OutputRecord(path=path, rule="", shellcmd=made, inputs=tuple(inputs.split()), params=(), checksums={}, ended=0)
        for made, inputs in jobs.items()
        for path in made.split()
        if path != lost
    ]


def stages_of(*runs: Run, records: list[OutputRecord] | None = None) -> dict[str, dict[str, object]]:
    """Read the stages of the dvc.yaml of some runs."""
    made = records or [record for run in runs for record in records_of(run)]
    stages: dict[str, dict[str, object]] = yaml.safe_load(dvc_yaml(runs, made))["stages"]
    return stages


def paths(stage: dict[str, object]) -> list[str]:
    """Return the outs and metrics of a stage."""
    entries = [*(stage.get("outs") or []), *(stage.get("metrics") or [])]  # type: ignore[misc]
    return [next(iter(entry)) for entry in entries]


def test_what_the_rules_made_for_the_report_is_recorded_and_nothing_else(shipped: Run) -> None:
    """Pages that no rule reads are; other runs, the private zone and what lies in git are not."""
    assert paths(stages_of(shipped)["report"]) == [
        "data/answers/demo",
        "data/deidentified/demo",
        "data/leaks/demo.html",
        "data/leaks/demo.json",
        "data/prompts/demo.parquet",
        "data/ratings/simulated",
        "results/figures",
        "results/ratings/ratings.parquet",
        "results/report.html",
        "results/responses/demo/text.parquet",
        "results/scores/demo/text.parquet",
        "results/tables",
        "results/metrics.json",
    ]


def test_every_out_persists_and_belongs_to_one_stage(shipped: Run) -> None:
    named = [replace(shipped, configfiles=(f"config/{name}.yaml",)) for name in ("other", "gpt-4.1")]
    stages = stages_of(named[0], shipped, named[1])
    entries = [entry for stage in stages.values() for entry in [*stage["outs"], *stage.get("metrics", [])]]  # type: ignore[misc, has-type]
    assert all(setting == {"persist": True} for entry in entries for setting in entry.values())
    outs = [path for stage in stages.values() for path in paths(stage)]
    assert len(outs) == len(set(outs))
    folders = {str(parent) for path in outs for parent in Path(path).parents}
    assert not folders & set(outs), "DVC refuses an out that lies in another one"
    assert list(stages) == ["report", "report-gpt-4_1", "report-other", "ledgers", "records"], "DVC allows no dot in the name of a stage"
    assert "data/prompts/demo.parquet" in paths(stages["report"]), "shared data are recorded once, with the first run"
    assert "results/other/ratings/simulated" in paths(stages["report-other"])
    command = "snakemake --cores 8 --configfile config/gpt-4.1.yaml -- results/gpt-4.1/report.html"
    assert stages["report-gpt-4_1"]["cmd"] == command


@pytest.mark.parametrize("lost", ["results/report.html", "results/scores/demo/text.parquet", "data/prompts/demo.parquet"])
def test_a_result_without_a_record_stops_the_record(shipped: Run, lost: str) -> None:
    with pytest.raises(DataError, match=f"Snakemake has no record of how {lost} was made"):
        dvc_yaml([shipped], records_of(shipped, lost=lost))


def test_what_is_not_part_of_the_run_is_found_in_every_recorded_folder(
    shipped: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    records = records_of(shipped)
    for made in records:
        Path(made.path).parent.mkdir(parents=True, exist_ok=True)
        Path(made.path).touch()
    Path("results/tables/paper").mkdir()
    Path("data/deidentified/demo/.partial-x").touch()
    assert leftovers(shipped, records) == ["results/tables/paper"]
    extra = ["data/answers/demo/withdrawn.json", "data/deidentified/demo/sub-b", "results/figures/old.svg", "results/tables/paper/x.csv"]
    for path in map(Path, extra):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    assert leftovers(shipped, records) == sorted([*extra, "results/tables/paper"])


def test_what_people_write_is_recorded_and_never_repeated(shipped: Run) -> None:
    assert "by_hand" not in stages_of(shipped)
    written = ("data/reviews/demo.json", "data/answers/a.csv", "data/answers/a/c1.nii.gz", "data/questions/q/items.jsonl")
    stage = stages_of(shipped, records=records_of(shipped, *written, "data/ratings/r01/ab.json", "data/raw/x.csv"))["by_hand"]
    assert stage["frozen"]
    assert paths(stage) == ["data/answers/a", "data/answers/a.csv", "data/questions/q", "data/ratings/r01", "data/reviews/demo.json"]


def test_the_last_stage_owns_snakemakes_own_records(shipped: Run) -> None:
    assert ".snakemake/metadata" in paths(list(stages_of(shipped).values())[-1])


def test_ledgers_of_models_and_of_graders_that_ask_one_are_recorded(shipped: Run, tmp_path: Path) -> None:
    asking = tmp_path / "asking.yaml"
    asking.write_text("graders: [rubric, llm]\n", encoding="utf-8")
    run = replace(read_run([asking]), configfiles=())
    expected = {"text.jsonl", "graders/text/llm.jsonl", "graders/planted/llm.jsonl"}
    assert {f"data/ledger/demo/{name}" for name in expected} <= set(paths(stages_of(run)["ledgers"]))
    assert not [path for path in paths(stages_of(run)["ledgers"]) if "rubric" in path]


def test_a_private_benchmark_is_in_no_stage_until_it_wants_to_be_recorded(shipped: Run) -> None:
    demo = shipped.benchmarks["demo"].model_copy(update={"private": True})
    private = replace(shipped, benchmarks={**shipped.benchmarks, "demo": demo})
    shared = replace(private, benchmarks={**private.benchmarks, "demo": demo.model_copy(update={"record": True})})
    assert list(stages_of(private)) == ["records"]
    assert "data/prompts/demo.parquet" in paths(stages_of(shared)["report"])


def test_recorded_own_answers_have_to_lie_where_a_clone_gets_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("models", "graders"):
        (tmp_path / "config" / name).mkdir(parents=True)
        source = ROOT / "config" / name / {"models": "text.yaml", "graders": "rubric.yaml"}[name]
        (tmp_path / "config" / name / source.name).write_text(source.read_text())
    (tmp_path / "config" / "benchmarks").mkdir()
    (tmp_path / "answers.csv").write_text("case_id,diagnosis\n")
    own = {"title": "T", "kind": "pictures", "axis": "breadth", "source": "s", "answers": "answers.csv", "record": True}
    (tmp_path / "config" / "benchmarks" / "own.yaml").write_text(yaml.safe_dump(own))
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ConfigError, match="`record: true` needs `answers` in data/answers/"):
        Run.read({"benchmarks": ["own"], "models": ["text"], "graders": ["rubric"]}, Path("config"))


@pytest.mark.parametrize(
    ("missing", "reason"), [("dvc", "dvc is not installed"), ("git", "git is not installed"), ("", "this folder is not a git repository")]
)
def test_what_keeps_a_run_from_being_recorded_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, missing: str, reason: str) -> None:
    if missing == "dvc":
        monkeypatch.setattr(repository.importlib.util, "find_spec", lambda _: None)
    if missing == "git":
        monkeypatch.setattr(repository.shutil, "which", lambda _: None)
    assert repository.why_not_versioned(tmp_path) == reason


def write_lock(folder: Path, size: int) -> Path:
    """Write a dvc.lock that records the ledger with a size."""
    lock = {"schema": "2.0", "stages": {"infer@demo-m": {"cmd": "c", "outs": [{"path": LEDGER.as_posix(), "md5": "0" * 32, "size": size}]}}}
    (folder / "dvc.lock").write_text(yaml.safe_dump(lock))
    return folder / "dvc.lock"


@pytest.mark.parametrize(("paid", "here", "refused"), [(True, 99, True), (True, None, True), (True, 100, False), (False, None, False)])
def test_a_paid_model_is_refused_while_recorded_answers_are_not_here(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, paid: bool, here: int | None, refused: bool
) -> None:
    monkeypatch.chdir(tmp_path)
    lock = write_lock(tmp_path, 100)
    if here is not None:
        LEDGER.parent.mkdir(parents=True)
        LEDGER.write_bytes(b"x" * here)
    model = model_config(api_key_env="KEY") if paid else model_config()
    if refused:
        with pytest.raises(ProviderError, match=rf"has 100 bytes, the one here {here or 0}: run `nmb run pull` first"):
            check_recorded_ledger(model, LEDGER, lock)
    else:
        check_recorded_ledger(model, LEDGER, lock)


def test_a_lock_with_a_merge_conflict_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "dvc.lock").write_text("<<<<<<< HEAD\nschema: '2.0'\n=======\n")
    with pytest.raises(ConfigError, match=r"dvc.lock: not a DVC lock file; `git checkout dvc.lock`"):
        read_dvc_lock(tmp_path / "dvc.lock")
    assert read_dvc_lock(tmp_path / "absent.lock") == {}


def entry_line(key: str, **more: object) -> bytes:
    """Write a line of a ledger."""
    return json.dumps({"key": key, "state": "ok", "text": key, **more}).encode() + b"\n"


def test_ledgers_are_united_line_by_line_and_keep_what_they_do_not_know(tmp_path: Path) -> None:
    here, other = tmp_path / "here.jsonl", tmp_path / "other.jsonl"
    here.write_bytes(entry_line("a") + entry_line("b", text="ours"))
    other.write_bytes(entry_line("b", text="theirs") + entry_line("c", of_a_later_version=1) + b'{"torn')
    assert add_missing(here, other) == 1
    assert add_missing(here, other) == 0
    assert here.read_bytes() == entry_line("a") + entry_line("b", text="ours") + entry_line("c", of_a_later_version=1)
    assert read_ledger(here)["b"].text == "ours"


def test_a_ledger_that_is_not_here_becomes_the_recorded_one_byte_by_byte(tmp_path: Path) -> None:
    other = tmp_path / "other.jsonl"
    other.write_bytes(entry_line("b") + entry_line("a"))
    assert add_missing(tmp_path / "new" / "here.jsonl", other) == 2
    assert (tmp_path / "new" / "here.jsonl").read_bytes() == other.read_bytes()


def test_a_ledger_that_is_being_written_is_not_united(tmp_path: Path) -> None:
    here, other = tmp_path / "here.jsonl", tmp_path / "other.jsonl"
    other.write_bytes(entry_line("b"))
    with open_ledger(here) as ledger:
        ledger.add(LedgerEntry(key="a", state="ok", text="a"))
        with pytest.raises(ProviderError, match=f"process {os.getpid()} writes to this ledger"):
            add_missing(here, other)
    assert set(read_ledger(here)) == {"a"}


RECORDED = b"".join(entry_line(key, item_id=f"demo/{key}") for key in ("one", "two", "three"))


def ledger_findings(root: Path, here: bytes | None, *, cached: bool = True) -> tuple[list[str], list[str]]:
    """Compare a ledger with RECORDED, as the audit does."""
    (root / "cache").write_bytes(RECORDED)
    (root / LEDGER).parent.mkdir(parents=True, exist_ok=True)
    if here is not None:
        (root / LEDGER).write_bytes(here)
    recorded = {LEDGER.as_posix(): DvcOut(hashlib.md5(RECORDED).hexdigest(), len(RECORDED), "infer@demo-m")}
    return changed_answers(recorded, {LEDGER.as_posix(): root / ("cache" if cached else "absent")}, root)


@pytest.mark.parametrize("cached", [True, False])
def test_a_recorded_line_whose_text_was_changed_is_found_by_its_item(tmp_path: Path, cached: bool) -> None:
    findings, notes = ledger_findings(tmp_path, RECORDED.replace(b'"text": "two"', b'"text": "owt"'), cached=cached)
    assert len(findings) == 1
    assert findings[0].startswith("data/ledger/demo/m.jsonl: ")
    if cached:
        assert (
            "1 recorded answer changed or gone: that to demo/two (line 2 here); delete changed lines and run `nmb run pull`" in findings[0]
        )
        assert not notes
    else:
        assert "are not what dvc.lock records" in findings[0]
        assert notes == ["1 recorded ledgers are not in DVC's cache: compared by digest only (`dvc fetch` brings them)"]


def test_a_ledger_may_grow_after_the_run_was_recorded(tmp_path: Path) -> None:
    assert ledger_findings(tmp_path, RECORDED + entry_line("four")) == ([], [])
    assert ledger_findings(tmp_path, entry_line("four") + RECORDED) == ([], []), "united by a pull: in another order"
    findings, notes = ledger_findings(tmp_path, RECORDED + entry_line("four"), cached=False)
    assert (findings, len(notes)) == ([], 1)


def test_recorded_lines_and_ledgers_that_are_gone_are_found(tmp_path: Path) -> None:
    assert ledger_findings(tmp_path, None)[0] == ["data/ledger/demo/m.jsonl: the recorded ledger is missing here; `nmb run pull` brings it"]
    assert "that to demo/one (gone)" in ledger_findings(tmp_path, b"".join(RECORDED.splitlines(keepends=True)[1:]))[0][0]


def test_an_answer_that_was_changed_after_it_was_kept_is_refused_without_dvc(tmp_path: Path) -> None:
    path = tmp_path / "data" / "ledger" / "demo" / "new.jsonl"
    with open_ledger(path) as ledger:
        ledger.add(LedgerEntry(key="a", state="ok", text="an abscess, \u2028 ½", item_id="demo/one"))
        ledger.add(LedgerEntry(key="b", state="ok", text="a stroke", item_id="demo/two"))
    assert read_ledger(path)["a"].text == "an abscess, \u2028 ½"
    good = path.read_bytes()
    path.write_bytes(good.replace(b"a stroke", b"a tumour"))
    words = r"demo/new.jsonl, line 2: the answer to demo/two was changed after it was kept .* delete the line and run `nmb run pull`"
    with pytest.raises(DataError, match=words):
        read_ledger(path)
    with pytest.raises(DataError, match=words), open_ledger(path):
        pass
    with pytest.raises(DataError, match=r"the recorded demo/other\.jsonl, line 2"):
        add_missing(path.with_name("other.jsonl"), path)
    assert [finding.partition(":")[0] for finding in changed_answers({}, {}, tmp_path)[0]] == ["data/ledger/demo/new.jsonl"]
    path.write_bytes(good.splitlines(keepends=True)[0])
    assert set(read_ledger(path)) == {"a"}


def response(item: str, state: ResponseState) -> Response:
    """Make a response in a state."""
    return Response(
        item_id=item,
        case_id="c",
        patient_id="p",
        benchmark="demo",
        arm="full",
        strategy="direct",
        model="text",
        revision="1",
        repeat=0,
        request_id="0" * 64,
        runner="open",
        state=state,
    )


def test_results_that_are_gone_are_marked_unless_another_snakemake_is_making_them(shipped: Run, tmp_path: Path) -> None:
    lost, page = "results/scores/demo/text.parquet", tmp_path / "results/report.html"
    for path in (page, tmp_path / METADATA / record_name(lost), tmp_path / ".snakemake/locks/0.input.lock"):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    mark = tmp_path / ".snakemake/incomplete" / record_name("results/report.html")
    assert (restore_results(shipped, tmp_path), mark.exists()) == ([], False)
    (tmp_path / ".snakemake/locks/0.input.lock").unlink()
    assert (restore_results(shipped, tmp_path), mark.exists()) == ([lost], True)


def test_a_key_that_is_set_by_now_is_said_to_be(
    shipped: Run, tmp_path: Path, write: Callable[[str, list[Response]], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    row = replace(response("a", ResponseState.SKIPPED), error="the environment variable MY_KEY is not set")
    write("results/responses/demo/image.parquet", [row])
    monkeypatch.delenv("MY_KEY", raising=False)
    assert re.search(r"MY_KEY is not set \(the key of [\w-]+\)", incomplete_line(incomplete_files(shipped, tmp_path), shipped))
    monkeypatch.setenv("MY_KEY", "x")
    assert re.search(
        r"\(1 skipped, MY_KEY was not set, and is now \(the key of [\w-]+\)\)",
        incomplete_line(incomplete_files(shipped, tmp_path), shipped),
    )


def test_a_key_that_is_not_set_is_named_beside_a_commoner_cause(
    shipped: Run, tmp_path: Path, write: Callable[[str, list[Response]], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("MY_KEY", raising=False)
    rows = [replace(response(item, ResponseState.SKIPPED), error="the prompt is too long") for item in "ab"]
    write("results/responses/demo/text.parquet", rows)
    key = "the environment variable MY_KEY is not set"
    write("results/responses/demo/image.parquet", [replace(response("a", ResponseState.SKIPPED), error=key)])
    line = incomplete_line(incomplete_files(shipped, tmp_path), shipped)
    assert line.startswith(f"missing: 3 answers (3 skipped, most often the prompt is too long, {key} (the key of image) (1))")


def test_imported_answers_that_are_missing_are_to_be_handed_in_and_never_retried(
    shipped: Run, tmp_path: Path, write: Callable[[str, list[Response]], None]
) -> None:
    theirs = ModelConfig(title="Theirs", backend="imported", id="t/theirs", revision="1").named("theirs")
    run = replace(shipped, models={**shipped.models, "theirs": theirs})
    why = "its answers are imported (nmb model import), those that are missing cannot be asked for"
    rows = [response("a", ResponseState.OK), replace(response("b", ResponseState.SKIPPED), error=why)]
    write("results/responses/demo/theirs.parquet", rows)
    assert incomplete_files(run, tmp_path) == {}
    command = "nmb model import FILE --benchmark demo --model theirs"
    assert missing_lines(run, tmp_path) == [
        f"missing: 1 imported answer of theirs to demo; hand in the rest with `{command}`, and run again"
    ]
    write("results/responses/demo/theirs.parquet", rows[:1])
    assert missing_lines(run, tmp_path) == []


def test_what_is_missing_is_counted_and_its_tables_are_listed(
    shipped: Run, tmp_path: Path, write: Callable[[str, list[Response]], None]
) -> None:
    write("results/responses/demo/text.parquet", [response("a", ResponseState.OK), response("b", ResponseState.REFUSED)])
    assert incomplete_files(shipped, tmp_path) == {}
    assert incomplete_line({}, shipped) == ""
    rows = [response("a", ResponseState.FAILED), response("b", ResponseState.SKIPPED), response("c", ResponseState.SKIPPED)]
    rows = [replace(row, error="RateLimitError (429)" if row.item_id == "a" else "KEY is not set") for row in rows]
    write("results/responses/demo/image.parquet", rows)
    found = incomplete_files(shipped, tmp_path)
    assert list(found) == ["results/responses/demo/image.parquet"]
    words = "missing: 3 answers (1 failed, RateLimitError (429); 2 skipped, KEY is not set)"
    assert incomplete_line(found, shipped) == f"{words}; `nmb run retry` requests them again"
    # the printed command retries the run that printed it
    study = replace(shipped, configfiles=("config/two words.yaml", "config/study.yaml"))
    assert incomplete_files(study, tmp_path) == {}
    write("results/study/responses/demo/image.parquet", rows)
    line = incomplete_line(incomplete_files(study, tmp_path), study)
    assert line == f"{words}; `nmb run retry --configfiles 'config/two words.yaml' config/study.yaml` requests them again"
    waiting = replace(rows[1], error="handed in with batch b1, which has not ended; the next run collects it")
    write("results/responses/demo/image.parquet", [waiting])
    assert incomplete_line(incomplete_files(shipped, tmp_path), shipped).endswith("`nmb run retry` collects them")
    other = replace(waiting, item_id="d", error=waiting.error.replace("b1", "b2"))
    write("results/responses/demo/image.parquet", [waiting, other])
    assert incomplete_line(incomplete_files(shipped, tmp_path), shipped).endswith("`nmb run retry` collects them")
    write("results/responses/demo/image.parquet", [waiting, rows[0]])
    assert incomplete_line(incomplete_files(shipped, tmp_path), shipped).endswith("collects those of a batch and requests the rest again")
    write("results/responses/demo/image.parquet", [replace(row, error=row.item_id) for row in [*rows, rows[1]]])
    assert incomplete_line(incomplete_files(shipped, tmp_path), shipped).startswith(
        "missing: 4 answers (1 failed, a; 3 skipped, most often b)"
    )


@pytest.fixture
def write(tmp_path: Path) -> Callable[[str, list[Response]], None]:
    """Return a function that writes a table of responses."""

    def _write(name: str, rows: list[Response]) -> None:
        write_records(tmp_path / name, Response, rows, key=lambda row: row.item_id)

    return _write


def test_a_torn_record_of_snakemake_is_passed_over(tmp_path: Path) -> None:
    (tmp_path / "cmVzdWx0cy9h").write_text('{"rule": "one", "input": ["x"], "input_checksums": {"x": "sha256:00"}}')
    (tmp_path / "@cmVzdWx0").mkdir()
    (tmp_path / "@cmVzdWx0" / "cy9i").write_text('{"rule": "two"}')
    (tmp_path / "cmVzdWx0cy9j").write_text('{"rule": "thr')
    assert [(made.path, made.rule, made.checksums) for made in read_metadata(tmp_path)] == [
        ("results/a", "one", {"x": "00"}),
        ("results/b", "two", {}),
    ]


def test_the_configuration_that_every_run_reads_is_no_setting_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert extra_configfiles([tmp_path / "config" / "config.yaml", "config/test.yaml", tmp_path.parent / "x.yaml"]) == [
        "config/test.yaml",
        "../x.yaml",
    ]


@pytest.mark.slow
def test_recorded_files_are_checked_out_in_one_reading_of_the_record_and_ledgers_are_left_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from dvc.utils import strictyaml

    monkeypatch.chdir(copy_project(tmp_path, VERSIONING))
    subprocess.run(["git", "init", "-q"], check=True)
    outs = [LEDGER, *(Path("data", "items", f"{number}.csv") for number in range(20))]
    for out in outs:
        out.parent.mkdir(parents=True, exist_ok=True)
        out.write_text(f"recorded {out.name}")
    stages = {f"s{number}": {"cmd": "true", "outs": [{out.as_posix(): {"persist": True}}]} for number, out in enumerate(outs)}
    Path("dvc.yaml").write_text(yaml.safe_dump({"stages": stages}))
    with repository.open_repository() as repo:
        assert repo.commit() == len(outs)
        for out in outs[1:]:
            out.unlink()
        LEDGER.write_text("paid for here")
        read = []
        load = strictyaml.load
        monkeypatch.setattr(strictyaml, "load", lambda path, *args, **kwargs: read.append(path) or load(path, *args, **kwargs))
        assert repo.checkout(but=repository.LEDGERS) == 20
    assert len(read) == 2, "dvc.yaml and dvc.lock"
    assert [out.read_text() for out in outs] == ["paid for here", *(f"recorded {out.name}" for out in outs[1:])]


def test_pictures_of_a_version_without_packs_are_packed_before_dvc_leaves_their_folder_out(
    shipped: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("DVC_STAGE", "any")
    case, altered = Path("data/slices/demo/sub-c"), Path("data/altered/demo/png/sub-c")
    for folder in (case / "png", altered):
        folder.mkdir(parents=True)
        (folder / "1.png").write_bytes(b"old")
        (folder / ".snakemake_timestamp").touch()
    write_case(case / "case.json", CaseRecord(benchmark="demo", case_id="c", patient_id="p", stage="slices"))
    assert record.record_run(shipped, overridden=False) == ""
    assert packed_files(case / "png.zip") == packed_files(altered.with_suffix(".zip")) == {"1.png": b"old"}


@pytest.mark.slow
def test_a_changed_case_rewrites_its_own_packs_and_a_withdrawn_one_none_and_its_pictures_leave_a_clone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tree, clone = Path("data/slices/many"), tmp_path / "clone"

    def make(case: str, *names: str) -> None:
        folder = tree / f"sub-{case}"
        for kind in PACKED:
            (folder / kind).mkdir(parents=True, exist_ok=True)
            for name in names:
                (folder / kind / name).write_text(f"{case} {kind} {name}")
            write_pack(folder / kind)
        write_case(folder / "case.json", CaseRecord(benchmark="many", case_id=case, patient_id=f"p{case}", stage="slices"))

    def recorded() -> int:
        before = {path for path in Path(".dvc/cache").rglob("*") if path.is_file()}
        with repository.open_repository() as repo:
            repo.commit()
        for words in (["add", "dvc.yaml", "dvc.lock", ".dvc", ".dvcignore"], ["commit", "-q", "-m", "record"]):
            subprocess.run(["git", "-c", "user.name=T", "-c", "user.email=t@example.org", *words], check=True)
        return len({path for path in Path(".dvc/cache").rglob("*") if path.is_file()} - before)

    origin = copy_project(tmp_path, VERSIONING)
    monkeypatch.chdir(origin)
    subprocess.run(["git", "init", "-q"], check=True)
    Path("dvc.yaml").write_text(yaml.safe_dump({"stages": {"s": {"cmd": "true", "outs": [{tree.as_posix(): {"persist": True}}]}}}))
    for case in "abc":
        make(case, *map(str, range(20)))
    a_case = len(PACKED) + 1
    assert recorded() == 3 * a_case + 1, "a file a pack, case.json, and DVC's list"
    make("b", "20")
    assert recorded() == a_case + 1
    # a clone without its own cache, where nothing has to be fetched
    subprocess.run(["git", "clone", "-q", str(origin), str(clone)], check=True)
    (clone / ".dvc" / "config.local").write_text(f"[cache]\n    dir = {origin / '.dvc' / 'cache'}\n")
    files = sha256_of_files(tree)
    monkeypatch.chdir(clone)
    repository.pull()
    assert sha256_of_files(tree) == files
    monkeypatch.chdir(origin)
    shutil.rmtree(tree / "sub-c")
    assert recorded() == 1, "DVC's list alone"
    monkeypatch.chdir(clone)
    subprocess.run(["git", "pull", "-q"], check=True)
    repository.pull()
    assert sorted(path.name for path in tree.iterdir()) == ["sub-a", "sub-b"]


@pytest.mark.parametrize(
    ("configfiles", "name", "folder"),
    [
        ((), "config", "results"),
        (("config/paper.yaml",), "paper", "results/paper"),
        (("config/base.yaml", "../mine/gpt-4.1.yaml"), "gpt-4.1", "results/gpt-4.1"),
    ],
)
def test_a_run_is_called_like_its_last_configfile_and_has_its_own_folder(
    shipped: Run, configfiles: tuple[str, ...], name: str, folder: str
) -> None:
    run = replace(shipped, configfiles=configfiles)
    assert (run.name, run.results, run.report) == (name, folder, f"{folder}/report.html")
    assert run.logs == folder.replace("results", "logs")


@pytest.mark.parametrize("stem", ["tables", "scores", "config", "My_Study", "a..b"])
def test_a_name_that_a_run_cannot_have_is_refused_in_one_line(shipped: Run, stem: str) -> None:
    with pytest.raises(ConfigError, match=r"a run is called like its last configfile.*; rename the file$") as refused:
        Run.read(shipped.config.model_dump(mode="json"), Path("config"), configfiles=[f"studies/{stem}.yaml"])
    assert "\n" not in str(refused.value)


def test_a_target_of_another_run_is_refused_with_the_right_one(shipped: Run) -> None:
    paper = replace(shipped, configfiles=("config/paper.yaml",))
    shipped.check_targets(["--cores", "8", "", "--", "results/report.html", "data/prompts/demo.parquet", "results"])
    paper.check_targets(["--configfile", "config/paper.yaml", "--", "results/paper/report.html", "results/paper/tables/paper/x.csv"])
    wrong = {
        "results/report.html": "results/report.html is of the run config .* name results/paper/report.html, or no target",
        "./results/tables/rates.csv": "name results/paper/tables/rates.csv",
        "results/other/scores/demo/text.parquet": "of the run other .* name results/paper/scores/demo/text.parquet",
    }
    for target, words in wrong.items():
        with pytest.raises(ConfigError, match=words):
            paper.check_targets([target])
    with pytest.raises(ConfigError, match=r"results/paper/report.html is of the run paper .* name results/report.html"):
        shipped.check_targets(["results/paper/report.html"])


def test_a_run_whose_shared_data_were_made_again_since_is_out_of_date_and_one_that_uses_none_of_them_is_not(
    shipped: Run,
) -> None:
    """`changed` are the outs of DVC, folders among them; a ledger that only grew makes nothing out of date."""
    made = {
        "results/other/report.html": ("results/other/tables/rates.csv",),
        "results/other/tables/rates.csv": ("results/other/scores/demo/text.parquet", "data/slices/demo/sub-a/png/1.png"),
        "results/other/scores/demo/text.parquet": ("data/prompts/demo.parquet", "data/ledger/demo/text.jsonl"),
        "results/third/report.html": ("results/third/tables/rates.csv",),
        "results/third/tables/rates.csv": ("data/prompts/demo-slices.parquet",),
        "results/gone/tables/rates.csv": ("data/prompts/left.parquet",),
    }
    records = [OutputRecord(path=path, rule="", shellcmd="", inputs=own, params=(), checksums={}, ended=0) for path, own in made.items()]
    others = [replace(shipped, configfiles=(f"config/{name}.yaml",)) for name in ("other", "third", "gone")]

    def overtaken(*changed: str) -> list[str]:
        return list(record._overtaken(others, changed, records))

    assert overtaken("data/prompts/demo.parquet") == ["run other is out of date: data/prompts/demo.parquet has been made again since"]
    assert overtaken("data/slices/demo") == ["run other is out of date: data/slices/demo has been made again since"]
    assert len(overtaken("data/prompts/demo-slices.parquet", "data/prompts/demo.parquet")) == 2
    unused = [
        "data/prompts/dem",
        "data/slices/demo/sub-a/png/1",
        "data/prompts/left.parquet",
        "data/ledger/demo",
        "data/ledger/demo/text.jsonl",
    ]
    assert overtaken(*unused) == []


def test_recorded_runs_are_read_from_the_record_and_one_whose_configfile_is_gone_is_not(
    shipped: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(copy_project(tmp_path, parts=("config", "data")))

    def lock(*commands: str) -> None:
        outs = [(command.split()[-1], command) for command in commands]
        stages = {
            f"s{place}": {"cmd": command, "outs": [{"path": path, "md5": "0", "size": 1}]} for place, (path, command) in enumerate(outs)
        }
        Path("dvc.lock").write_text(yaml.safe_dump({"stages": stages}))

    command = "snakemake --cores 8 --configfile config/{0}.yaml -- results/{0}/report.html"
    assert recorded_runs(shipped) == []
    lock("snakemake --cores 8 -- results/report.html", command.format("test"), command.format("gone"), "snakemake -- results/tables")
    assert [run.name for run in recorded_runs(shipped)] == ["test"]
    test = read_run([Path("config/test.yaml")])
    assert [run.name for run in recorded_runs(test)] == ["config"]
    # recorded before runs had names: the results of config/test.yaml lay in results/
    lock("snakemake --cores 8 --configfile config/test.yaml -- results/report.html")
    assert recorded_runs(shipped) == []
    lock(command.format("test"))
    Path("config/test.yaml").write_text("benchmarks: [nowhere]\n")
    with pytest.raises(ConfigError, match="nowhere"):
        recorded_runs(shipped)


def test_the_runs_that_are_here_are_listed_from_their_own_files(tmp_path: Path, write: Callable[[str, list[Response]], None]) -> None:
    assert list_runs(tmp_path) == []
    rows = [response("a", ResponseState.OK), response("b", ResponseState.SKIPPED)]
    models = [{"benchmark": "demo", "model": "text"}]
    for folder, provenance in {
        "results": {"command": "snakemake --cores 8 results/report.html --configfile config/study.yaml", "models": models},
        "results/paper": {"configfiles": ["config/paper.yaml"], "models": models},
        "results/try": {"configfiles": ["config/try.yaml"], "models": [], "limited": True},
        "results/exports": {"configfiles": [], "models": models},
    }.items():
        (tmp_path / folder).mkdir(parents=True, exist_ok=True)
        (tmp_path / folder / "provenance.json").write_text(json.dumps(provenance))
        write(f"{folder}/responses/demo/text.parquet", rows)
    (tmp_path / "results" / "tables").mkdir()
    (tmp_path / "results" / "paper" / "report.html").write_text("")
    os.utime(tmp_path / "results" / "paper" / "report.html", (0, 0))
    stage = {"cmd": "x", "outs": [{"path": "results/paper/report.html", "md5": "0", "size": 1}]}
    (tmp_path / "dvc.lock").write_text(yaml.safe_dump({"stages": {"report-paper": stage}}))
    former, paper, tried = list_runs(tmp_path)
    assert (former.name, former.configfiles, former.recorded) == ("config", ("config/study.yaml",), False)
    assert (paper.answers, paper.missing, paper.benchmarks, paper.models) == (2, 1, ("demo",), ("text",))
    assert tried.limited
    assert run_lines([former, paper, tried]) == [
        "config  no report         config/study.yaml  demo by text              2 answers, 1 missing     not recorded",
        "paper   1970-01-01 00:00  config/paper.yaml  demo by text              2 answers, 1 missing     recorded",
        "try     no report         config/try.yaml    no benchmark by no model  0 answers, none missing  limited, no rank",
    ]
