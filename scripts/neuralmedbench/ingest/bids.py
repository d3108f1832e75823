"""Scans named as BIDS names them: entities, suffix, and what lies in folders that hold no raw scans."""

from __future__ import annotations

import csv
import re
from pathlib import Path, PurePosixPath

from neuralmedbench.ingest.sequences import CONTRAST_OF, CONTRAST_UNCLEAR, DISAGREE, Physics, SequenceLabel, sequence_by_physics
from neuralmedbench.records.case import Sequence

NAME = re.compile(r"sub-[A-Za-z0-9+]+(?:_[A-Za-z0-9]+-[A-Za-z0-9+]+)*_([A-Za-z0-9]+)")
SUFFIXES = {
    "T1w": Sequence.T1W, "T2w": Sequence.T2W, "FLAIR": Sequence.FLAIR, "PDw": Sequence.PDW, "T2starw": Sequence.T2STARW,
    "swi": Sequence.SWI, "dwi": Sequence.DWI, "ADC": Sequence.ADC, "adc": Sequence.ADC, "trace": Sequence.DWI, "ct": Sequence.CT,
    "CT": Sequence.CT, "UNIT1": Sequence.T1W,
}  # fmt: skip
NO_SCAN_OF_OURS = frozenset({
    "bold", "cbv", "sbref", "asl", "m0scan", "epi", "magnitude", "magnitude1", "magnitude2", "phase", "phase1", "phase2", "phasediff",
    "fieldmap", "angio", "T1map", "T2map", "T2starmap", "R1map", "R2map", "PDmap", "MTRmap", "MTsat", "Chimap", "minIP", "MP2RAGE", "VFA",
    "MESE", "MEGRE", "IRT1", "MPM", "MTS", "MTR", "TB1map", "TB1TFL", "RB1map", "pet", "svs", "mrsi", "unloc", "mrsref", "FLASH", "PDT2",
    "inplaneT1", "inplaneT2", "defacemask", "T2star", "FA", "MD", "colFA",
})  # fmt: skip
"""Suffixes of BIDS for what is no structural scan, or is of several kinds."""
ENTITIES_OF_MAPS = {"part": {"phase", "real", "imag"}, "inv": set("12345"), "mt": {"on"}, "rec": {"mip", "minip"}}
OTHER_FOLDERS = {
    "derivatives": "derived data (derivatives of a BIDS data set)",
    "sourcedata": "source data of a BIDS data set, which holds the same scans",
    "code": "code of a BIDS data set",
    "stimuli": "stimuli of a BIDS data set",
    "phenotype": "tables of a BIDS data set",
}
"""Folders of a BIDS data set that hold no raw scans."""
MARKER = "dataset_description.json"


def entities_of(name: str) -> dict[str, str]:
    """Entities of a BIDS name.

    Examples
    --------
    >>> entities_of("sub-01_ses-2_ce-gadolinium_T1w")
    {'sub': '01', 'ses': '2', 'ce': 'gadolinium'}
    """
    return dict(part.split("-", 1) for part in name.split("_") if "-" in part)


def is_bids(name: str) -> bool:
    """Whether a file name without suffix is one that BIDS could give."""
    return NAME.fullmatch(name) is not None


def applies_to(sidecar: str, scan: str) -> bool:
    """Whether a sidecar or gradients of one name say something about a scan of another (BIDS' inheritance principle).

    Both are file names without suffixes; where they lie is not asked.

    Examples
    --------
    >>> applies_to("T1w", "sub-01_T1w"), applies_to("acq-fast_T1w", "sub-01_T1w"), applies_to("sub-01_T1w", "sub-01_acq-fast_T1w")
    (True, False, True)
    """
    return (
        is_bids(scan)
        and sidecar.rsplit("_", maxsplit=1)[-1] == scan.rsplit("_", maxsplit=1)[-1]
        and entities_of(sidecar).items() <= entities_of(scan).items()
    )


def subject_and_session(name: str) -> tuple[str, str]:
    """Give `sub-x` and, when the name has one, `sub-x/ses-y` (else `sub-x` again): patient and study of a file."""
    entities = entities_of(name)
    subject = f"sub-{entities['sub']}"
    return subject, f"{subject}/ses-{entities['ses']}" if entities.get("ses") else subject


def label_bids(name: str, modality: str, physics: Physics) -> SequenceLabel | None:
    """Kind of a scan by its BIDS name, checked against its sidecar's timing; None when it is no BIDS name or its suffix is unknown.

    `modality`: `MR` or `CT` by the voxels.

    The suffix tells the kind and the entity `ce` the agent; free words (`acq-`, `desc-`) do not change the kind, but words for contrast in
    them without `ce` are flagged.
    """
    matched = NAME.fullmatch(name)
    if matched is None:
        return None
    entities = entities_of(name)
    if matched[1] in NO_SCAN_OF_OURS or any(entities.get(key) in values for key, values in ENTITIES_OF_MAPS.items()):
        return SequenceLabel(Sequence.UNKNOWN)
    kind = SUFFIXES.get(matched[1])
    if kind is None:
        return None
    agent = entities.get("ce", "none").lower() not in {"none", "no"}
    flags: list[str] = []
    free = " ".join(entities.get(key, "") for key in ("acq", "desc", "rec"))
    if kind in {Sequence.T1W, Sequence.CT} and not agent and re.search(r"(?i)post|gad|contrast|enh|(?:^|\W)ce(?:$|\W)", free):
        flags.append(CONTRAST_UNCLEAR)
    made = sequence_by_physics(physics)
    if made is not None and made is not kind and kind in {Sequence.T1W, Sequence.T2W, Sequence.FLAIR, Sequence.PDW}:
        flags.append(DISAGREE)
    if (modality == "CT") != (kind is Sequence.CT) and DISAGREE not in flags:
        flags.append(DISAGREE)
    return SequenceLabel(CONTRAST_OF.get(kind, kind) if agent else kind, tuple(flags))


def other_folder(place: PurePosixPath, roots: set[PurePosixPath]) -> str:
    """Why a file of a BIDS data set is no raw scan, by the folder that it lies in; empty when it may be one.

    `roots`: folders that hold a `dataset_description.json`.
    """
    for folder in place.parents:
        if folder.name in OTHER_FOLDERS and folder.parent in roots:
            return OTHER_FOLDERS[folder.name]
    return ""


def read_participants(root: Path) -> dict[str, dict[str, str]]:
    """Ages and sexes of `participants.tsv`, by subject (`sub-x`); nothing where there is no such table or it cannot be read."""
    try:
        with (root / "participants.tsv").open(encoding="utf-8-sig", newline="") as file:
            rows = list(csv.DictReader(file, delimiter="\t"))
    except (OSError, UnicodeDecodeError, csv.Error):
        return {}
    return {
        row["participant_id"]: {key: row[key].strip() for key in ("age", "sex") if (row.get(key) or "n/a").strip() not in {"", "n/a"}}
        for row in rows
        if row.get("participant_id")
    }
