"""Explain why an answer is there or not, from ledger, yaml and tables, for models and graders."""

from __future__ import annotations

import base64
import json
from dataclasses import replace
from functools import partial

import pytest

from conftest import ROOT
from fixtures.models import model_config, picture, request
from fixtures.places import cases
from fixtures.scoring import GOLD, ITEM, answered, differential, grader_run
from neuralmedbench.cli.model import explain_request
from neuralmedbench.config.load import load_grader
from neuralmedbench.errors import ConfigError
from neuralmedbench.files.tables import write_records
from neuralmedbench.models import engine
from neuralmedbench.models.engine import answer_requests
from neuralmedbench.models.explain import explain, explain_stored
from neuralmedbench.models.ledger import read_ledger
from neuralmedbench.models.model_run import ModelRun
from neuralmedbench.models.protocol import Answer
from neuralmedbench.models.registry import BackendHandle
from neuralmedbench.models.retry import CallError
from neuralmedbench.records.items import Item, Runner
from neuralmedbench.records.requests import Request, RequestTurn
from neuralmedbench.records.responses import Response
from neuralmedbench.records.scores import response_key, text_digest
from neuralmedbench.scoring.explain_reading import describe_reading
from neuralmedbench.scoring.grade_explanations import explain_grades, recorded_run
from neuralmedbench.scoring.llm.model_grading import grade_with_model

SYSTEM = "You are a neurologist."
HELLO = "http://127.0.0.1:9/v1"
VERDICT = json.dumps({"main_condition": 1, "core_diagnosis": 0, "explanation": "a wider term"})


class Backend:
    """Answers at once; a request with the word `fails` fails."""

    in_flight, several = 1, False

    def __init__(self, text: str = "") -> None:
        self.text = text

    async def answer(self, call):
        asked = call.messages[-1].text
        if "fails" in asked:
            raise CallError(kind="BadRequestError", status=400)
        return (Answer(self.text or f"answer to {asked}", served_model="m-001"),)

    def stop(self):
        pass

    async def close(self):
        pass


class Bench:
    """A ledger, and the requests that a model was asked with it."""

    def __init__(self, root) -> None:
        self.root, self.ledger, self.table = root, root / "m.jsonl", root / "m.parquet"

    def ask(self, *requests, **changes):
        rows = answer_requests(
            requests, ModelRun(self.model(**changes), ledger=self.ledger, destinations=("local",), max_failed_fraction=None, root=self.root)
        )
        write_records(self.table, Response, rows, key=response_key)
        return rows

    def model(self, **changes):
        return model_config(**{"api_base": HELLO, "temperature": 1.0, **changes})

    def why(self, asked, reading=None, **changes):
        """Return the lines about samples and calls."""
        text = explain_stored([asked], self.model(**changes), code="", ledger=self.ledger, table=self.table, reading=reading)
        return [line for line in text.splitlines() if line.startswith(("sample", "  "))]


@pytest.fixture
def bench(tmp_path, monkeypatch):
    monkeypatch.setattr(engine, "open_backend", lambda *_: BackendHandle(Backend()))
    return Bench(tmp_path)


def test_an_answer_that_is_there_is_told_with_its_key_day_and_server(bench):
    (row,) = bench.ask(request("i"))
    found, table = bench.why(request("i"))[1:]
    assert found == f"  call 1: key {row.call_keys[0][:12]}, ok, answered on {row.called_on} by m-001, destination local"
    assert table == "  table of responses: ok after 1 attempts"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("It was a lovely day, and they went to the sea.", "not read: the answer calls nothing the diagnosis"),
        ("I'm sorry, I cannot help with that.", "not read: the answer refuses; it counts as wrong"),
        ("The most likely diagnosis is Parkinson disease.", "in another usual form, which counts: Parkinson disease"),
        (differential("meningioma", "abscess"), "in the form that was asked for: meningioma; abscess"),
    ],
)
def test_an_answer_is_told_with_what_was_read_from_it_or_why_nothing_was(bench, monkeypatch, text, said):
    monkeypatch.setattr(engine, "open_backend", lambda *_: BackendHandle(Backend(text)))
    bench.ask(request("i"))
    line = bench.why(request("i"), partial(describe_reading, item=ITEM))[-1]
    assert line.startswith(f"  reading: {said}")


