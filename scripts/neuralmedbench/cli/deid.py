"""`nmb deid`: remove patient identifiers, and sign the review."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Iterator
from pathlib import Path

from neuralmedbench.cli.verbs import BENCHMARK, CONFIG, DATA, REVIEWER, VerbGroup, argument, one_of
from neuralmedbench.errors import ConfigError

DEID = VerbGroup("deid", "remove patient identifiers, and sign the review")


@DEID.verb(
    "folder",
    argument("--in", dest="source", type=Path, required=True, help="folder with raw scans (DICOM, NIfTI), nested to any depth"),
    argument("--out", type=Path, required=True, help="new or empty folder"),
    argument("--format", choices=("dicom", "bids"), required=True, help="output format"),
    argument("--key-file", type=Path, required=True, help="secret key; `nmb cases list --new-key FILE` makes one"),
    argument("--audit", type=Path, required=True, help="audit to write (JSON)"),
    argument("--notes", type=Path, help="text about these patients; its cleaned version is written to OUT/notes.txt"),
    argument("--profile", choices=("pseudonymised", "safe_harbor"), default="pseudonymised", help="de-identification profile"),
    argument("--linkage", type=Path, help="private table of the random ids (profile safe_harbor); created if absent"),
    argument("--options", nargs="+", help="options of DICOM PS3.15 by code (default: all that the profile allows)"),
    argument("--elements", type=Path, help="YAML file with own rules for single elements (docs/own-data.md, Own rules)"),
    argument(
        "--voxel-sizes", choices=("sform", "pixdim"), help="what counts in NIfTI headers whose voxel sizes differ (default: not used)"
    ),
    argument("--work", type=Path, help="private folder for intermediate files, which show faces (default: the system's temporary folder)"),
    example="--in /data/raw --out /data/clean --format bids --key-file ~/mine.key --audit ~/audit.json",
)
def deidentify_folder(args: Namespace) -> Iterator[str]:
    """De-identify a folder of scans without the workflow.

    Writes cleaned DICOM files or a BIDS data set to a new folder, without names, dates, faces and burned-in text. The same key gives the
    same pseudonyms. The audit counts what was done and what was left out. Read docs/own-data.md first, and inspect the result.
    """
    from neuralmedbench.deid.release.audit import summarise_release, write_release_audit
    from neuralmedbench.deid.release.folder import check_release, release_folder
    from neuralmedbench.deid.release.settings import check_paths, make_settings

    private = {"--key-file": args.key_file, "--linkage": args.linkage, "--notes": args.notes, "--work": args.work}
    # no private file may lie in the output folder
    check_paths(args.source, args.out, private, args.audit)
    settings = make_settings(
        args.format, args.profile, args.key_file, args.linkage, args.options, elements=args.elements, voxel_sizes=args.voxel_sizes
    )
    audit = release_folder(args.source, args.out, settings, args.notes, args.work)
    write_release_audit(args.audit, audit)
    yield ", ".join(f"{number} {what}" for what, number in summarise_release(audit).items())
    # last, so that the audit is written even if the release fails its check
    check_release(audit)


@DEID.verb(
    "dry-run",
    one_of(
        argument("--benchmark", help="benchmark of own scans: folder, profile, options and own rules are those of its YAML file"),
        argument("--in", dest="source", type=Path, help="folder with raw scans (DICOM, NIfTI), nested to any depth"),
    ),
    argument("--profile", choices=("pseudonymised", "safe_harbor"), help="with --in: de-identification profile (default: pseudonymised)"),
    argument("--options", nargs="+", help="with --in: options of DICOM PS3.15 by code (default: all that the profile allows)"),
    argument("--elements", type=Path, help="with --in: YAML file with own rules for single elements (docs/own-data.md, Own rules)"),
    argument("--files", action="store_true", help="one line for each element of each file (case, number of the file), with tabs"),
    CONFIG,
    example="--in /data/raw",
)
def show_dry_run(args: Namespace) -> Iterator[str]:
    """Show which header elements would be removed, changed or kept, and why, without writing anything.

    No value is shown. The headers are cleaned in memory by the code of the workflow. Case ids are those of `nmb cases list` with --benchmark, running numbers
    with --in. A header keeps more than a BIDS sidecar, which has a short list of keys.
    """
    from neuralmedbench.deid.release.dry_run import dry_run_of_benchmark, dry_run_of_folder, file_lines, summary_lines

    if args.benchmark and (args.profile or args.options or args.elements):
        message = "--profile, --options and --elements belong to --in; those of a benchmark stand in its YAML file"
        raise ConfigError(message)
    if args.benchmark:
        result = dry_run_of_benchmark(args.benchmark, args.config)
    else:
        result = dry_run_of_folder(args.source, args.profile or "pseudonymised", args.options, args.elements)
    yield from file_lines(result) if args.files else summary_lines(result)


@DEID.verb(
    "accept-leaks",
    BENCHMARK,
    argument("--case", required=True, help="case id, as on the review sheet"),
    argument("--file", nargs="+", required=True, help="the file, or several, as named by the message that kept the case back"),
    argument("--element", required=True, help="element, key or line in it, as named there"),
    argument("--reason", required=True, help="why the value identifies nobody, without repeating it; shown in the audit and on the sheet"),
    REVIEWER,
    CONFIG,
    DATA,
    example='--benchmark mine --case dee25f4a4762 --file dwi/sub-dee25f4a4762_dwi.bval --element "line 1" --reason "the b-value" --reviewer AB',
)
def accept_leaks(args: Namespace) -> Iterator[str]:
    """Accept, with a reason, a value in a cleaned file that equals an identifier of its patient.

    It counts for this element of this file as it is: when the file changes, the case is kept back again. File, element, reason and initials
    stand in the audit and on the review sheet, so whoever reads them can guess that the value occurs among the patient's identifiers: accept
    what would identify nobody even then, and change or exclude the rest.
    """
    from neuralmedbench.deid.review.accepted import accept, read_accepted_leaks, write_accepted_leaks
    from neuralmedbench.files.cases import read_case
    from neuralmedbench.files.identity import read_identity

    label = f"sub-{args.case}"
    case = read_case(args.data / "deidentified" / args.benchmark / label / "case.json")
    identity = read_identity(args.data / "ingested" / args.benchmark / label / "identity.json")
    before = read_accepted_leaks(args.config, args.benchmark)
    places = [(file, args.element) for file in args.file]
    after = accept(before, case, identity, places=places, reason=args.reason, reviewer=args.reviewer)
    write_accepted_leaks(args.config, after)
    yield (
        f"{len(args.file)} accepted, {len(after.accepted)} in all of {args.benchmark}; run the pipeline again, and look at the sheet of the case"
    )


@DEID.verb(
    "sign",
    BENCHMARK,
    REVIEWER,
    argument("--digest", required=True, help="the 12 hexadecimal digits on review.html, which identify exactly what you reviewed"),
    argument("--accept", nargs="+", default=[], metavar="CASE", help="cases to accept"),
    argument("--accept-rest", action="store_true", help="accept every case that is not named"),
    argument("--exclude", nargs="+", default=[], metavar="CASE=REASON", help="cases to exclude; the reason goes into the case table"),
    CONFIG,
    DATA,
    example="--benchmark mine --reviewer AB --digest 7571b21ead6f --exclude dee25f4a4762=face_left --accept-rest",
)
def sign_review(args: Namespace) -> Iterator[str]:
    """Sign the de-identification of patient data after reviewing every sheet."""
    from neuralmedbench.config.load import load_benchmark
    from neuralmedbench.deid.review.before_signing import check_up_to_date, exclude_cases, read_decisions
    from neuralmedbench.deid.review.signature import read_reviewed_files, sign, write_signed
    from neuralmedbench.files.cases import case_table

    benchmark = load_benchmark(args.config, args.benchmark)
    reviews = args.data / "reviews"
    sheets = read_reviewed_files(reviews / args.benchmark / "review.json")
    excluded = read_decisions(args.exclude, benchmark)
    signed = sign(sheets, args.digest, args.reviewer, accepted=args.accept, accept_rest=args.accept_rest, excluded=excluded)
    # the data must not have changed since the sheets were made
    check_up_to_date(sheets, benchmark, args.config, args.data)
    write_signed(reviews / f"{args.benchmark}.json", signed)
    exclude_cases(case_table(args.config, args.benchmark), excluded)
    yield f"signed: {len(signed.accepted)} accepted, {len(excluded)} taken out; run the pipeline again"
