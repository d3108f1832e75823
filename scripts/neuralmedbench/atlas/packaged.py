"""Files of the MNI152 templates packaged with nilearn, found without importing it (which takes seconds)."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

from neuralmedbench.errors import DataError


def template_file(kind: str) -> Path:
    """Return the path of a packaged template.

    Parameters
    ----------
    kind : str
        `t1` (skull-stripped), `gm` or `wm` (tissue probabilities): 1 mm, 0 to 255.

    Returns
    -------
    Path
        A gz-compressed NIfTI file.

    Raises
    ------
    DataError
        If the package is not installed or does not contain the file.
    """
    spec = find_spec("nilearn")
    if spec is not None and spec.origin is not None:
        path = Path(spec.origin).parent / "datasets" / "data" / f"mni_icbm152_{kind}_tal_nlin_sym_09a_converted.nii.gz"
        if path.exists():
            return path
    message = f"nilearn's packaged template {kind} is missing; install the version of nilearn that requirements.lock names"
    raise DataError(message)
