"""Read the lesion position of a case from the answers table; only for the slice policy `lesion`."""

from __future__ import annotations

import csv
from dataclasses import dataclass
from pathlib import Path

from neuralmedbench.errors import ConfigError, DataError


@dataclass(frozen=True)
class KnownLesion:
    """Position and size of the lesion of a case.

    Attributes
    ----------
    position_mm : tuple of float
        Its centre in the space of the reference, (x, y, z), LPS+.
    size_mm : float
        Its largest diameter; 0 if unknown.
    """

    position_mm: tuple[float, float, float]
    size_mm: float


def read_known_lesion(config: Path, benchmark: str, case_id: str) -> KnownLesion | None:
    """Look up the lesion of a case in the answers table.

    Parameters
    ----------
    config : Path
        The folder `config/`; the benchmark's YAML file names the table, so that its path gets into no log.
    benchmark, case_id : str
        Names of benchmark and case.

    Returns
    -------
    KnownLesion or None
        None if the table has no row or no position for the case.

    Raises
    ------
    ConfigError
        If the benchmark has no answers table, or it cannot be read.
    DataError
        If the position is not three numbers, or the size not a number.
    """
    from neuralmedbench.files.yaml_text import load_yaml

    settings = load_yaml((config / "benchmarks" / f"{benchmark}.yaml").read_text(encoding="utf-8"))
    try:
        with Path(settings["answers"]).open(encoding="utf-8-sig", newline="") as file:
            rows = [row for row in csv.DictReader(file) if (row.get("case_id") or "").strip() == case_id]
    except (KeyError, TypeError, OSError, UnicodeDecodeError):
        message = f"{benchmark}: slices.policy is lesion, and there is no answers table to read positions from; name it as `answers`"
        raise ConfigError(message) from None
    words = (rows[0].get("lesion_position_mm") or "").split() if rows else []
    if not words:
        return None
    try:
        x, y, z = (float(word) for word in words)
        return KnownLesion((x, y, z), float((rows[0].get("lesion_size_mm") or "").strip() or 0.0))
    except ValueError:
        message = "the answers table: lesion_position_mm is three numbers and lesion_size_mm one, in mm; correct the row of this case"
        raise DataError(message) from None
