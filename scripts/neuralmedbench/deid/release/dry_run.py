"""Say what cleaning would do to every header element of a folder, without writing anything and without showing a value."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from neuralmedbench.config.deidentification import DeidentificationConfig, Profile, header_options
from neuralmedbench.config.load import load_benchmark
from neuralmedbench.deid.cleaning import CleaningPolicy
from neuralmedbench.deid.headers.cleaner import HeaderCleaner
from neuralmedbench.deid.headers.diff import ACTIONS, changes, reason_of, snapshot
from neuralmedbench.deid.headers.rules import HeaderRules
from neuralmedbench.deid.release.settings import read_header_rules
from neuralmedbench.errors import ConfigError, DataError
from neuralmedbench.files import dicom
from neuralmedbench.files.cases import foreign_input
from neuralmedbench.files.pseudonyms import read_key
from neuralmedbench.files.raw_folder import RawIndex
from neuralmedbench.ingest.case_tables import keyed_pseudonyms, numbered_pseudonyms
from neuralmedbench.ingest.cases import collect_identity
from neuralmedbench.ingest.listing import Pseudonyms, list_cases
from neuralmedbench.ingest.raw_files import FileKind, load_raw_files
from neuralmedbench.ingest.raw_series import sort_into_series

EMPTY = "empty already"
PIXELS = ("cleaned", "PixelData", "113101 and 113102: burned-in text is hidden, the face removed")


@dataclass(frozen=True)
class HeaderDecision:
    """What is done with one element of one file: the case, its file by number, the action of `diff.ACTIONS` or `EMPTY`, the element, the reason."""

    case: str
    file: int
    action: str
    element: str
    reason: str


@dataclass
class DryRun:
    """What cleaning would do to a folder.

    Attributes
    ----------
    decisions : list of HeaderDecision
        For every element of every DICOM file in use.
    left_out : Counter
        Files that would not be used, by reason.
    others : Counter
        Files without a DICOM header that would be used, by what is done with them.
    cases : int
        Number of cases.
    """

    decisions: list[HeaderDecision] = field(default_factory=list)
    left_out: Counter[str] = field(default_factory=Counter)
    others: Counter[str] = field(default_factory=Counter)
    cases: int = 0


def dry_run_of_benchmark(name: str, config: Path) -> DryRun:
    """Look at the scans of a benchmark: folder, profile, options and own rules are those of its YAML file in the configuration folder.

    Raises
    ------
    ConfigError, DataError
        If it has no scans of patients, or as `dry_run`.
    """
    benchmark = load_benchmark(config, name)
    if not benchmark.has_cases or benchmark.kind != "scans" or benchmark.source == "phantoms":
        message = f"{name}: `nmb deid dry-run` reads the headers of your own scans; this benchmark has none"
        raise ConfigError(message)
    # the random ids of safe_harbor are made by the listing, which writes them
    key = b"" if benchmark.profile == "safe_harbor" else read_key(benchmark.key_file)
    pseudonyms = keyed_pseudonyms(key) if key else numbered_pseudonyms()
    return dry_run(Path(benchmark.source), pseudonyms, _policy(key, benchmark.profile, benchmark.deidentification))


def dry_run_of_folder(source: Path, profile: Profile, options: list[str] | None, elements: Path | None) -> DryRun:
    """Look at a folder of scans; `options` and `elements` as in `settings.read_header_rules`. Errors as of it and of `dry_run`."""
    if not source.is_dir():
        message = "--in: expected a folder with scans, but there is no such folder; check the path"
        raise ConfigError(message)
    return dry_run(source, numbered_pseudonyms(), _policy(b"", profile, read_header_rules(profile, options, elements)))


def _policy(key: bytes, profile: Profile, wanted: DeidentificationConfig) -> CleaningPolicy:
    return CleaningPolicy(key=key, profile=profile, options=header_options(profile, wanted), elements=wanted.elements)


def dry_run(source: Path, pseudonyms: Pseudonyms, policy: CleaningPolicy) -> DryRun:
    """Clean the headers of a folder in memory, and record what is done to each element.

    Parameters
    ----------
    source : Path
        Folder of raw scans.
    pseudonyms : callable
        As of `ingest.listing.list_cases`.
    policy : CleaningPolicy
        Profile, options and own rules.

    Raises
    ------
    ConfigError
        As `list_cases`.
    """
    listing = list_cases(source, pseudonyms)
    result = DryRun(left_out=Counter(listing.left_out.values()), cases=len(listing.cases))
    for listed in listing.cases:
        index = listed.index
        result.others["notes: cleaned as texts"] += len(index.notes)
        result.others["records: cleaned as tables"] += index.record is not None
        try:
            with foreign_input():
                part = _dry_run_case(index, policy)
        except DataError as error:
            result.left_out[str(error)] += len(index.files)
        else:
            result.decisions += part.decisions
            result.left_out += part.left_out
            result.others += part.others
    result.others = +result.others
    return result


def _dry_run_case(index: RawIndex, policy: CleaningPolicy) -> DryRun:
    """Return what would be done to the files of one case."""
    result = DryRun()
    scans = load_raw_files(index, Path())
    excluded = sort_into_series(scans).excluded
    rules = policy.rules_of(index.patient_id, collect_identity(scans, index.scan_date))
    cleaner = HeaderCleaner(rules)
    for number, scan in {scan.number: scan for scan in scans}.items():
        if number in excluded:
            result.left_out[excluded[number]] += 1
        elif scan.header is not None:
            result.decisions += _decisions(scan.path, cleaner, rules, (index.case_id, number))
        elif scan.kind is FileKind.NIFTI:
            result.others["NIfTI files: voxels and geometry stay, all texts of the header go"] += 1
        elif scan.kind is FileKind.SIDECAR:
            result.others["sidecars of NIfTI files: read, and not published"] += 1
    return result


def _decisions(path: Path, cleaner: HeaderCleaner, rules: HeaderRules, where: tuple[str, int]) -> Iterator[HeaderDecision]:
    """Clean one header in memory, and yield what changed and what stayed; an element that a file holds several times counts once."""
    content = path.read_bytes()
    before = snapshot(dicom.read_header(content))
    header = dicom.read_header(content)
    cleaner.clean(header)
    filled = {name for name, kind, text in before.values() if text or kind == "SQ"}
    for name, action in sorted(changes(before, header)):
        if action == "kept" and name not in filled:
            yield HeaderDecision(*where, EMPTY, name, "nothing to clean")
        else:
            yield HeaderDecision(*where, action, name, reason_of(name, action, rules))
    yield HeaderDecision(*where, *PIXELS)


def summary_lines(result: DryRun) -> Iterator[str]:
    """Yield the summary: one line for each element, decision and reason, with the number of files."""
    counts = Counter((one.action, one.element, one.reason) for one in result.decisions)
    files = len({(one.case, one.file) for one in result.decisions})
    yield f"{result.cases} cases, {files} DICOM files; nothing was written, and no value is shown"
    for action in (*ACTIONS, EMPTY):
        rows = sorted((element, reason, number) for (other, element, reason), number in counts.items() if other == action)
        if rows:
            yield f"\n{action} ({len(rows)})"
            yield from _aligned([(element, f"{number} file{'s' * (number > 1)}", reason) for element, reason, number in rows])
    if result.others:
        yield "\nfiles without a DICOM header"
        yield from _aligned([(what, str(number)) for what, number in sorted(result.others.items())])
    if result.left_out:
        yield "\nfiles that would not be used"
        yield from _aligned([(what, str(number)) for what, number in sorted(result.left_out.items())])


def file_lines(result: DryRun) -> Iterator[str]:
    """Yield one line with tabs for each element of each file: case, number of the file, decision, element, reason."""
    yield "\t".join(("case", "file", "decision", "element", "reason"))
    for one in result.decisions:
        yield "\t".join((one.case, str(one.file), one.action, one.element, one.reason))


def _aligned(rows: Sequence[tuple[str, ...]]) -> Iterator[str]:
    widths = [max(len(row[place]) for row in rows) for place in range(len(rows[0]))]
    for row in rows:
        yield "  " + "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
