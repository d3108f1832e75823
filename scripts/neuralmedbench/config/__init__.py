"""The configuration: typed, read once, and rejected if it is wrong.

Doors
-----
arms: AT_LESION, ArmConfig, ArmVariant, load_arms
benchmark: BenchmarkConfig, MappedSequence, Pattern, ViewerConfig, are_shallow_texts
checklists: ANSWERED, ANSWER_WORDS, Answer, AnswerSheet, ChecklistConfig, ChecklistItem, PLACES
code_hash: code_hash
deidentification: DeidentificationConfig, ElementRule, MAY_BE_KEPT, OURS, Profile, actions_by_tag, header_options
imaging: ImagingConfig, SEQUENCE_ORDER, SlicesConfig
juries: jury_members
layouts: CASE, COMMON_ORDER, Layout, LayoutConfig, PICTURES, QUESTION
load: WITHHELD, check, group_limit, load_benchmark, load_checklists, load_grader, load_informant, load_model, load_model_for, load_pipeline, load_published, load_readiness, nearest, read_yaml, section_in, wildcard, withhold_outside_paths
mappings: FOLDER, CurationConfig, FieldMapping, ImagesMapping, MappingConfig, load_curation, load_mappings
model: BatchConfig, Downscale, GraderConfig, ModelConfig, PriceList, ServerConfig, families
pipeline: ComparisonConfig, GraderChecksConfig, MAX_QUARANTINED_FRACTION, PipelineConfig, RateLimit, ReportConfig, SimilarityConfig, StatisticsConfig
published: Lookup, PublishedConfig, PublishedRow, PublishedSize, PublishedTable
readiness: DiseaseGroup, Margin, ReadinessConfig, UpdateKind
run_names: DEFAULT_RUN, RESULT_FOLDERS, extra_configfiles, how_to_make, results_folder, results_of, run_of
section: Name, Section
workflow: Run, merged_config, read_run, used_cases
"""
