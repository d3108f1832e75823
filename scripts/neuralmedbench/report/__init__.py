"""The report: one offline file that computes nothing.

Doors
-----
page: incomplete_line, write_report
provenance: gather_provenance
source: read_source
"""
