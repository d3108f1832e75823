"""Croissant description of a benchmark: files, columns and how it was made; never an answer or a value."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from neuralmedbench.cards.card import BenchmarkCard, Rai
from neuralmedbench.config.benchmark import BenchmarkConfig
from neuralmedbench.errors import ConfigError
from neuralmedbench.files.digests import sha256_of
from neuralmedbench.records.items import Item

CONTEXT: dict[str, Any] = {
    "@language": "en",
    "@vocab": "https://schema.org/",
    "arrayShape": "cr:arrayShape",
    "citeAs": "cr:citeAs",
    "column": "cr:column",
    "conformsTo": "dct:conformsTo",
    "containedIn": "cr:containedIn",
    "cr": "http://mlcommons.org/croissant/",
    "data": {"@id": "cr:data", "@type": "@json"},
    "dataType": {"@id": "cr:dataType", "@type": "@vocab"},
    "dct": "http://purl.org/dc/terms/",
    "description": {"@container": "@language"},
    "equivalentProperty": "cr:equivalentProperty",
    "examples": {"@id": "cr:examples", "@type": "@json"},
    "extract": "cr:extract",
    "field": "cr:field",
    "fileObject": "cr:fileObject",
    "fileProperty": "cr:fileProperty",
    "fileSet": "cr:fileSet",
    "format": "cr:format",
    "includes": "cr:includes",
    "isArray": "cr:isArray",
    "isLiveDataset": "cr:isLiveDataset",
    "jsonPath": "cr:jsonPath",
    "key": "cr:key",
    "md5": "cr:md5",
    "name": {"@container": "@language"},
    "parentField": "cr:parentField",
    "path": "cr:path",
    "rai": "http://mlcommons.org/croissant/RAI/",
    "recordSet": "cr:recordSet",
    "references": "cr:references",
    "regex": "cr:regex",
    "repeated": "cr:repeated",
    "replace": "cr:replace",
    "samplingRate": "cr:samplingRate",
    "sc": "https://schema.org/",
    "separator": "cr:separator",
    "source": "cr:source",
    "subField": "cr:subField",
    "transform": "cr:transform",
}
"""JSON-LD context of Croissant 1.1 with the responsible-AI vocabulary, exactly as the package mlcroissant 1.1.1 expects it."""

CONFORMS = ["http://mlcommons.org/croissant/1.1", "http://mlcommons.org/croissant/RAI/1.0"]
REQUIRED = ("description", "license", "name", "url", "creator", "datePublished")
"""Properties that the specification requires of a data set, besides context, type and conformance."""

MANY: tuple[Rai, ...] = (
    "dataPreprocessingProtocol",
    "dataAnnotationAnalysis",
    "annotatorDemographics",
    "personalSensitiveInformation",
    "dataBiases",
    "dataLimitations",
    "dataUseCases",
)
"""Responsible-AI properties with several values; the texts of all others are joined (specification 1.0; mlcroissant reads only one plan)."""


@dataclass(frozen=True)
class Column:
    """A field of the question table: source column, description, type, whether it is a list, and its key in a list of structs."""

    of: str
    about: str
    kind: str = "Text"
    is_array: bool = False
    key: str = ""


COLUMNS: dict[str, Column] = {
    "item_id": Column("item_id", "Name of the question."),
    "case_id": Column("case_id", "Pseudonym of the case."),
    "patient_id": Column("patient_id", "Pseudonym of the patient: the cluster of every statistic."),
    "benchmark": Column("benchmark", "Name of the benchmark."),
    "axis": Column("axis", "depth, breadth or control."),
    "family": Column("family", "Family of the task."),
    "level": Column("level", "direct, complex, dialogue or none."),
    "runner": Column("runner", "How it is asked: choice, open, dialogue or structured."),
    "question": Column("question", "What is asked."),
    "turn_reveals": Column("turns", "What each round of a dialogue reveals.", is_array=True, key="reveal"),
    "turn_questions": Column("turns", "What each round of a dialogue asks.", is_array=True, key="question"),
    "options": Column("options", "Options of a choice, in the order of their letters.", is_array=True),
    "rivals": Column("rivals", "Diagnoses that an open question is also asked among, the reference one of them.", is_array=True),
    "image_ids": Column("images", "Pictures of the question, in the order in which they are shown.", is_array=True, key="image_id"),
    "image_paths": Column("images", "Files of these pictures.", is_array=True, key="path"),
    "image_sha256": Column("images", "SHA-256 of these files.", is_array=True, key="sha256"),
    "image_sequences": Column("images", "Sequence of each picture.", is_array=True, key="sequence"),
    "image_planes": Column("images", "Plane of each picture.", is_array=True, key="plane"),
    "label_policy": Column("label_policy", "Whether pictures are labelled with sequence, plane and position."),
    "lesion_shown": Column(
        "lesion_shown", "Whether a slice through the lesion is among the pictures, where that is known.", kind="Boolean"
    ),
    "notes": Column("notes", "De-identified notes that are shown."),
    "record": Column("record", "De-identified health record that is shown."),
    "given": Column("given", "A diagnosis that the question takes for granted."),
    "language": Column("language", "Language of the question."),
    "date": Column("date", "Date of the question, where it has one."),
    "pair_id": Column("pair_id", "Questions that are scored as a pair carry the same one."),
    "tags": Column("tags", "What a table may group by.", is_array=True),
    "answer_schema": Column("answer_schema", "JSON schema of a structured answer."),
}
"""Fields of the description, by name, from the columns of `data/items/<benchmark>.parquet`."""


def describe(benchmark: str, config: BenchmarkConfig, card: BenchmarkCard, items: Sequence[Item], table: Path) -> dict[str, Any]:
    """Write the description of a benchmark that may be shared.

    Parameters
    ----------
    benchmark : str
        Its name.
    config : BenchmarkConfig
        Its configuration.
    card : BenchmarkCard
        Its card.
    items : sequence of Item
        Its questions; only counts, languages and picture folders enter the description.
    table : Path
        Table of the questions, relative to the project.

    Returns
    -------
    dict
        JSON-LD by the specifications Croissant 1.1 (docs.mlcommons.org/croissant/docs/croissant-spec-1.1.html) and Croissant RAI 1.0
        (docs.mlcommons.org/croissant/docs/croissant-rai-spec.html); without properties that nobody stated.

    Raises
    ------
    ConfigError
        If the benchmark is private.
    """
    if config.private:
        message = f"{benchmark}: private, so no description of it is written; set `private: false` in its yaml if it may be shared"
        raise ConfigError(message)
    known = card.croissant
    # text benchmarks have no pictures
    pictures = _picture_globs(items)
    description: dict[str, Any] = {
        "@context": CONTEXT,
        "@type": "sc:Dataset",
        "conformsTo": CONFORMS,
        "name": config.title,
        "description": _description(config, card, items),
        "url": known.url,
        "license": known.license,
        "creator": [{"@type": f"sc:{creator.kind.capitalize()}", "name": creator.name} for creator in known.creators],
        "datePublished": known.date_published,
        "version": known.version,
        "citeAs": known.cite_as,
        "keywords": list(known.keywords),
        "inLanguage": sorted({item.language for item in items}),
        **{f"rai:{name}": texts if name in MANY else " ".join(texts) for name, texts in sorted(card.rai.items())},
        "distribution": [_table_file(table, known.files_url), *([_picture_files(pictures)] if pictures else [])],
        "recordSet": [_record_set()],
    }
    # properties that nobody stated are left out
    return {name: value for name, value in description.items() if value not in (None, [], "")}


def missing_properties(description: dict[str, Any]) -> list[str]:
    """Return the required properties that a description lacks, in the order of the specification."""
    return [name for name in REQUIRED if name not in description]


def _description(config: BenchmarkConfig, card: BenchmarkCard, items: Sequence[Item]) -> str:
    notes = {item.id: item.note for form in card.forms for item in form.items if item.answer == "yes"}
    count = f"{len(items)} questions on {len({item.case_id for item in items})} cases."
    return " ".join(
        text
        for text in (f"{config.title}.", notes.get("construct", ""), count, "Right answers are kept apart and are not described here.")
        if text
    )


def _picture_globs(items: Sequence[Item]) -> list[str]:
    """Return glob patterns of the picture files; case folders become one pattern, so that no case is named."""
    paths = {image.path for item in items for image in item.images}
    return sorted({re.sub(r"/sub-[^/]+/", "/sub-*/", str(Path(path).with_name(f"*{Path(path).suffix}").as_posix())) for path in paths})


def _table_file(table: Path, files_url: str | None) -> dict[str, Any]:
    name = table.as_posix()
    return {
        "@type": "cr:FileObject",
        "@id": "questions-table",
        "name": table.name,
        "description": "One question a row.",
        "contentUrl": f"{files_url.rstrip('/')}/{name}" if files_url else name,
        "contentSize": f"{table.stat().st_size} B",
        "encodingFormat": "application/x-parquet",
        "sha256": sha256_of(table),
    }


def _picture_files(globs: list[str]) -> dict[str, Any]:
    # the files are not in an archive, so there is no `containedIn`
    return {
        "@type": "cr:FileSet",
        "@id": "pictures",
        "name": "pictures",
        "description": "The pictures that the questions show; the table of questions holds the SHA-256 of each.",
        "encodingFormat": "image/png",
        "includes": globs,
    }


def _record_set() -> dict[str, Any]:
    return {
        "@type": "cr:RecordSet",
        "@id": "questions",
        "name": "questions",
        "description": "What models are asked.",
        "key": {"@id": "questions/item_id"},
        "field": [_field(name, column) for name, column in COLUMNS.items()],
    }


def _field(name: str, column: Column) -> dict[str, Any]:
    source: dict[str, Any] = {"fileObject": {"@id": "questions-table"}, "extract": {"column": column.of}}
    field: dict[str, Any] = {
        "@type": "cr:Field",
        "@id": f"questions/{name}",
        "name": name,
        "description": column.about,
        "dataType": f"sc:{column.kind}",
        "source": source | ({"transform": {"jsonPath": column.key}} if column.key else {}),
    }
    # -1: any length
    return field | ({"isArray": True, "arrayShape": "-1"} if column.is_array else {})
