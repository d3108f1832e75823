"""Templates of checks and of answer leaks: a package, so that they belong to the commands that write these pages alone."""

from pathlib import Path

TEMPLATES = Path(__file__).parent
