"""Names of the files of a de-identified case, and which part of a name comes from the input."""

from __future__ import annotations

import re
from collections import Counter

from neuralmedbench.records.case import CaseRecord, Sequence

BIDS = {
    Sequence.T1W: ("anat", "", "T1w"),
    Sequence.CE_T1W: ("anat", "ce-gadolinium", "T1w"),
    Sequence.T2W: ("anat", "", "T2w"),
    Sequence.FLAIR: ("anat", "", "FLAIR"),
    Sequence.T2STARW: ("anat", "", "T2starw"),
    Sequence.PDW: ("anat", "", "PDw"),
    Sequence.ANGIO: ("anat", "", "angio"),
    Sequence.DWI: ("dwi", "", "dwi"),
    Sequence.ADC: ("dwi", "", "ADC"),
    Sequence.SWI: ("swi", "", "swi"),
    Sequence.CT: ("ct", "", "ct"),
    Sequence.CE_CT: ("ct", "ce-contrast", "ct"),
}
"""Folder, entity and suffix of each kind of scan."""
AGENTS = frozenset({"gadolinium", "contrast"})
"""Words of `BIDS` for an agent that nobody named."""
_SCANS = "|".join(
    rf"{folder}/sub-(?P<case_{number}>[a-z0-9]+)_{rf'ce-(?P<agent_{number}>[A-Za-z0-9]+)_' if entity else ''}(?:run-[1-9]\d?_)?{suffix}"
    for number, (folder, entity, suffix) in enumerate(BIDS.values())
)
SCAN = re.compile(rf"(?:{_SCANS})\.(?P<kind>nii\.gz|json|bval|bvec)")
RECORD = "text/record.tsv"
DICOM = re.compile(r"series-\d{2,3}/(?P<number>\d{6})\.dcm")
OTHER = re.compile(
    r"text/(?:note-\d{2,3}\.txt|record\.tsv)|pictures/\d{2,3}\.png"
    r"|review/(?:tools\.json|series\.json|(?:series|other)-\d{2,3}_(?:headers\.json|(?:surface|border|preview)\.png))"
)
"""Names of literal words and short counts alone."""


def bids_names(case: CaseRecord) -> dict[str, str]:
    """Give the BIDS path without suffix of each series; a second series of the same kind gets `run-2`.

    Returns: By series id, for example `anat/sub-0123_ce-gadolinium_T1w`.
    """
    names: dict[str, str] = {}
    seen: Counter[Sequence] = Counter()
    for series in case.series:
        folder, entity, suffix = BIDS[series.sequence]
        entity = f"ce-{series.agent}" if series.agent else entity
        seen[series.sequence] += 1
        run = f"run-{seen[series.sequence]}" if seen[series.sequence] > 1 else ""
        names[series.series_id] = f"{folder}/" + "_".join(part for part in (f"sub-{case.case_id}", entity, run, suffix) if part)
    return names


def input_part(path: str, dicom_files: int) -> str:
    """Return the part of a file's path that comes from the input; all of it unless the path has a form of this stage.

    `path`: relative to the case. `dicom_files`: number of DICOM files beside it; they are numbered from 1.

    Examples
    --------
    >>> input_part("anat/sub-c0ffee_ce-gadolinium_T1w.json", 0), input_part("text/note-01.txt", 0)
    ('c0ffee', '')
    >>> input_part("anat/sub-c0ffee_acq-face_T1w.json", 0), input_part("series-01/482133.dcm", 20)
    ('anat/sub-c0ffee_acq-face_T1w.json', '482133')
    """
    if scan := SCAN.fullmatch(path):
        # the case, and an agent that a person named
        return " ".join(
            value for name, value in scan.groupdict().items() if value and name != "kind" and (name[:5] == "case_" or value not in AGENTS)
        )
    if numbered := DICOM.fullmatch(path):
        return "" if 1 <= int(numbered["number"]) <= dicom_files else numbered["number"]
    return "" if OTHER.fullmatch(path) else path
