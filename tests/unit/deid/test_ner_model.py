"""A local model for names, run by Presidio: no download, combined with the patterns, eponyms kept."""

from __future__ import annotations

import json
import socket
from pathlib import Path

import pytest

from conftest import ROOT
from neuralmedbench.deid.notes.clean import clean_note
from neuralmedbench.deid.notes.languages import NameModel, load_name_model
from neuralmedbench.deid.values import DateShift
from neuralmedbench.errors import ConfigError

pytestmark = pytest.mark.slow

SHIFT = DateShift(-37)
DUTCH = "De patiënt werd op 14/03/2031 gezien met Saskia Vos en is niet bekend met de ziekte van Parkinson, tel. +31 20 555 0148."


@pytest.fixture(autouse=True)
def offline(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make every connection fail: a test that needs one does not pass."""

    def refuse(*_: object, **__: object) -> None:
        message = "this test may not use the network"
        raise AssertionError(message)

    monkeypatch.setattr(socket.socket, "connect", refuse)
    monkeypatch.setattr(socket, "create_connection", refuse)


@pytest.fixture(scope="module")
def dutch(tmp_path_factory: pytest.TempPathFactory) -> NameModel:
    """Make a Dutch pipeline that recognises three names, one of them an eponym."""
    spacy = pytest.importorskip("spacy")
    folder = tmp_path_factory.mktemp("spacy") / "model"
    pipeline = spacy.blank("nl")
    pipeline.add_pipe("entity_ruler").add_patterns(
        [{"label": "PERSON", "pattern": "Saskia Vos"}, {"label": "PERSON", "pattern": "Parkinson"}, {"label": "GPE", "pattern": "Zwolle"}]
    )
    pipeline.to_disk(folder)
    return load_name_model(folder, "nl")


def test_a_note_in_the_language_of_the_model_is_cleaned_by_it_and_by_the_patterns(dutch: NameModel) -> None:
    assert clean_note(DUTCH, SHIFT, None).counts["withheld"] == 1
    cleaned = clean_note(f"{DUTCH} Zij woont te Zwolle.", SHIFT, None, model=dutch)
    assert "ziekte van Parkinson" in cleaned.text
    assert "[NAME]" in cleaned.text
    assert "[PLACE]" in cleaned.text
    assert "2031-02-05" in cleaned.text
    assert not [word for word in ("Saskia", "Vos", "Zwolle", "555") if word in cleaned.text]
    assert (cleaned.counts["withheld"], cleaned.counts["cleaned_with_model"]) == (0, 1)
    assert cleaned.counts["found_by_model"] >= 1


def test_a_model_of_another_language_changes_nothing(dutch: NameModel) -> None:
    english = "Saskia Vos was seen in the clinic with a headache."
    assert clean_note(english, SHIFT, None, model=dutch) == clean_note(english, SHIFT, None)
    german = "Der Patient wurde mit Kopfschmerzen in die Klinik gebracht und ist seit gestern nicht ansprechbar"
    assert clean_note(german, SHIFT, None, model=dutch).counts["withheld"] == 1


def test_without_the_packages_of_a_transformers_model_the_error_names_the_file_with_their_versions(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ner = pytest.importorskip("presidio_analyzer.predefined_recognizers.ner.huggingface_ner_recognizer")
    monkeypatch.setattr(ner, "hf_pipeline", None)
    (tmp_path / "config.json").write_text("{}", encoding="utf-8")
    with pytest.raises(ConfigError, match=r"copy their two lines from envs/scoring\.yaml to envs/deidentify\.yaml"):
        load_name_model(tmp_path, "nl")
    pins = (ROOT / "envs" / "scoring.yaml").read_text(encoding="utf-8")
    assert all(f"- {name}==" in pins for name in ("torch", "transformers"))


def test_a_transformers_model_runs_from_its_folder(tmp_path: Path) -> None:
    transformers = pytest.importorskip("transformers")
    torch, tokenizers = pytest.importorskip("torch"), pytest.importorskip("tokenizers")
    words = [
        "[PAD]",
        "[UNK]",
        "[CLS]",
        "[SEP]",
        "[MASK]",
        *["zumsteg", "was", "seen", "on", "the", "ward", "with", "headache", "and", "no", "fever", "."],
    ]
    tokens = tokenizers.Tokenizer(tokenizers.models.WordLevel({word: place for place, word in enumerate(words)}, unk_token="[UNK]"))
    tokens.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
    transformers.PreTrainedTokenizerFast(tokenizer_object=tokens, unk_token="[UNK]", pad_token="[PAD]").save_pretrained(tmp_path)
    torch.manual_seed(0)
    settings = transformers.BertConfig(
        vocab_size=len(words), hidden_size=16, num_hidden_layers=1, num_attention_heads=1, intermediate_size=16, id2label={0: "O", 1: "PER"},
        label2id={"O": 0, "PER": 1},
    )  # fmt: skip
    network = transformers.BertForTokenClassification(settings)
    with torch.no_grad():  # a model that takes the one word for a name, and no other
        for parameter in network.parameters():
            parameter.zero_()
        network.bert.embeddings.LayerNorm.weight.fill_(1)
        for layer in network.bert.encoder.layer:
            layer.attention.output.LayerNorm.weight.fill_(1)
            layer.output.LayerNorm.weight.fill_(1)
        network.bert.embeddings.word_embeddings.weight[words.index("zumsteg"), 0] = 5
        network.classifier.weight[1, 0] = 5
        network.classifier.bias[0] = 3
    network.save_pretrained(tmp_path)
    model = load_name_model(tmp_path, "en")
    text = clean_note("zumsteg was seen on the ward with headache and no fever .", SHIFT, None, model=model).text
    assert text == "[NAME] was seen on the ward with headache and no fever ."


@pytest.mark.parametrize("name", ["", "meta.json", "config.json"])
def test_a_folder_without_a_usable_model_is_refused_in_one_line(tmp_path: Path, name: str) -> None:
    if name:
        (tmp_path / name).write_text(json.dumps({"lang": "en", "pipeline": ["ner"]}), encoding="utf-8")
    with pytest.raises(ConfigError, match="ner_model"):
        load_name_model(tmp_path, "en")
