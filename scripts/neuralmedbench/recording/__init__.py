"""What was made, when, from what: the DVC ledger of a run, and the audit of it."""
