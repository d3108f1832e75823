from __future__ import annotations

import json
from dataclasses import replace
from itertools import chain

import pytest

from conftest import ROOT
from fixtures.items import VOCABULARY, answer, benchmark_config, pictures, slice_row, source, write_csv
from neuralmedbench.benchmarks.answers_table import read_answers
from neuralmedbench.benchmarks.case_items import build_cases, check_known
from neuralmedbench.benchmarks.gold import findings_of_others
from neuralmedbench.benchmarks.shown_lesions import lesion_shown, picture_lesions
from neuralmedbench.benchmarks.sign_names import DESCRIBING, NAMING
from neuralmedbench.benchmarks.sources import read_sources
from neuralmedbench.errors import ConfigError, DataError
from neuralmedbench.files.cases import write_case
from neuralmedbench.files.templates import Templates
from neuralmedbench.files.vocabulary import read_vocabulary
from neuralmedbench.records.case import CaseRecord, State, Tile
from neuralmedbench.records.items import Family, GoldFields, Lesion, Level, Runner

HEADER = "case_id,diagnosis,lesion_side,lesion_size_mm,lesion_position_mm,lesion_behaviour,findings,findings_complete,level"


def build(*sources, answers=(), config=None):
    return build_cases("b", config or benchmark_config(), sources, {row.case_id: row for row in answers}, VOCABULARY)


def gold_by_family(built):
    return {row.item_id.rpartition("/")[2]: row for row in built.gold}


def test_a_case_with_a_full_answer_becomes_three_items_with_gold():
    built = build(source("a1"), answers=[answer("a1")])
    assert [item.item_id for item in built.items] == [
        "b/a1/differential_diagnosis",
        "b/a1/lesion_recognition",
        "b/a1/rationale_generation",
    ]
    assert {row.item_id for row in built.gold} == {item.item_id for item in built.items}


def test_no_item_holds_a_word_of_its_answer():
    built = build(source("a1"), answers=[answer("a1", diagnosis="Zebra syndrome", lesion_location="zebra lobe")])
    assert "zebra" not in repr(built.items).lower()


def test_a_diagnosis_written_as_synonym_or_code_is_gold_under_its_preferred_name():
    synonym = build(source("a1"), answers=[answer("a1")]).gold[0]
    code = build(source("a1"), answers=[answer("a1", diagnosis="I63.9")]).gold[0]
    assert (synonym.answer, synonym.aliases, synonym.icd10) == ("acute ischaemic stroke", ("brain infarction",), "I63.9")
    assert code.answer == "acute ischaemic stroke"


def test_a_diagnosis_with_more_in_brackets_is_known_and_kept_as_written():
    built = build(source("a1"), answers=[answer("a1", diagnosis="Brain infarction (left insula)")])
    assert (built.gold[0].answer, built.gold[0].icd10) == ("Brain infarction (left insula)", "I63.9")
    assert "diagnosis_not_in_vocabulary" not in built.items[0].tags


def test_an_unknown_diagnosis_is_kept_as_written_and_tagged():
    built = build(source("a1"), answers=[answer("a1", diagnosis="Zebra syndrome")])
    assert built.gold[0].answer == "Zebra syndrome"
    assert "diagnosis_not_in_vocabulary" in built.items[0].tags


def test_a_normal_case_with_complete_findings_asks_for_a_lesion_whose_gold_is_no_lesion():
    row = answer("a1", diagnosis="normal", lesion_location="", findings=("Normal brain volume",), rationale=())
    gold = gold_by_family(build(source("a1"), answers=[row]))
    assert gold["lesion_recognition"].answer == "no lesion"
    assert gold["lesion_recognition"].lesion is None
    assert "lesion_recognition" not in gold_by_family(build(source("a1"), answers=[replace(row, findings_complete=False)]))


