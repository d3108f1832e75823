"""The names of a case's scans in a BIDS data set."""

from __future__ import annotations

from collections import Counter

from neuralmedbench.records.case import CaseRecord, Sequence

BIDS = {
    Sequence.T1W: ("anat", "", "T1w"),
    Sequence.CE_T1W: ("anat", "ce-gadolinium", "T1w"),
    Sequence.T2W: ("anat", "", "T2w"),
    Sequence.FLAIR: ("anat", "", "FLAIR"),
    Sequence.T2STARW: ("anat", "", "T2starw"),
    Sequence.PDW: ("anat", "", "PDw"),
    Sequence.DWI: ("dwi", "", "dwi"),
    Sequence.ADC: ("dwi", "", "ADC"),
    Sequence.SWI: ("swi", "", "swi"),
    Sequence.CT: ("ct", "", "ct"),
    Sequence.CE_CT: ("ct", "ce-contrast", "ct"),
}
"""Folder, entity and suffix of each kind of scan."""


def bids_names(case: CaseRecord) -> dict[str, str]:
    """Give the BIDS path without suffix of each series; a second series of the same kind gets `run-2`.

    Parameters
    ----------
    case : CaseRecord
        A case with labelled series.

    Returns
    -------
    dict of str to str
        By series id, for example `anat/sub-0123_ce-gadolinium_T1w`.
    """
    names: dict[str, str] = {}
    seen: Counter[Sequence] = Counter()
    for series in case.series:
        folder, entity, suffix = BIDS[series.sequence]
        seen[series.sequence] += 1
        run = f"run-{seen[series.sequence]}" if seen[series.sequence] > 1 else ""
        names[series.series_id] = f"{folder}/" + "_".join(part for part in (f"sub-{case.case_id}", entity, run, suffix) if part)
    return names
