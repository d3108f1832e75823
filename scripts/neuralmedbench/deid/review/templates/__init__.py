"""Templates of the review: a package, so that they belong to the commands that write the review alone."""

from pathlib import Path

TEMPLATES = Path(__file__).parent
