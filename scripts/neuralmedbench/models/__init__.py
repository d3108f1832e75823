"""Models: one engine, one ledger, few backends."""
