"""Answers in other languages: detected only where that is sure, missing for the default grader and never wrong, graded by the next one."""

from __future__ import annotations

import csv
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from runpy import run_path

import pytest

from conftest import ROOT
from fixtures.scoring import GOLD, ITEM, LESION_GOLD, LESION_ITEM, answered, differential, lesion_answer, vocabulary
from neuralmedbench.files.tables import read_records, write_records
from neuralmedbench.records.items import Criterion, Gold
from neuralmedbench.records.scores import Grade, GradeState, Score
from neuralmedbench.scoring.jury import grade_with_jury
from neuralmedbench.scoring.other_languages import LANGUAGES, OF_SCRIPT, language_of
from neuralmedbench.scoring.pairs import grade_diagnoses, grade_statements
from neuralmedbench.scoring.rubric import grade_with_rubric
from neuralmedbench.scoring.scores import score_responses

WORDS = {
    "it": ("Trombosi del seno sagittale superiore", "Infarto emorragico parietale destro con edema circostante.", "La trombosi venosa spiega la cefalea e le crisi."),
    "nl": ("Trombose van de sinus sagittalis", "Hemorragisch infarct rechts pariëtaal met omgevend oedeem.", "De veneuze trombose verklaart de hoofdpijn."),
    "pl": ("Zakrzepica zatoki strzałkowej górnej", "Zawał krwotoczny w prawym płacie ciemieniowym z obrzękiem.", "Zakrzepica żylna tłumaczy ból głowy."),
    "sv": ("Trombos i sinus sagittalis superior", "Hemorragisk infarkt höger parietalt med omgivande ödem.", "Den venösa trombosen förklarar huvudvärken."),
    "fi": ("Ylemmän nuolisinuksen tromboosi", "Oikealla päälaenlohkossa verenvuotoinen infarkti ja turvotusta.", "Laskimotukos selittää päänsäryn."),
    "tr": ("Superior sagittal sinüs trombozu", "Sağ parietal lobda ödemle çevrili hemorajik enfarkt.", "Venöz tromboz baş ağrısını ve nöbetleri açıklıyor."),
    "vi": ("Huyết khối xoang tĩnh mạch dọc trên", "Nhồi máu xuất huyết thùy đỉnh phải kèm phù nề xung quanh.", "Huyết khối tĩnh mạch giải thích đau đầu."),
    "ru": ("Тромбоз верхнего сагиттального синуса", "Геморрагический инфаркт в правой теменной доле с отёком.", "Венозный тромбоз объясняет головную боль."),
    "el": ("Θρόμβωση του άνω οβελιαίου κόλπου", "Αιμορραγικό έμφρακτο στον δεξιό βρεγματικό λοβό με οίδημα.", "Η φλεβική θρόμβωση εξηγεί την κεφαλαλγία."),
    "ar": ("خثار الجيب السهمي العلوي", "احتشاء نزفي في الفص الجداري الأيمن مع وذمة محيطة.", "الخثار الوريدي يفسر الصداع والنوبات."),
    "fa": ("ترومبوز سینوس ساژیتال فوقانی", "انفارکت خونریزی‌دهنده در لوب آهیانه راست با ادم اطراف.", "ترومبوز وریدی سردرد و تشنج را توضیح می‌دهد."),
    "he": ("פקקת של הסינוס הסגיטלי העליון", "אוטם דימומי באונה הקודקודית הימנית עם בצקת סביבו.", "הפקקת הוורידית מסבירה את כאב הראש."),
    "hi": ("सुपीरियर सैजिटल साइनस का घनास्त्रता", "दाहिने पार्श्विका खंड में रक्तस्रावी रोधगलन और सूजन।", "शिरापरक घनास्त्रता सिरदर्द को समझाती है।"),
    "th": ("ลิ่มเลือดในโพรงไซนัสแซกจิตัลส่วนบน", "เนื้อสมองตายและมีเลือดออกที่กลีบพาไรเอทัลขวา", "ลิ่มเลือดในหลอดเลือดดำอธิบายอาการปวดศีรษะ"),
    "ja": ("上矢状静脈洞血栓症", "右頭頂葉に浮腫を伴う出血性梗塞を認める。", "静脈血栓症により頭痛とけいれんが説明できる。"),
    "ko": ("상시상정맥동 혈전증", "우측 두정엽에 부종을 동반한 출혈성 경색.", "정맥 혈전증이 두통과 발작을 설명한다."),
}  # fmt: skip
"""Rank 1, findings and rationale of the same case, by language."""
RUSSIAN = WORDS["ru"]
ENGLISH_ONLY = replace(vocabulary(), languages=("en",))


