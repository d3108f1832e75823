"""Labels of a structured answer: one table of spellings, the same for answers and for gold."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

from neuralmedbench.files.yaml_text import load_yaml
from neuralmedbench.records.items import GoldFields, gold_fields

FIELDS = ("modality", "sequence", "plane", "class", "subtype")
TABLE = Path(__file__).with_name("field_aliases.yaml")


@cache
def _table() -> dict[str, Any]:
    table: dict[str, Any] = load_yaml(TABLE.read_text(encoding="utf-8"))
    return table


def label(field: str, value: str | None) -> str | None:
    """Label of one field in its own spelling.

    Parameters
    ----------
    field : str
        One of `FIELDS`.
    value : str or None
        As answered, or as it stands in gold.

    Returns
    -------
    str or None
        None for null and for words that mean it; a label that the table does not know comes back in lower case.

    Examples
    --------
    >>> label("class", "Tumour"), label("subtype", "None"), label("sequence", "T1 C+")
    ('tumor', None, 'T1C+')
    """
    word = " ".join((value or "").replace("_", " ").lower().split())
    if word in _table()["null_words"]:
        return None
    spelled = _table()[field].get(word, word)
    return str(spelled)


def gold_labels(fields: GoldFields) -> dict[str, str]:
    """Labels of the fields that have ground truth, by the names that answers use."""
    labels = {name: label(name, value) for name, value in gold_fields(fields).items()}
    return {name: value for name, value in labels.items() if value is not None}
