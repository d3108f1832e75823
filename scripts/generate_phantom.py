"""Make one simulated patient of the demo: scans, notes, record and answer; no real person is in it."""

from pathlib import Path

from neuralmedbench.demo.cohort import find_patient
from neuralmedbench.demo.generate import generate_case
from neuralmedbench.files.pseudonyms import read_key
from neuralmedbench.runtime.commands import run_command
from neuralmedbench.runtime.options import Command


def generate(*, case: str, key_file: Path, answer: Path, out: Path) -> None:
    key = read_key(key_file)
    patient = find_patient(case, key)
    generate_case(patient, case, patient.patient_id(key), out.parent, answer=answer)


main = Command(generate)

if __name__ == "__main__":
    raise SystemExit(run_command(main))