def in_form(language: str, *others: str) -> str:
    name, findings, rationale = WORDS[language]
    return differential(name, *others, findings=findings, rationale=rationale)


def grades(text: str, item=ITEM, gold=GOLD) -> dict[str, Grade]:
    rows = grade_with_rubric([answered(text, item)], {item.item_id: item}, {item.item_id: gold}, ENGLISH_ONLY, grader="rubric")
    return {row.criterion: row for row in rows}


def states(text: str, item=ITEM, gold=GOLD) -> dict[str, tuple[str, float | None]]:
    return {name: (str(row.state), row.value) for name, row in grades(text, item, gold).items()}


def score(text: str, *more: list[Grade], item=ITEM, gold=GOLD) -> Score:
    response = answered(text, item)
    given = [grade_with_rubric([response], {item.item_id: item}, {item.item_id: gold}, ENGLISH_ONLY, grader="rubric"), *more]
    return score_responses([response], {item.item_id: item}, {item.item_id: gold}, given, vocabulary=ENGLISH_ONLY)[0]


@pytest.mark.parametrize("language", WORDS)
def test_an_answer_in_another_language_is_not_graded_and_the_language_is_named(language):
    row = grades(in_form(language, "meningioma"))["core_diagnosis"]
    assert (row.state, row.value) == (GradeState.NOT_GRADED, None)
    assert row.explanation == f"not graded: the answer is in {LANGUAGES[language]}, for which the vocabulary has no names"


@pytest.mark.parametrize("language", sorted(set(WORDS) & {name for names in OF_SCRIPT.values() for name in names}))
def test_a_name_alone_has_a_language_where_its_script_tells(language):
    line = WORDS[language][0]
    assert language_of(line) in {language, "ar" if language == "fa" else language, "zh" if language == "ja" else language}
    assert states(differential(line))["core_diagnosis"] == ("not_graded", None)


@pytest.mark.parametrize(
    "text",
    [
        differential("Takayasu arteritis", "Marchiafava-Bignami disease"),
        differential("dementia paralytica", "tabes dorsalis", "status lacunaris", findings="", rationale=""),
        differential("status epilepticus", findings="Gyri swollen, sulci effaced.", rationale="Epilepsia partialis continua."),
        differential("Encephalitis lethargica", findings="Substantia nigra and locus coeruleus are bright.", rationale="It fits."),
        differential("β-mannosidosis", findings="90 µm", rationale="α and β chains"),
        "It is not a stroke but something else.",
        "",
    ],
)
def test_an_english_answer_with_latin_names_stays_wrong(text):
    assert states(text) == {"main_condition": ("ok", 0.0), "core_diagnosis": ("ok", 0.0)}
    assert score(text).other_language == ""


def test_a_name_that_the_vocabulary_finds_is_graded_in_any_language():
    assert states(in_form("ru").replace(RUSSIAN[0], "GBM"))["core_diagnosis"] == ("ok", 1.0)
    assert states(in_form("ru").replace(RUSSIAN[0], "meningioma"))["core_diagnosis"] == ("ok", 0.0)


