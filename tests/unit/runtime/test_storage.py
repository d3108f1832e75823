from __future__ import annotations

import errno
import os
import shutil
from pathlib import Path

import numpy as np
import pytest

import deidentify_case
import ingest_case
import normalise_case
from fixtures.commands import settings
from fixtures.deid import flat_deface, write_config, write_dicom_series, write_index
from fixtures.disk import fill, read_only, small_disk
from fixtures.imaging import Shot, write_shots
from fixtures.items import slice_row
from fixtures.models import model_config, request, running_server
from neuralmedbench.errors import ConfigError, DataError, StorageError
from neuralmedbench.files import dcm2niix
from neuralmedbench.files.cases import quarantine_on_error, read_case
from neuralmedbench.files.nifti import Volume, write_nifti
from neuralmedbench.files.plain_pictures import write_grey
from neuralmedbench.files.tables import write_records
from neuralmedbench.files.volumes import write_volume
from neuralmedbench.imaging import normalise
from neuralmedbench.models import ledger as ledgers
from neuralmedbench.models.engine import answer_requests
from neuralmedbench.models.ledger import LedgerEntry, open_ledger, read_ledger
from neuralmedbench.models.model_run import ModelRun
from neuralmedbench.records.case import CaseRecord, SliceRow, State
from neuralmedbench.runtime import storage
from neuralmedbench.runtime.commands import run_command
from neuralmedbench.runtime.storage import check_places, check_project

pytestmark = pytest.mark.slow

assert flat_deface
CASE = CaseRecord(benchmark="b", case_id="c1", patient_id="p1", stage="ingest", source_sha256="0")


