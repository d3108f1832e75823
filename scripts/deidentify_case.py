"""De-identify one case: headers, sidecars, file names, face, notes and record; anything that may be left quarantines the case."""

from pathlib import Path

from neuralmedbench.deid.cleaning import cleaning_policy
from neuralmedbench.deid.stage import deidentify_case, empty_outputs
from neuralmedbench.files.cases import run_case_stage
from neuralmedbench.runtime.commands import run_command
from neuralmedbench.runtime.options import Command


def deidentify(*, benchmark: str, case: Path, out: Path, planted: Path | None = None, config: Path = Path("config")) -> None:
    folder, policy = out.parent, cleaning_policy(config, benchmark)
    empty_outputs(folder)
    run_case_stage("deidentify", case, out, lambda record, source: deidentify_case(record, source, folder, policy, planted))


main = Command(deidentify)

if __name__ == "__main__":
    raise SystemExit(run_command(main))
