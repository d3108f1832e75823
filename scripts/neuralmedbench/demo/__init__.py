"""The built-in cohort: phantoms with planted identities, and baselines that answer without a vision-language model.

Doors
-----
baselines.baseline: Baseline, build
cohort: TINY, find_patient, read_cohort
generate: case_row, generate_case
pictures: collect_pictures
"""
