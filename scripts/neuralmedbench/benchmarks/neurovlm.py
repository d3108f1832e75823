"""NeuroVLM-Bench: one picture, one structured answer."""

from __future__ import annotations

import csv
import hashlib
import json
from pathlib import Path, PurePosixPath

from neuralmedbench.benchmarks.built import Built
from neuralmedbench.config.models import BenchmarkConfig
from neuralmedbench.errors import ConfigError, DataError
from neuralmedbench.records.case import PictureFate, PictureManifest, State
from neuralmedbench.records.columns import PICTURE_COLUMNS
from neuralmedbench.records.items import Family, Gold, GoldFields, Item, ItemImage, Level, Runner

CLASSES = ("tumor", "stroke", "multiple sclerosis", "other abnormalities", "normal")
MODALITIES = ("MRI", "CT")
SEQUENCES = ("T1", "T1C+", "T2", "FLAIR", "DWI", "ADC", "SWI")
PLANES = ("axial", "sagittal", "coronal")
STROKES = ("ischemic", "hemorrhagic")
TUMORS = (
    "glioma",
    "meningioma",
    "pituitary tumor",
    "schwannoma",
    "neurocytoma",
    "carcinoma",
    "papilloma",
    "tuberculoma",
    "medulloblastoma",
    "germinoma",
    "granuloma",
)
FIELDS: dict[str, tuple[str, ...]] = {
    "modality": MODALITIES,
    "sequence": SEQUENCES,
    "plane": PLANES,
    "class": CLASSES,
    "subtype": (*STROKES, *TUMORS),
}
"""The fields of an answer and their labels; a label that is not among them is out of vocabulary."""

SPELLINGS = {
    "mr": "MRI",
    "t1w": "T1",
    "cet1w": "T1C+",
    "t1c": "T1C+",
    "t1 c+": "T1C+",
    "t2w": "T2",
    "tumors": "tumor",
    "tumour": "tumor",
    "brain tumor": "tumor",
    "ms": "multiple sclerosis",
    "sclerosis": "multiple sclerosis",
    "other": "other abnormalities",
    "ischaemic": "ischemic",
    "haemorrhagic": "hemorrhagic",
    "pituitary": "pituitary tumor",
    "neurocitoma": "neurocytoma",
    "meduloblastoma": "medulloblastoma",
    "papiloma": "papilloma",
}
"""Other spellings in the data set's own table (three tumours are spelled in Portuguese) and in ours."""

ABSENT = frozenset({"", "null", "none", "nan", "n/a"})

QUESTION = "Describe this picture: its modality, sequence and plane, the class of what it shows, and the subtype."


def answer_schema() -> str:
    """JSON schema of an answer: five labels, each may be null, and a confidence."""
    properties: dict[str, object] = {name: {"enum": [*labels, None]} for name, labels in FIELDS.items()}
    properties["confidence"] = {"type": ["number", "null"], "minimum": 0, "maximum": 1}
    schema = {"type": "object", "properties": properties, "required": list(properties), "additionalProperties": False}
    return json.dumps(schema)


def build_pictures(benchmark: str, config: BenchmarkConfig, manifest: PictureManifest, folder: Path) -> Built:
    """Build the items of a benchmark of single pictures.

    Parameters
    ----------
    benchmark : str
        Its name.
    config : BenchmarkConfig
        Its yaml; `answers` is the data set's own table with the columns `PICTURE_COLUMNS`, which may have `patient_id` and
        `case_id` beside them.
    manifest : PictureManifest
        The de-identified pictures; `img-000001` is the first row of the table.
    folder : Path
        Folder of the manifest, relative to the repository.

    Returns
    -------
    Built
        One item and one gold row a picture that was not quarantined.

    Raises
    ------
    ConfigError
        If pictures are labelled (a label would give two of the five fields away), or there is no table, or it lacks a
        column.
    DataError
        If a picture has no row, or a label is not one of the data set's.
    """
    if config.label_policy != "none":
        message = f"{benchmark}: labels would give sequence and plane away, which are asked for; set label_policy: none"
        raise ConfigError(message)
    if config.answers is None:
        message = f"{benchmark}: the adapter neurovlm needs the data set's table; set `answers` in the benchmark's yaml"
        raise ConfigError(message)
    table = Path(config.answers)
    rows = _rows(table)
    used = [picture for picture in manifest.pictures if picture.state is State.OK]
    items, gold = [], []
    for picture in used:
        number, row = _row_of(picture, rows, table)
        items.append(_item(benchmark, config, picture, row, folder))
        gold.append(_gold(items[-1].item_id, f"{table.name}, row {number}", row))
    return Built(tuple(items), tuple(gold)).checked(benchmark)


