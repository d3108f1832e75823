"""Measure the processing from raw DICOM to PNG for patients with five sequences (T1 and post-contrast T1 of 1 mm, T2, FLAIR, diffusion).

Run on purpose (`python perf/imaging_chain.py`) on an idle machine, never a test. The commands are those that Snakemake would run, one
after another; for comparison, the same steps with usual settings (`perf/usual_chain.py`), two patients at once, and header cleaning alone.
CPU seconds are user + system of the commands and their children, imports included.
"""

import argparse
import json
import os
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from statistics import median

ROOT = Path(__file__).resolve().parent.parent
PARTS = ("Snakefile", "rules", "scripts", "config", "profiles", "envs", "requirements.lock")
SEQUENCES = ("T1-3D", "T1C+", "T2", "FLAIR", "DWI")
THIN = ("T1-3D", "T1C+")
YAML = "title: perf\nkind: scans\naxis: depth\nsource: {source}\nprivate: true\nsubjects: public\nkey_file: own.key\n"
ENVIRONMENT = {
    **{name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"},
    "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
    "OMP_NUM_THREADS": "1",
}


def parse_args(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=3, help="number of runs; the median is reported")
    parser.add_argument("--without-usual", action="store_true", help="leave out the comparison")
    return parser.parse_args(argv)


def write_patients(folder: Path) -> int:
    """Write the DICOM files of two phantoms, about 500 each; return the number of files of the first."""
    sys.path.insert(0, str(ROOT / "scripts"))
    import numpy as np

    from neuralmedbench.demo.cohort import read_cohort
    from neuralmedbench.demo.dicom import write_keyed_series
    from neuralmedbench.demo.generate import make_phantom
    from neuralmedbench.demo.scanner import PROTOCOLS, acquire

    numbers = []
    for patient in [one for one in read_cohort() if one.focal][:2]:
        phantom, written = make_phantom(patient), 0
        for number, sequence in enumerate(SEQUENCES, start=1):
            protocol = PROTOCOLS[sequence]
            if sequence in THIN:
                protocol = replace(protocol, tags=protocol.tags | {"MRAcquisitionType": "3D"})
            pose = phantom.pose.moved((0.6 * number, -0.4, 0.3), (0.5 * number, 1.0, -0.7))
            stack = acquire(phantom.ideal(sequence), protocol, pose, np.random.default_rng([number]), isotropic=sequence in THIN)
            target = folder / patient.key / f"{number:02d}"
            target.mkdir(parents=True)
            written += len(write_keyed_series(target, patient, number, protocol, stack).files)
        numbers.append(written)
    return numbers[0]


def measured(command: list[str], folder: Path) -> tuple[float, float]:
    """Run a command; return CPU seconds and the largest process in MiB."""
    process = subprocess.Popen(command, cwd=folder, env=ENVIRONMENT, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    assert process.stderr is not None
    errors = process.stderr.read()
    _, status, usage = os.wait4(process.pid, 0)
    if status:
        sys.exit(f"{shlex.join(command[:2])}: {errors.decode()[-2000:]}")
    return usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024


def commands_of(project: Path, case: str) -> list[list[str]]:
    """Return the commands that Snakemake would run to make the pictures of a case."""
    target = f"data/slices/own/sub-{case}/case.json"
    plan = [
        sys.executable,
        "-m",
        "snakemake",
        "-n",
        "-p",
        "--forceall",
        "--cores",
        "1",
        "--configfile",
        "config/own-run.yaml",
        "--",
        target,
    ]
    done = subprocess.run(plan, cwd=project, env=ENVIRONMENT, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(done.stdout[-3000:] + done.stderr[-3000:])
    shells = [line.partition("Shell command: python ")[2] for line in (done.stdout + done.stderr).splitlines()]
    return [[sys.executable, *shlex.split(shell.partition(" &> ")[0])] for shell in shells if shell]


def run_chain(project: Path, commands: list[list[str]]) -> tuple[dict[str, float], float]:
    """Run the commands of a case; return CPU seconds by command and the largest process in MiB."""
    seconds: dict[str, float] = defaultdict(float)
    largest = 0.0
    for command in commands:
        used, memory = measured(command, project)
        seconds[Path(command[1]).stem] += used
        largest = max(largest, memory)
    return seconds, largest


def prepare(project: Path, raw: Path) -> list[str]:
    """Copy the project and list the cases; return the case ids."""
    for part in PARTS:
        source = ROOT / part
        (shutil.copytree if source.is_dir() else shutil.copy2)(source, project / part)
    (project / "config" / "benchmarks" / "own.yaml").write_text(YAML.format(source=raw))
    (project / "config" / "own-run.yaml").write_text("benchmarks: [own]\nmodels: [text]\n")
    for arguments in (["--new-key", "own.key"], ["--benchmark", "own"]):
        measured(["env", "PYTHONPATH=scripts", sys.executable, "-m", "neuralmedbench", "cases", "list", *arguments], project)
    return sorted(path.parent.name for path in (project / "data" / "raw" / "own").glob("*/files.json"))


def header_ms(raw: Path, scratch: Path) -> float:
    """Return the CPU milliseconds of header cleaning per file, including reading and writing."""
    from neuralmedbench.deid.headers.cleaner import clean_series
    from neuralmedbench.deid.headers.rules import HeaderRules
    from neuralmedbench.deid.values import DateShift

    rules = HeaderRules(b"k" * 32, "0123456789ab", DateShift(10))
    folder = next(path for path in sorted(raw.iterdir()) if path.is_dir()) / "01"
    clean_series(folder, scratch / "warm", rules)
    start = time.process_time()
    clean_series(folder, scratch / "clean", rules)
    return 1000 * (time.process_time() - start) / sum(1 for _ in folder.glob("*.dcm"))


def main(argv: Sequence[str] | None = None) -> int:
    args = parse_args(argv)
    with tempfile.TemporaryDirectory() as scratch:
        raw, project = Path(scratch) / "raw", Path(scratch) / "project"
        project.mkdir()
        files = write_patients(raw)
        cases = prepare(project, raw)
        chains = [commands_of(project, case) for case in cases]
        runs = [run_chain(project, chains[0]) for _ in range(args.repeats)]
        totals = [sum(seconds.values()) for seconds, _ in runs]
        figures: dict[str, object] = {
            "dicom_files": files,
            "cpu_s": round(median(totals), 1),
            "cpu_s_by_command": {name: round(median(seconds[name] for seconds, _ in runs), 1) for name in runs[0][0]},
            "largest_process_mib": round(max(memory for _, memory in runs)),
            "header_cleaning_ms_a_file": round(median(header_ms(raw, Path(scratch) / f"headers-{n}") for n in range(args.repeats)), 1),
        }
        if not args.without_usual:
            source = next(path for path in sorted(raw.iterdir()) if path.is_dir())
            command = [sys.executable, str(ROOT / "perf" / "usual_chain.py"), "--in", str(source), "--out"]
            usual = median(measured([*command, f"{scratch}/usual-{n}"], project)[0] for n in range(args.repeats))
            figures |= {"usual_cpu_s": round(usual, 1), "usual_to_ours": round(usual / median(totals), 2)}
        start = time.perf_counter()
        for chain in chains:
            run_chain(project, chain)
        one = time.perf_counter() - start
        start = time.perf_counter()
        with ThreadPoolExecutor(2) as pool:
            list(pool.map(lambda chain: run_chain(project, chain), chains))
        figures["two_at_once_to_one_after_another"] = round(one / (time.perf_counter() - start), 2)
        print(json.dumps(figures, indent=1))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