def test_an_answer_in_a_language_with_names_is_wrong_where_no_name_is_found():
    item, russian = ITEM, replace(ENGLISH_ONLY, languages=("en", "ru"))
    rows = grade_with_rubric([answered(in_form("ru"))], {item.item_id: item}, {item.item_id: GOLD}, russian, grader="rubric")
    assert [row.value for row in rows] == [0.0, 0.0]


def test_prose_in_another_language_that_the_parser_cannot_read_is_not_graded():
    assert states(" ".join(RUSSIAN))["core_diagnosis"] == ("not_graded", None)


def test_a_lesion_is_graded_where_place_and_side_were_read():
    assert states(lesion_answer("Опухоль", "лобная доля", "слева"), LESION_ITEM, LESION_GOLD)["core_diagnosis"] == ("not_graded", None)
    assert states(lesion_answer("Опухоль", "frontal lobe", "left"), LESION_ITEM, LESION_GOLD)["core_diagnosis"] == ("ok", 1.0)
    assert states(lesion_answer("Опухоль", "insula", "left"), LESION_ITEM, LESION_GOLD)["core_diagnosis"] == ("ok", 0.0)


def test_criteria_are_not_graded_where_their_words_cannot_be_compared():
    criteria = (
        Criterion(criterion="finding_1", text="States a finding: The mass has a ring of contrast enhancement.", points=1.0),
        Criterion(criterion="considers_1", text="Considers a diagnosis: brain abscess", points=1.0),
        Criterion(criterion="must_not_1", text="Must not say: acute ischaemic stroke", points=-1.0),
    )
    gold = replace(GOLD, rubric=criteria)
    assert {state for state, _ in states(in_form("ru"), gold=gold).values()} == {"not_graded"}
    assert {state for state, _ in states(differential("meningioma"), gold=gold).values()} == {"ok"}
    mixed = states(in_form("ru", "brain abscess"), gold=gold)
    assert (mixed["considers_1"], mixed["finding_1"][0]) == (("ok", 1.0), "not_graded")


def test_a_statement_in_a_script_without_spaces_is_never_said_to_be_stated():
    gold = Gold(
        item_id=ITEM.item_id,
        answer="胶质母细胞瘤",
        rubric=(Criterion(criterion="finding_1", text="病灶呈环形强化，伴周围水肿。", points=1.0),),
    )
    row = grades(
        differential("胶质母细胞瘤", findings="病灶呈环形强化，伴周围水肿。", rationale="符合。"), replace(ITEM, language="zh"), gold
    )
    assert row["core_diagnosis"].value == 1.0
    assert (row["finding_1"].state, row["finding_1"].explanation) == (
        GradeState.NOT_GRADED, "not graded: words of Chinese are not compared: they are written without spaces"
    )  # fmt: skip
    pairs = [{"statement": "病灶呈环形强化", "text": "病灶呈环形强化"}, {"statement": "The lesion enhances.", "text": " ".join(RUSSIAN)}]
    assert [row["verdict"] for row in grade_statements(pairs)] == ["unclear", "unclear"]


def test_a_second_grader_decides_where_the_first_cannot_read():
    text = in_form("ru")
    first = grades(text)["core_diagnosis"]
    llm = replace(first, grader="llm", value=1.0, state=GradeState.OK)
    alone, both = score(text), score(text, [llm])
    assert (alone.passed, alone.missing, alone.relation, alone.in_candidates, alone.other_language) == (None, False, "", None, "ru")
    assert (both.passed, both.core_diagnosis, both.in_candidates, both.other_language) == (True, 1.0, None, "ru")


def test_a_jury_of_graders_that_cannot_read_has_not_graded():
    row = grades(in_form("ru"))["core_diagnosis"]
    failed = replace(row, state=GradeState.FAILED)
    assert grade_with_jury({"a": [row], "b": [row]}, jury="j", rule="majority")[0].state is GradeState.NOT_GRADED
    assert grade_with_jury({"a": [row], "b": [failed]}, jury="j", rule="majority")[0].state is GradeState.FAILED