def _rows(table: Path) -> list[dict[str, str]]:
    try:
        with table.open(encoding="utf-8-sig", newline="") as file:
            reader = csv.DictReader(file)
            rows = list(reader)
    except FileNotFoundError:
        message = f"{table.as_posix()}: the table of the pictures is not there; correct `answers` in the benchmark's yaml"
        raise ConfigError(message) from None
    if missing := [column for column in PICTURE_COLUMNS if column not in (reader.fieldnames or ())]:
        message = f"{table.name}: the column {missing[0]!r} is missing; expected {', '.join(PICTURE_COLUMNS)}"
        raise ConfigError(message)
    return rows


def _row_of(picture: PictureFate, rows: list[dict[str, str]], table: Path) -> tuple[int, dict[str, str]]:
    number = int(picture.image_id.removeprefix("img-"))
    if not 1 <= number <= len(rows):
        message = f"{table.name}: it has {len(rows)} rows, picture {picture.image_id} has none; run ingest again"
        raise DataError(message)
    return number, rows[number - 1]


def _item(benchmark: str, config: BenchmarkConfig, picture: PictureFate, row: dict[str, str], folder: Path) -> Item:
    image = ItemImage(
        image_id=picture.image_id,
        path=(folder / picture.path).as_posix(),
        sha256=picture.sha256,
        volume_sha256=picture.sha256,
        sequence="unknown",
        plane="",
        role="picture",
        position_mm=None,
        mm_per_px=None,
        oracle=False,
    )
    return Item(
        item_id=f"{benchmark}/{picture.image_id}",
        case_id=row.get("case_id") or picture.image_id,
        patient_id=_patient(row) or picture.image_id,
        benchmark=benchmark,
        axis=config.axis,
        family=Family.CLASSIFICATION,
        level=Level.NONE,
        runner=Runner.STRUCTURED,
        question=QUESTION,
        images=(image,),
        label_policy=config.label_policy,
        tags=(f"dataset:{row['dataset']}",),
        answer_schema=answer_schema(),
    )


def _gold(item_id: str, where: str, row: dict[str, str]) -> Gold:
    fields = GoldFields(
        modality=_label(where, "modality", row["modality"]),
        sequence=_label(where, "sequence", row["modality_subtype"]),
        plane=_label(where, "plane", row["plane"]),
        diagnosis_class=_label(where, "class", row["class"]),
        subtype=_label(where, "subtype", row["subclass"]),
    )
    return Gold(item_id=item_id, answer=fields.diagnosis_class or "", fields=fields, established="label of the data set")


def _patient(row: dict[str, str]) -> str:
    """Patient of a row: ours has a column; of the public sets only AISD names patients, by the folder of the file."""
    folder = PurePosixPath(row["file_path"]).parent.name
    if not row.get("patient_id") and row["dataset"].lower() == "aisd" and folder:
        return hashlib.sha256(f"aisd/{folder}".encode()).hexdigest()[:12]
    return row.get("patient_id") or ""


def _label(where: str, field: str, text: str) -> str | None:
    word = " ".join((text or "").strip().lower().replace("_", " ").split())
    if word in ABSENT or (field, word) == ("sequence", "ct"):  # a CT has no sequence
        return None
    known = {label.lower(): label for label in FIELDS[field]}
    label = known.get(SPELLINGS.get(word, word).lower())
    if label is None:
        message = f"{where}: the {field} is none of {', '.join(FIELDS[field])}; correct the cell or leave it empty"
        raise DataError(message)
    return label