def test_a_case_without_an_answer_is_asked_for_its_diagnosis_and_has_no_gold():
    built = build(source("a1"))
    assert [item.family for item in built.items] == [Family.DIFFERENTIAL_DIAGNOSIS]
    assert built.gold == ()


def test_a_dialogue_reveals_one_note_a_turn_and_the_pictures_last():
    row = answer("a1", level=Level.DIALOGUE, turn_leaders=("GBM", "stroke of some kind", "brain infarction"))
    built = build(source("a1", notes=("First.", "Second.")), answers=[row])
    dialogue, lesion = built.items
    assert (dialogue.runner, lesion.runner) == (Runner.DIALOGUE, Runner.OPEN)
    assert [turn.reveal for turn in dialogue.turns] == ["First.", "Second.", "Sodium: 138 mmol/L"]
    assert [len(turn.image_ids) for turn in dialogue.turns] == [0, 0, 4]
    assert (dialogue.notes, dialogue.record) == ("", "")
    assert built.gold[0].turn_leaders == ("glioblastoma", "stroke of some kind", "acute ischaemic stroke")
    assert built.gold[1].turn_leaders == ()


def test_a_dialogue_with_too_few_turn_leaders_says_how_many_are_expected():
    row = answer("a1", level=Level.DIALOGUE, turn_leaders=("GBM",))
    with pytest.raises(DataError, match="expected 2 diagnoses"):
        build(source("a1"), answers=[row])


def test_the_rubric_asks_for_side_place_and_signal_and_punishes_what_must_not_be_said():
    rubric = {row.criterion: row for row in gold_by_family(build(source("a1"), answers=[answer("a1")]))["lesion_recognition"].rubric}
    assert rubric["states_side"].text == "States that the lesion lies on the left."
    assert "insula" in rubric["states_location"].text
    assert set(rubric) >= {"names_signal_flair", "names_signal_dwi"}
    assert rubric["must_not_1"].points < 0


def test_a_harmful_statement_is_one_that_must_not_be_made_and_caps_the_rubric():
    built = build(source("a1"), answers=[answer("a1", harmful=("the patient may drive home",))])
    gold = gold_by_family(built)["lesion_recognition"]
    caps = {row.criterion: row.cap for row in gold.rubric if row.criterion.startswith("must_not_")}
    assert caps == {"must_not_1": False, "must_not_2": True}
    assert gold.must_not == ("the lesion is a tumour", "the patient may drive home")
    assert not any(row.cap for row in gold.rubric if not row.criterion.startswith("must_not_"))


def test_findings_that_name_the_diagnosis_are_refused_because_an_arm_would_hand_out_the_answer():
    with pytest.raises(DataError, match="finding 1 names the diagnosis"):
        build(source("a1"), answers=[answer("a1", findings=("Acute ischemic stroke of the insula",))])


def test_findings_are_disclosed_for_the_diagnosis_but_not_where_they_are_the_answer():
    built = build(source("a1"), answers=[answer("a1")])
    assert [row.item_id for row in built.disclosures] == ["b/a1/differential_diagnosis", "b/a1/rationale_generation"]


def is_shown(lesion, slices):
    return lesion_shown(lesion, None, picture_lesions(lesion, slices))


@pytest.mark.parametrize(
    ("z", "size", "shown"),
    [(20.0, 10.0, True), (15.0, 10.0, True), (5.0, 10.0, False), (5.0, 40.0, True), (17.6, None, True), (5.0, None, False)],
)
def test_a_lesion_is_shown_when_a_slice_goes_through_it(z, size, shown):
    lesion = Lesion(location="insula", side="left", behaviour={}, size_mm=size, position_mm=(0.0, 0.0, z))
    assert is_shown(lesion, source("a1").images) is shown


