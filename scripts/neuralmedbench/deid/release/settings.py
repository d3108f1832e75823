"""Settings of a release, and checks of its arguments before anything is read."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from neuralmedbench.config.deidentification import DeidentificationConfig, ElementRule, header_options
from neuralmedbench.config.load import check, read_yaml
from neuralmedbench.deid.cleaning import CleaningPolicy
from neuralmedbench.errors import ConfigError
from neuralmedbench.files.pseudonyms import read_key
from neuralmedbench.ingest.case_tables import keyed_pseudonyms, linked_pseudonyms
from neuralmedbench.ingest.listing import Pseudonyms
from neuralmedbench.records.case import VoxelSizes

DEMO_KEY = Path("config/demo.key")


@dataclass(frozen=True)
class ReleaseSettings:
    """Settings of a release.

    Attributes
    ----------
    form : str
        `dicom` or `bids`.
    profile : str
        `pseudonymised` or `safe_harbor`.
    key : bytes
        Secret of the pseudonyms.
    options : tuple of str
        Codes of the options of DICOM PS3.15 that apply.
    pseudonyms : callable
        Returns patient and case pseudonym for a patient's and a study's id.
    elements : tuple of ElementRule
        Own rules for single elements of headers.
    voxel_sizes : VoxelSizes or None
        Statement that counts in NIfTI headers whose voxel sizes differ.
    """

    form: str
    profile: str
    key: bytes
    options: tuple[str, ...]
    pseudonyms: Pseudonyms
    elements: tuple[ElementRule, ...] = ()
    voxel_sizes: VoxelSizes | None = None

    @property
    def policy(self) -> CleaningPolicy:
        """Policy by which its cases are cleaned."""
        return CleaningPolicy(key=self.key, profile=self.profile, options=self.options, elements=self.elements)


def read_header_rules(profile: str, options: list[str] | None, elements: Path | None) -> DeidentificationConfig:
    """Check options and own rules given as arguments; ConfigError with a line for each mistake.

    `elements`: YAML file with the key `elements`, as in a benchmark's section `deidentification`.
    """
    own: Any = read_yaml(elements) if elements is not None else {}
    if elements is not None and (not isinstance(own, dict) or set(own) != {"elements"}):
        message = f"{elements.name}: expected the key `elements` with a list of rules and nothing else"
        raise ConfigError(message)
    if profile == "safe_harbor" and "113107" in (options or ()):
        message = "--options: 113107 shifts dates, the profile safe_harbor keeps years only; leave 113107 out"
        raise ConfigError(message)
    return check(DeidentificationConfig, {"options": options, **own}, elements.name if elements is not None else "--options")


def make_settings(
    form: str,
    profile: str,
    key_file: Path,
    linkage: Path | None,
    options: list[str] | None,
    *,
    elements: Path | None = None,
    voxel_sizes: VoxelSizes | None = None,
) -> ReleaseSettings:
    """Check the arguments and build the settings.

    Parameters
    ----------
    form, profile : str
        As in `ReleaseSettings`.
    key_file : Path
        File of the key.
    linkage : Path or None
        Table of the random ids of `safe_harbor`; created if absent.
    options : list of str or None
        Codes of options of PS3.15; None means all that the profile allows.
    elements : Path or None
        File of own rules for single elements.
    voxel_sizes : VoxelSizes or None
        As in `ReleaseSettings`.

    Raises
    ------
    ConfigError
        If the key is missing or too short, the options contradict each other or the profile, or `safe_harbor` lacks a table.
    """
    wanted = read_header_rules(profile, options, elements)
    if profile == "safe_harbor" and linkage is None:
        message = "the profile safe_harbor uses random ids: name the private file that keeps them with --linkage FILE (outside --out)"
        raise ConfigError(message)
    if profile != "safe_harbor" and linkage is not None:
        message = "--linkage belongs to the profile safe_harbor; the profile pseudonymised derives its ids from the key"
        raise ConfigError(message)
    key = read_key(key_file)
    if DEMO_KEY.exists() and key == read_key(DEMO_KEY):
        message = "the key of the demo is public, so anybody could re-identify patients; make your own with `nmb cases list --new-key FILE`"
        raise ConfigError(message)
    try:
        pseudonyms = linked_pseudonyms(linkage) if linkage is not None else keyed_pseudonyms(key)
    except (OSError, ValueError):  # the messages of these errors would show the contents of the table
        message = "--linkage: the table of the ids cannot be read; give the file that this command wrote, or a new path"
        raise ConfigError(message) from None
    return ReleaseSettings(form, profile, key, header_options(profile, wanted), pseudonyms, wanted.elements, voxel_sizes)


def check_paths(source: Path, out: Path, private: dict[str, Path | None], audit: Path) -> None:
    """Refuse folders and files that would overwrite or expose one another.

    Parameters
    ----------
    source, out : Path
        `--in` and `--out`.
    private : dict of str to Path or None
        Arguments with private files; none may lie in `out`.
    audit : Path
        Output file of the audit.

    Raises
    ------
    ConfigError
        If `source` is not a folder, `out` is not empty, lies inside `source` or contains it, or a private file lies in `out`.
    """
    if not source.is_dir():
        message = "--in: expected a folder with scans, but there is no such folder; check the path"
        raise ConfigError(message)
    inside, outside = source.resolve(), out.resolve()
    if inside == outside or inside in outside.parents or outside in inside.parents:
        message = "--out and --in are nested: raw and cleaned scans must be kept apart; name another folder for --out"
        raise ConfigError(message)
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        message = "--out: expected a new or empty folder, but it is not empty; name another one, or empty it"
        raise ConfigError(message)
    for name, path in private.items():
        if path is not None and outside in (path.resolve(), *path.resolve().parents):
            message = f"{name} lies in --out, which is meant for sharing; keep it elsewhere"
            raise ConfigError(message)
    work = private.get("--work")
    for name, path in {"--audit": audit, "--work": work, "--linkage": private.get("--linkage")}.items():
        if path is not None and inside in (path.resolve(), *path.resolve().parents):
            message = f"{name} lies in --in, but the folder of the raw scans is not changed; name another path"
            raise ConfigError(message)
    if work is not None and not work.is_dir():
        message = "--work: expected a folder, but there is none; create it, or omit the argument"
        raise ConfigError(message)
    if private.get("--notes") is not None and not Path(private["--notes"] or "").is_file():
        message = "--notes: expected a text file, but there is none; check the path"
        raise ConfigError(message)
