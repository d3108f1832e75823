"""Access to DVC through its library: commit, pull recorded files and ledger lines, and turn its errors into one line."""

from __future__ import annotations

import errno
import importlib.util
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from neuralmedbench.errors import ConfigError, DataError
from neuralmedbench.files.dvc_lock import DVC_LOCK, read_dvc_lock
from neuralmedbench.files.packs import unpack_cases
from neuralmedbench.files.yaml_text import load_yaml
from neuralmedbench.models.ledger import add_missing
from neuralmedbench.runtime.atomic_write import write_text

LEDGERS = "data/ledger/"
"""DVC never replaces files in this folder: answers are paid for, and an older record lacks later ones."""

MISMATCH = "dvc.yaml and dvc.lock do not match: check both out of one commit"
ADD_A_REMOTE = "`dvc remote add -d NAME URL` sets one (docs/reproduce.md)"


def why_not_versioned(root: Path = Path()) -> str:
    """Return the reason why nothing can be recorded here; empty if recording is possible."""
    if importlib.util.find_spec("dvc") is None:
        return "dvc is not installed"
    if shutil.which("git") is None:
        return "git is not installed"
    inside = subprocess.run(["git", "rev-parse", "--is-inside-work-tree"], cwd=root, capture_output=True, check=False)
    if inside.returncode != 0:
        return "this folder is not a git repository"
    return "" if (root / ".dvc" / "config").is_file() else "dvc is not set up in this folder (`dvc init`)"


class Repository:
    """The DVC repository; made by `open_repository`."""

    def __init__(self, repo: Any) -> None:
        self._repo = repo

    def commit(self) -> int:
        """Put the files here into the cache and write `dvc.lock`; return the number of outs.

        The files themselves are not touched (`relink=False`): with a new modification time, Snakemake would take a stale file for a
        fresh one.
        """
        from dvc.output import OutputDoesNotExistError

        try:
            stages = self._repo.commit(force=True, relink=False)
        except OutputDoesNotExistError as error:  # of data that only another run uses
            message = f"nothing was recorded: {Path(str(error.path)).name} of a recorded run is not here; `nmb run pull` brings it"
            raise DataError(message) from None
        # stages of an earlier run list would otherwise stay recorded
        _drop_stages({stage.addressing.rpartition(":")[2] for stage in stages})
        return sum(len(stage.outs) for stage in stages)

    def outs(self) -> dict[str, Path]:
        """Return the recorded outs: path in the cache by path relative to the root."""
        root = Path(self._repo.root_dir)
        outs = [out for out in self._repo.index.outs if out.hash_info]
        return {
            Path(out.fs_path).relative_to(root).as_posix(): Path(self._repo.cache.local.oid_to_path(out.hash_info.value)) for out in outs
        }

    def missing(self) -> list[str]:
        """Return the paths whose content is not in the cache."""
        return sorted(path for _, _, _, path in self._repo.cache_check_missing())

    def fetch(self) -> None:
        """Fetch the recorded objects that the cache lacks from the remote; an error if any is missing."""
        wanted = len(self.missing())
        if not wanted:  # an offline pull works
            return
        name = self._repo.config["core"].get("remote")
        if name is None:
            message = f"no remote is set: {ADD_A_REMOTE}"
            raise ConfigError(message)
        self._repo.fetch()
        if missing := self.missing():
            # all objects missing suggests an unreachable remote, some missing a forgotten push
            state = "returned nothing: can it be reached, and" if len(missing) == wanted else f"lacks {len(missing)} of {wanted} objects:"
            message = f"the remote {name} {state} was everything pushed where it was made (`dvc push`)? first missing: {missing[0]}; nothing here was changed"
            raise DataError(message)

    def checkout(self, *, but: str) -> int:
        """Check the recorded outs out, but those in one folder; return the number of files that changed.

        DVC reads `dvc.yaml` and `dvc.lock` once for each path that it is given: 8 s of a run of 54 outs, hours of a large one. So it is given
        none, and the outs in the folder are taken out of the index that it has read; no later step may see that index.
        """
        folder = (Path(self._repo.root_dir) / but).as_posix()
        with self.one_index():
            for stage in self._repo.index.stages:
                stage.outs = [out for out in stage.outs if not Path(out.fs_path).is_relative_to(folder)]
            # with an empty list DVC would delete files that are no outs of this index
            stats = self._repo.checkout(targets=[None])["stats"]
        return int(sum(stats.values()))

    @contextmanager
    def one_index(self) -> Iterator[None]:
        """Lock the repository: DVC reads `dvc.yaml` and `dvc.lock` once for all steps until the end, not again before and after each."""
        from dvc.repo import lock_repo

        with lock_repo(self._repo):
            yield

    def changed(self) -> list[str]:
        """Return the recorded outs that differ from the record, sorted."""
        status = self._repo.data_status(granular=False, not_in_remote=False)
        return sorted({path.rstrip("/") for kind in status["uncommitted"].values() for path in kind})


