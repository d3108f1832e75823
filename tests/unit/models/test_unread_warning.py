"""The warning about answers that cannot be read: after the first twenty of them, before the rest is asked."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from conftest import ROOT
from fixtures.models import Server, model_config, request, running_server
from fixtures.scoring import GOLD, ITEM, RESPONSE, answered, differential, grader_run
from neuralmedbench.config.load import load_grader
from neuralmedbench.files.tables import write_records
from neuralmedbench.models.console import FIRST_UNREAD, UnreadWarning
from neuralmedbench.models.engine import answer_requests
from neuralmedbench.models.model_run import ModelRun
from neuralmedbench.records.items import Item
from neuralmedbench.records.responses import Response, ResponseState
from neuralmedbench.scoring.explain_reading import early_check
from neuralmedbench.scoring.llm.model_grading import grade_with_model

PROSE = "the patient with the tremor came in on a Tuesday and was seen by nobody in particular for reasons of their own"
READABLE = "DIFFERENTIAL:\n1. meningioma\nFINDINGS: none\nRATIONALE: none\nCONFIDENCE: 0.5"
CONCURRENCY = 4


@pytest.fixture
def check(tmp_path: Path) -> Callable[[Response], str]:
    items = [replace(ITEM, item_id=f"b/i{number}") for number in range(200)]
    write_records(tmp_path / "items.parquet", Item, items, key=lambda row: row.item_id)
    return early_check(tmp_path / "items.parquet")


@pytest.fixture
def server() -> Iterator[Server]:
    with running_server() as running:
        yield running


def rows(texts: list[str], state: ResponseState = ResponseState.OK) -> list[Response]:
    return [replace(RESPONSE, item_id=f"b/i{number}", text=text, state=state) for number, text in enumerate(texts)]


def printed(capsys: pytest.CaptureFixture[str], answers: list[Response], check: Callable[[Response], str] | None, left: int = 100) -> str:
    warning = UnreadWarning("m", check)
    for row in answers:
        warning.count(row, left)
    return capsys.readouterr().err


def test_it_comes_before_the_rest_is_asked(server, check, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[int, str]] = []
    monkeypatch.setattr("neuralmedbench.models.console.print_to_person", lambda line: asked.append((len(server.bodies), line)))
    run = ModelRun(
        model_config(api_base=server.address, concurrency=CONCURRENCY),
        ledger=tmp_path / "m.jsonl",
        destinations=("local",),
        max_failed_fraction=None,
        root=tmp_path,
        why_unread=check,
    )
    requests = [request(f"i{number}") for number in range(200)]
    answer_requests(requests, run)
    ((sent, line),) = asked
    assert sent <= FIRST_UNREAD + CONCURRENCY
    assert f"of the first {FIRST_UNREAD} answers {FIRST_UNREAD} cannot be read" in line
    assert "180 more have not come yet" in line
    # everything is in the ledger: nothing is left to be paid for
    answer_requests(requests, run)
    assert len(asked) == 1


def test_it_says_how_many_and_why_and_not_a_word_of_an_answer(check, capsys: pytest.CaptureFixture[str]) -> None:
    line = printed(capsys, rows([READABLE] * 5 + [PROSE] * FIRST_UNREAD), check)
    assert line.count("WARNING") == 1
    assert "of the first 25 answers 20 cannot be read (most often: calls nothing the diagnosis" in line
    assert "100 more have not come yet" in line
    assert "nmb model explain" in line
    assert not {"Tuesday", "tremor", "nobody"} & set(line.split())


def test_answers_that_are_cut_off_count(check, capsys: pytest.CaptureFixture[str]) -> None:
    line = printed(capsys, rows([PROSE] * FIRST_UNREAD, ResponseState.TRUNCATED), check)
    assert "of the first 20 answers 20 were cut off at the limit of tokens; 100 more" in line
    line = printed(capsys, rows([""] * FIRST_UNREAD, ResponseState.TRUNCATED), check)
    assert "of the first 20 answers 20 were cut off at the limit of tokens, 20 of them while thinking; 100 more" in line


def test_it_is_printed_once(check, capsys: pytest.CaptureFixture[str]) -> None:
    assert printed(capsys, rows([PROSE] * 150), check).count("WARNING") == 1


@pytest.mark.parametrize(
    ("texts", "left"),
    [([PROSE] * (FIRST_UNREAD - 1), 100), ([READABLE] * 180 + [PROSE] * FIRST_UNREAD, 100), ([READABLE] * 100, 100), ([PROSE] * 100, 0)],
)
def test_it_is_not_printed_where_most_are_read_or_nothing_is_left(texts: list[str], left: int, check, capsys) -> None:
    assert printed(capsys, rows(texts), check, left) == ""


def test_nothing_is_said_of_answers_that_are_missing(check, capsys: pytest.CaptureFixture[str]) -> None:
    assert printed(capsys, rows([""] * 100, ResponseState.FAILED), check) == ""
    assert printed(capsys, rows([PROSE] * 100), None) == ""


def test_replies_of_a_grader_that_are_not_in_its_form_are_warned_of_too(server, tmp_path: Path, monkeypatch, capsys) -> None:
    monkeypatch.setenv("NMB_TEST_KEY", "k")
    config = load_grader(ROOT / "config" / "graders" / "llm.yaml")
    model = config.model.model_copy(update={"api_base": server.address, "api_key_env": "NMB_TEST_KEY", "concurrency": CONCURRENCY})
    config = config.model_copy(update={"prompt": str(ROOT / "config" / "prompts" / "grader-v1.j2"), "model": model})
    grading = grader_run("llm", config, ledger=tmp_path / "m.jsonl", destinations=("local",), max_failed_fraction=None)
    answers = [answered(differential(f"tumour of the year {year}"), repeat=year) for year in range(40)]
    grades = grade_with_model(answers, {ITEM.item_id: ITEM}, {ITEM.item_id: GOLD}, grading)
    assert {grade.value for grade in grades} == {None}
    assert "of the first 20 answers 20 cannot be read (most often: is not in the form of its task)" in capsys.readouterr().err


def test_a_job_whose_output_goes_to_a_log_prints_it_on_the_terminal_too(tmp_path: Path) -> None:
    code = "from neuralmedbench.models.console import print_to_person; print_to_person('m: WARNING: look')"
    log = tmp_path / "log"
    process, terminal = pty.fork()
    if process == 0:  # a session of its own, with a terminal
        with log.open("w") as stream:
            done = subprocess.run([sys.executable, "-c", code], stderr=stream, cwd=ROOT / "scripts", check=False)
        os._exit(done.returncode)
    shown = b""
    while True:
        try:
            part = os.read(terminal, 1000)
        except OSError:  # the other end is closed
            break
        if not part:
            break
        shown += part
    assert os.waitstatus_to_exitcode(os.waitpid(process, 0)[1]) == 0
    assert log.read_text() == "m: WARNING: look\n"
    assert shown.decode().split() == ["m:", "WARNING:", "look"]


def test_a_job_without_a_terminal_prints_it_in_its_log_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys) -> None:
    monkeypatch.setattr("neuralmedbench.models.console.TERMINAL", str(tmp_path / "none" / "tty"))
    assert printed(capsys, rows(["nothing"] * 30), lambda _: "empty").count("WARNING") == 1
