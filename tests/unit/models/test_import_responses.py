from __future__ import annotations

import json
import os
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
import yaml

from conftest import ROOT
from fixtures.imports import imported, put, put_table
from fixtures.models import model_config, request
from fixtures.scoring import vocabulary
from neuralmedbench.cli.model import import_responses
from neuralmedbench.config.benchmark import BenchmarkConfig
from neuralmedbench.errors import ConfigError, DataError
from neuralmedbench.files.external_files import GivenAnswer, read_given
from neuralmedbench.files.json_files import write_json_record
from neuralmedbench.files.tables import write_records
from neuralmedbench.files.templates import Templates
from neuralmedbench.models.engine import answer_requests
from neuralmedbench.models.imported_answers import import_answers
from neuralmedbench.models.model_run import ModelRun
from neuralmedbench.prompts.assemble import CaseMaterial, assemble
from neuralmedbench.records.items import Gold, Item
from neuralmedbench.records.questions import ImportRecord, Refusal
from neuralmedbench.records.requests import Request, RequestTurn
from neuralmedbench.records.responses import ResponseState
from neuralmedbench.records.vocabulary import normal_form
from neuralmedbench.scoring.scores import score_responses

REAL = os.environ.get("NMB_REAL_BENCHMARKS", "")
MODEL = model_config(backend="imported", id="team/their-model", temperature=1.0, api_base=None, api_key_env=None, prices=None)
ONE = request("one", RequestTurn(text="What is it?"), samples=2)
TALK = request("talk", RequestTurn(text="First?"), RequestTurn(text="And now?"))


def given(item: str, *turns: str, sample: int = 0, arm: str = "full") -> GivenAnswer:
    return GivenAnswer(where="row", item=item, sample=sample, turns=turns, arm=arm)


def answers_of(tmp_path: Path, requests: list[Request]) -> list[tuple[str, int, str, str, tuple[str, ...]]]:
    rows = answer_requests(
        requests, ModelRun(MODEL.named("theirs"), ledger=tmp_path / "theirs.jsonl", destinations=("local",), max_failed_fraction=None)
    )
    return [(row.item_id, row.repeat, row.state, row.finish_reason, row.turns) for row in rows]


def test_imported_answers_are_responses_like_all_others_and_what_is_missing_is_missing(tmp_path):
    rows = [given("b/one", "A stroke."), given("talk", "Perhaps a stroke.", "A stroke.")]
    found = import_answers([ONE, TALK], MODEL.named("theirs"), rows, ledger=tmp_path / "theirs.jsonl")
    assert (found.expected, found.given, found.added, found.missing) == (3, 2, 3, 1)
    assert answers_of(tmp_path, [ONE, TALK]) == [
        ("b/one", 0, ResponseState.OK, "imported", ("A stroke.",)),
        ("b/one", 1, ResponseState.SKIPPED, "", ()),
        ("b/talk", 0, ResponseState.OK, "imported", ("Perhaps a stroke.", "A stroke.")),
    ]


def test_the_same_import_twice_adds_nothing_and_another_text_needs_another_revision(tmp_path):
    ledger = tmp_path / "theirs.jsonl"
    for added in (1, 0):
        assert import_answers([ONE], MODEL.named("theirs"), [given("one", "A")], ledger=ledger).added == added
    with pytest.raises(DataError, match=r"1 answers differ .* raise `revision`"):
        import_answers([ONE], MODEL.named("theirs"), [given("one", "B")], ledger=ledger)


def same_question(item: str, *, arm: str = "full") -> Request:
    """Return a request with the same text for every item."""
    return replace(request(item, RequestTurn(text="Which one?"), RequestTurn(text="Sure?")), arm=arm)


