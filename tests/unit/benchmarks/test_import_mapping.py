from __future__ import annotations

import base64
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from conftest import NMB, ROOT
from fixtures.imports import built, imported, picture_bytes, put, put_mapping, put_table
from neuralmedbench.benchmarks.adapters.registry import DATA_SETS, data_sets
from neuralmedbench.benchmarks.importing import ImportPaths, import_set, import_summary
from neuralmedbench.benchmarks.item_set import BenchmarkItems
from neuralmedbench.config.mappings import REMOVED, FieldMapping, ImagesMapping, MappingConfig, load_mappings
from neuralmedbench.errors import ConfigError, DataError
from neuralmedbench.prompts.arms import views
from neuralmedbench.records.items import Family, Runner
from neuralmedbench.records.questions import ImportRecord

BASE: dict[str, Any] = {
    "title": "Mine",
    "home": "here",
    "licence": "ours",
    "axis": "breadth",
    "files": ["table.*"],
    "runner": "choice",
    "question": "q",
    "options": "o",
    "answer": "a",
}


def by_mapping(
    tmp_path: Path, rows: list[dict[str, Any]], suffix: str = "jsonl", function: str = "", **changes: Any
) -> tuple[ImportRecord, BenchmarkItems]:
    """Import rows with a mapping, and with a function if there is one."""
    put_mapping(tmp_path, {**BASE, **changes}, function)
    put_table(tmp_path / "set" / f"table.{suffix}", rows)
    places = ImportPaths(tables=tmp_path / "questions", pictures=tmp_path / "raw")
    record = import_set(data_sets(tmp_path / "config")["mine"], tmp_path / "set", "b", places)
    return record, built(places, "full")


KOREAN = {
    "subject": "doctor",
    "year": 2022,
    "period": 1,
    "q_number": 14,
    "question": "다음 사진의 진단은?",
    **{letter: f"선택 {letter}" for letter in "ABCDE"},
    "answer": 3,
    "images": [{"pic_num": "1", "modality": "xray", "image_base64": base64.b64encode(picture_bytes(1)).decode()}],
}
CAREGIVING = {
    "data": [
        {
            "ID": 1,
            "Question": "Which disease does not cause neurodegenerative dementia?",
            "Options": {"A": "Alzheimer’s", "B": "Parkinson’s", "C": "Hypothyroidism", "D": "Frontotemporal", "E": "Lewy Body"},
            "Answer": "C",
        }
    ]
}
STATEMENTS = {"data": [{"ID": 4, "Question": "Vascular dementia accounts for the majority.", "Answer": "No"}]}
HARD = {
    "question": "A newborn. What is the most likely diagnosis?",
    "options": {"A": "Oesophageal atresia", "B": "Stenosis", "C": "Perforation", "D": "Fistula", "E": "N/A"},
    "answer_idx": "A",
    "realidx": "0fd14a5dcafa4c30",
}
CUP = {
    "id": 1,
    "clean_case_presentation": "one two three four five six seven eight nine ten",
    "correct_diagnosis": "Takayasu arteritis",
    "distractor2": "Giant cell arteritis",
    "distractor3": "Fibromuscular dysplasia",
    "distractor4": "Moyamoya disease",
}


def test_kormedmcqa_v_has_five_options_a_number_from_one_and_pictures_inside(tmp_path):
    put_table(
        tmp_path / "set" / "doctor" / "test_full-00000-of-00001.parquet", [KOREAN, {**KOREAN, "q_number": 15, "images": [], "answer": 5}]
    )
    record, made = imported("kormedmcqa-v", tmp_path / "set", tmp_path)
    assert (record.imported, record.images) == (2, 1)
    assert [item.item_id for item in made.items] == ["b/doctor-2022-1-14", "b/doctor-2022-1-15"]
    assert [row.choice for row in made.gold] == ["C", "E"]
    assert (made.items[0].language, len(made.items[0].options), len(made.items[0].images)) == ("ko", 5, 1)
    assert made.items[0].tags == ("subject:doctor", "year:2022")


