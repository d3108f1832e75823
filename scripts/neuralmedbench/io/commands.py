"""The one place that turns an error into a line and an exit code."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence

from neuralmedbench.errors import PipelineError

DEBUG_VARIABLE = "NMB_DEBUG"
"""When set to 1, a command shows the traceback as well (the same as `--debug`)."""


def run_command(main: Callable[[Sequence[str] | None], int], argv: Sequence[str] | None = None) -> int:
    """Run a command; a mistake that a person can put right is one line on standard error.

    Parameters
    ----------
    main : callable
        The command's entry point; it takes the arguments after the command's name.
    argv : sequence of str, optional
        The arguments; `sys.argv[1:]` when absent. `--debug` anywhere asks for the traceback.

    Returns
    -------
    int
        The exit code: 0, or that of the error's class.
    """
    arguments = list(sys.argv[1:] if argv is None else argv)
    debug = "--debug" in arguments or os.environ.get(DEBUG_VARIABLE) == "1"
    try:
        return main([argument for argument in arguments if argument != "--debug"])
    except PipelineError as error:
        if debug:
            raise
        print(f"{type(error).__name__}: {error}", file=sys.stderr)
        return error.exit_code