def test_items_that_share_one_prompt_keep_their_own_answers(tmp_path):
    asked = [same_question("a"), same_question("b"), same_question("c"), same_question("a", arm="no_image")]
    rows = [given("b", "B", "yes"), given("a", "A", "yes"), given("a", "C", "no", arm="no_image")]
    for added in (6, 0):
        found = import_answers(asked, MODEL.named("theirs"), rows, ledger=tmp_path / "theirs.jsonl")
        assert (found.added, found.missing) == (added, 1), "nobody answered c"
        rows.reverse()
    for replay in (False, True):
        responses = answer_requests(
            asked,
            ModelRun(
                MODEL.named("theirs"), ledger=tmp_path / "theirs.jsonl", destinations=("local",), max_failed_fraction=None, replay=replay
            ),
        )
        assert [(row.item_id, row.arm, row.turns) for row in responses] == [
            ("b/a", "full", ("A", "yes")),
            ("b/a", "no_image", ("C", "no")),
            ("b/b", "full", ("B", "yes")),
            ("b/c", "full", ()),
        ]
        assert responses[-1].state is ResponseState.SKIPPED
    with pytest.raises(DataError, match=r"1 answers differ .* the first is that to b/b; raise `revision`"):
        import_answers(asked, MODEL.named("theirs"), [given("b", "A", "yes")], ledger=tmp_path / "theirs.jsonl")


def test_an_import_of_before_is_completed_by_importing_the_same_file_again(tmp_path):
    """Once the first of two answers was used for both items."""
    ledger, asked = tmp_path / "theirs.jsonl", [same_question("a"), same_question("b")]
    import_answers(asked[:1], MODEL.named("theirs"), [given("a", "A", "yes")], ledger=ledger)
    before = ledger.read_bytes()
    assert answers_of(tmp_path, asked)[1][2] == ResponseState.SKIPPED, "the answer to another item is never taken"
    found = import_answers(asked, MODEL.named("theirs"), [given("a", "A", "yes"), given("b", "B", "yes")], ledger=ledger)
    assert (found.added, found.missing) == (2, 0)
    assert ledger.read_bytes().startswith(before)
    assert [row[4] for row in answers_of(tmp_path, asked)] == [("A", "yes"), ("B", "yes")]


@pytest.mark.parametrize(
    ("rows", "problem"),
    [
        ([given("b/other", "A")], "no request for the item 'b/other' .*; expected ids as in the set, such as one or b/one"),
        ([given("one", "A", arm="no_image")], "under arm no_image"),
        ([given("set/one", "A")], "no request for the item 'set/one' .*; write it without what stands before `one`"),
        ([given("nothing", "A")], "; --leave-unknown leaves out the 1 answer whose id is unknown"),
        ([given("one", "A"), given("one", "B", sample=2)], "the item 'one' occurs 3 times, the benchmark asks for 2 answers to it; keep 2"),
        ([given("one", "A", sample=2)], "sample 2, the benchmark asks for 2"),
        ([given("one", "A"), given("b/one", "B")], "sample 0 of b/one occurs twice; keep one"),
        ([given("talk", "A")], "1 turns, expected 2"),
    ],
)
def test_answers_that_fit_nothing_are_refused_and_nothing_is_imported(tmp_path, rows, problem):
    with pytest.raises(DataError, match=problem):
        import_answers([ONE, TALK], MODEL.named("theirs"), [*rows, given("one", "C", sample=1)], ledger=tmp_path / "theirs.jsonl")
    assert not (tmp_path / "theirs.jsonl").exists() or not (tmp_path / "theirs.jsonl").read_bytes()


def test_a_model_that_is_asked_here_takes_no_imported_answers(tmp_path):
    with pytest.raises(ConfigError, match="backend: litellm"):
        import_answers([ONE], model_config().named("ours"), [given("one", "A")], ledger=tmp_path / "ours.jsonl")