def test_every_picture_says_whether_it_shows_the_lesion_and_how_many_sent_pixels_wide():
    lesion = Lesion(location="insula", side="left", behaviour={"dwi": "isointense"}, size_mm=20.0, position_mm=(0.0, 0.0, 20.0))
    rows = [slice_row("a1", 20), slice_row("a1", 10, mm_per_px=0.5), slice_row("a1", 5), slice_row("a1", 20, "dwi")]
    shown = {(row.image_id, row.shown): row.width_px for row in picture_lesions(lesion, rows)}
    assert shown == {
        ("flair-z+020", True): 20.0,
        # 10 mm from the centre with slices of 5 mm: the near side of the slice lies 7.5 mm away, a chord of 13.23 mm, pixels of 0.5 mm
        ("flair-z+010", True): pytest.approx(2 * (10**2 - 7.5**2) ** 0.5 / 0.5, abs=0.01),
        ("flair-z+005", False): None,
        ("dwi-z+020", False): None,
    }
    (of_unknown_size,) = picture_lesions(replace(lesion, size_mm=None), rows[:1])
    assert (of_unknown_size.shown, of_unknown_size.width_px) == (True, None)
    assert picture_lesions(None, rows) == picture_lesions(replace(lesion, position_mm=None), rows) == []


def test_a_montage_shows_the_lesion_when_one_of_its_slices_does():
    lesion = Lesion(location="insula", side="left", behaviour={}, size_mm=10.0, position_mm=(0.0, 0.0, 21.0))
    tiles = tuple(Tile(index=index, position_mm=float(index * 5)) for index in (0, 2, 4, 6))
    row = slice_row("a1", 10, tiles=tiles, mm_per_px=2.0)
    assert [(entry.shown, entry.width_px) for entry in picture_lesions(lesion, [row])] == [(True, 5.0)]
    assert is_shown(lesion, [row]) is True


def test_pictures_that_were_chosen_with_the_answer_are_marked_on_their_item():
    marked = replace(source("a1"), images=(slice_row("a1", 20, oracle=True),))
    item = build(marked, answers=[answer("a1")]).items[0]
    assert item.images[0].oracle
    assert "oracle_slices" in item.tags
    assert "oracle_slices" not in build(source("a1"), answers=[answer("a1")]).items[0].tags


def test_what_pictures_show_of_the_lesion_is_gold_and_no_part_of_an_item():
    built = build(source("a1"), source("a2"), answers=[answer("a1")])
    assert {row.case_id for row in built.lesions} == {"a1"}
    assert len(built.lesions) == 4
    assert "width_px" not in repr(built.items)


def test_a_lesion_that_only_a_blind_sequence_shows_is_not_shown():
    lesion = Lesion(location="insula", side="left", behaviour={"FLAIR": "isointense"}, size_mm=10.0, position_mm=(0.0, 0.0, 20.0))
    assert is_shown(lesion, [slice_row("a1", 20)]) is False
    assert is_shown(replace(lesion, position_mm=None), [slice_row("a1", 20)]) is None
    assert is_shown(None, [slice_row("a1", 20)]) is None


@pytest.mark.parametrize(
    ("cells", "column"),
    [
        ("a1,stroke,up,,,,,,", "lesion_side"),
        ("a1,stroke,,big,,,,,", "lesion_size_mm"),
        ("a1,stroke,,,1 2,,,,", "lesion_position_mm"),
        ("a1,stroke,,,,MPRAGE=bright,,,", "lesion_behaviour"),
        ("a1,stroke,,,,,,perhaps,", "findings_complete"),
        ("a1,stroke,,,,,,,hard", "level"),
        ("a1,,,,,,,,", "diagnosis"),
        (",stroke,,,,,,,", "case_id"),
    ],
)
def test_a_wrong_cell_is_named_by_line_and_column_and_its_content_is_not_repeated(tmp_path, cells, column):
    path = write_csv(tmp_path / "answers.csv", HEADER, "a0,normal,,,,,,,", cells)
    with pytest.raises(DataError, match=f"line 3, column {column}: expected") as caught:
        read_answers(path)
    assert not any(word in str(caught.value) for word in ("MPRAGE", "perhaps", "hard"))


