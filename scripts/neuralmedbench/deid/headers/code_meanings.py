"""Meanings of published codes: what a code says is looked up, as the text beside it could say anything."""

from __future__ import annotations

from functools import cache
from typing import Any

RETIRED_SNOMED = frozenset({"SRT", "SNM3", "99SDM"})
"""Names that older headers give the scheme of SNOMED codes such as T-A0100."""


def standard_meaning(scheme: str, code: str) -> str:
    """Give the meaning of a code in the coding schemes that DICOM lists; empty when it is not known.

    Parameters
    ----------
    scheme, code : str
        CodingSchemeDesignator and CodeValue.

    Examples
    --------
    >>> standard_meaning("DCM", "113100")
    'Basic Application Confidentiality Profile'
    >>> standard_meaning("99HOSPITAL", "113100")
    ''
    """
    if not scheme or not code or (scheme.startswith("99") and scheme not in RETIRED_SNOMED):
        return ""
    if scheme in RETIRED_SNOMED:
        scheme, code = "SCT", _new_snomed().get(code, "")
    return _meanings().get((scheme, code), "")


@cache
def _meanings() -> dict[tuple[str, str], str]:
    from pydicom.sr._concepts_dict import concepts  # the public view of it is by keyword alone

    schemes: dict[str, Any] = concepts
    listed = ((scheme, code, meaning) for scheme, words in schemes.items() for one in words.values() for code, (meaning, _) in one.items())
    # of several wordings of a code the shortest is the one that headers use
    ordered = sorted((entry for entry in listed if entry[2].isascii()), key=lambda entry: (-len(entry[2]), entry))
    return {(scheme, code): meaning for scheme, code, meaning in ordered}


@cache
def _new_snomed() -> dict[str, str]:
    from pydicom.sr._snomed_dict import mapping

    return dict(mapping["SRT"])
