"""Records that the stages exchange: frozen dataclasses, the schema of their Parquet and JSON files.

Doors
-----
altered: AlteredPicture, altered_key
answer_key: AnswerKey, CaseScore, NoteKey, NoteSpan, PixelBox, ScoreRow, SeriesKey, TagRule
answer_leaks: AcceptedLeak, AcceptedLeaks, AnswerLeak, AnswerLeaks, SEVERITIES
blinding: hide_names
bundle: BundleCandidate, BundleGrade, BundleImage, BundleResponse, BundleTurn, CaseBundle
case: Audit, CaseRecord, FileFate, PictureFate, PictureManifest, Plane, Sequence, Series, SeriesFate, Slice, SliceRow, State, Tile
checklist: ONLY_IN_CHECKLISTS, PLACES, SECTIONS, with_places
columns: ANSWER_COLUMNS, ANSWER_KEY_COLUMNS, PICTURE_COLUMNS, RECORD_COLUMNS, UNKNOWN_DAY
coordinates: Convention, full_scale, half_width_px, to_fractions, to_picture
curation: CurationRecord, DECISION_COLUMNS, Decision, KEPT, KeptQuestion, PoolModel, RECORD, REMOVED, RemovedQuestion, StageCount
examinations: REQUEST_KINDS, match_request, offered_requests
examinations.inventory: EvidenceKind, Examination, RequestMatch, RequestOutcome, group_of_entry, section_of_note, unique_names
fact_matching: MOST_FACTS, matching_facts, matching_statements
items: Arm, Axis, CURRENT_SCAN, Criterion, DIAGNOSES, Disclosure, ESSENTIAL_SEPARATOR, Exemplar, FIRST_PART, Family, Gold, GoldFields, Item, ItemImage, Kind, Lesion, LesionOnSlice, Level, NEEDED, NO_LESION, OPTION, PART, PRIOR_SCAN, ReferenceValue, Runner, ShownLesion, Strategy, Turn, discloses_findings, evenly_spaced, evidence_images, gold_fields, slice_image, slice_of, with_only
keys: Key, response_key, text_digest
options: NONE_ARM, SHUFFLED, as_asked, is_movable, option_name, order_under
questions: ANSWERS, DISCLOSURES, IMAGES, IMAGE_COLUMNS, IMPORT_RECORD, ImportRecord, LETTERS, QUESTIONS, QUESTION_FILES, Question, QuestionImage, QuestionSet, QuestionTurn, Refusal
requests: EARLIER, Fact, Inquiry, MOST_CANDIDATES, Request, RequestImage, RequestTurn, STATEMENT, earlier_request, joined_words, order_of_parts, with_earlier_answer
responses: MISSING_STATES, Response, ResponseState, SentCall, THINKING, current_rows, distinct_calls, is_cut_in_thought, is_only_thoughts
result_columns: TABLES
results: CLUSTER_MARKS, COLUMNS, FAMILY_TITLES, FEWEST, FUNNEL_STEPS, HIDDEN, MARK, NOT_SHOWN, PATIENT, POOL_MARKS, RANKED_DIFFERENTIAL, mark_of
review: AcceptedIdentityLeak, AcceptedIdentityLeaks, ExcludeReason, IdentityLeak, OwnRule, ReviewedFiles, SignedReview
scores: Evidence, Grade, GradeState, PLANTED, ParseStatus, PlantedAnswer, Prediction, Rating, RatingPart, SIMULATED_ROUND, Score, SimilarityRow, StatedPlace
served: ServedModel, printable_name, served_by
suggestions: DENIAL, OTHER_SIDE, SUGGESTS, rival, suggestion_words, wrong_gold
taxonomy: ERRORS, ERROR_AXIS, ErrorCode, ErrorGroup, PaperClass, TAXONOMY, counts_under, error_of, unknown_errors
urgency: TimeCritical, Urgency
usage: COUNTS, PARTS, Usage, token_count, total_of, usage_of
value_reading: BOX, keywords_of
value_rules: RULES, example_of, fields_of, is_right, overlap, part_of_schema, problem_of_values, read_value, right_text, share_of, threshold, values_schema, write_value
views: ANSWER_ACTION, CT_WINDOW_NAMES, MR_WINDOWS, SliceView, Vector, ViewPlane, ViewRules, ViewScan, ViewStep, Viewer, WHOLE, view_steps, viewer_digest
vocabulary: Diagnosis, Disease, Diseases, Region, Regions, Vocabulary, normal_form
words: DASH, DASHED, LONGEST_ANSWER, LONGEST_NAME, ONCE, SIGNS_OF_A_WORD, WITHOUT_SPACES, all_of, are, capital, count_words, counted, decimal, items_of, listing, p_equals, p_value, percent, percent_span, percent_with_span, plural, points, points_span, quote, spaced, whole
"""