def test_pairs_in_another_language_are_not_graded_and_english_ones_are():
    rows = [{"reference": "glioblastoma", "answer": answer} for answer in (RUSSIAN[0], "Zenker leukodystrophy of the pons", "GBM")]
    graded = grade_diagnoses(rows, ENGLISH_ONLY)
    assert [(row["verdict"], row["relation"]) for row in graded] == [
        ("not_graded", "other_language"),
        ("fail", "unrelated"),
        ("pass", "synonym"),
    ]
    whole = grade_diagnoses([{"reference": "glioblastoma", "answer": in_form("it")}], ENGLISH_ONLY, whole_answers=True)
    assert (whole[0]["verdict"], whole[0]["relation"]) == ("not_graded", "other_language")


def test_a_table_of_scores_without_the_column_of_the_language_is_read(tmp_path: Path):
    import pyarrow.parquet as pq

    path, row = tmp_path / "old.parquet", score(differential("GBM"))
    write_records(path, Score, [row], key=lambda one: one.item_id)
    table = pq.read_table(path).drop_columns(["other_language"])
    pq.write_table(table.replace_schema_metadata({**table.schema.metadata, b"schema_version": b"4"}), path)
    assert read_records(path, Score) == [row]


def english_answers() -> Iterator[str]:
    """Five English lines each of words that we did not write, about one disease; then names of the vocabulary; then single lines."""
    with (ROOT / "tests" / "words" / "answers_mend.tsv").open(encoding="utf-8", newline="") as file:
        rows = [row for row in csv.DictReader(file, delimiter="\t") if row["language"] == "en"]
    lines: dict[str, list[str]] = defaultdict(list)
    for row in rows:
        lines[row["diagnosis"]].append(row["answer"])
    lines["vocabulary"] = [
        name for entry in vocabulary().diagnoses.values() for name in (entry.name, *entry.synonyms, *entry.abbreviations)
    ]
    for own in lines.values():
        yield from ("\n".join(own[start : start + 5]) for start in range(0, len(own), 5))
        yield from own


def public_sentences() -> dict[str, list[str]]:
    """Example sentences of spaCy (MIT), by language."""
    package = find_spec("spacy")
    assert package is not None
    files = Path(str(package.origin)).parent.glob("lang/*/examples.py")  # to import the package would take seconds
    return {file.parent.name: run_path(str(file))["sentences"] for file in files if file.parent.name in LANGUAGES}


def test_no_english_answer_is_called_another_language():
    called = [text for text in english_answers() if language_of(text) not in {"", "en"}]
    # but for four of 959 lists of five names of the vocabulary, which are found without it
    assert len([text for text in called if all(vocabulary().find(line) for line in text.splitlines())]) <= 4
    assert [text for text in called if not all(vocabulary().find(line) for line in text.splitlines())] == []


def test_two_sentences_of_another_language_are_recognised_and_its_script_always():
    own_script = {name for names in OF_SCRIPT.values() for name in names}
    texts = [
        (language, "\n".join(sentences[start : start + 2]))
        for language, sentences in public_sentences().items()
        for start in range(0, len(sentences) - 1, 2)
        if language != "en"
    ]
    foreign = [(language, language_of(text) not in {"", "en"}) for language, text in texts]
    latin = [found for language, found in foreign if language not in own_script]
    assert len(latin) > 80
    assert sum(latin) >= 0.8 * len(latin)
    assert [language for language, found in foreign if language in own_script and not found] == []


@pytest.mark.parametrize("text", ["\x00\x1b\ud800", "\U000e0041\u202e", "…!?", "1234", "ﬁ", "\u0301" * 50])
def test_any_text_has_a_language_or_none(text):
    assert language_of(text) in {"", *LANGUAGES}
    assert language_of(text, text * 50) in {"", *LANGUAGES}
