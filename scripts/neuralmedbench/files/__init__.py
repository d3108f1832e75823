"""File formats: read and write the files that stages pass to each other.

Doors
-----
answer_key: NAME, contains_planted, find_planted, plain, read_answer_key, searchable, write_answer_key
bids: OLDEST, UNKNOWN, Participant, describe_participant, read_participants, write_description, write_trace_gradients
case_flow: MIN_PATIENTS, PHANTOM, case_outcome, counts_as_patient, flow_of_cases, stopping_share
cases: CASE_STAGES, CaseRow, KINDS, LEFT_OUT, case_files, case_table, foreign_input, quarantine_on_error, read_audit, read_case, read_case_table, read_overrides, read_pictures, run_case_stage, split_override, unlisted_cases, unlisted_notice, write_audit, write_case, write_case_table, write_overrides, write_pictures
dcm2niix: convert_largest
dicom: DEFLATED, MEDIA_DIRECTORY, PREAMBLE, TooLargeError, check_file_size, drop_bulk, elements, first_header, header_and_length, header_bytes, looks_like_dicom, number, numbers, read_dicom, read_header, text, texts, value
digests: bytes_with_digest, sha256_of, sha256_of_files, sha256_of_value
dvc_lock: DVC_LOCK, DvcOut, read_dvc_lock
external_files: GivenAnswer, delimited_rows, json_line_rows, long_cells, read_given
identity: GENERIC, Identity, IdentityPattern, MIN_DIGITS, MIN_SEPARABLE, ORDINARY, fold, identity_pattern, read_identity, write_identity
inside: file_inside, resolve_links
json_files: place_of_fault, read_json, read_json_record, read_lines, write_json, write_json_record, write_lines
known_lesions: KnownLesion, LesionMask, MASK_SUFFIX, read_known_lesion, read_lesion_mask
nifti: LPS_TO_RAS, MAX_TURN_DEG, MAX_VOXELS, NIFTI_2, SAME_SIZE, Volume, nifti_image, read_nifti, write_nifti
packs: SUFFIX, pack_absent, packed_files, packed_outs, unpack_absent, unpack_cases, write_pack, write_zip
pages.page: page_templates, render_page
pages.pictures: PagePicture, THUMBNAIL_PX, picture_of, reduced_picture
plain_pictures: GLYPHS, GREYS, Levels, MAX_BYTES, MIME_AND_SUFFIX, TOO_LARGE, count_pictures, lettered, mime_type, open_picture, outlined, picture_head, picture_manifest, shows_nothing, side_by_side, to_levels, write_grey, write_levels, write_picture
pseudonyms: DIGITS, case_pseudonym, date_shift_days, device_pseudonym, patient_pseudonym, read_key, uid_pseudonym, write_new_key
raw_folder: RawFile, RawIndex, RawPicture, images_folder, read_descriptions, read_raw_index, unused_images, write_descriptions, write_raw_index
result_tables: read_result, read_results
tables: arrow_schema, gc_paused, guard_cell, read_by_item, read_records, read_table, unguard_cell, write_records, write_table
templates: Templates, version_of
texts: UnreadableTextError, decode_text, for_terminal, is_scanner_text, visible
vocabulary: diseases_path, names_path, read_urgency, read_vocabulary, urgency_path
volumes: CT_AIR_HU, Matrix, as_matrix, as_stored, as_transform, centre_of, centre_of_grid, grid_over, homogeneous, image_like, is_ct, read_volume, resample_to, use_one_thread, write_volume
words: AS_EPONYM, EPONYMS, NO_AGENT, UNSTATED_AGENT, is_eponym, word_set
yaml_text: NestingError, load_yaml, yaml_fault
"""