def test_a_letter_that_its_words_contradict_is_told_as_one():
    item = replace(ITEM, runner=Runner.CHOICE, options=("Donepezil", "Memantine"))
    assert describe_reading("A. Memantine", item) == "the letter, which counts, stands before the words of another option: A"


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"revision": "2"}, "revision 1 then, 2 now"),
        ({"temperature": 0.5, "top_p": 0.9}, "temperature 1.0 then, 0.5 now; top_p not set then, 0.9 now"),
        ({"seed": 3}, "seed not set then, 3 now"),
        ({"id": "openai/n"}, "model id openai/m then, openai/n now"),
        ({"parameters": {"top_k": 5}}, "parameters not set then, {'top_k': 5} now"),
    ],
)
def test_a_setting_that_changed_is_named_and_nothing_else(bench, changes, said):
    (row,) = bench.ask(request("i"))
    lines = bench.why(request("i"), **changes)
    assert lines[0] == "sample 0: 0 of 1 calls are in the ledger"
    assert lines[1].endswith(f" is not in the ledger; nearest is {row.call_keys[0][:12]} of {row.called_on}: {said}")


def test_words_or_pictures_that_changed_are_told_apart_from_a_picture_budget(bench):
    images = tuple(picture(bench.root, number) for number in range(4))
    asked = request("i", RequestTurn(text="Look.", images=images))
    bench.ask(asked, max_images=2)
    assert bench.why(asked, max_images=3)[1].endswith(": max_images 2 then (or as many pictures), 3 now")
    first, second = images[0].sha256[:12], images[1].sha256[:12]
    others = bench.why(request("i", RequestTurn(text="Look.", images=images[1:])), max_images=2)[1]
    assert others.endswith(f": 2 pictures then, 2 now; no longer sent: 1 ({first}); new: 1 ({second})")
    reworded = request("i", RequestTurn(text="Look well.", images=images))
    assert bench.why(reworded, max_images=2)[1].endswith(": the words of message 1 have changed")
    both = bench.why(reworded, max_images=2, revision="2")[1]
    assert both.endswith(": revision 1 then, 2 now; the words of message 1 have changed")


def test_what_was_sent_is_told_apart_by_message_picture_order_and_label(bench):
    images = tuple(picture(bench.root, number) for number in range(3))
    asked = request("i", RequestTurn(text="Look.", images=images))
    bench.ask(asked)

    def said(images=images, **changes):
        (call,) = (
            line for line in bench.why(replace(request("i", RequestTurn(text="Look.", images=images)), **changes)) if "nearest" in line
        )
        return call.partition(": ")[2].partition(": ")[2]

    assert said(system="You are a radiologist.") == "the words of the system message have changed"
    assert said(system="") == "the words of the system message have changed"
    assert said((*images[:2], images[0])) == f"3 pictures then, 3 now; no longer sent: 3 ({images[2].sha256[:12]})"
    assert said(images[::-1]) == "the same pictures are sent in another order, or another number of times"
    assert said(()) == "3 pictures then, 0 now; no longer sent: " + ", ".join(
        f"{place} ({image.sha256[:12]})" for place, image in enumerate(images, start=1)
    )
    relabelled = (replace(images[0], label="Picture 1: T1w"), *images[1:])
    assert said(relabelled) == "the labels of the pictures changed"


def test_in_a_dialogue_the_message_or_the_answer_before_that_changed_is_named(bench):
    turns = [RequestTurn(text=f"Turn {number}.") for number in range(3)]
    bench.ask(request("i", *turns))
    turns[1] = RequestTurn(text="Turn one.")
    assert bench.why(request("i", *turns))[2].endswith(": the words of message 2 have changed")
    bench.ask(request("i", *turns[:2]))
    assert bench.why(request("i", *turns))[3].endswith(": the words of message 2, answer 2 of the dialogue have changed")


