"""Snakemake's records of how each file was made: read them, repair them after a power cut, and follow them from a table to its inputs."""

from __future__ import annotations

import hashlib
import json
import os
import re
import shlex
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from neuralmedbench.config.code_hash import code_hash
from neuralmedbench.config.run_names import RESULT_FOLDERS
from neuralmedbench.files.digests import sha256_of
from neuralmedbench.records.scores import PLANTED

METADATA = Path(".snakemake/metadata")


@dataclass(frozen=True, kw_only=True)
class OutputRecord:
    """How one file was made.

    Attributes
    ----------
    path : str
        The file, relative to the repository root.
    rule : str
        The rule that made it.
    shellcmd : str
        The command that was run.
    inputs : tuple of str
        The files that it was made from.
    params : tuple of str
        The params of the rule as Snakemake writes them, including the hash of the code.
    checksums : dict of str to str
        SHA-256 digests of the inputs at that time; a folder has none.
    ended : float
        When the command ended, seconds since 1970.
    """

    path: str
    rule: str
    shellcmd: str
    inputs: tuple[str, ...]
    params: tuple[str, ...]
    checksums: dict[str, str]
    ended: float


def read_metadata(folder: Path = METADATA) -> Iterator[OutputRecord]:
    """Read the records of all files, sorted by path; none if the folder is missing.

    There is one JSON file per output, named by the base64 of its path (a long name is split into folders that begin with `@`). A torn
    record (Snakemake was killed while writing it) is skipped: Snakemake makes such a file again.
    """
    files = {path_of(file.relative_to(folder)): file for file in folder.rglob("*") if file.is_file()} if folder.is_dir() else {}
    for path, file in sorted(files.items()):
        try:
            value = json.loads(file.read_text(encoding="utf-8"))
        except ValueError:
            continue
        yield OutputRecord(
            path=path,
            rule=value.get("rule") or "",
            shellcmd=value.get("shellcmd") or "",
            inputs=tuple(value.get("input") or ()),
            params=tuple(value.get("params") or ()),
            # Snakemake writes `sha256:<digest>`
            checksums={name: digest.removeprefix("sha256:") for name, digest in (value.get("input_checksums") or {}).items()},
            ended=value.get("endtime") or 0.0,
        )


def upstream_records(made: Iterable[OutputRecord], target: str) -> dict[str, OutputRecord]:
    """Select the records of a target and of all its direct and indirect inputs, sorted by path; the others are of models and cases that left the run."""
    records = {entry.path: entry for entry in made}
    selected: dict[str, OutputRecord] = {}
    # depth first from the target through the recorded inputs
    waiting = [target]
    while waiting:
        path = waiting.pop()
        if path in records and path not in selected:
            selected[path] = records[path]
            waiting += records[path].inputs
    return dict(sorted(selected.items()))


def _mark(mark: Path) -> None:
    mark.parent.mkdir(parents=True, exist_ok=True)
    mark.write_text(MARK, encoding="utf-8")


def record_name(path: str) -> str:
    """Return the name of Snakemake's record of a file; it splits that of a very long path into folders, which is not done here."""
    return urlsafe_b64encode(path.encode()).decode()


def make_again(paths: Iterable[str], root: Path = Path()) -> None:
    """Mark outputs that are there as incomplete, so that Snakemake makes them again, with all of their inputs that are gone."""
    for path in paths:
        if (root / path).exists():
            _mark(root / INCOMPLETE / record_name(path))


def path_of(record: Path) -> str:
    """Return the output path of a record, from the record's path in Snakemake's folder."""
    # `@` marks the folders that a long name is split into
    return urlsafe_b64decode("".join(part.removeprefix("@") for part in record.parts)).decode()


INCOMPLETE = Path(".snakemake/incomplete")
LOCKS = Path(".snakemake/locks")
MARK = '{"external_jobid": null}'
"""Content of Snakemake's marker of an output whose job has started."""


def is_running(root: Path = Path()) -> bool:
    """Return True while a Snakemake runs here: its records look torn, and what it makes again is gone."""
    return any((root / LOCKS).glob("*"))


