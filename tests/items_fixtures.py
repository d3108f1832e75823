"""Small cases, pictures and tables for the tests of items and prompts."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

from neuralmedbench.benchmarks.answers import AnswerRow
from neuralmedbench.benchmarks.built import Built
from neuralmedbench.benchmarks.neurovlm import read_table
from neuralmedbench.benchmarks.questions import build_questions
from neuralmedbench.benchmarks.sources import Source
from neuralmedbench.config.benchmark import BenchmarkConfig
from neuralmedbench.records.case import CaseRecord, PictureFate, PictureManifest, SliceRow, State, Tile
from neuralmedbench.records.items import Axis, Kind, Level
from neuralmedbench.records.vocabulary import Diagnosis, Vocabulary

VOCABULARY = Vocabulary(
    version="1",
    digest="0" * 64,
    diagnoses={
        "stroke": Diagnosis(
            key="stroke", name="acute ischaemic stroke", icd10=("I63.9",), synonyms=("brain infarction",), classes="stroke"
        ),
        "tumour": Diagnosis(key="tumour", name="glioblastoma", icd10=("C71.9",), abbreviations=("GBM",), classes="tumor"),
        "normal": Diagnosis(key="normal", name="normal brain", icd10=("Z00.0",), synonyms=("normal",), classes="normal"),
    },
    locations={"insula": ("insular cortex",), "frontal lobe": ("frontal",)},
)


def benchmark_config(**changes: object) -> BenchmarkConfig:
    """Give a benchmark of scans."""
    base: dict[str, object] = {"title": "T", "kind": Kind.SCANS, "axis": Axis.DEPTH, "source": "phantoms"}
    return BenchmarkConfig.model_validate({**base, **changes})


def slice_row(case: str, position: int, sequence: str = "FLAIR", **changes: object) -> SliceRow:
    """Give one picture of a case; slices are 5 mm apart."""
    values: dict[str, object] = {
        "benchmark": "b",
        "case_id": case,
        "patient_id": f"p-{case}",
        "image_id": f"{sequence.lower()}-z{position:+04d}",
        "path": f"data/slices/b/sub-{case}/png/{sequence}{position}.png",
        "sha256": f"{case}-{sequence}-{position}",
        "pixels_sha256": f"pixels-{case}-{sequence}-{position}",
        "volume_sha256": f"volume-{case}-{sequence}",
        "sequence": sequence,
        "plane": "axial",
        "index": position // 5 + 20,
        "position_mm": float(position),
        "native_mm_per_px": (1.0, 1.0),
        "mm_per_px": 1.0,
        "window": (0.0, 400.0),
        "window_name": "own",
        "resampled": False,
        "side_marked": False,
        "oracle": False,
    }
    values["tiles"] = (Tile(index=position // 5 + 20, position_mm=float(position)),)
    return SliceRow(**{**values, **changes})


def source(case: str, *, notes: tuple[str, ...] = ("Sudden weakness of the right arm.",), record: str = "Sodium: 138 mmol/L") -> Source:
    """Give one case with four pictures."""
    images = tuple(slice_row(case, position, sequence) for sequence in ("FLAIR", "dwi") for position in (-10, 20))
    return Source(
        case=CaseRecord(benchmark="b", case_id=case, patient_id=f"p-{case}", stage="deidentify"), images=images, notes=notes, record=record
    )


def answer(case: str, **changes: object) -> AnswerRow:
    """Give the row of a patient with a stroke."""
    values: dict[str, object] = {
        "case_id": case,
        "diagnosis": "brain infarction",
        "findings": ("Bright area in the left insula on FLAIR", "Dark area on the ADC map"),
        "findings_complete": True,
        "lesion_location": "insular cortex",
        "lesion_side": "left",
        "lesion_behaviour": {"FLAIR": "hyperintense", "dwi": "restricted"},
        "lesion_size_mm": 20.0,
        "lesion_position_mm": (30.0, 0.0, 15.0),
        "differentials": ("GBM",),
        "rationale": ("Sudden onset",),
        "must_not": ("the lesion is a tumour",),
        "level": Level.DIRECT,
    }
    return AnswerRow(**{**values, **changes})


def write_csv(path: Path, *lines: str) -> Path:
    """Write lines to a file."""
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def pictures(tmp_path: Path, *rows: str, policy: str = "none", quarantined: Collection[int] = ()) -> Built:
    """Build the items of single pictures from the rows of a table; `quarantined` are row numbers from 1."""
    header = "dataset,file_path,class,original_class,subclass,modality,modality_subtype,plane"
    table = write_csv(tmp_path / "images.csv", header, *rows)
    config = benchmark_config(kind="pictures", axis="breadth", answers=str(table), label_policy=policy)
    fates = tuple(
        PictureFate(
            image_id=f"img-{n:06d}",
            path=f"pictures/img-{n:06d}.png",
            sha256=f"s{n}",
            state=State.QUARANTINED if n in quarantined else State.OK,
        )
        for n in range(1, len(rows) + 1)
    )
    manifest = PictureManifest(benchmark="b", stage="deidentify", source_sha256="x", pictures=fates)
    return build_questions("b", config, read_table(config, "b"), manifest, tmp_path)
