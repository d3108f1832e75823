"""`nmb cases`: list the cases of patients, export them, and find what a withdrawn patient left behind."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Iterator
from pathlib import Path

from neuralmedbench.cli.verbs import BENCHMARK, CONFIG, DATA, VerbGroup, argument, note, one_of
from neuralmedbench.errors import ConfigError

CASES = VerbGroup("cases", "list the cases of patients, export them, and find traces of withdrawn ones")


@CASES.verb(
    "list",
    one_of(
        argument("--benchmark", help="name of the benchmark: config/benchmarks/<benchmark>.yaml"),
        argument("--new-key", type=Path, metavar="FILE", help="write a new secret key that only you can read; keep it outside the project"),
    ),
    CONFIG,
    DATA,
    example="--benchmark mine",
)
def list_cases(args: Namespace) -> Iterator[str]:
    """List the cases in your own folder, or write a key for their pseudonyms.

    Writes config/benchmarks/<benchmark>.cases.tsv (pseudonyms only) and, in the private zone, data/raw/<benchmark>/<case>/files.json and
    data/raw/<benchmark>/listing.tsv, which maps case ids to folders and lists the files that belong to no case, and series.tsv, with the series
    of every case, the words of their headers and the entries of `sequence_map` that they fit. Cases that may be one are named, and joins.csv
    there has the rows for `files.csv` that join them.
    """
    from neuralmedbench.config.pipeline import MAX_QUARANTINED_FRACTION
    from neuralmedbench.files.case_flow import stopping_share
    from neuralmedbench.files.pseudonyms import write_new_key
    from neuralmedbench.ingest.benchmark_listing import list_benchmark, notices
    from neuralmedbench.ingest.listing import summarise

    if args.new_key:
        write_new_key(args.new_key)
        yield "a new key was written; keep it safe: with another key, the same patients get other ids"
        return
    benchmark, listing = list_benchmark(args.benchmark, args.config, args.data)
    yield ", ".join(f"{number} {what}" for what, number in summarise(listing).items())
    if benchmark.kind == "scans":
        share = stopping_share(len(listing.cases), MAX_QUARANTINED_FRACTION)
        note(f"{share}; the run's configuration may set another share (max_quarantined_fraction)")
    yield from notices(args.benchmark, benchmark, listing, args.config, args.data)


@CASES.verb(
    "held",
    BENCHMARK,
    argument("--case", nargs="+", default=[], metavar="CASE", help="search for these case ids too, for example after `nmb cases remove`"),
    CONFIG,
    example="--benchmark mine",
)
def list_held(args: Namespace) -> Iterator[str]:
    """List the files and folders that still hold withdrawn patients.

    Withdrawn cases are those that the case table excludes, and those that left it because their scans were taken out of the folder. Each line
    is a folder, or a file with the number of matching rows or lines. Run the workflow first: it rebuilds the tables without them; then delete
    the folders with `nmb cases remove`, and the rest by hand. DVC remotes and other clones are not searched.
    """
    from neuralmedbench.files.cases import case_table, read_case_table, unlisted_cases
    from neuralmedbench.recording.patient_traces import find_traces, withdrawn_ids

    table = read_case_table(case_table(args.config, args.benchmark))
    gone = unlisted_cases(Path("data"), args.benchmark, table)
    withdrawn = sorted({row.case_id for row in table if row.exclude} | set(gone))
    traces = find_traces(Path(), withdrawn_ids(table, gone) | set(args.case))
    note(
        f"{args.benchmark}: {len(withdrawn) - len(gone)} of {len(table)} cases are excluded, {len(gone)} are no longer listed;"
        f" {len(traces)} places still hold them",
    )
    for entry in traces:
        yield f"{entry.path}\t{entry.what}"
    if any(f"sub-{case}" in entry.path.split("/") for case in withdrawn for entry in traces):
        note(f"their folders are deleted by: nmb cases remove --benchmark {args.benchmark} {' '.join(withdrawn)}")


@CASES.verb(
    "remove",
    BENCHMARK,
    argument("cases", nargs="+", metavar="CASE", help="ids of withdrawn cases, as `nmb cases held` prints them"),
    CONFIG,
    example="--benchmark mine dee25f4a4762",
)
def remove_cases(args: Namespace) -> Iterator[str]:
    """Delete the folders of withdrawn cases: index, scans, slices, review sheet, logs.

    Refused for a case that is still in use: exclude it first, or take its scans out of the folder and list again. What was deleted is printed.
    Files with other cases too (answers in the ledger, tables, DVC's cache) are left; `nmb cases held --case` lists them.
    """
    from neuralmedbench.files.cases import case_table, read_case_table, unlisted_cases
    from neuralmedbench.recording.patient_traces import remove_case

    table = read_case_table(case_table(args.config, args.benchmark))
    withdrawn = {row.case_id for row in table if row.exclude} | set(unlisted_cases(Path("data"), args.benchmark, table))
    if kept := [case for case in args.cases if case not in withdrawn]:
        message = (
            f"{kept[0]}: not a withdrawn case of {args.benchmark}, nothing was deleted; write the reason into `exclude` of its row of the case"
            " table, or take its scans out of the folder and list the cases again"
        )
        raise ConfigError(message)
    for case in args.cases:
        for place in remove_case(Path(), args.benchmark, case):
            yield f"deleted {place}"
    ids = " ".join(args.cases)
    note(
        f"run the workflow, which makes the tables without them; then nmb cases held --benchmark {args.benchmark} --case {ids} lists what is left",
    )


@CASES.verb(
    "export-bids",
    argument("--benchmark", required=True, help="name of the benchmark; run its stages deidentify and normalise first"),
    CONFIG,
    DATA,
    argument("--out", type=Path, required=True, help="root of the derivative data set; existing files are replaced"),
    example="--benchmark mine --out /data/mine-normalised",
)
def export_bids(args: Namespace) -> Iterator[str]:
    """Write the normalised cases of a benchmark as a BIDS derivative."""
    from neuralmedbench.files.bids import write_description
    from neuralmedbench.files.cases import case_files, case_table, read_case
    from neuralmedbench.imaging.export import ABOUT, export_case

    table = case_table(args.config, args.benchmark)
    written = 0
    for path in case_files(table, args.data / "normalised" / args.benchmark):
        raw = read_case(args.data / "deidentified" / args.benchmark / path.parent.name / "case.json")
        written += export_case(read_case(path), path.parent, raw, args.out)
    write_description(args.out, f"{args.benchmark}, normalised", "derivative", ABOUT.format(benchmark=args.benchmark))
    yield f"{written} volumes written to {args.out.as_posix()}"


@CASES.verb(
    "phantoms",
    argument("--key-file", type=Path, default=Path("config/demo.key"), help="secret key of the pseudonyms (default: config/demo.key)"),
    argument("--tiny", action="store_true", help="write the patients of demo-tiny only"),
    argument("--out", type=Path, required=True, help="config/benchmarks/demo.cases.tsv or demo-tiny.cases.tsv"),
    example="--out config/benchmarks/demo.cases.tsv",
)
def list_phantoms(args: Namespace) -> None:
    """Write the case table of the demo after a change to its generator.

    Generates every simulated patient once to compute its digest.
    """
    from neuralmedbench.demo.cohort import TINY, read_cohort
    from neuralmedbench.demo.generate import case_row
    from neuralmedbench.files.cases import write_case_table
    from neuralmedbench.files.pseudonyms import read_key

    key = read_key(args.key_file)
    patients = [patient for patient in read_cohort() if patient.key in TINY or not args.tiny]
    write_case_table(args.out, [case_row(patient, key) for patient in patients])
