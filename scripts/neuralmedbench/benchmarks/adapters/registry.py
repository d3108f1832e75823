"""All importable data sets, by name."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from neuralmedbench.benchmarks.adapters import (
    gmai_mmbench,
    medbookvqa,
    medframeqa,
    neural_medbench,
    neurovlm,
    rarebench,
)
from neuralmedbench.benchmarks.adapters.rows import DataSet
from neuralmedbench.benchmarks.adapters.set_reader import MappedSet, mapped_data_set
from neuralmedbench.config.mappings import FOLDER, load_mappings
from neuralmedbench.errors import ConfigError

MODULES = (
    gmai_mmbench,
    medbookvqa,
    medframeqa,
    rarebench,
    neural_medbench,
    neurovlm,
)
DATA_SETS: dict[str, DataSet] = {one.name: one for module in MODULES for one in module.DATA_SETS}


def data_sets(config: Path, wanted: str = "") -> dict[str, DataSet]:
    """Return all data sets: those with an adapter, and those described in `<config>/mappings/`.

    `wanted`: the one that is needed; others with an invalid mapping are left out.

    Raises
    ------
    ConfigError
        If a mapping is invalid, or has the name of a data set with an adapter.
    """
    mappings = load_mappings(config, wanted)
    if double := sorted(set(mappings) & set(DATA_SETS)):
        message = f"{(config / FOLDER).as_posix()}/{double[0]}.yaml: {double[0]} has an adapter already; give the file another name"
        raise ConfigError(message)
    sets = {name: MappedSet(mapping, _function(config / FOLDER / f"{name}.py")) for name, mapping in mappings.items()}
    return DATA_SETS | {name: mapped_data_set(name, sets) for name in sets}


def _function(path: Path) -> Path | None:
    return path if path.exists() else None


def table(sets: Mapping[str, DataSet]) -> str:
    """List every data set with its source, its licence and the files that the folder must contain."""
    lines = []
    for one in sets.values():
        number = f"{one.expected} questions" if one.expected else "number of questions not published"
        lines += [f"{one.name}: {one.title} ({one.axis}, {number})", f"    from     {one.home}", f"    licence  {one.licence}"]
        lines.append(f"    files    {one.files}")
    return "\n".join(lines)