def test_the_ledger_holds_digests_of_words_and_pictures_and_neither_of_them(bench, monkeypatch):
    monkeypatch.setattr(engine, "open_backend", lambda *_: BackendHandle(Backend("a stroke")))
    shown = picture(bench.root, 0)
    bench.ask(request("i", RequestTurn(text="Secret question.", images=(shown,))))
    (line,) = bench.ledger.read_text().splitlines()
    kept = json.loads(line)
    assert kept["words"] == [f"{role} {text_digest(text)[:32]}" for role, text in (("system", SYSTEM), ("user", "Secret question."))]
    assert kept["pictures"] == [shown.sha256[:32]]
    content = (bench.root / shown.path).read_bytes()
    assert not any(part in line for part in ("Secret", SYSTEM, shown.path, base64.b64encode(content).decode()[:20]))


def test_the_code_of_a_built_in_model_is_named(bench, monkeypatch):
    monkeypatch.setattr(engine, "open_backend", lambda *_: BackendHandle(Backend()))
    monkeypatch.setattr(engine, "code_of", lambda *_: "old")
    bench.ask(request("i"))
    assert "the code or vocabulary of the built-in model has changed" in "\n".join(bench.why(request("i")))
    assert "the words or" not in "\n".join(bench.why(request("i")))


def test_the_nearest_answer_is_that_of_the_same_arm_and_else_of_the_same_item(bench):
    bench.ask(request("i", samples=2), request("i", RequestTurn(text="Blind."), arm="no_image"))
    three = bench.why(request("i", samples=3))
    assert three[-1] == "  table of responses: no row of this sample and revision; the next run asks for it"
    assert three[-2].endswith(": sample 1 then, 2 now")
    arm = bench.why(request("i", RequestTurn(text="No words."), arm="no_text"))
    assert arm[1].endswith(": arm no_image then, no_text now")
    assert bench.why(request("another"))[1].endswith("is not in the ledger; it has no answer to this item")


def test_an_answer_that_was_asked_for_another_arm_that_says_the_same_is_named(bench):
    bench.ask(request("i"))
    assert bench.why(request("i", arm="no_image"))[1].endswith("; first asked for b/i, arm full, strategy direct, with the same prompt")


def test_a_dialogue_that_broke_off_is_told_call_by_call(bench):
    turns = (RequestTurn(text="First."), RequestTurn(text="It fails."))
    bench.ask(request("i", *turns))
    lines = bench.why(request("i", *turns))
    assert lines[0] == "sample 0: 1 of 2 calls are in the ledger"
    assert "call 1: key " in lines[1]
    assert "call 2: key " in lines[2]
    assert lines[2].endswith(": call 1 then, 2 now")
    assert lines[3] == "  table of responses: failed after 2 attempts (BadRequestError (400)); the next run asks for it (`nmb run retry`)"


def test_a_missing_answer_is_told_with_its_reason_and_what_the_next_run_will_do(bench, monkeypatch):
    asked = request("i", RequestTurn(text="It fails."))
    bench.ask(asked)
    key = {"api_key_env": "NMB_NO_SUCH_KEY"}
    assert bench.why(asked)[-1].endswith("failed after 1 attempts (BadRequestError (400)); the next run asks for it (`nmb run retry`)")
    assert "it cannot be asked for here: the environment variable NMB_NO_SUCH_KEY is not set" in bench.why(asked, **key)[-1]
    failed = bench.table.read_bytes()
    monkeypatch.setattr(Backend, "answer", lambda _, __: _answer())
    bench.ask(asked)
    bench.table.write_bytes(failed)
    assert bench.why(asked)[-1].endswith("the ledger has it now: `nmb run retry` takes it from there")
    bench.table.unlink()
    assert len(bench.why(asked)) == 2


async def _answer():
    return (Answer("late"),)


