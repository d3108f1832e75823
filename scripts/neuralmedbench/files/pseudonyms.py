"""Keyed pseudonyms: the same person always gets the same id, which cannot be traced back without the key."""

from __future__ import annotations

import hashlib
import hmac
import os
import secrets
from pathlib import Path

from neuralmedbench.errors import ConfigError

DIGITS = 12
"""Hex digits of an id: with 48 bits, a collision among a million ids has a probability of 0.2 %."""

MIN_KEY_BYTES = 16
UID_ROOT = "2.25."


def read_key(path: Path | str | None) -> bytes:
    """Read the secret key of the pseudonyms.

    Parameters
    ----------
    path : Path or str or None
        The key file (`key_file` of the benchmark).

    Returns
    -------
    bytes
        The key without surrounding white space.

    Raises
    ------
    ConfigError
        If no key file is configured, it is absent, or the key is shorter than 16 bytes.
    """
    if not path:
        message = "no `key_file` is configured; make a key with `nmb cases list --new-key FILE` and name it in the benchmark's yaml"
        raise ConfigError(message)
    try:
        key = Path(path).read_bytes().strip()
    except OSError:
        message = "the key file cannot be read; make one with `nmb cases list --new-key FILE` and check `key_file`"
        raise ConfigError(message) from None
    if len(key) < MIN_KEY_BYTES:
        message = f"the key has {len(key)} bytes, at least {MIN_KEY_BYTES} are needed; make one with `nmb cases list --new-key FILE`"
        raise ConfigError(message)
    return key


def write_new_key(path: Path) -> None:
    """Write a new random key that only its owner can read.

    Raises
    ------
    ConfigError
        If the file exists: another key would give the same patients other pseudonyms.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        message = f"{path.name} exists: a new key would give the same patients other pseudonyms; keep it, or name another file"
        raise ConfigError(message) from None
    with os.fdopen(descriptor, "w", encoding="ascii") as file:
        file.write(secrets.token_hex(32) + "\n")


def _hmac(key: bytes, text: str) -> bytes:
    return hmac.new(key, text.encode("utf-8", "surrogateescape"), hashlib.sha256).digest()


def patient_pseudonym(key: bytes, patient: str) -> str:
    """Return the pseudonym of a patient: 12 hex digits of HMAC-SHA256 over `patient:<id>`."""
    return _hmac(key, f"patient:{patient}").hex()[:DIGITS]


def case_pseudonym(key: bytes, patient: str, study: str) -> str:
    """Return the pseudonym of a patient's study: 12 hex digits of HMAC-SHA256 over `case:<patient>/<study>`."""
    return _hmac(key, f"case:{patient}/{study}").hex()[:DIGITS]


def device_pseudonym(key: bytes, device: str) -> str:
    """Return the pseudonym of a scanner's station name or serial number: 12 hex digits of HMAC-SHA256 over `device:<name>`."""
    return _hmac(key, f"device:{device}").hex()[:DIGITS]


def uid_pseudonym(key: bytes, uid: str) -> str:
    """Return the replacement of a UID, the same one everywhere, under DICOM's root for UUIDs (2.25)."""
    return UID_ROOT + str(int.from_bytes(_hmac(key, f"uid:{uid}")[:16], "big"))


def date_shift_days(key: bytes, patient: str) -> int:
    """Return the number of days added to every date of a patient: -365 to -1, never 0."""
    return -1 - int.from_bytes(_hmac(key, f"days:{patient}")[:8], "big") % 365