def test_an_unknown_column_and_an_absent_table_are_told_with_what_to_do(tmp_path):
    with pytest.raises(ConfigError, match="did you mean 'lesion_side'"):
        read_answers(write_csv(tmp_path / "answers.csv", "case_id,diagnosis,lesion_sied", "a1,stroke,left"))
    with pytest.raises(ConfigError, match="not there"):
        read_answers(tmp_path / "none.csv")


def test_a_table_with_semicolons_or_without_a_first_line_of_names_is_refused_without_its_content(tmp_path):
    with pytest.raises(ConfigError, match="not separated by commas"):
        read_answers(write_csv(tmp_path / "a.csv", "case_id;diagnosis", "a1;stroke"))
    with pytest.raises(ConfigError, match="'case_id' is missing in the first line") as caught:
        read_answers(write_csv(tmp_path / "b.csv", "a1,stroke of Mr Smith"))
    assert "Smith" not in str(caught.value)


def test_a_row_with_a_lost_comma_and_a_case_with_two_rows_are_refused(tmp_path):
    with pytest.raises(DataError, match="line 2: expected 2 cells"):
        read_answers(write_csv(tmp_path / "a.csv", "case_id,diagnosis", "a1,stroke, left"))
    with pytest.raises(DataError, match="line 3: this case has a row already"):
        read_answers(write_csv(tmp_path / "b.csv", "case_id,diagnosis", "a1,stroke", "a1,normal"))


def test_lists_and_pairs_of_the_answers_table_are_read(tmp_path):
    path = write_csv(tmp_path / "a.csv", HEADER, 'a1,stroke,LEFT,12,"1 -2 3.5",flair=Hyperintense; dwi=restricted,one | two,yes,Complex')
    row = read_answers(path)["a1"]
    assert (row.lesion_side, row.lesion_size_mm, row.lesion_position_mm) == ("left", 12.0, (1.0, -2.0, 3.5))
    assert row.lesion_behaviour == {"FLAIR": "hyperintense", "dwi": "restricted"}
    assert (row.findings, row.findings_complete, row.level) == (("one", "two"), True, Level.COMPLEX)


def test_an_answer_for_a_case_that_is_not_listed_is_refused_without_its_id(tmp_path):
    table = write_csv(tmp_path / "b.cases.tsv", "case_id\tpatient_id\tsource_sha256\tsequence_overrides\texclude", "a1\tp1\tx\t\t")
    with pytest.raises(DataError, match="rows 2") as caught:
        check_known({"a1": answer("a1"), "mrn77": answer("mrn77")}, table)
    assert "mrn77" not in str(caught.value)


def test_sources_hold_notes_in_order_and_the_record_as_lines_and_leave_quarantined_cases_out(tmp_path):
    for case in ("a1", "a2"):
        folder = tmp_path / case
        (folder / "text").mkdir(parents=True)
        write_csv(folder / "text/note-01.txt", "First note.")
        write_csv(folder / "text/note-02.txt", "Second note.")
        write_csv(
            folder / "text/record.tsv",
            "variable\tvalue\tunit\tdays_from_scan",
            "Sodium\t138\tmmol/L\t-2",
            "Smoker\tyes\t\t",
            "Histology\tglioma\t\t9",
        )
        state = State.OK if case == "a1" else State.QUARANTINED
        notes = ("text/note-01.txt", "text/note-02.txt")
        write_case(
            folder / "case.json",
            CaseRecord(benchmark="b", case_id=case, patient_id="p", stage="deidentify", state=state, notes=notes, record="text/record.tsv"),
        )
    rows = [slice_row(case, position, sequence) for case in ("a1", "a2") for sequence in ("dwi", "FLAIR") for position in (20, -10)]
    (found,) = read_sources([tmp_path / "a2/case.json", tmp_path / "a1/case.json"], rows, Templates(ROOT / "config/prompts"))
    assert found.notes == ("First note.", "Second note.")
    assert found.record == "Sodium: 138 mmol/L (2 days before the scan)\nSmoker: yes", "what came after the scan may tell the answer"
    assert [(row.sequence, row.position_mm) for row in found.images] == [("FLAIR", -10), ("FLAIR", 20), ("dwi", -10), ("dwi", 20)]