def test_a_ledger_that_is_not_there_is_said_and_lines_of_old_versions_are_read(bench):
    text = explain_stored([request("i")], bench.model(), code="", ledger=bench.ledger, table=bench.table)
    assert "m.jsonl: 0 answers (it is not there)" in text
    bench.ask(request("i"))
    old = {
        name: value for name, value in json.loads(bench.ledger.read_text()).items() if name in ("key", "state", "text", "item_id", "arm")
    }
    bench.ledger.write_text(json.dumps(old | {"strategy": "direct"}) + "\n")
    assert bench.why(request("i", RequestTurn(text="Other words.")))[1].endswith(": the words or the pictures that are sent have changed")


def test_no_word_of_an_answer_or_a_question_stands_in_the_explanation_of_a_call_that_is_not_there(bench):
    bench.ask(request("i", RequestTurn(text="Secret question.")))
    (entry,) = read_ledger(bench.ledger).values()
    said = explain(request("i", RequestTurn(text="Other.")), bench.model(), {entry.key: entry})
    assert "Secret" not in said


@pytest.fixture
def grading(bench, monkeypatch):
    monkeypatch.chdir(ROOT)
    config = load_grader(ROOT / "config/graders/llm.yaml")
    config = config.model_copy(update={"model": bench.model()})
    rows = [answered(differential("glioma"), repeat=repeat) for repeat in range(2)]
    rows += [answered("", repeat=2, state="refused"), answered("other", repeat=3)]

    def grade(text, graded=rows):
        monkeypatch.setattr(engine, "open_backend", lambda *_: BackendHandle(Backend(text)))
        return grade_with_model(
            graded,
            {ITEM.item_id: ITEM},
            {ITEM.item_id: GOLD},
            grader_run("llm", config, ledger=bench.ledger, destinations=("local",)),
        )

    def told(grades, settings=config):
        text = explain_grades(
            rows, {ITEM.item_id: ITEM}, {ITEM.item_id: GOLD}, recorded_run("llm", settings, ledger=bench.ledger), grades=grades
        )
        return text, [line for line in text.splitlines() if line.startswith(("grading", "sample", "  "))]

    return rows, config, grade, told


def test_a_grader_is_explained_text_by_text_with_the_grades_of_the_table(grading):
    rows, config, grade, told = grading
    grades = grade(VERDICT, rows[:3])
    text, lines = told(grades)
    assert lines[:3] == [
        "sample 2 (arm full, strategy direct) is not graded: its state is refused, or its arm or kind of item is not graded",
        "grading of sample 0 (arm full, strategy direct), sample 1 (arm full, strategy direct)",
        "sample 0: 1 of 1 calls are in the ledger",
    ]
    assert lines[4] == "  table of grades: core_diagnosis ok, value 0; main_condition ok, value 1"
    assert lines[5:7] == ["grading of sample 3 (arm full, strategy direct)", "sample 0: 0 of 1 calls are in the ledger"]
    assert "strategy" in lines[7]
    assert lines[8] == "  table of grades: none of this text"
    assert "<candidate>" in text
    assert told(None)[1][-1] == "  table of grades: it is not there"
    changed = config.model_copy(update={"model": config.model.model_copy(update={"revision": "2"})})
    assert "revision 1 then, 2 now" in told(grades, changed)[0]


def test_a_grade_keeps_of_its_call_who_answered_and_what_was_sent(grading, bench):
    rows, _, grade, told = grading
    grades = grade(VERDICT, rows[:1])
    sent = told(grades)[0].split("--- user\n")[1].split("\n--- answer")[0]
    (entry,) = read_ledger(bench.ledger).values()
    for one in grades:
        assert (one.served_model, one.called_on, one.destination, one.attempts) == ("m-001", entry.called_on, "local", 1)
        assert one.characters_sent > len(sent) > 500


def test_a_grade_that_could_not_be_read_is_told_with_its_reason(grading):
    _, _, grade, told = grading
    assert "core_diagnosis failed (the grader's answer is not in its form: no JSON object)" in told(grade("no verdict"))[0]


def test_a_grader_that_asks_nobody_has_nothing_to_explain(grading):
    with pytest.raises(ConfigError, match="asks no model"):
        grading[3]([], load_grader(ROOT / "config/graders/rubric.yaml"))


