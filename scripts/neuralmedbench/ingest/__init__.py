"""List and ingest raw files: recognise scans, pictures and texts, choose the usable ones, copy them under neutral names.

Doors
-----
benchmark_listing: list_benchmark, notices
case_tables: keyed_pseudonyms, linked_pseudonyms, numbered_pseudonyms, with_facts
cases: collect_identity, ingest_case, new_case
listing: ListedCase, Pseudonyms, list_cases, summarise
persons_labels: NamedKinds
pictures: ingest_picture_cases, ingest_pictures
raw_files: FileKind, load_raw_files
raw_series: sort_into_series
"""
