"""The writer of offline pages: a package, so that its templates belong to the commands that write pages alone."""
