"""The scans of a case to BIDS: headers cleaned, converted, and without a face."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path

from neuralmedbench.deid.bids_names import bids_names
from neuralmedbench.deid.burned_in.hide import Policy, TextFoundError
from neuralmedbench.deid.faces.locate import Head
from neuralmedbench.deid.faces.turn import in_turn
from neuralmedbench.deid.headers.rules import HeaderRules
from neuralmedbench.deid.one_scan import write_scan
from neuralmedbench.deid.score.case import NOBODY, Watch
from neuralmedbench.errors import DataError
from neuralmedbench.records.case import CaseRecord, Series


def clean_scans(
    case: CaseRecord,
    source: Path,
    out: Path,
    rules: HeaderRules,
    checks: Counter[str],
    *,
    aside: dict[str, str],
    watch: Watch = NOBODY,
    burned_in: Policy = "hide",
) -> tuple[Series, ...]:
    """Write all scans of a case with BIDS names.

    Parameters
    ----------
    case : CaseRecord
        The ingested case.
    source, out : Path
        Its folder, and the folder of the de-identified case.
    rules : HeaderRules
        Key, pseudonym and dates.
    checks : Counter
        Counts what was done.
    aside : dict of str to str
        Gets the reasons why series are left out, by series id.
    watch : Watch
        Sees a phantom's scans before they are thrown away, to score their cleaning.
    burned_in : str
        `hide` burned-in text, or `drop` a series that shows any.

    Returns
    -------
    tuple of Series
        The scans that could be converted; one that no program can read is counted as `series_not_convertible`.

    Raises
    ------
    DataError
        If none could be converted, or all were dropped.
    DeidentificationError
        If a face cannot be located, or text cannot be hidden.
    """
    names = bids_names(case)
    done: dict[str, Series] = {}
    heads: list[Head] = []
    failed: list[DataError] = []
    for series in in_turn(case.series):
        try:
            stem = out / names[series.series_id]
            written = write_scan(series, source, stem, rules, checks, heads=heads, watch=watch, burned_in=burned_in)
        except TextFoundError as error:
            failed.append(error)  # counted as dropped
            aside[series.series_id] = _why(series, error)
        except DataError as error:  # one series that no program can read does not take the others with it
            failed.append(error)
            checks["series_not_convertible"] += 1
            aside[series.series_id] = _why(series, error)
        else:
            done[series.series_id] = replace(written, path=f"{names[series.series_id]}.nii.gz")
    if not done:
        raise failed[0]
    return tuple(done[series.series_id] for series in case.series if series.series_id in done)


def _why(series: Series, error: DataError) -> str:
    """Why a series is left out, in the words of a later stage: its kind takes the place of its number."""
    return f"{series.sequence.value}: {str(error).removeprefix(f'{series.series_id}: ')}"