def test_tables_and_the_logs_of_inspect_and_lmms_eval_are_read(tmp_path):
    put_table(tmp_path / "a.csv", [{"item": "one", "sample": "1", "text": "A, then"}, {"item": "two", "sample": "0", "text": "B"}])
    put_table(tmp_path / "b.jsonl", [{"item": "one", "text": "A"}, {"item": "one", "text": "B"}, {"item": "t", "turns": ["x", "y"]}])
    sample = {"id": "one", "epoch": 2, "output": {"choices": [{"message": {"content": [{"type": "text", "text": "A"}]}}]}}
    put(tmp_path, {"log.json": {"version": 2, "samples": [sample, {"id": 7, "epoch": 1, "output": {"completion": "B"}}]}})
    with zipfile.ZipFile(tmp_path / "log.eval", "w") as archive:
        archive.writestr("header.json", "{}")
        archive.writestr("samples/one_epoch_2.json", json.dumps(sample))
    put_table(tmp_path / "c.jsonl", [{"doc_id": 4, "doc": {"question_id": "q4"}, "resps": [["A"], ["B"]], "filtered_resps": ["A"]}])

    def read(name: str, form: str, key: str = "") -> list[tuple[str, int, tuple[str, ...]]]:
        return [(row.item, row.sample, row.turns) for row in read_given(tmp_path / name, form, key)]

    assert read("a.csv", "table") == [("one", 1, ("A, then",)), ("two", 0, ("B",))]
    assert read("b.jsonl", "table") == [("one", 0, ("A",)), ("one", 1, ("B",)), ("t", 0, ("x", "y"))]
    assert read("log.json", "inspect") == [("one", 1, ("A",)), ("7", 0, ("B",))]
    assert read("log.eval", "inspect") == [("one", 1, ("A",))]
    assert read("c.jsonl", "lmms-eval", "question_id") == [("q4", 0, ("A",)), ("q4", 1, ("B",))]
    assert read("c.jsonl", "lmms-eval") == [("4", 0, ("A",)), ("4", 1, ("B",))]


@pytest.mark.parametrize(
    ("content", "form", "problem"),
    [
        ('{"item": "one", "answer": "A secret"}', "table", "unknown column 'answer'"),
        ('{"item": "one"}', "table", "`item` and `text`"),
        ("not json: A secret", "table", "x.jsonl, line 1, column 1: not JSON"),
        ('{"item": "one",\n "text": A secret}', "inspect", "x.jsonl, line 2, column 10: not JSON"),
        ('{"item": "one", "turns": "[A secret"}', "table", "x.jsonl, line 1, column 2: not JSON"),
        ('{"item": "one", "text": "A", "sample": "first"}', "table", "line 1: `sample` is the number .*, from 0; found 'first'"),
        ('{"results": "A secret"}', "inspect", "KeyError at 'samples'"),
        ('{"doc_id": 1}', "lmms-eval", "KeyError at 'filtered_resps'"),
        ('{"samples": ["A secret"]}', "inspect", "not a file of the form inspect"),
        ('{"samples": [{"id": 1, "output": "A secret"}]}', "inspect", "not a file of the form inspect"),
        ('{"samples": [{"id": 1, "epoch": Infinity, "output": {"completion": "A secret"}}]}', "inspect", "not a file of the form inspect"),
    ],
)
def test_a_file_of_another_form_is_one_line_without_its_words(tmp_path, content, form, problem):
    put(tmp_path, {"x.jsonl": content})
    with pytest.raises(DataError, match=problem) as told:
        read_given(tmp_path / "x.jsonl", form)
    assert "secret" not in str(told.value)


@pytest.mark.parametrize("place", [0, 11])
def test_a_damaged_archive_of_inspect_is_one_line(tmp_path, place):
    log = tmp_path / "log.eval"
    with zipfile.ZipFile(log, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("samples/one.json", json.dumps({"id": "one", "output": {"completion": " ".join(map(str, range(99)))}}))
        offset = 30 + len("samples/one.json")
    packed = bytearray(log.read_bytes())
    packed[offset + place] ^= 0xFF
    log.write_bytes(packed)
    with pytest.raises(DataError, match=r"log\.eval: cannot be read as inspect"):
        read_given(log, "inspect")


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        ("item,text\none\n", "a.csv, line 2: `item` and `text`"),
        ("item,text\none,A,secret\n", "a.csv: a row has more cells than the first line has names .line 2."),
        ("item;text\none;A, or not\n", "a.csv: the cells are separated by semicolons; expected commas"),
        ("item,item,text\none,one,A\n", "a.csv: the column 'item' is repeated"),
        ('item,text\none,"A\nB"\none\n', "a.csv, line 4: `item` and `text`"),
    ],
)
def test_a_table_with_a_wrong_row_is_refused_by_its_line(tmp_path, content, problem):
    put(tmp_path, {"a.csv": content})
    with pytest.raises(DataError, match=problem) as told:
        read_given(tmp_path / "a.csv", "table")
    assert "secret" not in str(told.value)