def _drop_stages(keep: set[str]) -> None:
    """Remove stages from `dvc.lock` that are no longer in `dvc.yaml`: DVC never does."""
    lock = load_yaml(DVC_LOCK.read_text(encoding="utf-8"))
    kept = {name: stage for name, stage in lock["stages"].items() if name in keep}
    if kept != lock["stages"]:
        write_text(DVC_LOCK, yaml.safe_dump({**lock, "stages": kept}, sort_keys=False))


@contextmanager
def open_repository() -> Iterator[Repository]:
    """Open the DVC repository of the working directory."""
    import logging

    from dvc.config import RemoteConfigError
    from dvc.exceptions import CheckoutError, DvcException, FileTransferError, OutputNotFoundError
    from dvc.lock import LockError
    from dvc.repo import Repo
    from dvc.ui import ui

    for library in ("dvc", "dvc_data"):
        logging.getLogger(library).setLevel(logging.ERROR)  # their warnings list every object; the errors below sum them up
    ui.enable()
    try:
        with Repo() as repo:
            yield Repository(repo)
    except FileTransferError as error:
        message = f"{error.amount} objects could not be fetched from the remote: can it be reached? nothing here was changed"
        raise DataError(message) from None
    except CheckoutError as error:
        message = f"{len(error.target_infos)} outs could not be written, first {error.target_infos[0]}: free space, then pull again"
        raise DataError(message) from None
    except (RemoteConfigError, LockError, OutputNotFoundError, ImportError) as error:
        messages = {
            RemoteConfigError: f"the remote in .dvc/config cannot be used: {ADD_A_REMOTE}",
            LockError: "another process is using dvc here: wait for it to end, and run again",
            OutputNotFoundError: MISMATCH,
            ImportError: f"the remote cannot be used: {error}",  # DVC has a package for each kind of remote, and names it
        }
        raise ConfigError(next(text for kind, text in messages.items() if isinstance(error, kind))) from None
    except DvcException as error:
        raise _explain(error) from None
    # a full or read-only disk is not a fault of the remote
    except OSError as error:
        if error.errno in {errno.ENOSPC, errno.EDQUOT, errno.EROFS}:
            raise
        message = f"the remote cannot be reached ({type(error).__name__}); nothing here was changed"
        raise DataError(message) from None


def _explain(error: Exception) -> DataError | ConfigError:
    text = str(error)
    if "unsaved files" in text:  # the first line is a heading, the others are paths
        names = [line for line in text.splitlines()[1:] if line.strip()]
        first = Path(names[0]).relative_to(Path.cwd()).as_posix() if names else ""
        return DataError(
            f"{len(names)} files here were never recorded and would be lost, first {first}: finish the run, so that it is recorded,"
            " or delete them with `make clean`; then pull again"
        )
    return ConfigError(f"dvc failed ({type(error).__name__}): `dvc status` shows more")


@dataclass(frozen=True)
class PullResult:
    """Result of a pull: numbers of changed files and of answers added to ledgers."""

    files: int
    answers: int


def pull() -> PullResult:
    """Pull everything in `dvc.lock`.

    All objects are fetched before any file here is changed. Ledgers are not replaced but merged by key: an answer that was paid for here
    after the recorded run is kept. Packs are unpacked.

    Returns
    -------
    PullResult
        Numbers of files and answers.

    Raises
    ------
    ConfigError
        If nothing was recorded, there is no remote, or another process is using DVC.
    DataError
        If an object is missing, the remote cannot be reached, or files here were never recorded and would be lost.
    """
    if reason := why_not_versioned():
        message = f"nothing can be pulled: {reason}"
        raise ConfigError(message)
    if not DVC_LOCK.is_file():
        message = f"nothing was recorded in this commit: {DVC_LOCK} is missing; run the pipeline, or check out a commit that has it"
        raise ConfigError(message)
    with open_repository() as repository, repository.one_index():
        outs = repository.outs()
        if read_dvc_lock().keys() - outs.keys():
            raise ConfigError(MISMATCH)
        repository.fetch()
        answers = sum(add_missing(Path(path), cached) for path, cached in outs.items() if path.startswith(LEDGERS))
        files = repository.checkout(but=LEDGERS)
    for path in outs:
        unpack_cases(Path(path))
    return PullResult(files, answers)
