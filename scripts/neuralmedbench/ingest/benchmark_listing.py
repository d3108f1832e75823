"""List the cases of a benchmark of own scans or pictures, with the pseudonyms of its profile, and say what a person should look at."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from neuralmedbench.config.benchmark import BenchmarkConfig
from neuralmedbench.config.load import load_benchmark
from neuralmedbench.errors import ConfigError
from neuralmedbench.files.cases import case_table, read_case_table, unlisted_cases, unlisted_notice
from neuralmedbench.files.pseudonyms import read_key
from neuralmedbench.ingest.case_tables import JOINS, keyed_pseudonyms, linked_pseudonyms, write_listing
from neuralmedbench.ingest.listing import Listing, find_cases, find_picture_cases, list_cases, same_uids_notice
from neuralmedbench.ingest.persons_labels import map_notices
from neuralmedbench.records.items import Kind
from neuralmedbench.runtime.commands import private_files


def list_benchmark(name: str, config: Path, data: Path) -> tuple[BenchmarkConfig, Listing]:
    """List the cases of a benchmark, and write its case table and private index.

    Parameters
    ----------
    name : str
        The benchmark.
    config, data : Path
        Configuration folder and data folder.

    Returns
    -------
    benchmark : BenchmarkConfig
        Its YAML file.
    listing : Listing
        The cases.

    Raises
    ------
    ConfigError, DataError
        If it has no cases of its own, its key is public or cannot be read, or as `listing.list_cases`.
    """
    benchmark = load_benchmark(config, name)
    if benchmark.source == "phantoms" or not benchmark.has_cases:
        message = (
            f"{name}: `nmb cases list` is for your own scans or pictures of patients; the case table of the phantoms is part of the project"
        )
        raise ConfigError(message)
    key, published = read_key(benchmark.key_file), config / "demo.key"
    # the key of the demo is in the repository, so pseudonyms made with it protect nobody
    if published.exists() and key == read_key(published):
        message = (
            "the key of the demo is public, and anybody who has a key can link pseudonyms to patients; make your own with --new-key FILE"
        )
        raise ConfigError(message)
    private = data / "raw" / name
    # Safe Harbor allows no ids derived from identifiers: ids are random, and linked in a private table
    pseudonyms = linked_pseudonyms(private / "linkage.json") if benchmark.profile == "safe_harbor" else keyed_pseudonyms(key)
    find, sequence_map = (find_cases, benchmark.sequence_map) if benchmark.kind is Kind.SCANS else (find_picture_cases, None)
    with private_files([private / "listing.tsv"], [data / "raw"]):
        listing = list_cases(Path(benchmark.source), pseudonyms, find, sequence_map)
        write_listing(listing, case_table(config, name), private)
    return benchmark, listing


def notices(name: str, benchmark: BenchmarkConfig, listing: Listing, config: Path, data: Path) -> Iterator[str]:
    """Yield what a person should look at after a listing: cases that may be one, labels, cases that are gone."""
    yield from listing.notices
    if listing.joins:
        rows = data / "raw" / name / JOINS
        yield f"the rows for files.csv that join them are in {rows.as_posix()}: copy those of one patient and visit, and list again"
    if notice := same_uids_notice(listing):
        yield notice
    table = read_case_table(case_table(config, name))
    overrides = {row.case_id: row.sequence_overrides for row in table}
    yield from map_notices({case.index.case_id: case.series for case in listing.cases}, overrides, benchmark.sequence_map)
    if gone := unlisted_cases(data, name, table):
        yield unlisted_notice(name, gone)
