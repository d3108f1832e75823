"""What people type: `nmb GROUP VERB`, one module a group.

To add a verb, write one function with `@GROUP.verb(...)` in the module of its group. Modules of groups import the library inside functions,
so that `nmb --help` is quick.

Doors
-----
deid: deidentify_folder
main: main
score: score_structured
"""
