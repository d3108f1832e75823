"""Models behind a server on this machine that the job starts, owns and ends."""