def test_both_caregiving_parts_of_adrd_bench_are_read_below_their_key(tmp_path):
    folder = put(
        tmp_path / "set",
        {
            "ADRD_Caregiving_QA/ADRD_Daily_Caring_Multiple_Choice.json": CAREGIVING,
            "ADRD_Caregiving_QA/ADRD_Caregiving_True_or_False.json": STATEMENTS,
        },
    )
    _, made = imported("adrd-bench-choice", folder, tmp_path)
    assert (made.gold[0].choice, made.gold[0].answer) == ("C", "Hypothyroidism")
    _, made = imported("adrd-bench-true-false", folder, tmp_path)
    assert (made.items[0].options, made.gold[0].choice) == (("Yes", "No"), "B")
    assert made.items[0].question == "Vascular dementia accounts for the majority.\nIs this statement true?"


def test_medagentsbench_reads_every_source_and_leaves_out_options_that_are_none(tmp_path):
    for source in ("medqa", "afrimedqa"):
        put_table(tmp_path / "set" / "data" / source / "test_hard.jsonl", [HARD])
    _, made = imported("medagentsbench", tmp_path / "set", tmp_path)
    assert [item.item_id for item in made.items] == ["b/afrimedqa-0fd14a5dcafa4c30", "b/medqa-0fd14a5dcafa4c30"]
    assert [item.tags for item in made.items] == [("folder:afrimedqa",), ("folder:medqa",)]
    assert {len(item.options) for item in made.items} == {4}


def test_cupcase_hides_the_right_diagnosis_among_the_others_in_an_order_that_is_always_the_same(tmp_path):
    swapped = {**CUP, "correct_diagnosis": CUP["distractor3"], "distractor3": CUP["correct_diagnosis"]}
    orders = []
    for number, row in enumerate((CUP, swapped)):
        put_table(tmp_path / str(number) / "test-00000-of-00001.parquet", [row])
        _, made = imported("cupcase", tmp_path / str(number), tmp_path / f"out{number}")
        orders.append(made.items[0].options)
        assert made.gold[0].answer == row["correct_diagnosis"]
    assert orders[0] == orders[1]


def test_the_right_diagnosis_of_cupcase_stands_in_every_place_about_as_often(tmp_path):
    names = ("correct_diagnosis", "distractor2", "distractor3", "distractor4")
    rows = [{**CUP, **{name: f"{name} {number}" for name in names}} for number in range(200)]
    put_table(tmp_path / "set" / "test.parquet", rows)
    _, made = imported("cupcase", tmp_path / "set", tmp_path)
    counts = {letter: sum(row.choice == letter for row in made.gold) for letter in "ABCD"}
    assert sum(counts.values()) == 200
    assert all(35 <= count <= 65 for count in counts.values()), counts


def test_cupcase_can_be_asked_openly_and_by_its_first_part(tmp_path):
    put_table(tmp_path / "set" / "test.parquet", [CUP])
    _, made = imported("cupcase-open", tmp_path / "set", tmp_path)
    assert (made.items[0].runner, made.items[0].family) == (Runner.OPEN, Family.DIFFERENTIAL_DIAGNOSIS)
    assert made.gold[0].answer == "Takayasu arteritis"
    notes = [views(made.items, f"first_{percent}_percent", ())[0].item.notes for percent in (20, 40, 60, 80)]
    assert notes == ["one two", "one two three four", "one two three four five six", "one two three four five six seven eight"]


def test_a_row_with_several_questions_gives_one_item_each_over_the_same_picture(tmp_path):
    options = {"A": "glioma", "B": "ependymoma", "C": "None of the above"}
    pairs = [
        {"question_type": "diagnosis", "question": "What is the most likely diagnosis?", "options": options, "answer": "B"},
        {"question_type": "modality", "question": "Which sequence?", "options": {"A": "T1", "B": "T2"}, "answer": "A", "meta_trap": True},
        {"question_type": "size", "question": "How large?"},
    ]
    path = "ependymoma/08_t1ce/ependymoma (1).jpg"
    rows = [{"id": 1, "image_path": path, "vqa_pairs": pairs}, {"id": 2, "image_path": path, "vqa_pairs": []}]
    folder = put(tmp_path / "set", {"benchmark/closed/mm-neuroonco_benchmark_closed_v1.0.json": rows, path: picture_bytes(1, "JPEG")})
    record, made = imported("mm-neuroonco", folder, tmp_path)
    assert [(item.item_id, item.case_id, item.tags) for item in made.items] == [
        ("b/1-1", "1", ("question_type:diagnosis",)),
        ("b/1-2", "1", ("question_type:modality",)),
    ]
    assert (record.images, [row.choice for row in made.gold]) == (1, ["B", "A"])
    table = "benchmark/closed/mm-neuroonco_benchmark_closed_v1.0.json"
    assert [(row.where, row.reason.partition(";")[0]) for row in record.refused] == [
        (f"{table}, row 1, question 3", "0 options"),
        (f"{table}, row 2", "the row has no question"),
    ]
    assert {item.label_policy for item in made.items} == {"none"}


