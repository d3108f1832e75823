"""Croissant descriptions: valid by the specification, complete for the table, and without answers, values or local paths."""

from __future__ import annotations

import json
import shutil
import types
from dataclasses import fields, replace
from pathlib import Path
from typing import Any, get_args, get_origin, get_type_hints

import pytest
import yaml

import describe_benchmark
from conftest import ROOT
from fixtures.tables import item
from neuralmedbench.cards.card import read_card
from neuralmedbench.cards.croissant import COLUMNS, CONTEXT, REQUIRED, describe, missing_properties
from neuralmedbench.config.load import load_benchmark
from neuralmedbench.errors import ConfigError
from neuralmedbench.files.digests import sha256_of
from neuralmedbench.files.tables import write_records
from neuralmedbench.records.items import Family, Item, ItemImage, Level, Runner, Turn

RAI_1_0 = {
    "dataCollection": "ONE",
    "dataCollectionType": "MANY",
    "dataCollectionMissingData": "ONE",
    "dataCollectionRawData": "ONE",
    "dataCollectionTimeframe": "MANY",
    "dataImputationProtocol": "ONE",
    "dataManipulationProtocol": "ONE",
    "dataPreprocessingProtocol": "MANY",
    "dataAnnotationProtocol": "ONE",
    "dataAnnotationPlatform": "MANY",
    "dataAnnotationAnalysis": "MANY",
    "dataReleaseMaintenancePlan": "MANY",
    "personalSensitiveInformation": "MANY",
    "dataSocialImpact": "ONE",
    "dataBiases": "MANY",
    "dataLimitations": "MANY",
    "dataUseCases": "MANY",
    "annotationsPerItem": "ONE",
    "annotatorDemographics": "MANY",
    "machineAnnotationTools": "MANY",
}
"""Properties and cardinalities, from the table in docs/croissant-rai-spec.md of mlcommons/croissant, version 1.0."""

PICTURE = ItemImage(
    image_id="flair-z-001",
    path="data/slices/demo/sub-c0ffee/png/flair-z-001.png",
    sha256="a" * 64,
    volume_sha256="b" * 64,
    sequence="FLAIR",
    plane="axial",
    role="slice",
    position_mm=1.0,
    mm_per_px=1.0,
    oracle=False,
)


def asked() -> list[Item]:
    """Return two questions on two cases, with values that must not leave their table."""
    first = item("demo", "c0ffee", "p0ffee", Family.DIFFERENTIAL_DIAGNOSIS, level=Level.DIRECT, runner=Runner.OPEN, images=(PICTURE,))
    other = replace(PICTURE, path="data/slices/demo/sub-decaf0/png/flair-z-001.png")
    second = item("demo", "decaf0", "pdecaf", Family.LESION_RECOGNITION, level=Level.DIALOGUE, runner=Runner.DIALOGUE, images=(other,))
    turn = Turn(reveal="The left hand is numb.", question="What now?")
    return [first, replace(second, turns=(turn,), given="glioblastoma", date="2031-08-06", language="fr")]


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Write a project with the demo's configuration and two questions, and change to it."""
    shutil.copytree(ROOT / "config" / "cards", tmp_path / "config" / "cards")
    (tmp_path / "config" / "benchmarks").mkdir()
    shutil.copy(ROOT / "config" / "benchmarks" / "demo.yaml", tmp_path / "config" / "benchmarks")
    write_records(tmp_path / "data" / "items" / "demo.parquet", Item, asked(), key=lambda row: row.item_id)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def described(folder: Path = Path("config")) -> dict[str, Any]:
    return describe("demo", load_benchmark(folder, "demo"), read_card(folder, "demo"), asked(), Path("data/items/demo.parquet"))


def nodes(value: object) -> list[dict[str, Any]]:
    """Yield every object in a description."""
    if isinstance(value, dict):
        return [value, *(node for inner in value.values() for node in nodes(inner))]
    return [node for inner in value for node in nodes(inner)] if isinstance(value, list) else []


def test_every_column_of_the_table_is_described_with_its_type() -> None:
    assert {column.of for column in COLUMNS.values()} == {field.name for field in fields(Item)}
    hints = get_type_hints(Item)
    for name, column in COLUMNS.items():
        hint = hints[column.of]
        assert column.is_array == (get_origin(hint) is tuple), name
        inner = get_args(hint)[0] if column.is_array else hint
        assert bool(column.key) == (inner in (ItemImage, Turn)), name
        if column.key:
            inner = get_type_hints(inner)[column.key]
        kinds = get_args(inner) if isinstance(inner, types.UnionType) else (inner,)
        assert column.kind == ("Boolean" if bool in kinds else "Text"), name