def test_answers_to_questions_that_the_import_of_the_set_refused_are_left_aside_and_counted(tmp_path, capsys):
    write_records(tmp_path / "data" / "prompts" / "b.parquet", Request, [ONE], key=lambda row: row.item_id)
    values = {"title": "Theirs", "backend": "imported", "id": "team/their-model", "revision": "1"}
    benchmark = {"title": "B", "kind": "text", "axis": "breadth", "source": "s", "questions": str(tmp_path / "set"), "subjects": "public"}
    put(tmp_path, {"config/models/theirs.yaml": yaml.safe_dump(values), "config/benchmarks/b.yaml": yaml.safe_dump(benchmark)})
    refused = tuple(
        Refusal(where=f"exam.csv, row {row}", reason="an option is empty", question_id=name) for row, name in ((3, "bad"), (4, ""))
    )
    record = ImportRecord(benchmark="b", data_set="b", licence="l", home="h", sources={}, expected=0, found=3, imported=1, refused=refused)
    write_json_record(tmp_path / "set" / "import.json", record)
    command = [str(tmp_path / "a.csv"), "--benchmark", "b", "--model", "theirs"]
    command += ["--config", str(tmp_path / "config"), "--data", str(tmp_path / "data")]
    put_table(tmp_path / "a.csv", [{"item": item, "text": "A"} for item in ("one", "bad", "b/bad")])
    assert import_responses.main(command) == 0
    assert capsys.readouterr().out.splitlines() == [
        "theirs: 2 answers expected, 3 given, 1 new, 1 missing",
        f"  2 left aside: the import of the set left out 2 questions, {(tmp_path / 'set' / 'import.json').as_posix()} has the reasons",
    ]
    put_table(tmp_path / "a.csv", [{"item": item, "text": "A"} for item in ("one", "bad", "nobody's")])
    with pytest.raises(DataError, match=r"1 of 2 answers cannot be used, .*a\.csv, line 4: no request for the item \"nobody's\""):
        import_responses.main(command)
    assert import_responses.main([*command, "--leave-unknown"]) == 0
    assert capsys.readouterr().out.splitlines()[-1] == "  1 left out: their ids are not in b"
    (tmp_path / "data" / "prompts" / "b.parquet").unlink()
    with pytest.raises(
        DataError,
        match=r"the prompts of b are not there; make them first: snakemake --cores 2 --config 'benchmarks=\[b\]' -- .*/prompts/b\.parquet$",
    ):
        import_responses.main(command)


def test_the_command_prints_the_coverage(tmp_path, capsys):
    write_records(tmp_path / "data" / "prompts" / "b.parquet", Request, [ONE], key=lambda row: row.item_id)
    values = {"title": "Theirs", "backend": "imported", "id": "team/their-model", "revision": "1", "temperature": 1.0}
    benchmark = {"title": "B", "kind": "text", "axis": "depth", "source": "s"}
    put(tmp_path, {"config/models/theirs.yaml": yaml.safe_dump(values), "config/benchmarks/b.yaml": yaml.safe_dump(benchmark)})
    put_table(tmp_path / "a.csv", [{"item": "one", "text": "A"}])
    places = ["--config", str(tmp_path / "config"), "--data", str(tmp_path / "data")]
    assert import_responses.main([str(tmp_path / "a.csv"), "--benchmark", "b", "--model", "theirs", *places]) == 0
    assert capsys.readouterr().out == "theirs: 2 answers expected, 1 given, 1 new, 1 missing\n"
    assert (tmp_path / "data" / "ledger" / "b" / "theirs.jsonl").read_text().count("\n") == 1


