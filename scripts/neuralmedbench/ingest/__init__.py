"""List and ingest raw files: recognise scans, pictures and texts, choose the usable ones, copy them under neutral names.

Doors
-----
case_tables: JOINS, keyed_pseudonyms, linked_pseudonyms, numbered_pseudonyms, with_facts, write_listing
cases: collect_identity, ingest_case, new_case
listing: ListedCase, Pseudonyms, find_cases, find_picture_cases, list_cases, same_uids_notice, summarise
persons_labels: NamedKinds, map_notices
pictures: ingest_picture_cases, ingest_pictures
raw_files: FileKind, load_raw_files
raw_series: sort_into_series
"""