def repair_metadata(root: Path = Path()) -> list[str]:
    """Mark the outputs whose record cannot be read as incomplete, so that Snakemake makes them again.

    Snakemake does not write its records atomically, and skips a torn one with a warning: the output then counts as up to date for ever,
    whatever happens to its settings and code. (A killed Snakemake itself leaves such an output marked as incomplete; only a power cut can
    keep the removal of the mark and lose the record.) No model is called again: the answers are in the ledger.

    Parameters
    ----------
    root : Path
        The repository root.

    Returns
    -------
    list of str
        Outputs that will be made again, sorted; empty while another Snakemake runs here, because a record being written looks torn.
    """
    if is_running(root):
        return []
    metadata, incomplete = root / METADATA, root / INCOMPLETE
    torn = _unreadable(metadata)
    # mark first, then delete: after a kill in between, the next repair finds the torn record again
    for place in {*_unreadable(incomplete), *torn}:
        _mark(incomplete / place)
    for place in torn:
        (metadata / place).unlink(missing_ok=True)
    return sorted(torn.values())


def _unreadable(folder: Path) -> dict[Path, str]:
    """Find the records that are not a JSON object: output path by path of the record, relative to the folder."""
    torn: dict[Path, str] = {}
    for parent, _, names in os.walk(folder):  # a run of 10,000 cases has 100,000 records
        for name in names:
            if not _is_record(os.path.join(parent, name)):
                with suppress(ValueError):  # a stray file, whose name is not that of a record
                    place = Path(parent, name).relative_to(folder)
                    torn[place] = path_of(place)
    return torn


def _is_record(file: str) -> bool:
    with open(file, "rb") as record:
        try:
            return isinstance(json.load(record), dict)
        except ValueError:
            return False


PRIVATE = ("data/raw/", "data/ingested/")
SHOWN = ("results/", "data/", "config/")
"""Only files in these folders are named, and none in the private zone: file names given by people can identify a patient."""

RESULTS = rf"results/(?:(?!(?:{'|'.join(sorted(RESULT_FOLDERS))})/)[^/]+/)?"
"""Pattern of the folder of a run's results."""
PLACES = tuple(
    re.compile(pattern)
    for pattern in (
        rf"{RESULTS}(?:responses|scores)/(?P<benchmark>[^/]+)/(?P<model>[^/]+)\.parquet",
        rf"{RESULTS}grades/(?P<benchmark>[^/]+)/{PLANTED}/.*",  # a tested grader judges the answers of every model
        rf"{RESULTS}grades/(?P<benchmark>[^/]+)/(?P<model>[^/]+)/.*",
        rf"{RESULTS}(?:similarity|cases|planted|croissant)/(?P<benchmark>[^/]+)\.(?:parquet|json)",
        r"data/(?:items|gold|disclosures|prompts|views)/(?P<benchmark>[^/]+)\.parquet",
        r"data/leaks/(?P<benchmark>[^/]+)\.(?:json|html)",
        r"data/(?:deidentified|normalised|slices|reviews|gold|disclosures|altered)/(?P<benchmark>[^/]+)/.*",
        r"config/benchmarks/(?P<benchmark>[^/]+?)(?:\.cases\.tsv|\.yaml)",
        r"config/models/(?P<model>[^/]+)\.yaml",
    )
)
FAMILIES = (
    (r"/sub-[a-z0-9]+/", "/sub-*/"),
    (r"^(data/answers/[^/]+/)[^/]+(\.json|\.nii\.gz)$", r"\1*\2"),
    (r"^((?:data|results/[^/]+)/ratings/[^/]+/).+", r"\1*"),
)
"""Files that exist once per case, or were named by people: each family is one link of the chain."""


@dataclass(frozen=True)
class RowScope:
    """Benchmarks and models that a row of a table is about; None means all."""

    benchmarks: frozenset[str] | None
    models: frozenset[str] | None

    def concerns(self, path: str) -> bool:
        """Return False for a file that is only about other benchmarks or models."""
        for place in PLACES:
            # a file without a benchmark or model in its path concerns every row
            if match := place.fullmatch(path):
                named = match.groupdict()
                wanted = {"benchmark": self.benchmarks, "model": self.models}
                return all(names is None or part not in named or named[part] in names for part, names in wanted.items())
        return True


