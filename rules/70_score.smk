"""Scoring: graders and similarity compare the responses with gold, then each response is scored."""


rule grade_responses:
    """Grade the open answers and dialogues of one model, some again with planted errors, or (in place of a model) planted answers."""
    input:
        answers=lambda wildcards: (
            "<results>/planted/{benchmark}.parquet"
            if wildcards.model == PLANTED
            else "<results>/responses/{benchmark}/{model}.parquet"
        ),
        tested=tested_before,
        audit="data/deidentified/{benchmark}/audit.json",
        item_table="data/items/{benchmark}.parquet",
        gold="data/gold/{benchmark}.parquet",
        benchmark_config="config/benchmarks/{benchmark}.yaml",
        grader_configs=lambda wildcards: RUN.grader_files(wildcards.grader),
        prompt=lambda wildcards: RUN.all_graders[wildcards.grader].prompt or [],
        vocabulary=RUN.config.vocabulary,
        names=RUN.names_files,
        urgency=RUN.urgency_files,
    output:
        grades="<results>/grades/{benchmark}/{model}/{grader}.parquet",
    log:
        "<logs>/grade_responses/{benchmark}_{model}_{grader}.log",
    wildcard_constraints:
        grader=names_of_graders("rubric", "llm"),
    conda:
        "../envs/scoring.yaml"
    resources:
        mem_mb=lambda wildcards: mb_of_cases(wildcards, 1000, 1),
        api_slots=lambda wildcards: slots_of_grader(wildcards).get("api_slots"),
        gpu=lambda wildcards: slots_of_grader(wildcards).get("gpu"),
    params:
        ledger="data/ledger/{benchmark}/graders/{model}/{grader}.jsonl",
        settings=lambda wildcards: settings(
            max_failed_fraction=RUN.config.max_failed_fraction,
            **RUN.grader_tests(wildcards.model, wildcards.grader),
        ),
        control=lambda wildcards, input: CONTROL,
        code=code_hash("grade_responses"),
    shell:
        "python scripts/grade_responses.py --benchmark {wildcards.benchmark} --grader {wildcards.grader}"
        " --audit {input.audit} --responses {input.answers} --tested {input.tested} --items {input.item_table}"
        " --gold {input.gold} --vocabulary {input.vocabulary:q} --ledger {params.ledger} --settings {params.settings:q} --control {params.control:q} --out {output.grades} &> {log}"


rule decide_jury:
    """Let a jury vote on the answers of one model; its members grade even if they are not in the run list."""
    input:
        grades=lambda wildcards: expand(
            "<results>/grades/{benchmark}/{model}/{member}.parquet",
            benchmark=wildcards.benchmark,
            model=wildcards.model,
            member=RUN.graders[wildcards.grader].members,
        ),
        grader_config="config/graders/{grader}.yaml",
    output:
        grades="<results>/grades/{benchmark}/{model}/{grader}.parquet",
    log:
        "<logs>/decide_jury/{benchmark}_{model}_{grader}.log",
    wildcard_constraints:
        grader=names_of_graders("jury"),
    conda:
        "../envs/scoring.yaml"
    resources:
        mem_mb=1000,
    params:
        code=code_hash("decide_jury"),
    shell:
        "python scripts/decide_jury.py --grader {wildcards.grader} --grades {input.grades} --out {output.grades} &> {log}"


rule embed_similarity:
    """Compare the answers of all models with the reference, in one job because the encoder is slow to load."""
    input:
        responses=lambda wildcards: expand(
            "<results>/responses/{benchmark}/{model}.parquet",
            benchmark=wildcards.benchmark,
            model=RUN.models,
        ),
        item_table="data/items/{benchmark}.parquet",
        gold="data/gold/{benchmark}.parquet",
        vocabulary=RUN.config.vocabulary,
        names=RUN.names_files,
    output:
        similarity="<results>/similarity/{benchmark}.parquet",
    log:
        "<logs>/embed_similarity/{benchmark}.log",
    conda:
        "../envs/scoring.yaml"
    resources:
        mem_mb=2000,
    params:
        settings=settings("similarity"),
        code=code_hash("embed_similarity"),
    shell:
        "python scripts/embed_similarity.py --responses {input.responses} --items {input.item_table} --gold {input.gold}"
        " --vocabulary {input.vocabulary:q} --settings {params.settings:q} --out {output.similarity} &> {log}"


rule score_responses:
    """Score the responses of one model; the first grader of the run list with a value counts, if it is used for the criterion."""
    input:
        responses="<results>/responses/{benchmark}/{model}.parquet",
        item_table="data/items/{benchmark}.parquet",
        gold="data/gold/{benchmark}.parquet",
        lesions="data/gold/{benchmark}/lesions.parquet",
        grades=expand(
            "<results>/grades/{{benchmark}}/{{model}}/{grader}.parquet",
            grader=RUN.graders,
        ),
        planted="<results>/planted/{benchmark}.parquet",
        planted_grades=expand(
            "<results>/grades/{{benchmark}}/{planted}/{grader}.parquet",
            planted=PLANTED,
            grader=RUN.graders,
        ),
        vocabulary=RUN.config.vocabulary,
        names=RUN.names_files,
        urgency=RUN.urgency_files,
        layouts=lambda wildcards: RUN.layout_files(*wildcards),
    output:
        scores="<results>/scores/{benchmark}/{model}.parquet",
    log:
        "<logs>/score_responses/{benchmark}_{model}.log",
    conda:
        "../envs/scoring.yaml"
    resources:
        mem_mb=lambda wildcards: mb_of_cases(wildcards, 1000, 0.6),
    params:
        settings=lambda wildcards: settings(
            "grader_checks/floor",
            "statistics/confidence",
            word_graders=RUN.graders_of("rubric"),
            rubric_graders=RUN.rubric_graders,
            places=RUN.places(*wildcards),
        ),
        code=code_hash("score_responses"),
    shell:
        "python scripts/score_responses.py --responses {input.responses} --items {input.item_table} --gold {input.gold} --grades {input.grades} --planted {input.planted} --planted-grades {input.planted_grades}"
        " --settings {params.settings:q} --lesions {input.lesions} --vocabulary {input.vocabulary:q} --out {output.scores} &> {log}"
