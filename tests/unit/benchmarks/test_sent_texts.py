"""Nothing sent to a model reveals a scored value: messages, labels and file names of pictures, ids; and leaks that a person accepted."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

import find_answer_leaks
from fixtures.items import VOCABULARY as SMALL
from fixtures.items import answer, benchmark_config, pictures, slice_row, source
from fixtures.prompt import OPTIONS, asked, exemplar, open_question, picture, question
from fixtures.scoring import VOCABULARY_FILE, vocabulary
from neuralmedbench.benchmarks.answer_leaks import find_leaks
from neuralmedbench.benchmarks.case_items import build_cases
from neuralmedbench.benchmarks.item_set import BenchmarkItems
from neuralmedbench.benchmarks.leak_review import accept_text, leak_page, read_accepted
from neuralmedbench.cli.benchmark import accept_leaks
from neuralmedbench.errors import ConfigError, DataError
from neuralmedbench.files.json_files import write_json_record
from neuralmedbench.files.tables import write_records
from neuralmedbench.records.answer_leaks import AcceptedLeaks
from neuralmedbench.records.items import Disclosure, Family, Gold, GoldFields, Item, Lesion
from neuralmedbench.records.requests import Request

INFARCTION = Gold(item_id="b/q1", answer="cerebral infarction", choice="A")


def found(item, gold=INFARCTION, **shown):
    """Return the leaks of one item: arms by part and severity."""
    made = asked([item], **shown)
    leaks = find_leaks("b", [item], [replace(gold, item_id=item.item_id)], made.values(), vocabulary())
    return {(leak.where, leak.severity): leak.arms for leak in leaks.leaks if leak.severity != "family"}


def test_the_printed_options_are_no_leak_and_the_stem_and_the_case_are():
    assert found(question()) == {}
    assert found(question(question="Where is the cerebral infarction?")) == {("question", "answer"): ("full",)}
    leaks = found(question(notes="Known cerebral infarction.", images=(picture("z1"),)), arms=["full", "no_text"])
    assert leaks == {("notes", "answer"): ("full",)}


def test_a_text_that_is_cut_within_a_line_is_still_that_text():
    """Notes are often one long line, of which an arm or a budget may leave only a part."""
    notes = "Known cerebral infarction, now seen in the clinic with a headache that began a week ago after a long walk in the hills."
    item = question(notes=notes, record="")
    shown = found(item, arms=["full", "first_10_percent", "first_50_percent", "no_text"])
    assert shown == {("notes", "answer"): ("first_50_percent", "full")}
    assert found(item, max_case_words=8) == {("notes", "answer"): ("full",)}
    assert found(item, max_case_words=2) == {}


def test_a_stem_that_names_every_option_tells_none_apart():
    assert found(question(question=f"Is it {', '.join(OPTIONS[:-1])} or {OPTIONS[-1]}?")) == {}


@pytest.mark.parametrize("word", ["Yes", "no", "2", "A"])
def test_answers_that_stand_in_every_text_are_no_leak(word):
    item = question(options=(word, "other"), notes="No fever, yes. Grade 2. A woman.")
    assert found(item, Gold(item_id="b/q1", answer=word, choice="A")) == {}


def test_labels_file_names_and_ids_are_searched():
    named = picture("z1", label="Figure of the cerebral infarction")
    assert found(question(images=(named,)))["labels", "answer"] == ("full",)
    filed = replace(picture("z1"), path="data/pictures/cerebral_infarction-3.png")
    assert found(question(images=(filed,)), arms=["full", "no_image"])["file names", "answer"] == ("full",)
    assert found(question("cerebral-infarction-7", images=()))["metadata", "answer"] == ("full",)
    assert found(question(pair_id="cerebral_infarction"))["metadata", "answer"] == ("full",)


def test_a_folder_that_is_named_like_the_answer_is_not_sent():
    filed = replace(picture("z1"), path="data/cerebral infarction/z1.png")
    assert found(question(images=(filed,))) == {}


def test_examples_of_other_patients_name_answers_on_purpose():
    example = exemplar(
        question("e1", "p2", images=(picture("x", patient="p2", label="Cerebral infarction"),), notes="A cerebral infarction."),
        "ANSWER: A, cerebral infarction",
    )
    shown = {"exemplars": [example], "strategies": ["direct", "few_shot"]}
    assert found(question(), **shown) == {}
    assert ("notes", "answer") in found(question(notes="Cerebral infarction."), **shown)


@pytest.mark.parametrize("arm", ["findings_disclosed", "evidence_supplied"])
def test_what_an_arm_discloses_must_not_name_the_answer(arm):
    disclosure = Disclosure(item_id="b/q1", arm=arm, text="Findings:\n- A fresh cerebral infarction on the left")
    assert found(open_question(), disclosures=[disclosure], arms=["full", arm]) == {("disclosed", "answer"): (arm,)}
    assert found(open_question(), disclosures=[replace(disclosure, text="Findings:\n- Dark on the ADC map")], arms=["full", arm]) == {}


def test_a_diagnosis_that_is_given_is_listed_with_the_arms_that_tell_it():
    item = open_question(given="a cerebral infarction")
    assert found(item, arms=["full", "diagnosis_withheld"]) == {("given", "answer"): ("full",)}


FIELDS = Gold(
    item_id="b/img-000001",
    answer="tumor",
    fields=GoldFields(modality="MRI", sequence="T1C+", plane="axial", diagnosis_class="tumor", subtype="meningioma"),
)


@pytest.fixture
def structured(tmp_path: Path) -> BenchmarkItems:
    return pictures(tmp_path, "d,a.png,tumor,x,meningioma,MR,T1C+,axial")


def test_every_field_of_a_structured_answer_is_searched_in_every_spelling(structured):
    """A picture label reveals two of the five fields."""
    (item,) = structured.items
    assert found(item, FIELDS) == {}
    for label in ("axial", "ceT1w", "T1 C+", "MRI", "a meningioma", "tumour"):
        named = replace(item, images=(replace(item.images[0], label=label),))
        assert {where for where, _ in found(named, FIELDS)} == {"labels"}, label
    labelled = replace(item, label_policy="full", images=(replace(item.images[0], sequence="ceT1w"),))
    assert ("labels", "field") in found(labelled, FIELDS)


def test_no_adapter_may_label_pictures_with_what_is_asked_for(structured):
    full = tuple(replace(item, label_policy="full") for item in structured.items)
    with pytest.raises(ConfigError, match=r"picture labels would reveal sequence and plane.*set label_policy: none"):
        replace(structured, items=full).checked("b")
    only_class = Gold(item_id=full[0].item_id, answer="tumor", fields=GoldFields(diagnosis_class="tumor"))
    assert replace(structured, items=full, gold=(only_class,)).checked("b").items == full


def test_the_place_of_a_lesion_is_a_scored_value_where_it_is_asked_for():
    gold = Gold(item_id="b/q1", answer="cerebral infarction", lesion=Lesion(location="frontal lobe", side="left", behaviour={}))
    item = open_question(notes="Known scar of the frontal lobe.", family=Family.LESION_RECOGNITION)
    assert found(item, gold) == {("notes", "field"): ("full",)}
    assert found(replace(item, family=Family.DIFFERENTIAL_DIAGNOSIS), gold) == {}


def test_the_form_offers_no_lesion_to_everybody_and_a_note_does_not():
    gold = Gold(item_id="b/q1", answer="no lesion", aliases=("normal",))
    item = open_question(family=Family.LESION_RECOGNITION)
    assert found(item, gold) == {}
    assert found(replace(item, notes="Seen before: no lesion."), gold) == {("notes", "answer"): ("full",)}


def built_of(**of_source: object) -> BenchmarkItems:
    return build_cases("b", benchmark_config(), [replace(source("a1"), **of_source), source("a2")], {"a1": answer("a1")}, SMALL)


def test_own_cases_tell_nothing_in_any_arm():
    made = built_of()
    rows = asked(made.items, disclosures=made.disclosures, arms=["full", "no_image", "no_text", "shuffled_image", "findings_disclosed"])
    assert [leak for leak in find_leaks("b", made.items, made.gold, rows.values(), SMALL).leaks if leak.severity != "family"] == []


def test_slices_that_were_chosen_with_the_answer_never_stand_beside_others():
    """Under `slices.policy: lesion` all slices of a run are oracle slices and marked as such; a mixture would hide them."""
    oracle = tuple(slice_row("a1", place, oracle=True) for place in (-10, 20))
    with pytest.raises(DataError, match="chosen with the answer are mixed with others"):
        built_of(images=oracle)
    with pytest.raises(DataError, match="chosen with the answer are mixed with others"):
        built_of(images=(oracle[0], replace(oracle[1], oracle=False)))
    alone = build_cases("b", benchmark_config(), [replace(source("a1"), images=oracle)], {"a1": answer("a1")}, SMALL)
    assert all("oracle_slices" in item.tags for item in alone.items)


LEAKING = question(notes="Known cerebral infarction.", question="Is the cerebral infarction old?")


def leaks_of(item=LEAKING, accepted=None):
    gold = [replace(INFARCTION, item_id=item.item_id)]
    return find_leaks("b", [item], gold, asked([item]).values(), vocabulary(), accepted=accepted)


def accepted(where, leaks=None, before=None, reason="the exam's own words"):
    nothing = AcceptedLeaks(benchmark="b")
    return accept_text(leaks or leaks_of(), before or nothing, item_id="b/q1", where=where, reason=reason, reviewer="AB")


def test_what_a_person_accepts_stays_listed_with_the_reason_and_counts_when_nothing_else_is_left():
    first = accepted("notes")
    one = leaks_of(accepted=first)
    assert {leak.where: leak.accepted for leak in one.leaks if leak.severity == "answer"} == {
        "notes": "the exam's own words",
        "question": "",
    }
    assert (one.leaking, one.accepted) == (1, 0)
    both = leaks_of(accepted=accepted("question", before=first))
    assert (both.leaking, both.accepted) == (1, 1)
    gold = [replace(INFARCTION, item_id="b/q1")]
    assert "accepted: the exam&#39;s own words" in leak_page(both, [LEAKING], gold, asked([LEAKING]).values(), vocabulary())


def test_a_text_that_changed_since_is_listed_again():
    changed = replace(LEAKING, notes="Known cerebral infarction, as said.")
    both = accepted("question", before=accepted("notes"))
    assert leaks_of(changed, both).accepted == 0
    kept = accepted("notes", leaks=leaks_of(changed), before=both)
    assert {row.digest for row in kept.accepted} == {leak.digest for leak in leaks_of(changed).leaks if leak.where in ("notes", "question")}


def test_nothing_is_accepted_without_a_reason_or_where_nothing_was_found():
    with pytest.raises(ConfigError, match="needs a reason and a reviewer"):
        accepted("notes", reason=" ")
    with pytest.raises(ConfigError, match="nothing was found in 'record'; something was found in notes, question"):
        accepted("record")


def test_the_file_of_what_was_accepted_holds_no_answer_and_the_commands_go_round(tmp_path, capsys):
    item, gold = LEAKING, replace(INFARCTION, item_id="b/q1")
    write_records(tmp_path / "items.parquet", Item, [item], key=lambda row: row.item_id)
    write_records(tmp_path / "gold.parquet", Gold, [gold], key=lambda row: row.item_id)
    write_records(tmp_path / "prompts.parquet", Request, asked([item]).values(), key=lambda row: row.item_id)
    (tmp_path / "config/benchmarks").mkdir(parents=True)
    file = tmp_path / "config/benchmarks/b.leaks.json"
    tables = [f"--{name}={tmp_path / name}.parquet" for name in ("items", "gold", "prompts")]
    outputs = [f"--out={tmp_path / 'leaks/b.json'}", f"--out-page={tmp_path / 'leaks/b.html'}", f"--accepted={file}"]
    search = ["--benchmark=b", f"--vocabulary={VOCABULARY_FILE}", *tables, *outputs]
    assert find_answer_leaks.main(search) == 0
    assert "(0 accepted)" in capsys.readouterr().out
    for where in ("notes", "question"):
        words = ["--benchmark=b", "--item=b/q1", f"--where={where}", "--reason=published so", "--reviewer=AB"]
        assert accept_leaks.main([*words, f"--config={tmp_path / 'config'}", f"--data={tmp_path}"]) == 0
    assert find_answer_leaks.main(search) == 0
    assert "1 of 1 items name their answer in a prompt (1 accepted)" in capsys.readouterr().out
    assert "infarction" not in file.read_text(encoding="utf-8")
    assert {row["reason"] for row in json.loads(file.read_text(encoding="utf-8"))["accepted"]} == {"published so"}
    write_json_record(file, AcceptedLeaks(benchmark="other"))
    with pytest.raises(ConfigError, match="belongs to a benchmark other than"):
        read_accepted(file, "b")
