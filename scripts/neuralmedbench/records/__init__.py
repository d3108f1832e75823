"""Records that the stages exchange: frozen dataclasses, the schema of their Parquet and JSON files.

Doors
-----
answer_key: AnswerKey, CaseScore, NoteKey, NoteSpan, PixelBox, ScoreRow, SeriesKey, TagRule
answer_leaks: AcceptedLeak, AcceptedLeaks, AnswerLeak, AnswerLeaks, SEVERITIES
arm_changes: CHOICE, DENIAL, NONE_ARM, OTHER_SIDE, ROTATIONS, SHUFFLED, SUGGESTS, AlteredPicture, altered_key, as_asked, by_digest, in_form, is_movable, option_name, order_under, right_letter, rival, suggestion_words, wrong_gold
blinding: hide_names
bundle: BundleCandidate, BundleGrade, BundleImage, BundleResponse, BundleTurn, CaseBundle
case: Audit, CT_SEQUENCES, CaseRecord, FileFate, MIN_SLICES, NoHead, PLANES_ACROSS, PictureFate, PictureManifest, Plane, Sequence, Series, SeriesFate, Slice, SliceRow, State, Tile, VoxelSizes
checklist: ONLY_IN_CHECKLISTS, PLACES, SECTIONS, with_places
columns: ANSWER_COLUMNS, ANSWER_KEY_COLUMNS, PICTURE_COLUMNS, RECORD_COLUMNS, UNKNOWN_DAY
coordinates: Convention, full_scale, half_width_px, to_fractions, to_picture
examinations.inventory: EvidenceKind, Examination, RequestMatch, RequestOutcome, group_of_entry, section_of_note, unique_names
examinations.matching: REQUEST_KINDS, match_request, offered_requests
fact_matching: MOST_FACTS, matching_facts, matching_statements
items: Arm, Axis, CURRENT_SCAN, Criterion, DIAGNOSES, Disclosure, ESSENTIAL_SEPARATOR, Exemplar, FIRST_PART, Family, Gold, GoldFields, Item, ItemImage, Kind, Lesion, LesionOnSlice, Level, NEEDED, NO_LESION, OPTION, PART, PRIOR_SCAN, SIDE_WORDS, ReferenceValue, Runner, ShownLesion, Strategy, Turn, discloses_findings, evenly_spaced, evidence_images, gold_fields, is_headline, slice_image, slice_of, with_only
json_objects: json_value, objects_in
model_marks: marks_in, with_inert_texts, with_picture_names, without_marks
questions: ANSWERS, DISCLOSURES, IMAGES, IMAGE_COLUMNS, IMPORT_RECORD, ImportRecord, ImportedQuestion, LETTERS, PICTURE, QUESTIONS, QUESTION_FILES, QuestionImage, QuestionSet, QuestionTurn, Refusal
requests: EARLIER, Fact, Inquiry, MOST_CANDIDATES, Request, RequestImage, RequestTurn, STATEMENT, earlier_request, joined_words, long_prompt_line, order_of_parts, with_earlier_answer
responses: ANOTHER_MODEL, COUNTS, MISSING_STATES, PARTS, Response, ResponseState, SentCall, ServedModel, Usage, current_rows, distinct_calls, is_by_another_model, is_cut_in_thought, printable_name, served_by, token_count, total_of, usage_of
result_columns: TABLES, TOPICS
results: ALL_ARMS, BOUNDS, CLUSTER_MARKS, COLUMNS, FAMILY_TITLES, FEWEST, HIDDEN, LEFT_OPEN, MARK, NOT_SHOWN, PASS1, PASS1_PATIENTS, PATIENT, POOL_MARKS, PRIOR, RANKED_DIFFERENTIAL, RANKING, SHAPES, SIDES, SIMULATED, by_measure, files_of, is_simulated, mark_of, types_of_table, with_board_names
review: AcceptedIdentityLeak, AcceptedIdentityLeaks, ExcludeReason, IdentityLeak, OwnRule, ReviewedFiles, SignedReview
scores: CORE_DIAGNOSIS, LONGEST_DIFFERENTIAL, MAIN_CONDITION, PLANTED, SIMULATED_ROUND, Evidence, Grade, GradeState, Key, ParseStatus, PlantedAnswer, Prediction, Rating, RatingPart, Score, SimilarityRow, StatedPlace, response_key, text_digest
served_names: AZURE, names_same_model
taxonomy: ERRORS, ERROR_AXIS, ErrorCode, ErrorGroup, PaperClass, TAXONOMY, counts_under, error_of, unknown_errors
thoughts: OPENING, THINKING, ThoughtEnd, answer_of, is_only_thoughts, split_thoughts, without_thoughts
value_reading: keywords_of
value_rules: RULES, example_of, fields_of, is_right, overlap, part_of_schema, problem_of_values, read_value, right_text, share_of, threshold, values_schema, write_value
views: ANSWER_ACTION, CT_WINDOW_NAMES, FINAL, MR_WINDOWS, SliceView, Vector, ViewPlane, ViewRules, ViewScan, ViewStep, Viewer, WHOLE, view_steps, viewer_digest
vocabulary: BRACKETS, Diagnosis, Disease, Diseases, Region, Regions, TimeCritical, Urgency, Vocabulary, normal_form
words: DASH, DASHED, LONGEST_ANSWER, LONGEST_NAME, ONCE, SIGNS_OF_A_WORD, WITHOUT_SPACES, all_of, apart, are, as_sentence, capital, count_words, counted, decimal, items_of, listing, p_equals, p_value, percent, percent_span, percent_with_span, plural, points, points_span, quote, spaced, unsure_span, whole
"""