def test_a_picture_becomes_a_structured_item_whose_gold_has_the_data_sets_labels_in_one_spelling(tmp_path):
    built = pictures(tmp_path, "images-17,a/b.png,tumor,x,neurocitoma,MRI,T1C+,axial", "stroke,c.png,stroke,x,,CT,,axial", quarantined={2})
    (item,), (gold,) = built.items, built.gold
    assert gold.fields == GoldFields(modality="MRI", sequence="T1C+", plane="axial", diagnosis_class="tumor", subtype="neurocytoma")
    assert (gold.answer, item.runner, item.images[0].sha256) == ("tumor", Runner.STRUCTURED, "s1")
    assert (item.images[0].sequence, item.images[0].plane) == ("unknown", "")
    assert set(json.loads(item.answer_schema)["required"]) == {"modality", "sequence", "plane", "class", "subtype", "confidence"}


def test_a_row_that_was_quarantined_does_not_shift_the_answers_of_the_others(tmp_path):
    rows = [f"d,{n}.png,{label},x,,CT,,axial" for n, label in enumerate(("stroke", "normal", "tumor"))]
    built = pictures(tmp_path, *rows, quarantined={1})
    assert [(row.item_id, row.answer) for row in built.gold] == [("b/img-000002", "normal"), ("b/img-000003", "tumor")]


def test_patients_of_aisd_are_known_by_their_folder_and_their_name_is_not_kept(tmp_path):
    rows = [f"AISD,root/doe/{n}.png,stroke,x,ischemic,CT,,axial" for n in range(2)]
    built = pictures(tmp_path, *rows)
    assert len({item.patient_id for item in built.items}) == 1
    assert "doe" not in repr(built.items)


def test_labelled_pictures_are_refused_because_the_label_is_part_of_the_answer(tmp_path):
    with pytest.raises(ConfigError, match="label_policy: none"):
        pictures(tmp_path, "d,a.png,normal,x,,CT,,axial", policy="full")


def test_a_label_that_is_none_of_the_data_sets_is_named_by_row_and_field(tmp_path):
    with pytest.raises(DataError, match="row 1: the class is not one of"):
        pictures(tmp_path, "d,a.png,abscess,x,,CT,,axial")


def test_a_benchmark_without_any_case_is_an_error():
    with pytest.raises(DataError, match="no item"):
        build()


@pytest.mark.parametrize(
    ("diagnosis", "finding"),
    [
        ("glioblastoma", "A mass typical of GBM"),
        ("glioblastoma", "A glioma with a thick rim"),
        ("multiple sclerosis", "Several lesions of MS"),
        ("stroke", "Signal of a cerebral infarction"),
        ("Alzheimer disease", "A brain as in Alzheimer's dementia"),
        ("glioblastoma", "Typical of a high-grade glioma"),
        ("glioblastoma", "WHO grade 4 tumour"),
        ("glioblastoma", "A neoplastic mass"),
        ("glioblastoma (left temporal lobe)", "A neoplastic mass"),
        ("meningioma", "Several meningiomas"),
        ("multiple sclerosis", "RRMS lesions"),
        ("multiple sclerosis", "Demyelinating plaques"),
        ("multiple sclerosis", "Periventricular plaques"),
        ("multiple sclerosis", "Dawson's fingers at right angles to the ventricles"),
        ("normal pressure hydrocephalus", "DESH"),
        ("acute ischaemic stroke", "Ischemic change of the insula"),
    ],
)
def test_findings_may_not_name_the_diagnosis_by_another_name_or_a_wider_or_narrower_term(diagnosis, finding):
    with pytest.raises(DataError, match="finding 1 names the diagnosis"):
        findings_by_case((("a1", diagnosis, (finding,)),))


