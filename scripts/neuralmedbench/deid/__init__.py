"""De-identification: the gate between private and shareable data.

Doors
-----
audit: audit_cases, audit_pictures, audit_rules
cleaning: cleaning_policy
dataset: write_dataset
pictures: deidentify_picture_cases, deidentify_pictures
release.audit: summarise_release, write_release_audit
release.dry_run: dry_run_of_benchmark, dry_run_of_folder, file_lines, summary_lines
release.folder: check_release, release_folder
release.settings: check_paths, make_settings
review.accepted: accept, read_accepted_leaks, write_accepted_leaks
review.before_signing: check_up_to_date, exclude_cases, read_decisions
review.signature: apply_review, read_reviewed_files, read_signed, sign, write_signed
review.write: write_case_review, write_picture_review
stage: deidentify_case, empty_outputs
"""
