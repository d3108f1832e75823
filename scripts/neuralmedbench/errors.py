"""Errors of the pipeline: one class and one exit code per kind."""

from __future__ import annotations


class PipelineError(Exception):
    """Base class: an error that the user can correct.

    A message says what failed, for which item, what was expected, what was found and what to do next.
    It never repeats a header value, a source path or free text, which can identify a patient.
    """

    exit_code = 10


class ConfigError(PipelineError):
    """A configuration file or a command-line argument is wrong."""

    exit_code = 11


class DataError(PipelineError):
    """Input data cannot be used; a per-case stage quarantines the case."""

    exit_code = 12


class DeidentificationError(PipelineError):
    """An identifier may remain; a per-case stage quarantines the case, every later stage refuses it."""

    exit_code = 13


class ProviderError(PipelineError):
    """A model or its provider cannot be used."""

    exit_code = 14


class ScoringError(PipelineError):
    """Responses cannot be scored."""

    exit_code = 15


class RatingError(PipelineError):
    """A clinician's rating file is refused."""

    exit_code = 16


class StorageError(PipelineError):
    """A disk is full or not writable; finished results are kept."""

    exit_code = 17


class BusyError(PipelineError):
    """Another process still writes the same output."""

    exit_code = 18


class InterruptedRunError(PipelineError):
    """A person or the system stopped a command before it was finished."""

    exit_code = 19
