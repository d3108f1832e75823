"""BIDS names and data sets: entities, suffixes, inheritance of sidecars, folders without raw scans, participants."""

from __future__ import annotations

import csv
import re
from pathlib import Path, PurePosixPath

from neuralmedbench.ingest.sequences import CONTRAST_OF, CONTRAST_UNCLEAR, DISAGREE, Physics, SequenceLabel, sequence_by_physics
from neuralmedbench.records.case import NoHead, Sequence

NAME = re.compile(r"sub-[A-Za-z0-9+]+(?:_[A-Za-z0-9]+-[A-Za-z0-9+]+)*_([A-Za-z0-9]+)")
SUFFIXES = {
    "T1w": Sequence.T1W, "T2w": Sequence.T2W, "FLAIR": Sequence.FLAIR, "PDw": Sequence.PDW, "T2starw": Sequence.T2STARW,
    "swi": Sequence.SWI, "dwi": Sequence.DWI, "ADC": Sequence.ADC, "adc": Sequence.ADC, "trace": Sequence.DWI, "ct": Sequence.CT,
    "CT": Sequence.CT, "UNIT1": Sequence.T1W, "angio": Sequence.ANGIO,
}  # fmt: skip
NOT_STRUCTURAL = frozenset({
    "bold", "cbv", "sbref", "asl", "m0scan", "epi", "magnitude", "magnitude1", "magnitude2", "phase", "phase1", "phase2", "phasediff",
    "fieldmap", "T1map", "T2map", "T2starmap", "R1map", "R2map", "PDmap", "MTRmap", "MTsat", "Chimap", "minIP", "MP2RAGE", "VFA",
    "MESE", "MEGRE", "IRT1", "MPM", "MTS", "MTR", "TB1map", "TB1TFL", "RB1map", "pet", "svs", "mrsi", "unloc", "mrsref", "FLASH", "PDT2",
    "inplaneT1", "inplaneT2", "defacemask", "T2star", "FA", "MD", "colFA",
})  # fmt: skip
"""BIDS suffixes of images that are not structural scans, or may be of several kinds."""
NAMED = {
    NoHead.FIELD_MAP: {"epi", "magnitude", "magnitude1", "magnitude2", "phase1", "phase2", "phasediff", "fieldmap"},
    NoHead.FUNCTIONAL: {"bold", "cbv", "sbref"},
    NoHead.PERFUSION: {"asl", "m0scan"},
}
ENTITIES_OF_MAPS = {"part": {"phase", "real", "imag"}, "inv": set("12345"), "mt": {"on"}, "rec": {"mip", "minip"}}
OTHER_FOLDERS = {
    "derivatives": "derived data (derivatives of a BIDS data set)",
    "sourcedata": "source data of a BIDS data set, which holds the same scans",
    "code": "code of a BIDS data set",
    "stimuli": "stimuli of a BIDS data set",
    "phenotype": "tables of a BIDS data set",
}
"""Folders of a BIDS data set without raw scans."""
MARKER = "dataset_description.json"
METADATA_NAME = re.compile(
    r"(?:[^_]+-[^_]+_)*(?:participants|samples|sessions|scans|events|beh|channels|electrodes|coordsystem|aslcontext|physio|stim)"
    r"\.(?:json|tsv|tsv\.gz)"
)
"""Names of tables of a BIDS data set, and of the files that explain their columns: they describe no single scan."""


def entities_of(name: str) -> dict[str, str]:
    """Return the entities of a BIDS name.

    Examples
    --------
    >>> entities_of("sub-01_ses-2_ce-gadolinium_T1w")
    {'sub': '01', 'ses': '2', 'ce': 'gadolinium'}
    """
    return dict(part.split("-", 1) for part in name.split("_") if "-" in part)


def is_bids(name: str) -> bool:
    """Return whether a file name without suffix is a valid BIDS name."""
    return NAME.fullmatch(name) is not None


def applies_to(sidecar: str, scan: str) -> bool:
    """Return whether a sidecar or gradients apply to a scan by name (BIDS' inheritance principle).

    Both are file names without suffixes; folders are not considered.

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
    """Return patient and study of a file: `sub-x` and `sub-x/ses-y` (`sub-x` again without a session)."""
    entities = entities_of(name)
    subject = f"sub-{entities['sub']}"
    return subject, f"{subject}/ses-{entities['ses']}" if entities.get("ses") else subject


def label_bids(name: str, modality: str, physics: Physics) -> SequenceLabel | None:
    """Label a scan by its BIDS name, checked against the timing in its sidecar; None without a BIDS name or with an unknown suffix.

    `modality` is `MR` or `CT`, by the voxels. The suffix determines the sequence, the entity `ce` the contrast agent. Free words (`acq-`,
    `desc-`) do not change the label, but words for contrast in them without `ce` are flagged.
    """
    matched = NAME.fullmatch(name)
    if matched is None:
        return None
    entities = entities_of(name)
    if matched[1] in NOT_STRUCTURAL or any(entities.get(key) in values for key, values in ENTITIES_OF_MAPS.items()):
        return SequenceLabel(
            Sequence.UNKNOWN, other=next((name for name, suffixes in NAMED.items() if matched[1] in suffixes), NoHead.NOT_KNOWN)
        )
    kind = SUFFIXES.get(matched[1])
    if kind is None:
        return None
    agent = entities.get("ce", "none").lower() not in {"none", "no"}
    flags: list[str] = []
    free = " ".join(entities.get(key, "") for key in ("acq", "desc", "rec"))
    if kind in {Sequence.T1W, Sequence.CT} and not agent and re.search(r"(?i)post|gad|contrast|enh|(?:^|\W)ce(?:$|\W)", free):
        flags.append(CONTRAST_UNCLEAR)
    by_physics = sequence_by_physics(physics)
    if by_physics is not None and by_physics is not kind and kind in {Sequence.T1W, Sequence.T2W, Sequence.FLAIR, Sequence.PDW}:
        flags.append(DISAGREE)
    if (modality == "CT") != (kind is Sequence.CT) and DISAGREE not in flags:
        flags.append(DISAGREE)
    return SequenceLabel(CONTRAST_OF.get(kind, kind) if agent else kind, tuple(flags))


def other_folder(place: PurePosixPath, roots: set[PurePosixPath]) -> str:
    """Return why a file of a BIDS data set is not a raw scan, by its folder; empty if it may be one.

    `roots` are the folders with a `dataset_description.json`.
    """
    for folder in place.parents:
        if folder.name in OTHER_FOLDERS and folder.parent in roots:
            return OTHER_FOLDERS[folder.name]
    return ""


def read_participants(root: Path) -> dict[str, dict[str, str]]:
    """Read ages and sexes of `participants.tsv` by subject (`sub-x`); empty if the table is absent or unreadable."""
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
