"""Measure defacing on every scan of the demo patients, and on heads of other sizes, fields and poses.

Measured are the share of the face removed, brain lost and CPU time, in 50 scans, 24 tilted and cropped ones, and 126 altered heads.
The scans of a patient share one fit, as in the pipeline; `--alone` defaces each separately. Run on purpose
(`python perf/deface_phantoms.py`, about 20 CPU minutes), never a test; tests/unit/deid/test_deface.py and test_deface_case.py check the goal
on one patient.
"""

import argparse
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "tests"), str(ROOT / "scripts")]

from fixtures.face import FIELDS, POSES, SIZES, Scanned, alter, make_head, placed, scan  # noqa: E402
from fixtures.face import Head as Phantom  # noqa: E402

PARTS = ("nose", "eyes", "mouth", "ears", "skin", "face")
SEQUENCES = ("T1-3D", "T2", "FLAIR", "DWI", "CT", "T1C+", "ADC", "SWI")
TILTS = ((-20.0, 3.0, 4.0), (-12.0, -5.0, 2.0), (12.0, 5.0, -3.0), (20.0, -2.0, -5.0))
SLAB = slice(0, 12)
ALTERED = ("T1", "T2", "FLAIR", "CT")
GOAL = 0.95


def parse_args(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--alone", action="store_true", help="deface each scan as if it were the only one of its patient")
    parser.add_argument("--patients", nargs="*", default=[], help="keys of demo patients (default: all)")
    return parser.parse_args(argv)


def scans(head: Phantom, number: int) -> Iterator[tuple[str, str, Scanned]]:
    """Yield every scan of a patient, T1 first, then a tilted one and a slab, whose sequences vary by patient."""
    from neuralmedbench.demo.cohort import read_cohort
    from neuralmedbench.demo.generate import scan_phantom

    taken = scan_phantom(head.phantom, read_cohort()[number])
    for sequence, stack, pose in sorted(taken, key=lambda one: not one[0].startswith("T1")):
        yield "demo", sequence, placed(head, stack, pose)
    sequence = SEQUENCES[number % len(SEQUENCES)]
    yield "tilted", sequence, scan(head, sequence, turn_deg=TILTS[number % len(TILTS)])
    sequence = SEQUENCES[(number + 3) % len(SEQUENCES)]
    yield "slab", sequence, scan(head, sequence, slices=SLAB)


def main(argv: Sequence[str] | None = None) -> int:
    args = parse_args(argv)
    from neuralmedbench.deid.faces.deface import deface
    from neuralmedbench.deid.faces.locate import Head
    from neuralmedbench.demo.cohort import read_cohort
    from neuralmedbench.demo.generate import make_phantom
    from neuralmedbench.errors import DeidentificationError

    print("patient", "scan", "sequence", *(f"{part} %" for part in PARTS), "brain voxels lost", "CPU s", "outcome", "fit of", sep="\t")
    missed = 0
    for number, patient in enumerate(read_cohort()):
        if args.patients and patient.key not in args.patients:
            continue
        patient_head = make_head(make_phantom(patient))
        heads: list[Head] = []
        for taken, (kind, sequence, scanned) in enumerate(scans(patient_head, number), start=1):
            start = time.process_time()
            try:
                known = [] if args.alone else heads
                defaced = deface(scanned.volume, is_map=sequence == "ADC", heads=known, name=f"series-{taken:02d}", frame="room")
            except DeidentificationError as error:
                print(patient.key, kind, sequence, *["-"] * (len(PARTS) + 1), f"{time.process_time() - start:.2f}", error, sep="\t")
                missed += 1
                continue
            heads.extend([defaced.head] if defaced.head else [])
            spent = time.process_time() - start
            shares = [share(defaced.mask, scanned.true(part)) for part in PARTS]
            lost = int(defaced.mask[scanned.true("brain")].sum())
            missed += lost > 0 or shares[-1] < GOAL
            percents = ("-" if np.isnan(value) else f"{100 * value:.1f}" for value in shares)
            lender = f"scan {defaced.quality['deface_fit_series']:.0f}" if "deface_fit_series" in defaced.quality else "itself"
            outcome = (" ".join(defaced.flags) or "defaced", lender)
            print(patient.key, kind, sequence, *percents, lost, f"{spent:.2f}", *outcome, sep="\t", flush=True)
    missed += altered_heads(args.patients)
    print(f"{missed} scans miss the goal ({GOAL:.0%} of the face, no voxel of the brain in any)")
    return int(missed > 0)


def altered_heads(patients: Sequence[str]) -> int:
    """Deface heads of every size in every field and pose; returns how many miss the goal. A head that is left out has its reason in the table."""
    from neuralmedbench.deid.faces.deface import deface
    from neuralmedbench.demo.cohort import read_cohort
    from neuralmedbench.demo.generate import make_phantom
    from neuralmedbench.errors import DataError, DeidentificationError

    print("patient", "size", "field", "pose", "sequence", "face %", "brain voxels lost", "outcome", sep="\t")
    cohort = [patient for patient in read_cohort() if not patients or patient.key in patients]
    cases = [(size, view, pose) for size in SIZES for view in FIELDS for pose in POSES]
    missed = 0
    for number, patient in enumerate(cohort):
        head = make_head(make_phantom(patient))
        for place in range(number, len(cases), len(cohort)):
            sequence = ALTERED[(place + place // len(ALTERED)) % len(ALTERED)]
            taken = alter(scan(head, sequence), *cases[place])
            try:
                defaced = deface(taken.volume)
            except (DataError, DeidentificationError) as error:
                print(patient.key, *cases[place], sequence, "-", "-", error, sep="\t", flush=True)
                continue
            removed, lost = share(defaced.mask, taken.face), int(defaced.mask[taken.brain].sum())
            missed += lost > 0 or removed < GOAL
            outcome = " ".join(defaced.flags) or "defaced"
            print(patient.key, *cases[place], sequence, f"{100 * removed:.1f}", lost, outcome, sep="\t", flush=True)
    return missed


def share(mask: np.ndarray, part: np.ndarray) -> float:
    """Return the share of a part that was removed; nan if the scan has fewer than 30 voxels of it."""
    return float(mask[part].mean()) if part.sum() >= 30 else float("nan")


if __name__ == "__main__":
    sys.exit(main())
