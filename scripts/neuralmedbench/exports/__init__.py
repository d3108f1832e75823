"""Exports: the numbers of a run in the forms that other tools and archives read; from what may be shared, never a private id.

Doors
-----
released: released_run
write: write_exports
"""
