"""The command line for people: `nmb GROUP VERB`, one module per group.

To add a verb, write one function with `@GROUP.verb(...)` in the module of its group. These modules import the library inside functions,
so that `nmb --help` is fast.

Doors
-----
deid: deidentify_folder
main: main
score: score_structured
"""
