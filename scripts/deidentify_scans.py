"""De-identify a folder of scans without the workflow (a command for people: no rule calls it).

Writes cleaned DICOM files, or a BIDS data set, to a new folder; names, dates, faces and burned-in text are gone, and the same key gives the
same pseudonyms again. The audit says what was done and what was left out, in counts. Read docs/own-data.md first, and look at the result.
"""

import argparse
from collections.abc import Sequence
from pathlib import Path

from neuralmedbench.deid.release.audit import summarise_release, write_release_audit
from neuralmedbench.deid.release.folder import check_release, release_folder
from neuralmedbench.deid.release.settings import check_places, make_settings
from neuralmedbench.runtime.commands import run_command


def parse_args(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--in", dest="source", type=Path, required=True, help="folder with raw scans (DICOM, NIfTI), of any nesting")
    parser.add_argument("--out", type=Path, required=True, help="new or empty folder")
    parser.add_argument("--format", choices=("dicom", "bids"), required=True, help="what is written")
    parser.add_argument("--key-file", type=Path, required=True, help="secret key; `list_cases.py --new-key FILE` makes one")
    parser.add_argument("--audit", type=Path, required=True, help="audit to write (JSON)")
    parser.add_argument("--notes", type=Path, help="a text about these patients; its cleaned form is OUT/notes.txt")
    parser.add_argument("--profile", choices=("pseudonymised", "safe_harbor"), default="pseudonymised", help="de-identification profile")
    parser.add_argument("--linkage", type=Path, help="private table of the random ids (profile safe_harbor); made when it is not there")
    parser.add_argument("--options", nargs="+", help="options of DICOM PS3.15 by code; absent: all that the profile allows")
    parser.add_argument("--work", type=Path, help="private folder for what lies between, such as faces; absent: the system's temporary one")
    return parser.parse_args(argv)


def main(argv: Sequence[str] | None = None) -> int:
    args = parse_args(argv)
    private = {"--key-file": args.key_file, "--linkage": args.linkage, "--notes": args.notes, "--work": args.work}
    check_places(args.source, args.out, private, args.audit)
    settings = make_settings(args.format, args.profile, args.key_file, args.linkage, args.options)
    audit = release_folder(args.source, args.out, settings, args.notes, args.work)
    write_release_audit(args.audit, audit)
    print(", ".join(f"{number} {what}" for what, number in summarise_release(audit).items()))
    check_release(audit)
    return 0


if __name__ == "__main__":
    raise SystemExit(run_command(main))