@pytest.mark.parametrize("suffix", ["csv", "tsv", "jsonl", "parquet"])
def test_every_kind_of_table_gives_the_same_question(tmp_path, suffix):
    row = {"q": "Which?", "o": "A. left\nB. right", "a": "B", "extra": "not read"}
    _, made = by_mapping(tmp_path, [row], suffix)
    assert (made.items[0].item_id, made.items[0].options, made.gold[0].choice) == ("b/table-00001", ("left", "right"), "B")


@pytest.mark.parametrize(
    ("first", "cell", "letter"),
    [(None, "b", "B"), (None, "right", "B"), (None, " Right ", "B"), (0, 0, "A"), (1, "2", "B"), (1, 2.0, "B")],
)
def test_the_right_answer_is_a_letter_a_number_or_a_text(tmp_path, first, cell, letter):
    _, made = by_mapping(tmp_path, [{"q": "Which?", "o": ["left", "right"], "a": cell}], first_number=first)
    assert made.gold[0].choice == letter


def test_pictures_may_stand_as_paths_in_lists_and_objects(tmp_path):
    put(tmp_path / "set", {f"img/{name}.png": picture_bytes(place) for place, name in enumerate("xyz")})
    row = {"q": "?", "o": ["l", "r"], "a": "A", "one": "x.png", "more": [{"file": "y.png", "name": "B"}, {"file": "z.png", "name": "C"}]}
    _, made = by_mapping(tmp_path, [row], images={"columns": ["more.file"], "folder": "img"})
    assert len(made.items[0].images) == 2
    record, _ = by_mapping(
        tmp_path,
        [row, {**row, "more": [*row["more"], {"name": "D"}]}],
        images={"columns": ["more.file"], "folder": "img"},
        optional=["more.file"],
    )
    assert [refusal.reason.partition(";")[0] for refusal in record.refused] == ["the column 'more.file' is missing"], (
        "a picture less is no picture"
    )
    _, made = by_mapping(tmp_path, [row], images={"columns": ["one"], "folder": "img"})
    assert len(made.items[0].images) == 1


@pytest.mark.parametrize(
    ("row", "changes", "reason"),
    [
        ({"a": "C"}, {}, "the right answer is not one of A to B, nor the text of an option"),
        (
            {"a": "3"},
            {"answer": "a", "first_number": 1},
            "the right answer is not a number from 1 to 2; correct the answer",
        ),
        (
            {"a": "²"},
            {"answer": "a", "first_number": 1},
            "the right answer is not a number from 1 to 2; correct the answer",
        ),
        ({"a": "B"}, {"answer": "a", "first_number": 1}, "from 1 to 2; for letters leave `first_number` out"),
        ({"o": ["left"]}, {}, "the row has 1 option, and a choice needs 2 or more; correct its options, or leave the row out"),
        ({"o": ["left", "left"]}, {}, "an option is repeated"),
        ({"q": ""}, {}, "the question is empty"),
        ({"p": ""}, {"images": {"columns": ["p"]}}, "the question has no picture"),
        ({"p": "../secret.png"}, {"images": {"columns": ["p"]}}, "the path of a picture leaves the folder"),
        ({"p": {"x": "y"}}, {"images": {"columns": ["p"]}}, "a picture is an object with the keys x; name one of them in `columns`"),
        ({"p": "loop.png"}, {"images": {"columns": ["p"]}}, "a picture is not there"),
        ({"p": "[" * 100_000}, {"images": {"columns": ["p"]}}, "a list of pictures begins like JSON but is invalid"),
        ({"o": "[" * 100_000}, {}, "the options begin like JSON but are invalid"),
        ({"n": ""}, {"id": ["n"]}, "the column 'n', which names the question, is empty"),
    ],
)
def test_a_row_that_does_not_fit_the_mapping_is_refused_with_its_reason(tmp_path, row, changes, reason):
    (tmp_path / "set").mkdir()
    (tmp_path / "set" / "loop.png").symlink_to("loop.png")
    with pytest.raises(DataError, match="none of 1 rows can be used") as caught:
        by_mapping(tmp_path, [{"q": "Which?", "o": ["left", "right"], "a": "A", **row}], **changes)
    assert reason in str(caught.value)