def test_the_command_takes_a_strategy_and_names_those_that_there_are(bench, monkeypatch, capsys):
    monkeypatch.setattr("neuralmedbench.scoring.explain_request.load_model_for", lambda *_: bench.model())
    both = [request("i"), replace(request("i"), strategy="cot", turns=(RequestTurn(text="Think."),))]
    monkeypatch.setattr("neuralmedbench.scoring.explain_request.read_records", lambda *_: both)
    monkeypatch.chdir(ROOT)
    words = ["--benchmark", "b", "--model", "m", "--item", "b/i"]
    assert explain_request.main([*words, "--strategy", "cot"]) == 0
    assert capsys.readouterr().out.count("--- user") == 1
    assert explain_request.main(words) == 0
    assert capsys.readouterr().out.count("--- user") == 2
    with pytest.raises(ConfigError, match="the item has: full/cot, full/direct"):
        explain_request.main([*words, "--strategy", "few_shot"])


def test_terminal_codes_and_direction_marks_of_an_answer_reach_no_terminal(bench, monkeypatch, capsys, tmp_path):
    """An answer could clear the screen, overwrite a line, set the title of the window or turn the reading direction."""
    hostile = "right\x1b[2J\x1b]0;owned\x07\x9b31m\rwrong\u202ethgir\U000e0041\x08"
    monkeypatch.setattr(engine, "open_backend", lambda *_: BackendHandle(Backend(hostile)))
    asked = request("i", RequestTurn(text="What is\x1b[8m it?"))
    bench.ask(asked)
    monkeypatch.setattr("neuralmedbench.scoring.explain_request.load_model_for", lambda *_: bench.model())
    monkeypatch.setattr(
        "neuralmedbench.scoring.explain_request.explain_stored",
        lambda *_, **given: explain_stored([asked], bench.model(), code="", ledger=bench.ledger, table=bench.table),
    )
    monkeypatch.setattr("neuralmedbench.scoring.explain_request.read_records", lambda *_: [asked])
    monkeypatch.chdir(ROOT)
    assert explain_request.main(["--benchmark", "b", "--model", "m", "--item", "b/i"]) == 0
    shown = capsys.readouterr().out
    assert "right⟨U+001B⟩[2J⟨U+001B⟩]0;owned⟨U+0007⟩⟨U+009B⟩31m\nwrong⟨U+202E⟩thgir⟨U+E0041⟩⟨U+0008⟩" in shown
    assert "What is⟨U+001B⟩[8m it?" in shown
    assert not set(shown) & set("\x1b\x07\x9b\r\u202e\x08")


def test_pictures_are_numbered_as_the_arm_sends_them(bench, monkeypatch, capsys, tmp_path):
    """A layout of one picture shows the middle one: an answer about picture 3 names none."""
    item = cases(4).items[0]
    (tmp_path / "config").symlink_to(ROOT / "config")
    write_records(tmp_path / "data" / "items" / "b.parquet", Item, [item], key=lambda row: row.item_id)
    asked = [replace(request("i", arm=arm), item_id=item.item_id) for arm in ("full", "layout-llama3.2")]
    write_records(tmp_path / "data" / "prompts" / "b.parquet", Request, asked, key=lambda row: (row.item_id, row.arm))
    text = "DIFFERENTIAL:\n1. glioma\nPICTURE: 3\nBOX: none"
    monkeypatch.setattr("neuralmedbench.scoring.explain_request.load_model_for", lambda *_: bench.model())
    monkeypatch.setattr("neuralmedbench.scoring.explain_request.explain_stored", lambda *_, reading, **__: reading(text))
    monkeypatch.chdir(tmp_path)
    read = {}
    for arm in ("full", "layout-llama3.2"):
        assert explain_request.main(["--benchmark", "b", "--model", "m", "--item", item.item_id, "--arm", arm]) == 0
        read[arm] = capsys.readouterr().out
    assert "picture 3" in read["full"]
    assert "there is no picture of that number" in read["layout-llama3.2"]