@pytest.mark.parametrize(
    ("diagnosis", "finding"),
    [
        ("meningioma", "Uniform, strong enhancement with a dural tail"),
        ("progressive supranuclear palsy", "Hummingbird sign of the midbrain"),
        ("normal pressure hydrocephalus", "Ventriculomegaly with tight sulci"),
        ("multiple sclerosis", "Ovoid lesions of high FLAIR signal at right angles to the ventricles"),
        ("glioblastoma", "Plaque of calcium in the wall of the carotid siphon"),
    ],
)
def test_what_is_seen_may_be_disclosed_even_if_it_is_typical(diagnosis, finding):
    assert findings_by_case((("a1", diagnosis, (finding,)),)) == {}  # not refused; a single patient has no other one


def test_the_lists_of_signs_are_of_diseases_of_the_vocabulary():
    vocabulary = read_vocabulary(ROOT / "config" / "vocabulary" / "neurology.yaml")
    for disease in (*NAMING, *DESCRIBING):
        assert vocabulary.find(disease).name == disease
    assert not {*chain(*NAMING.values())} & {*chain(*DESCRIBING.values())}


def test_an_abbreviation_counts_only_as_it_is_written():
    assert findings_by_case((("a1", "multiple sclerosis", ("Ovoid areas at an echo time of 90 ms",)),)) == {}


DONORS = (
    ("a1", "glioblastoma", ("Ring of contrast in the left frontal lobe",)),
    ("a2", "meningioma", ("Broad base on the falx with contrast",)),
    ("a3", "multiple sclerosis", ("Ovoid areas beside the ventricles, at right angles to them",)),
    ("a4", "acute ischaemic stroke", ("Dark on the ADC map in the left insula, bright before",)),
    ("a5", "glioblastoma", ("A very long text " * 9,)),
)


def findings_by_case(rows=DONORS):
    vocabulary = read_vocabulary(ROOT / "config" / "vocabulary" / "neurology.yaml")
    answers = {name: answer(name, diagnosis=what, findings=seen) for name, what, seen in rows}
    built = build_cases("b", benchmark_config(), [source(name) for name, _, _ in rows], answers, vocabulary)
    gold = {row.item_id: row for row in built.gold}
    own = {row.item_id: row.text for row in built.disclosures}
    found = findings_of_others(built.items, gold, built.disclosures, vocabulary)
    return {row.item_id: next(item for item, text in own.items() if text == row.text).split("/")[1] for row in found}


def test_the_findings_of_another_are_those_of_another_disease_family_and_of_nearly_the_same_length():
    found = findings_by_case()
    assert set(found) == {f"b/{name}/{family}" for name, _, _ in DONORS for family in ("differential_diagnosis", "rationale_generation")}
    donor = {item.split("/")[1]: of for item, of in found.items()}
    assert donor["a1"] in {"a3", "a4"}, "a2 and a5 are brain tumours too"
    assert donor["a5"] in {"a3", "a4"}, "however different their length"
    assert donor["a4"] == "a3", "nearest in length"
    assert len({(item.split("/")[1], of) for item, of in found.items()}) == len(DONORS), "items of one case get one donor"
    assert findings_by_case(tuple(reversed(DONORS))) == found


def test_findings_that_name_the_answer_or_are_of_the_same_family_are_lent_to_nobody():
    tumours = [row for row in DONORS if row[1] != "multiple sclerosis" and row[1] != "acute ischaemic stroke"]
    assert findings_by_case(tumours) == {}
    named = (("a1", "glioblastoma", ("Ring of contrast",)), ("a3", "multiple sclerosis", ("No sign of a glioblastoma",)))
    assert set(findings_by_case(named)) == {"b/a3/differential_diagnosis", "b/a3/rationale_generation"}