@dataclass(frozen=True)
class Link:
    """One file of the chain, or all files of one family.

    Attributes
    ----------
    name : str
        Path; with a `*` for a family.
    digests : dict of str to str
        SHA-256 digest of each file, by path; empty for one that is missing here.
    recorded : dict of (str, str) to str
        Digest that Snakemake recorded, by file and by the output made from it.
    made : tuple of OutputRecord
        How the files were made; empty for files that people wrote.
    sources : tuple of str
        Names of the links that the files were made from.
    unnamed : int
        Number of inputs in the private zone or outside the project.
    """

    name: str
    digests: Mapping[str, str]
    recorded: Mapping[tuple[str, str], str]
    made: tuple[OutputRecord, ...]
    sources: tuple[str, ...]
    unnamed: int

    @property
    def absent(self) -> int:
        """Number of files that are missing here."""
        return sum(not digest for digest in self.digests.values())

    @property
    def digest(self) -> str:
        """SHA-256 of the file, or of the output of `sha256sum` for several."""
        if self.name in self.digests:
            return self.digests[self.name]
        return hashlib.sha256("".join(f"{digest}  {path}\n" for path, digest in sorted(self.digests.items())).encode()).hexdigest()

    @property
    def changed(self) -> dict[str, str]:
        """Files that have changed since an output was made from them, each with that output."""
        return {path: made for (path, made), digest in sorted(self.recorded.items()) if self.digests[path] not in ("", digest)}


def upstream_links(table: str, records: Mapping[str, OutputRecord], subject: RowScope, root: Path = Path()) -> list[Link]:
    """Follow a file to all its direct and indirect inputs, breadth first, each link once; the private zone is not entered."""
    members: dict[str, set[str]] = {}
    chain: set[str] = set()
    level = [table]
    while level:
        for path in level:
            # files of one family (such as one per case) are one link
            members.setdefault(_link_name(path), set()).add(path)
        chain.update(level)
        inputs = {source for path in level if path in records for source in _sources(records[path], subject)}
        level = sorted(inputs - chain, key=lambda path: (SHOWN.index(path.partition("/")[0] + "/"), path))
    # digests of the inputs of outputs in the chain, and of what was made from the table
    recorded: dict[tuple[str, str], str] = {}
    for made in records.values():
        used = [path for path in chain.intersection(made.checksums) if made.path in chain or path == table]
        if used and (root / made.path).exists():
            recorded |= {(path, made.path): made.checksums[path] for path in used}
    links = []
    for name, paths in members.items():
        made_by = tuple(records[path] for path in sorted(paths) if path in records)
        inputs = {path for made in made_by for path in made.inputs}
        link = Link(
            name=name,
            digests={path: sha256_of(root / path) if (root / path).is_file() else "" for path in sorted(paths)},
            recorded={pair: digest for pair, digest in recorded.items() if pair[0] in paths},
            made=made_by,
            sources=tuple(sorted({_link_name(path) for made in made_by for path in _sources(made, subject)})),
            unnamed=sum(not is_shown(path) for path in inputs),
        )
        links.append(link)
    return links


def _sources(made: OutputRecord, subject: RowScope) -> list[str]:
    return [path for path in made.inputs if is_shown(path) and subject.concerns(path)]


def is_shown(path: str) -> bool:
    return path.startswith(SHOWN) and not path.startswith(PRIVATE) and ".." not in Path(path).parts


def _link_name(path: str) -> str:
    for pattern, name in FAMILIES:
        path = re.sub(pattern, name, path)
    return path


def code_lines(made: Iterable[OutputRecord], root: Path = Path()) -> list[str]:
    """Describe the code that made files, one line per rule: digest of the code, whether it has changed since, and settings."""
    lines = set()
    for one in made:
        # the param `code` is a quoted string of 16 hexadecimal digits
        digests = [word.strip("'") for word in one.params if re.fullmatch(r"'[0-9a-f]{16}'", word)]
        digest = digests[0] if digests else "not recorded"
        known = (root / "scripts" / f"{one.rule}.py").is_file()
        current = known and digest == code_hash(root / "scripts", one.rule)
        settings = "".join(f" {word}" for word in _settings(one.shellcmd))
        lines.add(f"{one.rule}, code {digest} ({'unchanged since' if current else 'CHANGED since'}){settings and ',' + settings}")
    return sorted(lines)


def _settings(command: str) -> list[str]:
    """Return the options of a command, except the case and paths."""
    options: list[list[str]] = []
    # a command is `python scripts/<rule>.py --option value ... &> log`
    for word in shlex.split(command.partition("&>")[0])[2:]:
        if word.startswith("--"):
            options.append([word])
        elif options:
            options[-1].append(word)
    return [" ".join(option) for option in options if len(option) > 1 and option[0] != "--case" and not any("/" in word for word in option)]