def test_a_description_fits_the_specification(project: Path) -> None:
    description = described()
    assert description["@type"] == "sc:Dataset"
    assert description["conformsTo"] == ["http://mlcommons.org/croissant/1.1", "http://mlcommons.org/croissant/RAI/1.0"]
    assert description["creator"] == [{"@type": "sc:Organization", "name": "The Neural-MedBench pipeline authors"}]
    assert {"cr", "dct", "rai", "sc", "conformsTo", "recordSet", "dataType"} <= CONTEXT.keys()
    named = [node for node in nodes(description) if "@id" in node and "@type" in node and node["@type"].startswith("cr:")]
    ids = [node["@id"] for node in named]
    assert len(ids) == len(set(ids)) == len(COLUMNS) + 3
    references = {node["@id"] for node in nodes(description) if set(node) == {"@id"}}
    assert references == {"questions-table", "questions/item_id"}
    assert references <= set(ids)
    table, pictures = description["distribution"]
    assert (table["@type"], pictures["@type"]) == ("cr:FileObject", "cr:FileSet")
    assert {"contentUrl", "encodingFormat", "sha256"} <= table.keys()
    (questions,) = description["recordSet"]
    for field in questions["field"]:
        assert field["@id"] == f"questions/{field['name']}"
        assert field["dataType"] in ("sc:Text", "sc:Boolean")


def test_what_is_said_of_responsible_ai_has_the_names_and_numbers_of_the_specification(project: Path) -> None:
    description = {name.removeprefix("rai:"): value for name, value in described().items() if name.startswith("rai:")}
    assert len(description) > 8
    for name, value in description.items():
        assert isinstance(value, str) or (RAI_1_0[name] == "MANY" and all(isinstance(text, str) and text for text in value)), name


def test_the_table_is_named_with_its_digest_and_pictures_without_their_cases(project: Path) -> None:
    table, pictures = described()["distribution"]
    assert table["contentUrl"] == "data/items/demo.parquet"
    assert table["sha256"] == sha256_of(project / "data" / "items" / "demo.parquet")
    assert pictures["includes"] == ["data/slices/demo/sub-*/png/*.png"]


def test_a_description_holds_no_answer_no_value_and_no_place_of_the_machine(project: Path) -> None:
    text = json.dumps(described(), ensure_ascii=False)
    first, second = asked()
    values = [first.notes, first.record, first.question, second.given, second.date, second.turns[0].reveal, PICTURE.image_id]
    for value in [*values, *(row.case_id for row in asked()), *(row.patient_id for row in asked()), str(project), str(ROOT), "gold"]:
        assert value not in text, value


@pytest.mark.parametrize("name", ["demo", "demo-slices"])
def test_no_shipped_card_names_an_answer_of_the_demo(name: str) -> None:
    patients = [yaml.safe_load(path.read_text(encoding="utf-8")) for path in (ROOT / "scripts/neuralmedbench/demo/patients").glob("*.yaml")]
    words = {str(patient["diagnosis"]).lower() for patient in patients if "diagnosis" in patient}
    assert len(words) >= 8
    text = json.dumps([form.model_dump() for form in read_card(ROOT / "config", name).forms]).lower()
    assert [word for word in sorted(words) if word in text] == []


def test_what_nobody_stated_is_left_out_and_told(project: Path) -> None:
    description = described()
    assert missing_properties(description) == ["license", "url", "datePublished"]
    assert description["inLanguage"] == ["en", "fr"]
    assert None not in description.values()


def test_a_site_states_the_rest_in_its_card(project: Path) -> None:
    path = project / "config" / "cards" / "demo.yaml"
    card = yaml.safe_load(path.read_text(encoding="utf-8"))
    card["croissant"] |= {
        "url": "https://example.org/set",
        "files_url": "https://example.org/files/",
        "license": "https://spdx.org/licenses/CC-BY-4.0.html",
        "date_published": "2026-01-31",
    }
    path.write_text(yaml.safe_dump(card), encoding="utf-8")
    description = described()
    assert missing_properties(description) == []
    assert set(REQUIRED) <= description.keys()
    assert description["distribution"][0]["contentUrl"] == "https://example.org/files/data/items/demo.parquet"


def test_the_command_writes_equal_bytes_and_refuses_a_private_benchmark(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["--benchmark", "demo", "--items", "data/items/demo.parquet", "--out"]
    for name in ("one.json", "two.json"):
        assert describe_benchmark.main([*arguments, name]) == 0
    assert Path("one.json").read_bytes() == Path("two.json").read_bytes()
    assert "not stated: license, url, datePublished" in capsys.readouterr().err
    path = project / "config" / "benchmarks" / "demo.yaml"
    path.write_text(path.read_text(encoding="utf-8").replace("private: false", "private: true"), encoding="utf-8")
    with pytest.raises(ConfigError, match="demo: private, so no description of it is written"):
        describe_benchmark.main([*arguments, "three.json"])
    assert not Path("three.json").exists()


def test_the_demo_has_the_version_of_the_pipeline() -> None:
    version = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))["version"]
    known = read_card(ROOT / "config", "demo").croissant
    assert known.version == version
    assert version in (known.cite_as or "")
