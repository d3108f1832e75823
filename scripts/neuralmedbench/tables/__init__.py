"""Tables: every number with its n and its interval."""