@dataclass(frozen=True)
class AskedSet:
    """A real set with equal questions: what is asked, the items with their references, and the folder of the published answers."""

    asked: list[Request]
    items: dict[str, Item]
    gold: dict[str, Gold]
    source: Path

    def right(self, folder: Path, texts: Mapping[str, str]) -> dict[str, bool | None]:
        """Import answers, twice, and return which of them pass."""
        rows = [given(item, text) for item, text in texts.items()]
        ledger = folder / "m.jsonl"
        added = [import_answers(self.asked, MODEL, rows, ledger=ledger).added for _ in range(2)]
        assert added == [len(rows), 0]
        responses = answer_requests(self.asked, ModelRun(MODEL, ledger=ledger, destinations=("local",), max_failed_fraction=None))
        return {row.item_id: row.passed for row in score_responses(responses, self.items, self.gold, [], vocabulary=vocabulary())}


@pytest.fixture(scope="module")
def equal_questions(tmp_path_factory: pytest.TempPathFactory) -> AskedSet:
    """MedAgentsBench has 20 pairs of equal questions."""
    if not REAL:
        pytest.skip("NMB_REAL_BENCHMARKS names no folder of real benchmarks")
    source = Path(REAL) / "medagentsbench"
    found = imported("medagentsbench", source, tmp_path_factory.mktemp("set"))[1]
    config = BenchmarkConfig.model_validate(
        {"title": "B", "kind": "text", "axis": "breadth", "source": "s", "subjects": "public", "arms": ["full"], "samples": 1}
    )
    asked = assemble(found.items, CaseMaterial([], []), config, Templates(ROOT / "config" / "prompts"))
    return AskedSet(asked, {row.item_id: row for row in found.items}, {row.item_id: row for row in found.gold}, source)


def test_answers_to_equal_questions_are_kept_apart(equal_questions: AskedSet, tmp_path: Path) -> None:
    asked, gold = equal_questions.asked, equal_questions.gold
    assert len(asked) - len({row.request_id for row in asked}) == 20
    made = {}
    asked_before = set[str]()
    for row in asked:  # the second of two equal questions is answered wrongly
        letter = gold[row.item_id].choice or ""
        made[row.item_id] = letter if row.request_id not in asked_before else "B" if letter == "A" else "A"
        asked_before.add(row.request_id)
    assert equal_questions.right(tmp_path, made) == {item: letter == gold[item].choice for item, letter in made.items()}


@pytest.mark.parametrize(
    ("model", "by_hand", "more"),
    [
        ("o3-mini", 178, 2),
        *(
            pytest.param(*one, marks=pytest.mark.long)
            for one in (("DeepSeek-R1", 207, 1), ("gpt-4o", 128, 1), ("claude-3-5-sonnet", 75, 0))
        ),
    ],
)
def test_answers_to_a_real_set_with_equal_questions_give_the_rates_that_were_counted_by_hand(
    equal_questions: AskedSet, tmp_path: Path, model: str, by_hand: int, more: int
) -> None:
    """The published answers were compared with the keys by hand, first without four questions that have two equal options."""
    items = equal_questions.items
    repeated = {name for name, item in items.items() if len({normal_form(option) for option in item.options}) < len(item.options)}
    published = {
        f"b/{path.parent.name}-{row['realidx']}": str(row["predicted_answer"])
        for path in equal_questions.source.glob(f"output/*/{model}-*.json")
        if path.name.startswith(f"{model}-{path.parent.name}-")  # gpt-4o-mini is another model
        for row in json.loads(path.read_text(encoding="utf-8"))
    }
    counted = equal_questions.right(tmp_path, {item: published[item] for item in items})
    assert sum(bool(passed) for item, passed in counted.items() if item not in repeated) == by_hand
    assert sum(bool(passed) for passed in counted.values()) == by_hand + more
