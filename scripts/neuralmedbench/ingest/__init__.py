"""Raw files: what they are, which of them are used, and under which neutral name they go on.

Doors
-----
case_tables: keyed_pseudonyms, linked_pseudonyms, with_facts, write_listing
cases: ingest_case
listing: ListedCase, Pseudonyms, find_cases, list_cases, summarise
picture_listing: find_picture_cases
pictures: ingest_picture_cases, ingest_pictures
"""