@pytest.fixture
def here(tmp_path, monkeypatch):
    """Change to a folder of the test, as commands run in the project."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def failing(error: Exception):
    def main(_argv):
        raise error

    return main


@pytest.mark.parametrize(
    ("number", "place", "line"),
    [
        (errno.ENOSPC, None, "no room left on the disk (or in the quota) for data/b/case.json; free some space and"),
        (errno.EDQUOT, "data/b/.partial-x/VANDERMEER.dcm", "no room left on the disk (or in the quota) for data/b/case.json; free some"),
        (errno.EROFS, "data/b/.partial-x", "data/b/case.json cannot be written: its disk or folder is read-only; make it writable and"),
        (errno.EACCES, "data/b/png/1.png", "no permission to write data/b/case.json; give yourself permission for its folder and"),
        (errno.EPERM, "data", "no permission to write data/b/case.json; give yourself permission for its folder and"),
        (
            errno.EACCES,
            "/home/SMITH^JOHN/1.dcm",
            "no permission for a file that is read to make data/b/case.json; give yourself permission",
        ),
    ],
)
def test_an_error_of_the_disk_is_one_line_that_names_the_output_and_no_other_path(here, capsys, number, place, line):
    error = OSError(number, os.strerror(number), place)
    assert run_command(failing(error), ["--case", "a", "--out", "data/b/case.json"]) == StorageError.exit_code
    output = capsys.readouterr().err
    assert output.startswith(f"StorageError: {line}")
    assert output.endswith("run the same command again: what was finished is kept\n")
    assert output.count("\n") == 1
    assert "SMITH" not in output
    assert "VANDERMEER" not in output


def test_a_folder_in_the_place_of_a_file_is_one_line(here, capsys):
    (here / "table.csv").mkdir()
    assert run_command(lambda _: len((here / "table.csv").read_text()), ["--out", "data/b.json"]) == StorageError.exit_code
    assert capsys.readouterr().err.startswith(
        "StorageError: a folder stands where a file is read or written for data/b.json; give the path"
    )


@pytest.mark.parametrize("error", [OSError(errno.EIO, "Input/output error"), FileNotFoundError(2, "no"), KeyError("x"), RuntimeError("x")])
def test_every_other_error_stays_a_traceback(error, here):
    with pytest.raises(type(error)):
        run_command(failing(error), ["--out", "a"])


def test_a_full_disk_is_found_behind_every_wrapping(here, capsys):

    def main(_argv):
        try:
            try:
                raise OSError(errno.ENOSPC, "full")
            except OSError as error:
                message = "With tag (7FE0,0010) got exception"
                raise OSError(message) from error
        except OSError:
            message = "writer failed"
            raise RuntimeError(message) from None

    assert run_command(main, ["--out", "a.nii"]) == StorageError.exit_code
    assert "no room left on the disk (or in the quota) for a.nii" in capsys.readouterr().err


def test_a_configuration_that_cannot_be_read_is_still_explained_by_its_own_line(here, capsys):

    def main(_argv):
        try:
            raise PermissionError(errno.EACCES, "no", "key")
        except OSError:
            message = "the key file cannot be read"
            raise ConfigError(message) from None

    assert run_command(main, ["--out", "a"]) == ConfigError.exit_code
    assert capsys.readouterr().err == "ConfigError: the key file cannot be read\n"


def test_what_a_stage_takes_for_bad_data_on_a_full_disk_quarantines_nobody():
    def step():
        try:
            raise OSError(errno.ENOSPC, "full")
        except OSError:
            message = "damaged"
            raise DataError(message) from None

    with pytest.raises(OSError, match="full"):
        quarantine_on_error(CASE, step)


def test_when_even_the_line_has_no_room_the_exit_code_says_it(monkeypatch, here):
    with Path("/dev/full").open("w", encoding="utf-8") as full:
        monkeypatch.setattr("sys.stderr", full)
        assert run_command(failing(OSError(errno.ENOSPC, "full")), ["--out", "a"]) == StorageError.exit_code
        monkeypatch.undo()
        with pytest.raises(OSError, match="No space"):
            full.close()


WRITERS = {
    "volume.nii": lambda path, noise: write_volume(path, _image(noise)),
    "volume.nii.gz": lambda path, noise: write_volume(path, _image(noise)),
    "scan.nii.gz": lambda path, noise: write_nifti(path, Volume(noise, np.eye(4))),
    "picture.png": lambda path, noise: write_grey(path, noise.reshape(-1, 512).astype(np.uint8)),
    "table.parquet": lambda path, noise: write_records(path, SliceRow, _rows(noise), key=lambda row: row.image_id),
}


def _image(noise):
    import SimpleITK as sitk

    return sitk.GetImageFromArray(noise)


def _rows(noise):
    return [slice_row("c1", number, image_id=part.tobytes().hex()) for number, part in enumerate(noise)]


@pytest.mark.parametrize("name", WRITERS)
def test_every_writer_says_that_the_disk_is_full_and_leaves_nothing(name, here, capsys):
    """SimpleITK writes half a volume and reports success."""
    noise = np.random.default_rng(1).integers(0, 30_000, (16, 128, 128)).astype(np.int16)
    with small_disk(here / "disk", 256) as disk:
        out = disk / name
        assert run_command(lambda _: WRITERS[name](out, noise) or 0, ["--out", f"disk/{name}"]) == StorageError.exit_code
        assert f"for disk/{name}; free some space" in capsys.readouterr().err
        assert list(disk.iterdir()) == []


@pytest.mark.parametrize(
    "leave_kib", [0, 300, 700, 1500, 2000, *(pytest.param(more, marks=pytest.mark.long) for more in (40, 1100, 1200, 1300))]
)
def test_a_full_disk_never_quarantines_a_case_that_is_deidentified(leave_kib, here, flat_deface):
    """dcm2niix makes no image on a full disk, and none of damaged files; pydicom hides the reason."""
    # equal images would be excluded as copies
    files = [path for number in (1, 2) for path in write_dicom_series(here / "raw", number=number, spacing=7.0 - 0.5 * number)]
    config = write_config(here / "config", here, deidentification={"options": [113101, 113102, 113105, 113107]})
    index = write_index(here, files)
    with small_disk(here / "disk", 4096) as disk:
        fill(disk, leave_kib=leave_kib)
        first, second = disk / "ingested" / "case.json", disk / "deidentified" / "case.json"
        common = ["--benchmark", "mine", "--config", str(config), "--case", str(first)]
        codes = [
            run_command(ingest_case.main, ["--benchmark", "mine", "--case", "c0ffee", "--files", str(index), "--out", str(first)]),
            run_command(deidentify_case.main, [*common, "--out", str(second)]) if first.exists() else None,
        ]
        done = [read_case(path) for path in (first, second) if path.exists()]
        assert {case.state for case in done} <= {State.OK}
        assert all(len(case.series) == 2 for case in done)
        assert codes == [[17, None], [0, 17], [0, 0]][len(done)]
        assert not list(disk.rglob(".partial-*"))


def test_dcm2niix_is_taken_at_its_word_when_the_disk_has_room_again_a_moment_later(tmp_path, monkeypatch):
    write_dicom_series(tmp_path / "raw")
    monkeypatch.setattr(dcm2niix, "has_room", lambda *_: True)
    with small_disk(tmp_path / "disk", 64) as disk, pytest.raises(OSError, match="No space left on device"):
        dcm2niix.convert(tmp_path / "raw", disk / "nifti")


def once(function):
    """Compute the first result and give it to every later call."""
    made = []

    def given(*values, **named):
        if not made:
            made.append(function(*values, **named))
        return made[0]

    return given


@pytest.mark.parametrize("sizes_kib", [(0, 2000), pytest.param((60,), marks=pytest.mark.long)])
def test_a_full_disk_never_quarantines_a_case_that_is_normalised(sizes_kib, here, monkeypatch):
    for name in ("_bias_corrected", "fit_template", "find_brain"):  # nothing of them is written
        monkeypatch.setattr(normalise, name, once(getattr(normalise, name)))
    case = write_shots(here / "deidentified", [Shot("T1w")])
    arguments = ["--case", str(case), *settings(imaging={"bias_grid_mm": 16}), "--out", "disk/n/case.json"]
    with small_disk(here / "disk", 4096) as disk:
        for leave_kib in sizes_kib:
            ballast = fill(disk, leave_kib=leave_kib)
            assert run_command(normalise_case.main, arguments) == StorageError.exit_code
            assert not (disk / "n" / "case.json").exists()
            assert not (disk / "n" / "volumes").exists()
            ballast.unlink()
    assert run_command(normalise_case.main, arguments) == 0
    assert read_case(here / "disk" / "n" / "case.json").state is State.OK


def test_a_disk_that_may_only_be_read_is_said_before_anything_begins(here, capsys):
    (here / "data" / "slices").mkdir(parents=True)
    with read_only(here / "data"):
        with pytest.raises(StorageError, match=r"^data/slices cannot be written: it is read-only or not yours; make it writable and run"):
            check_places(["results/metrics.json", "data/slices/b/sub-1/case.json"])
        assert (
            run_command(lambda _: write_grey(Path("data/slices/a.png"), np.zeros((8, 8), np.uint8)) or 0, ["--out", "data/slices/a"]) == 17
        )
    assert "data/slices/a cannot be written: its disk or folder is read-only" in capsys.readouterr().err
    check_places(["results/metrics.json", "data/slices/b/sub-1/case.json"])


def test_a_project_in_a_folder_with_braces_is_refused_in_one_line(tmp_path):
    """Snakemake would end with a NameError of its own."""
    for name in ("ward{x}", "a}b"):
        (tmp_path / name / "project").mkdir(parents=True)
        with pytest.raises(ConfigError, match="has a brace in its name"):
            check_project(tmp_path / name / "project")


def test_a_project_that_cannot_be_written_or_has_no_room_is_refused(tmp_path, monkeypatch):
    check_project(tmp_path)
    (tmp_path / ".snakemake").mkdir()
    with read_only(tmp_path), pytest.raises(StorageError, match="Snakemake cannot keep its records here"):
        check_project(tmp_path)
    monkeypatch.setattr(storage, "LEAST_ROOM_BYTES", shutil.disk_usage(tmp_path).total)
    with pytest.raises(StorageError, match="no room left on the disk of this folder"):
        check_project(tmp_path)


@pytest.fixture
def ask(tmp_path):
    """Return a function that queries a server, with the ledger in the folder `ledger`."""
    with running_server() as server:

        def asking(requests, **changes):
            config = model_config(api_base=server.address, seed=1, **changes)
            return answer_requests(
                requests,
                ModelRun(config, ledger=tmp_path / "ledger" / "m.jsonl", destinations=("local",), max_failed_fraction=None, root=tmp_path),
            )

        asking.server = server
        yield asking


def test_on_a_full_disk_nothing_is_asked_and_nothing_is_lost(ask, tmp_path):
    with small_disk(tmp_path / "ledger", ledgers.ROOM_BYTES // 1024 + 64) as disk:
        ask([request("i0", samples=3)])
        kept = (disk / "m.jsonl").read_bytes()
        ballast = fill(disk, leave_kib=40)
        with pytest.raises(StorageError, match=r"^model m: less than 8 MiB are free on the disk of its ledger; no more calls were made"):
            ask([request("i0", samples=3), request("i1", samples=3)])
        assert len(ask.server.bodies) == 3
        assert (disk / "m.jsonl").read_bytes() == kept
        ballast.unlink()
        assert len(ask([request("i0", samples=3), request("i1", samples=3)])) == 6
        assert len(ask.server.bodies) == 6


def test_a_disk_that_fills_during_a_run_stops_the_calls_and_keeps_those_under_way(ask, tmp_path):
    with small_disk(tmp_path / "ledger", ledgers.ROOM_BYTES // 1024 + 64) as disk:
        requests = [request(f"i{number}", samples=4) for number in range(60)]
        with pytest.raises(StorageError, match="the answers so far are kept"):
            ask(requests, concurrency=4)
        asked = len(ask.server.bodies)
        assert 0 < asked < 240
        assert len(read_ledger(disk / "m.jsonl")) == asked


def test_a_ledger_that_takes_no_more_is_one_line_and_the_rest_is_asked_once_there_is_room(ask, tmp_path, monkeypatch):
    """A quota is not detected in advance: the write itself fails."""
    monkeypatch.setattr(ledgers, "ROOM_BYTES", 0)
    requests = [request(f"i{number}") for number in range(200)]
    with small_disk(tmp_path / "ledger", 256) as disk:
        ballast = fill(disk, leave_kib=32)
        with pytest.raises(
            StorageError, match=r"^model m: its ledger cannot be written \(No space left on device\); no more calls were made"
        ):
            ask(requests, concurrency=2)
        asked, kept = len(ask.server.bodies), set(read_ledger(disk / "m.jsonl"))
        assert asked - 3 <= len(kept) < asked < 200
        ballast.unlink()
        assert len(ask(requests)) == 200
        assert len(ask.server.bodies) == asked + 200 - len(kept)
        assert kept <= set(read_ledger(disk / "m.jsonl"))


def test_a_ledger_that_takes_no_more_is_told_by_the_command_in_one_line(here, capsys):

    def main(_argv):
        with open_ledger(Path("disk/m.jsonl")) as book:
            for number in range(100):
                book.add(LedgerEntry(key=str(number), state="ok", text="x" * 1000))
        return 0

    with small_disk(here / "disk", 64) as disk:
        assert run_command(main, ["--ledger", "disk/m.jsonl", "--out", "disk/m.parquet"]) == StorageError.exit_code
        assert "no room left on the disk (or in the quota) for disk/m.parquet" in capsys.readouterr().err
        assert all(entry.text == "x" * 1000 for entry in read_ledger(disk / "m.jsonl").values())