def test_a_column_that_is_not_there_is_told_with_those_that_are(tmp_path):
    with pytest.raises(DataError, match=r"table\.jsonl, row 1: the column 'o' is missing; found a, options and q"):
        by_mapping(tmp_path, [{"q": "?", "options": ["l", "r"], "a": "A"}])
    with pytest.raises(DataError, match=r"the column 'wrong' is missing; found a, o and q"):
        by_mapping(tmp_path, [{"q": "?", "o": "l", "a": "A"}], options="", distractors=["wrong"], answer="o")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"opton": {"column": "o"}}, r"mine\.yaml: unknown key 'opton'; did you mean 'options'\?"),
        ({"options": {"column": "o"}}, "former keys; `options`: write `options: column`, `options: .A, B.`"),
        ({"answer": {"column": "a", "form": "letter"}}, "`answer`: write `answer: column`, and `first_number: 0`"),
        ({"images": {"columns": ["p"], "form": "path"}}, "former keys; `form`: leave it out"),
        ({"text": [{"column": "t"}]}, "`text`: write `question.row.` in a Python file .* `object_text.value.` writes an object"),
        *(({key: "x"}, f"former keys; `{key}`: ") for key in REMOVED),
        (
            {"runner": "chioce"},
            r"runner: input should be 'choice', 'open', 'structured' or 'dialogue', found 'chioce'; did you mean 'choice'\?",
        ),
        ({"fixed_options": ["Yes", "No"]}, "set one of `options`, `fixed_options` and `distractors`"),
        ({"options": "", "answer": "", "distractors": ["w"]}, "`distractors` need `answer`"),
        ({"text": ["a.b"], "answer": "a.b.c"}, "the text 'a.b' shows 'a.b.c', by which answers are scored"),
        ({"question": "a"}, "the text 'a' shows 'a', by which answers are scored"),
        ({"question": ""}, "set `question` .its column., `ask` .fixed words., or both"),
        ({"runner": "open"}, "options are for the runner choice, or for open questions of the family differential_diagnosis"),
        ({"options": ""}, "the runner choice needs `options`"),
    ],
)
def test_a_mapping_that_does_not_fit_is_refused_with_what_was_perhaps_meant(tmp_path, changes, message):
    put(tmp_path, {"mappings/mine.yaml": yaml.safe_dump({**BASE, **changes})})
    with pytest.raises(ConfigError, match=message):
        load_mappings(tmp_path)


def test_a_mapping_cannot_take_the_name_of_a_data_set_that_has_an_adapter(tmp_path):
    put(tmp_path, {"mappings/neurovlm.yaml": yaml.safe_dump(BASE)})
    with pytest.raises(ConfigError, match=r"neurovlm\.yaml: neurovlm has an adapter already"):
        data_sets(tmp_path)


def test_the_shipped_mappings_and_one_of_ones_own_stand_in_the_help(tmp_path):
    shipped = load_mappings(ROOT / "config")
    assert len(shipped) >= 6
    put(tmp_path, {"mappings/mine.yaml": yaml.safe_dump(BASE)})
    for config, names in (("config", {*DATA_SETS, *shipped}), (str(tmp_path), {*DATA_SETS, "mine"})):
        command = [*NMB, "benchmark", "import", "--config", config, "--help"]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
        listed = {line.partition(":")[0] for line in done.stdout.splitlines() if not line.startswith(" ")}
        assert names <= listed


