"""Own cases whose pictures are not scans: pictures, notes and record without identity."""

from __future__ import annotations

import shutil
from collections import Counter
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from neuralmedbench.deid.burned_in.hide import PicturePolicy, checks_told
from neuralmedbench.deid.leaks import count_leaks
from neuralmedbench.deid.pictures import deidentify_pictures
from neuralmedbench.deid.review.pieces import write_tools_piece
from neuralmedbench.deid.stage import rules_of
from neuralmedbench.deid.texts import TextRules, clean_texts
from neuralmedbench.deid.values import parse_day
from neuralmedbench.errors import DataError, DeidentificationError
from neuralmedbench.files.cases import read_case, run_case_stage
from neuralmedbench.files.identity import read_identity
from neuralmedbench.files.picture_cases import count_pictures, picture_manifest
from neuralmedbench.records.case import CaseRecord, PictureManifest, State


@dataclass(frozen=True, kw_only=True)
class CaseRules:
    """Under which rules the cases of a benchmark are cleaned; the attributes are those of the keys and options in `deidentify_case`."""

    key: bytes
    profile: str
    options: tuple[str, ...]
    texts: TextRules
    burned_in: PicturePolicy = "hide"
    subjects: str = "patient"


def deidentify_picture_cases(manifest: PictureManifest, source: Path, out: Path, rules: CaseRules) -> PictureManifest:
    """De-identify every case of a manifest.

    Parameters
    ----------
    manifest : PictureManifest
        The ingested pictures.
    source, out : Path
        Folder that holds them with `sub-<case>/case.json`, and folder to fill; what it held of cases before is removed.
    rules : CaseRules
        How.

    Returns
    -------
    PictureManifest
        Every picture; a case whose texts or pictures cannot be cleaned is kept back whole, a single picture alone where others are left.
    """
    for old in out.glob("sub-*"):
        shutil.rmtree(old)
    cases: list[CaseRecord] = []
    for case_id in sorted(manifest.cases):
        before, after = (folder / f"sub-{case_id}" for folder in (source, out))
        run_case_stage("deidentify", before / "case.json", after / "case.json", partial(_clean, out=after, rules=rules))
        case = read_case(after / "case.json")
        cases.append(case)
    return picture_manifest(manifest.benchmark, "deidentify", out, cases)


def _clean(case: CaseRecord, source: Path, out: Path, rules: CaseRules) -> CaseRecord:
    """Clean one case; nothing is left in `out` when it cannot be."""
    try:
        identity = read_identity(source / "identity.json")
        headers = rules_of(case.patient_id, identity, rules.key, rules.profile, rules.options)
        pictures = PictureManifest(benchmark=case.benchmark, stage="ingest", source_sha256="", pictures=case.pictures)
        clean = deidentify_pictures(pictures, source, "", out, burned_in=rules.burned_in, subjects=rules.subjects)
        if all(picture.state is not State.OK for picture in clean.pictures):
            message = f"no usable picture among {len(clean.pictures)}: {clean.pictures[0].reason}"
            raise DataError(message)
        checks = Counter(clean.checks)
        write_tools_piece(out)
        notes, record = clean_texts(case, source, out, headers, parse_day(identity.scan_date), checks=checks, texts=rules.texts)
        checks["notes_without_known_names"] += len(notes)  # no picture has a header: who the patient is called, nobody says for sure
        if leaks := count_leaks(out, identity):
            message = f"{leaks} identifying values are left after cleaning: the case is kept back; report the kind of file, never the value"
            raise DeidentificationError(message)
    except (DataError, DeidentificationError):
        shutil.rmtree(out, ignore_errors=True)
        raise
    counts = {**checks_told(checks, rules.subjects), "leaks": 0}
    return replace(case, pictures=clean.pictures, raw_files=count_pictures(clean.pictures), notes=notes, record=record, checks=counts)
