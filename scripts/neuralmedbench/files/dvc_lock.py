"""What DVC recorded: the files of `dvc.lock`, by path."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import yaml

from neuralmedbench.errors import ConfigError
from neuralmedbench.files.yaml_text import load_yaml

DVC_LOCK = Path("dvc.lock")


@dataclass(frozen=True)
class DvcOut:
    """One recorded out: the MD5 digest by which DVC's cache knows it, its size in bytes, the stage that owns it."""

    md5: str
    size: int
    stage: str

    @property
    def is_folder(self) -> bool:
        """Whether it is a folder."""
        return self.md5.endswith(".dir")


def read_dvc_lock(path: Path = DVC_LOCK) -> dict[str, DvcOut]:
    """Read what was recorded.

    Parameters
    ----------
    path : Path
        The `dvc.lock` of the repository.

    Returns
    -------
    dict of str to Recorded
        By path of the out, relative to the repository root; empty when nothing was ever recorded.

    Raises
    ------
    ConfigError
        If the file is not a DVC lock file (a merge conflict in it, for example).
    """
    try:
        stages = load_yaml(path.read_text(encoding="utf-8"))["stages"]
        return {
            out["path"]: DvcOut(out["md5"], out["size"], name) for name, stage in sorted(stages.items()) for out in stage.get("outs") or ()
        }
    except FileNotFoundError:
        return {}
    except (yaml.YAMLError, KeyError, TypeError, AttributeError):
        message = f"{path.name}: not a DVC lock file; `git checkout {path.name}` brings back the one of the last commit"
        raise ConfigError(message) from None