def test_three_levels_of_a_picture_in_one_row_are_three_questions_of_one_patient(tmp_path: Path) -> None:
    # the form of the examples of MedQ-Deg's page
    row = {
        "degradation_type": "ghosting",
        "q": "Which organ?",
        "o": ["liver", "brain"],
        "a": "B",
        "images": {f"L{level}": f"x_L{level}.png" for level in range(3)},
    }
    put(tmp_path / "set", {f"pictures/x_L{level}.png": picture_bytes(level) for level in range(3)})
    function = """
def question(row):
    kind = row["degradation_type"]
    return [
        Question(
            id=f"{kind}-{level}", case=kind, question=row["q"], options=tuple(row["o"]), answer=row["a"],
            pictures=(Picture(file=f"pictures/{name}"),), tags=(f"degradation_type:{kind}", f"level:{level}"),
        )
        for level, name in row["images"].items()
    ]
"""
    record, made = by_mapping(tmp_path, [row], function=function)
    assert (record.imported, record.images, len({item.patient_id for item in made.items})) == (3, 3, 1)
    assert [item.tags for item in made.items] == [("degradation_type:ghosting", f"level:L{level}") for level in range(3)]
    assert len({item.images[0].sha256 for item in made.items}) == 3


LETTERED = {"q": "Which?", "A": "one", "B": "two", "C": "three", "a": "A"}


def test_a_short_row_may_lack_its_last_options_and_a_column_that_no_row_has_is_refused(tmp_path: Path) -> None:
    rows = [LETTERED, {**LETTERED, "q": "And which?", "D": "four"}]
    record, _ = by_mapping(tmp_path, rows, options=["A", "B", "C", "D"])
    assert (record.imported, len(record.refused)) == (2, 0)
    with pytest.raises(DataError, match=r"^table\.\*: no row has the column 'E' of `options`"):
        by_mapping(tmp_path, rows, options=["A", "B", "C", "E"])
    record, _ = by_mapping(tmp_path, rows, options=["A", "B", "C", "E"], optional=["E"])
    assert record.imported == 2


def test_options_that_yaml_reads_as_true_and_false_are_told_so(tmp_path: Path) -> None:
    put(tmp_path / "config", {"mappings/mine.yaml": yaml.safe_dump(BASE).replace("options: o", "fixed_options: [Yes, No]")})
    with pytest.raises(ConfigError, match=r"fixed_options\.0: .*found True; put it in quotation marks"):
        load_mappings(tmp_path / "config")


def test_a_mistake_in_another_mapping_does_not_stop_an_import(tmp_path: Path) -> None:
    put(tmp_path / "config", {"mappings/mine.yaml": yaml.safe_dump(BASE), "mappings/theirs.yaml": "title: [half a mapping\n"})
    assert "mine" in data_sets(tmp_path / "config", "mine")
    for wanted in ("theirs", ""):
        with pytest.raises(ConfigError, match=r"theirs\.yaml"):
            data_sets(tmp_path / "config", wanted)


def test_a_refused_row_is_told_with_its_id_what_was_found_and_what_to_do(tmp_path):
    put(tmp_path / "set", {"img/1.png": picture_bytes(1)})
    row = {"n": "1", "q": "Which?", "o": ["left", "right"], "a": "A", "p": "1.png"}
    wrong: list[dict[str, Any]] = [{"n": "2", "p": "two.png"}, {}, {"n": "4", "a": "E"}, {"n": "5", "p": ""}]
    images = {"columns": ["p"], "folder": "img"}
    record, _ = by_mapping(tmp_path, [row, *({**row, **changes} for changes in wrong)], id=["n"], images=images)
    assert [refusal.question_id for refusal in record.refused] == ["2", "1", "4", "5"]
    lines = import_summary(record, written=True).splitlines()
    for line, reason, step, first in (
        (lines[1], "a picture is not there, below", "add the file, or correct its name in the row", "2, id 2; found 'img/two.png'"),
        (lines[2], "the id is repeated", "give each question an id of its own", "3, id 1; found it in table.jsonl, row 1 too"),
        (lines[3], "the right answer is not one of A to B", "correct the answer of that row", "4, id 4; found 'E'"),
        (lines[4], "the question has no picture", "the question has no picture", "5, id 5"),
    ):
        assert line.startswith(f"  refused 1: {reason}")
        assert line.endswith(f"{step} (first: table.jsonl, row {first})")


def test_the_language_of_mappings_stays_short() -> None:
    keys = sum(len(section.model_fields) for section in (MappingConfig, FieldMapping, ImagesMapping))
    assert keys <= 45, "odd data are read by a function"
    written = {path.stem: yaml.safe_load(path.read_text(encoding="utf-8")) for path in (ROOT / "config" / "mappings").glob("*.yaml")}
    assert max(map(len, written.values())) <= 25
    assert {path.stem for path in (ROOT / "config" / "mappings").glob("*.py")} <= set(written)
