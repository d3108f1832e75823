"""Run a command: errors become one line on standard error and an exit code, nowhere else.

Commands that touch patient data make their folders (`data/raw`, `data/ingested`) readable by their owner alone, whatever the umask.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from itertools import pairwise
from pathlib import Path

from neuralmedbench.errors import PipelineError
from neuralmedbench.runtime.one_writer import only_writer, outputs_of
from neuralmedbench.runtime.storage import as_storage_error

LEDGER = "--ledger"
"""Argument of the only file that a command appends to; it has its own lock (`models.ledger`)."""
INTERRUPTED = 130
"""Exit code after Ctrl-C, by the convention of shells (128 + SIGINT)."""
DEBUG_VARIABLE = "NMB_DEBUG"
"""When set to 1, a command shows the traceback as well (the same as `--debug`)."""
ZONE = (Path("data/raw"), Path("data/ingested"))
OTHERS = 0o077


def is_debugging(arguments: Sequence[str] | None = None) -> bool:
    """Return whether tracebacks are shown: `--debug` among the arguments (by default those of the process), or NMB_DEBUG=1."""
    return "--debug" in (sys.argv if arguments is None else arguments) or os.environ.get(DEBUG_VARIABLE) == "1"


def run_command(main: Callable[[Sequence[str] | None], int], argv: Sequence[str] | None = None) -> int:
    """Run a command as the only writer of its outputs; print an error that the user can correct as one line on standard error.

    Parameters
    ----------
    main : callable
        Entry point of the command; takes the arguments after the command's name.
    argv : sequence of str, optional
        The arguments; by default `sys.argv[1:]`. `--debug` anywhere shows the traceback.

    Returns
    -------
    int
        Exit code: 0, or that of the error's class.
    """
    given = list(sys.argv[1:] if argv is None else argv)
    debug = is_debugging(given)
    arguments = [argument for argument in given if argument != "--debug"]
    outputs = outputs_of(arguments)
    ledgers = [Path(value) for name, value in pairwise(arguments) if name == LEDGER]
    try:
        with only_writer(outputs), private_files(outputs):
            code = main(arguments)
        sys.stdout.flush()
    except BrokenPipeError:  # `command | head`: the reader has closed the pipe; buffered output must not fail at exit
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except KeyboardInterrupt:
        if debug:
            raise
        with suppress(OSError):
            print("interrupted: run the same command again", file=sys.stderr, flush=True)
        return INTERRUPTED
    except Exception as error:
        problem = error if isinstance(error, PipelineError) else as_storage_error(error, [*outputs, *ledgers])
        if debug or problem is None:
            raise
        with suppress(OSError):  # on a full disk not even this line can be written; the exit code remains
            print(f"{type(problem).__name__}: {problem}", file=sys.stderr, flush=True)
        return problem.exit_code
    return code


@contextmanager
def private_files(outputs: Sequence[Path], zone: Sequence[Path] = ZONE) -> Iterator[None]:
    """Let only their owner read the files that a block writes (600, folders 700), if one of its outputs lies in the private zone.

    Parameters
    ----------
    outputs : sequence of Path
        Files or folders that the block writes.
    zone : sequence of Path
        Folders of the private zone.

    Raises
    ------
    OSError
        If a folder cannot be made.
    """
    if not close_folders(outputs, zone):
        yield
        return
    umask = os.umask(OTHERS)
    try:
        yield
    finally:
        os.umask(umask)


def close_folders(outputs: Sequence[Path], zone: Sequence[Path] = ZONE) -> bool:
    """Make the folders above these outputs, from the private zone on, and close them to others (700); False if no output lies in the zone.

    Snakemake makes them before a command runs, with the rights of the umask.
    """
    roots = [root.absolute() for root in zone]
    folders = sorted({folder for path in outputs for folder in path.absolute().parents for root in roots if folder.is_relative_to(root)})
    for folder in folders:
        folder.mkdir(parents=True, exist_ok=True)
        if folder.stat().st_mode & OTHERS:
            with suppress(OSError):  # a folder of somebody else, or a file system without rights
                folder.chmod(0o700)
    return bool(folders)
