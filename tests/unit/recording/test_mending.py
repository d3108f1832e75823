from __future__ import annotations

import json
from base64 import urlsafe_b64encode
from pathlib import Path

import pytest

from neuralmedbench.recording.metadata import METADATA, repair_metadata

RECORD = json.dumps({"rule": "cut_slices", "input_checksums": {"a": "sha256:00"}, "params": ["code"]})


def record_of(root: Path, output: str, content: str | bytes, kind: str = "metadata") -> Path:
    name = urlsafe_b64encode(output.encode()).decode()
    # as Snakemake does with names that are too long for a file name
    path = root.joinpath(
        ".snakemake", kind, *[f"@{name[i : i + 254]}" for i in range(0, len(name) - 254, 254)], name[len(name) // 254 * 254 :]
    )
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


@pytest.mark.parametrize("torn", [b"", RECORD[: len(RECORD) // 2].encode(), b"\x00" * 200, b"\xff\xfe\x00", b"null"])
def test_an_output_with_a_torn_record_is_marked_to_be_made_again(tmp_path, torn):
    whole = record_of(tmp_path, "data/slices/b/slices.parquet", RECORD)
    broken = record_of(tmp_path, "results/responses/b/m.parquet", torn)
    assert repair_metadata(tmp_path) == ["results/responses/b/m.parquet"]
    assert whole.read_text() == RECORD
    assert not broken.exists()
    (mark,) = (tmp_path / ".snakemake/incomplete").iterdir()
    assert mark.name == broken.name
    assert json.loads(mark.read_text()) == {"external_jobid": None}
    assert repair_metadata(tmp_path) == []


def test_a_record_with_a_long_name_is_found_in_its_folders(tmp_path):
    output = f"data/{'x' * 300}/case.json"
    broken = record_of(tmp_path, output, "{")
    assert repair_metadata(tmp_path) == [output]
    assert (tmp_path / ".snakemake/incomplete" / broken.relative_to(tmp_path / METADATA)).is_file()


def test_a_torn_mark_is_made_whole(tmp_path):
    mark = record_of(tmp_path, "results/metrics.json", "{", "incomplete")
    assert repair_metadata(tmp_path) == []
    assert json.loads(mark.read_text()) == {"external_jobid": None}


def test_while_a_run_works_here_nothing_is_touched(tmp_path):
    """A record that is being written looks torn."""
    broken = record_of(tmp_path, "results/metrics.json", "")
    (tmp_path / ".snakemake/locks").mkdir()
    (tmp_path / ".snakemake/locks/0.output.lock").touch()
    assert repair_metadata(tmp_path) == []
    assert broken.exists()


def test_files_that_are_no_records_are_left_alone(tmp_path):
    (tmp_path / METADATA).mkdir(parents=True)
    (tmp_path / METADATA / ".nfs000001").write_text("x")
    assert repair_metadata(tmp_path) == []
    assert (tmp_path / METADATA / ".nfs000001").exists()


def test_a_fresh_folder_has_nothing_to_mend(tmp_path):
    assert repair_metadata(tmp_path) == []
    assert list(tmp_path.iterdir()) == []
