"""Read the outs recorded in `dvc.lock`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import yaml

from neuralmedbench.errors import ConfigError
from neuralmedbench.files.yaml_text import load_yaml

DVC_LOCK = Path("dvc.lock")


@dataclass(frozen=True)
class DvcOut:
    """One recorded out: its MD5 digest in DVC's cache, its size in bytes, its stage, and the command of the stage."""

    md5: str
    size: int
    stage: str
    command: str = ""


def read_dvc_lock(path: Path = DVC_LOCK) -> dict[str, DvcOut]:
    """Read the recorded outs.

    Parameters
    ----------
    path : Path
        The `dvc.lock` of the repository.

    Returns
    -------
    dict of str to DvcOut
        By path of the out, relative to the repository root; empty without a lock file.

    Raises
    ------
    ConfigError
        If the file is not a DVC lock file (a merge conflict in it, for example).
    """
    try:
        stages = load_yaml(path.read_text(encoding="utf-8"))["stages"]
        return {
            out["path"]: DvcOut(out["md5"], out["size"], name, stage.get("cmd", ""))
            for name, stage in sorted(stages.items())
            for out in stage.get("outs") or ()
        }
    except FileNotFoundError:
        return {}
    except (yaml.YAMLError, KeyError, TypeError, AttributeError):
        message = f"{path.name}: not a DVC lock file; `git checkout {path.name}` brings back the one of the last commit"
        raise ConfigError(message) from None
