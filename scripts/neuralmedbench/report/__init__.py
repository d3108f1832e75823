"""The report: one offline file, built from tables and figures without computing results.

Doors
-----
comparison: read_compared_run, write_comparison
gate: judge_run
page: incomplete_line, write_report
provenance: gather_provenance
source: read_source
"""
