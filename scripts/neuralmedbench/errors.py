"""The errors of the pipeline: one class for each kind of mistake, one exit code for each class."""

from __future__ import annotations


class PipelineError(Exception):
    """Base class: something that a person can put right.

    A message says what failed, for which item, what was expected, what was there and what to do next.
    It never repeats a header value, a source path or free text: those can identify a patient.
    """

    exit_code = 10


class ConfigError(PipelineError):
    """A configuration file or a command-line argument is wrong."""

    exit_code = 11


class DataError(PipelineError):
    """Input data cannot be used; a per-case stage quarantines the case."""

    exit_code = 12


class DeidentificationError(PipelineError):
    """An identifier could be left; a per-case stage quarantines the case, every later stage refuses it."""

    exit_code = 13


class ProviderError(PipelineError):
    """A model or its provider cannot be asked."""

    exit_code = 14


class ScoringError(PipelineError):
    """Responses cannot be scored."""

    exit_code = 15


class RatingError(PipelineError):
    """A clinician's rating file is refused."""

    exit_code = 16


class StorageError(PipelineError):
    """A disk is full, or may not be written to; what was finished is kept."""

    exit_code = 17


class BusyError(PipelineError):
    """Another process still writes the same output."""

    exit_code = 18


class InterruptedRunError(PipelineError):
    """A person or the system asked a command to end before it was finished."""

    exit_code = 19
