"""Measure CPU, memory, written bytes and time of every stage with 10, 100 and 1,000 cases, and how fast each grows with the cases.

Run on purpose (`python perf/cost_against_size.py --sizes 10,100,1000 --out FOLDER`), never a test; about an hour of one core. It writes
`cost_against_size.tsv`, a row for each stage and size, and the figure `cost_against_size.svg` (and `.png`).

The stages of one case (phantom, ingest, de-identification, normalisation, slices) run for ten phantoms of the demo, and once more for one
of them beside tables of each size: their cost is that of one case, and may not depend on how many others there are. The ten are copied under
new ids, with new digests, until there are as many cases as wanted: pictures and notes of every copy differ, volumes are replaced by a few
bytes, because no later stage reads them. The commands are those that Snakemake would run, for six arms of the demo, one answer each, with
its built-in models.

CPU seconds are user + system of a command and its children; memory is its largest process; written is what it gave to the disk. The smallest
of the repeats counts. `fixed` is what a stage costs without any case, by a line through the two sizes before the largest; `exponent` is the
slope between the two largest sizes on logarithmic axes without the fixed cost: 1 grows as the cases do, 2 as their pairs.
"""

import argparse
import csv
import hashlib
import math
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
RUN = "config/size.yaml"
REPORT = "results/size/report.html"
LISTS = "benchmarks: [demo]\nmodels: [{models}]\ngraders: [rubric]\nrating_rounds: []\n"
OWN = "title: own\nkind: scans\naxis: depth\nsource: {source}\nprofile: {profile}\nprivate: true\nsubjects: public\nkey_file: own.key\n"
PER_CASE = ("generate_phantom", "ingest_case", "deidentify_case", "normalise_case", "cut_slices")
CASE_FOLDERS = ("raw", "ingested", "deidentified", "normalised", "slices")
ARMS = ("full", "no_image", "no_text", "shuffled_image", "findings_disclosed", "findings_of_another")
IMAGED = 10
"""Phantoms that are imaged, and then copied."""
SMALLEST = {"cpu_s": 1.0, "memory_mib": 20.0, "written_mib": 1.0}
"""A growth below this between the smallest and the largest size has no exponent: it is within the noise of the machine."""
DIGEST = re.compile(r"[0-9a-f]{64}")
ENVIRONMENT = {
    **{name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"},
    "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
    "PYTHONPATH": "scripts",
    "OMP_NUM_THREADS": "1",
    "DVC_STAGE": "measured",  # a run of Snakemake does not record itself
}


@dataclass(frozen=True)
class Cost:
    """What one command took."""

    cpu_s: float
    wall_s: float
    memory_mib: float
    written_mib: float


@dataclass(frozen=True)
class Row(Cost):
    """One stage with one number of cases; fixed cost and exponents are None where nothing grows."""

    stage: str
    cases: int
    output_mib: float
    fixed_cpu_s: float | None
    exponent_cpu: float | None
    exponent_memory: float | None
    exponent_written: float | None


@dataclass(frozen=True)
class Job:
    """A job of a plan: its rule, shell command, and outputs."""

    rule: str
    shell: str
    outputs: tuple[str, ...]


def parse_args(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", default="10,100,1000", help="numbers of cases, ascending; the last three give the exponents")
    parser.add_argument("--repeats", type=int, default=2, help="runs of a stage with each size, in turn; the smallest counts")
    parser.add_argument("--models", default="text", help="built-in models that are asked, two or more by commas")
    parser.add_argument("--stages", default="", help="measure these alone, by rule (the others run once)")
    parser.add_argument("--imaged", type=Path, help="a project in which the phantoms of the demo are imaged already: theirs are copied")
    parser.add_argument("--scratch", type=Path, help="folder for the projects; default: a temporary one, deleted at the end")
    parser.add_argument("--draw", action="store_true", help="draw the table that is in --out, without measuring")
    parser.add_argument("--out", type=Path, required=True, help="folder for table and figure")
    return parser.parse_args(argv)


# --- the arithmetic


def growth(sizes: Sequence[int], costs: Sequence[float], smallest: float = 0.0) -> tuple[float | None, float | None]:
    """Return the fixed cost and the exponent of the last three sizes; None for both if the cost does not grow by more than `smallest`.

    Examples
    --------
    >>> growth([10, 100, 1000], [2 + 0.1 * n for n in (10, 100, 1000)])
    (2.0, 1.0)
    >>> growth([10, 100, 1000], [3.0, 3.1, 3.0], smallest=0.5)
    (None, None)
    """
    (first, second, last), (low, middle, high) = sizes[-3:], costs[-3:]
    if high - low <= smallest or middle <= low:
        return None, None
    fixed = max(0.0, low - (middle - low) / (second - first) * first)
    return round(fixed, 6), round(math.log((high - fixed) / (middle - fixed)) / math.log(last / second), 6)


def measured(shell: str, folder: Path) -> Cost:
    """Run a command in a project and return what it took; end with its output if it fails."""
    start = time.perf_counter()
    with tempfile.TemporaryFile("w+") as output:
        process = subprocess.Popen(["bash", "-c", shell], cwd=folder, env=ENVIRONMENT, stdout=output, stderr=subprocess.STDOUT)
        _, status, usage = os.wait4(process.pid, 0)
        wall = time.perf_counter() - start
        if status:
            output.seek(0)
            sys.exit(f"{shell[:300]}\n{output.read()[-3000:]}")
    return Cost(usage.ru_utime + usage.ru_stime, wall, usage.ru_maxrss / 1024, usage.ru_oublock * 512 / 2**20)


def smallest(costs: Sequence[Cost]) -> Cost:
    """Return the smallest of each number: other load of the machine only adds."""
    return Cost(*(min(getattr(cost, field.name) for cost in costs) for field in fields(Cost)))


# --- projects


def clone(folder: Path) -> Path:
    """Clone the project as it is committed, with a run of the demo's scans."""
    subprocess.run(["git", "clone", "-q", str(ROOT), str(folder)], check=True)
    return folder


def write_run(folder: Path, rows: Sequence[tuple[str, str, str]], models: str) -> None:
    """Write the run list, and the case table of the demo with these rows."""
    (folder / RUN).write_text(LISTS.format(models=models), encoding="utf-8")
    table = ["\t".join(("case_id", "patient_id", "source_sha256", "sequence_overrides", "exclude"))]
    table += ["\t".join((*row, "", "")) for row in sorted(rows)]
    (folder / "config/benchmarks/demo.cases.tsv").write_text("\n".join(table) + "\n", encoding="utf-8")
    # one answer a request, six arms and no work-ups: each of these costs the same for every case
    path = folder / "config/benchmarks/demo.yaml"
    lines = [line for line in path.read_text("utf-8").splitlines() if not line.startswith(("arms:", "strategies:", "workup_"))]
    path.write_text("\n".join([*lines, f"arms: [{', '.join(ARMS)}]", "samples: 1", ""]), "utf-8")


def demo_rows(imaged: Path | None = None) -> list[tuple[str, str, str]]:
    """Return case, patient and digest of the first phantoms of the demo, of a project those that are imaged in it."""
    with (ROOT / "config/benchmarks/demo.cases.tsv").open(encoding="utf-8", newline="") as file:
        rows = [(row["case_id"], row["patient_id"], row["source_sha256"]) for row in csv.DictReader(file, delimiter="\t")]
    return [row for row in rows if imaged is None or (imaged / f"data/slices/demo/sub-{row[0]}/case.json").is_file()][:IMAGED]


def new_ids(number: int) -> tuple[str, str, str]:
    """Return case, patient and digest of a copy."""
    digests = [hashlib.sha256(f"{what} {number}".encode()).hexdigest() for what in ("case", "patient", "source")]
    return digests[0][:12], digests[1][:12], digests[2]


def copy_case(imaged: Path, project: Path, old: tuple[str, str, str], new: tuple[str, str, str]) -> None:
    """Copy all stages of a case under new ids, and the digests of all that changed with it."""
    names = {old[0]: new[0], old[1]: new[1]}
    digests = {old[2]: new[2]}
    pattern = re.compile("|".join(names))

    def renamed(text: str) -> str:
        text = pattern.sub(lambda found: names[found[0]], text)
        return DIGEST.sub(lambda found: digests.get(found[0], found[0]), text)

    for stage in CASE_FOLDERS:
        base = imaged / "data" / stage / "demo" / (old[0] if stage == "raw" else f"sub-{old[0]}")
        files = [path for path in sorted(base.rglob("*")) if path.is_file() and path.suffix != ".dcm"]
        # the record holds the digests of all others, so it is last
        for path in sorted(files, key=lambda path: path.name == "case.json"):
            target = project / renamed(path.relative_to(imaged).as_posix())
            target.parent.mkdir(parents=True, exist_ok=True)
            content = path.read_bytes()
            before = hashlib.sha256(content).hexdigest()
            if path.suffix == ".png" and stage == "slices":
                content += new[0].encode()  # behind the last chunk, where no decoder looks
            elif path.name.startswith("note-"):
                content += f"\nSeen before on day {int(new[0], 16) % 9000}.\n".encode()
            elif path.suffix in (".json", ".tsv", ".csv", ".txt"):
                content = renamed(content.decode()).encode()
            elif path.name.endswith((".nii", ".nii.gz")):
                content = f"{new[0]} {path.name}".encode()
            digests[before] = hashlib.sha256(content).hexdigest()
            target.write_bytes(content)
    for name in ("series", "text"):
        (project / "data/ingested/demo" / f"sub-{new[0]}" / name).mkdir(exist_ok=True)
    (project / "data/raw/demo" / new[0] / "slices").mkdir(exist_ok=True)
    answers = imaged / "data/answers/demo"
    (project / "data/answers/demo").mkdir(parents=True, exist_ok=True)
    (project / f"data/answers/demo/{new[0]}.json").write_text(renamed((answers / f"{old[0]}.json").read_text("utf-8")), "utf-8")
    shutil.copy2(answers / f"{old[0]}.nii.gz", project / f"data/answers/demo/{new[0]}.nii.gz")


def write_project(folder: Path, imaged: Path, cases: int, models: str) -> Path:
    """Write a project with so many imaged cases, every one of its own patient."""
    clone(folder)
    old, rows = demo_rows(imaged), [new_ids(number) for number in range(cases)]
    write_run(folder, rows, models)
    for number, row in enumerate(rows):
        copy_case(imaged, folder, old[number % len(old)], row)
    return folder


def plan(folder: Path, target: str) -> list[Job]:
    """Return all jobs of a target in an order in which they can run."""
    command = [sys.executable, "-m", "snakemake", "-n", "-p", "--forceall", "--cores", "1", "--configfile", RUN, "--", target]
    done = subprocess.run(command, cwd=folder, env=ENVIRONMENT, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(done.stdout[-3000:] + done.stderr[-3000:])
    jobs = []
    for block in re.split(r"^(?:local)?rule ", done.stdout, flags=re.MULTILINE)[1:]:
        shell = re.search(r"^Shell command: (.*)$", block, flags=re.MULTILINE)
        outputs = re.search(r"^    output: (.*)$", block, flags=re.MULTILINE)
        if shell and outputs:
            jobs.append(Job(block.partition(":")[0], shell[1].partition(" &> ")[0], tuple(outputs[1].split(", "))))
    return jobs


def run_job(job: Job, folder: Path) -> Cost:
    """Run a job as if nothing had been made before."""
    for name in job.outputs:
        path = folder / name
        shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)
        path.parent.mkdir(parents=True, exist_ok=True)
    if ledger := re.search(r"--ledger (\S+)", job.shell):
        (folder / ledger[1]).unlink(missing_ok=True)
    return measured(job.shell, folder)


def bytes_of(paths: Iterable[Path]) -> int:
    """Return the size of files and folders."""
    return sum(file.stat().st_size for path in paths for file in ([path] if path.is_file() else path.rglob("*")) if file.is_file())


# --- the measurement


class Measurement:
    """Rows so far; every row is printed when it is known."""

    def __init__(self, sizes: Sequence[int], out: Path) -> None:
        self.sizes, self.out, self.rows = sizes, out, list[Row]()

    def add(self, stage: str, costs: Mapping[int, Cost], outputs: Mapping[int, float] | None = None) -> None:
        """Add a stage: what it took by number of cases, and the size of what it made."""
        found = {name: growth(self.sizes, [getattr(costs[n], name) for n in self.sizes], least) for name, least in SMALLEST.items()}
        (fixed, cpu), (_, memory), (_, written) = found["cpu_s"], found["memory_mib"], found["written_mib"]
        for cases, cost in costs.items():
            output = (outputs or {}).get(cases, 0.0) / 2**20
            taken = (cost.cpu_s, cost.wall_s, cost.memory_mib, cost.written_mib)
            self.rows.append(Row(*taken, stage, cases, output, fixed, cpu, memory, written))
        text = "  ".join(f"{cost.cpu_s:8.2f} s {cost.memory_mib:6.0f} MiB" for cost in costs.values())
        print(f"{stage:24} {text}  exponent {cpu}", flush=True)
        write_rows(self.out / "cost_against_size.tsv", self.rows)


COLUMNS = ("stage", "cases", *(field.name for field in fields(Row) if field.name not in ("stage", "cases")))


def write_rows(path: Path, rows: Sequence[Row]) -> None:
    """Write the table."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, COLUMNS, delimiter="\t", lineterminator="\n")
        writer.writeheader()
        for row in rows:
            writer.writerow({name: round(value, 3) if isinstance(value, float) else value for name, value in asdict(row).items()})


def read_rows(path: Path) -> list[Row]:
    """Read the table."""
    with path.open(encoding="utf-8", newline="") as file:
        lines = list(csv.DictReader(file, delimiter="\t"))
    numbers = [{name: float(value) if value else None for name, value in line.items() if name not in ("stage", "cases")} for line in lines]
    return [Row(stage=line["stage"], cases=int(line["cases"]), **row) for line, row in zip(lines, numbers, strict=True)]  # type: ignore[arg-type]


def image_phantoms(folder: Path, models: str) -> Path:
    """Make and image the phantoms that are copied; print what one takes."""
    write_run(clone(folder), demo_rows(), models)
    costs: dict[str, list[Cost]] = {}
    for job in plan(folder, REPORT):
        if job.rule in PER_CASE:
            costs.setdefault(job.rule, []).append(run_job(job, folder))
    for rule, found in costs.items():
        each = sorted(cost.cpu_s for cost in found)
        print(f"{rule:24} {len(found)} cases: {sum(each) / len(each):.2f} CPU s a case ({each[0]:.2f} to {each[-1]:.2f})", flush=True)
    return folder


def one_case(measurement: Measurement, projects: Mapping[int, Path], repeats: int) -> None:
    """Run the stages of one phantom, in the table beside the others of each size, and delete it again."""
    case, patient, source = demo_rows()[0]
    line = f"{case}\t{patient}\t{source}\t\t\n"
    for folder in projects.values():
        table = folder / "config/benchmarks/demo.cases.tsv"
        table.write_text(table.read_text("utf-8") + line, "utf-8")
    jobs = [job for job in plan(projects[min(projects)], f"data/slices/demo/sub-{case}/case.json") if job.rule in PER_CASE]
    costs: dict[str, dict[int, list[Cost]]] = {job.rule: {size: [] for size in projects} for job in jobs}
    for _ in range(repeats):
        for job in jobs:
            for size, folder in projects.items():
                costs[job.rule][size].append(run_job(job, folder))
    for rule, found in costs.items():
        measurement.add(f"{rule} (one case)", {size: smallest(each) for size, each in found.items()})
    for folder in projects.values():
        table = folder / "config/benchmarks/demo.cases.tsv"
        table.write_text(table.read_text("utf-8").replace(line, ""), "utf-8")
        for stage in CASE_FOLDERS:
            shutil.rmtree(folder / "data" / stage / "demo" / (case if stage == "raw" else f"sub-{case}"))
        for path in (folder / "data/answers/demo").glob(f"{case}.*"):
            path.unlink()


def all_cases(measurement: Measurement, projects: Mapping[int, Path], repeats: int, wanted: Sequence[str]) -> None:
    """Run every stage that reads all cases, with the sizes in turn."""
    # one order for all sizes: Snakemake orders jobs that do not wait for each other as it likes
    plans = {size: {job.outputs: job for job in plan(folder, REPORT) if job.rule not in PER_CASE} for size, folder in projects.items()}
    for outputs, first in plans[min(plans)].items():
        measure = not wanted or first.rule in wanted
        costs: dict[int, list[Cost]] = {size: [] for size in projects}
        for _ in range(repeats if measure else 1):
            for size, folder in projects.items():
                costs[size].append(run_job(plans[size][outputs], folder))
        if measure:
            made = {size: bytes_of(folder / name for name in outputs) for size, folder in projects.items()}
            measurement.add(stage_name(first), {size: smallest(found) for size, found in costs.items()}, made)


def stage_name(job: Job) -> str:
    """Return the rule, with the model that a job is for: each is a stage of its own."""
    model = re.search(r"/(?:responses|scores)/demo/([\w.-]+)\.parquet$|/grades/demo/([\w.-]+)/", job.outputs[0])
    return f"{job.rule} {model[1] or model[2]}" if model else job.rule


def whole_project(measurement: Measurement, projects: Mapping[int, Path], repeats: int, wanted: Sequence[str]) -> None:
    """Measure what looks at the whole project: two plans, the record and the audit of the run."""
    snakemake = f"{sys.executable} -m snakemake --cores 1 --configfile {RUN}"
    nmb = f"unset DVC_STAGE; {sys.executable} -m neuralmedbench run"
    steps = {
        "plan of everything": (f"{snakemake} -n -q all --forceall -- {REPORT}", repeats),
        "touch": (f"{snakemake} -q all --touch -- {REPORT}", 1),  # as if Snakemake had run every job: its records of all files
        "plan of nothing": (f"{snakemake} -n -q all -- {REPORT}", repeats),
        "nmb run record": (f"{nmb} record --configfiles {RUN} 2>&1 | tee record.log; grep -q '^recorded' record.log", 1),
        "nmb run audit": (f"{nmb} audit --configfiles {RUN}", repeats),
    }
    for name, (shell, times) in steps.items():
        costs: dict[int, list[Cost]] = {size: [] for size in projects}
        for _ in range(times):
            for size, folder in projects.items():
                costs[size].append(measured(shell, folder))
        if name != "touch" and (not wanted or name in wanted):
            measurement.add(name, {size: smallest(found) for size, found in costs.items()})


def listing(measurement: Measurement, imaged: Path, scratch: Path, repeats: int, project: Path) -> None:
    """Measure `nmb cases list`: a folder of so many patients of two small DICOM files each, under both profiles of pseudonyms."""
    from pydicom import dcmread
    from pydicom.uid import generate_uid

    series = sorted(next((imaged / "data/raw/demo" / demo_rows(imaged)[0][0] / "dicom").iterdir()).glob("*.dcm"))
    headers = [dcmread(path) for path in series[:2]]
    (project / "own.key").write_text("a key of this measurement alone, 40 characters\n", "utf-8")
    sources = {size: scratch / f"source-{size}" for size in measurement.sizes}
    for size, folder in sources.items():
        for number in range(size):
            names = {
                name: generate_uid(entropy_srcs=[name, str(number)])
                for name in ("StudyInstanceUID", "SeriesInstanceUID", "FrameOfReferenceUID")
            }
            for place, header in enumerate(headers):
                header.PatientID = header.PatientName = f"patient{number:06d}"
                for name, uid in names.items():
                    setattr(header, name, uid)
                header.SOPInstanceUID = header.file_meta.MediaStorageSOPInstanceUID = generate_uid(entropy_srcs=[str(number), str(place)])
                path = folder / f"{number:06d}" / f"{place}.dcm"
                path.parent.mkdir(parents=True, exist_ok=True)
                header.save_as(path)
    for profile in ("pseudonymised", "safe_harbor"):
        costs: dict[int, list[Cost]] = {size: [] for size in sources}
        for _ in range(repeats):
            for size, folder in sources.items():
                shutil.rmtree(project / "data/raw/own", ignore_errors=True)
                (project / "config/benchmarks/own.cases.tsv").unlink(missing_ok=True)
                text = OWN.format(source=folder, profile=profile)
                (project / "config/benchmarks/own.yaml").write_text(text, "utf-8")
                costs[size].append(measured(f"{sys.executable} -m neuralmedbench cases list --benchmark own", project))
        measurement.add(f"nmb cases list, {profile}", {size: smallest(found) for size, found in costs.items()})


def draw(rows: Sequence[Row], path: Path) -> None:
    """Draw a panel for each stage: CPU and wall seconds, MiB of memory and MiB written, by cases on logarithmic axes."""
    import matplotlib

    matplotlib.use("svg")
    import matplotlib.pyplot as plt

    plt.rcParams.update({"svg.hashsalt": "size", "font.size": 7})
    stages = list(dict.fromkeys(row.stage for row in rows))
    columns = 5
    lines = math.ceil(len(stages) / columns)
    figure, axes = plt.subplots(lines, columns, figsize=(11, 1.75 * lines), sharex=True, sharey=True, squeeze=False)
    kinds = {"cpu_s": ("CPU s", "#0072b2", "-"), "wall_s": ("wall s", "#56b4e9", "--")}
    kinds |= {"memory_mib": ("memory MiB", "#d55e00", "-"), "written_mib": ("written MiB", "#009e73", "-")}
    sizes = sorted({row.cases for row in rows})
    for place, panel in enumerate(axes.flat):
        if place >= len(stages):
            panel.axis("off")
            continue
        of_stage = [row for row in rows if row.stage == stages[place]]
        for low in (0.001, 0.1, 10):
            panel.plot(sizes, [low * size for size in sizes], color="#dddddd", linewidth=0.6)  # grows as the cases do
        for name, (label, colour, style) in kinds.items():
            values = [max(getattr(row, name), 0.01) for row in of_stage]
            panel.plot([row.cases for row in of_stage], values, style, color=colour, marker=".", markersize=3, linewidth=1, label=label)
        exponent = of_stage[0].exponent_cpu
        panel.set_title(f"{stages[place]}: {'flat' if exponent is None else f'CPU {exponent:.2f}'}", fontsize=7)
        panel.set(xscale="log", yscale="log", ylim=(0.01, 20_000))
        panel.set_xticks(sizes, [f"{size:,}" for size in sizes])
        panel.set_yticks([0.01, 1, 100, 10_000], ["0.01", "1", "100", "10,000"])
        panel.minorticks_off()
    figure.legend(*axes[0, 0].get_legend_handles_labels(), loc="lower center", ncols=4, frameon=False)
    figure.supxlabel("cases (grey: grows as the cases do)", y=0.03, fontsize=8)
    figure.tight_layout(rect=(0, 0.05, 1, 1))
    figure.savefig(path.with_suffix(".svg"), metadata={"Date": None})
    figure.savefig(path.with_suffix(".png"), dpi=80)
    from PIL import Image

    Image.open(path.with_suffix(".png")).convert("RGB").quantize(128).save(path.with_suffix(".png"), optimize=True)


def main(argv: Sequence[str] | None = None) -> int:
    args = parse_args(argv)
    sizes = [int(size) for size in args.sizes.split(",")]
    wanted = [name for name in args.stages.split(",") if name]
    measurement = Measurement(sizes, args.out)
    if args.draw:
        draw(read_rows(args.out / "cost_against_size.tsv"), args.out / "cost_against_size")
        return 0
    with tempfile.TemporaryDirectory() as temporary:
        scratch = args.scratch or Path(temporary)
        scratch.mkdir(parents=True, exist_ok=True)
        imaged = args.imaged or image_phantoms(scratch / "imaged", args.models)
        projects = {size: write_project(scratch / str(size), imaged, size, args.models) for size in sizes}
        all_cases(measurement, projects, args.repeats, wanted)
        whole_project(measurement, projects, args.repeats, wanted)
        if not wanted or set(wanted) & set(PER_CASE):
            one_case(measurement, projects, args.repeats)
        if not wanted or "cases" in wanted:
            listing(measurement, imaged, scratch, args.repeats, projects[min(sizes)])
    draw(measurement.rows, args.out / "cost_against_size")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
