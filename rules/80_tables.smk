"""Tables: every number of the report with its n and its interval, and the bundles of the case browser."""

from neuralmedbench.records.items import Kind
from neuralmedbench.records.results import COLUMNS


rule bundle_cases:
    """Bundle the cases of one benchmark for the case browser."""
    input:
        item_table="data/items/{benchmark}.parquet",
        gold="data/gold/{benchmark}.parquet",
        lesions="data/gold/{benchmark}/lesions.parquet",
        prompts="data/prompts/{benchmark}.parquet",
        vocabulary=RUN.config.vocabulary,
        responses=expand(
            "<results>/responses/{{benchmark}}/{model}.parquet", model=RUN.models
        ),
        scores=expand(
            "<results>/scores/{{benchmark}}/{model}.parquet", model=RUN.models
        ),
        grades=expand(
            "<results>/grades/{{benchmark}}/{model}/{grader}.parquet",
            model=RUN.models,
            grader=RUN.graders,
        ),
    output:
        bundle="<results>/cases/{benchmark}.parquet",
    log:
        "<logs>/bundle_cases/{benchmark}.log",
    conda:
        "../envs/tables.yaml"
    resources:
        mem_mb=1500,
    params:
        settings=settings(asked_alone=RUN.config.limit > 0),
        code=code_hash("bundle_cases"),
    shell:
        "python scripts/bundle_cases.py --items {input.item_table} --gold {input.gold} --lesions {input.lesions}"
        " --prompts {input.prompts} --vocabulary {input.vocabulary:q} --responses {input.responses}"
        " --scores {input.scores} --grades {input.grades} --settings {params.settings:q} --out {output.bundle} &> {log}"


rule build_tables:
    """Build all results tables."""
    input:
        gold=expand("data/gold/{benchmark}.parquet", benchmark=RUN.benchmarks),
        all_items=expand("data/items/{benchmark}.parquet", benchmark=RUN.benchmarks),
        audits=expand(
            "data/deidentified/{benchmark}/audit.json", benchmark=RUN.benchmarks
        ),
        leaks=expand("data/leaks/{benchmark}.json", benchmark=RUN.benchmarks),
        flows=expand(
            "data/slices/{benchmark}/flow.json", benchmark=RUN.of_kind(Kind.SCANS)
        ),
        participants=expand(
            "data/deidentified/{benchmark}/participants.tsv",
            benchmark=RUN.of_kind(Kind.SCANS),
        ),
        pictures=expand(
            "data/deidentified/{benchmark}/pictures.json",
            benchmark=RUN.of_kind(Kind.PICTURES),
        ),
        case_tables=[
            RUN.case_table(benchmark)
            for benchmark in RUN.of_kind(Kind.PICTURES)
            if RUN.benchmarks[benchmark].has_cases
        ],
        questions=[
            path
            for benchmark in RUN.benchmarks
            for path in RUN.question_files(benchmark) + RUN.import_record(benchmark)
        ],
        arms=sorted({path for name in RUN.benchmarks for path in RUN.arm_files(name)}),
        disclosures=RUN.chosen_disclosures,
        requests=RUN.dialogue_requests,
        responses=expand(
            "<results>/responses/{benchmark}/{model}.parquet",
            benchmark=RUN.benchmarks,
            model=RUN.models,
        ),
        scores=expand(
            "<results>/scores/{benchmark}/{model}.parquet",
            benchmark=RUN.benchmarks,
            model=RUN.models,
        ),
        grades=expand(
            "<results>/grades/{benchmark}/{model}/{grader}.parquet",
            benchmark=RUN.benchmarks,
            model=RUN.models,
            grader=RUN.all_graders,
        ),
        planted=expand(
            "<results>/planted/{benchmark}.parquet", benchmark=RUN.benchmarks
        ),
        planted_grades=expand(
            "<results>/grades/{benchmark}/{planted}/{grader}.parquet",
            benchmark=RUN.benchmarks,
            planted=PLANTED,
            grader=RUN.all_graders,
        ),
        similarity=expand(
            "<results>/similarity/{benchmark}.parquet", benchmark=RUN.benchmarks
        ),
        ratings="<results>/ratings/ratings.parquet",
        form="config/rating.yaml",
        readiness="config/readiness.yaml",
        benchmark_configs=expand(
            "config/benchmarks/{benchmark}.yaml", benchmark=RUN.benchmarks
        ),
        model_configs=expand("config/models/{model}.yaml", model=RUN.models),
        grader_configs=RUN.grader_files(),
        vocabulary=RUN.config.vocabulary,
        names=RUN.names_files,
        urgency=RUN.urgency_files,
    output:
        tables=expand("<results>/tables/{table}.csv", table=COLUMNS),
        verdict="<results>/tables/verdict.json",
        notes="<results>/tables/notes.json",
        metrics="<results>/metrics.json",
    log:
        "<logs>/build_tables.log",
    conda:
        "../envs/tables.yaml"
    resources:
        mem_mb=3000,
    params:
        results=lambda wildcards: RUN.results,
        settings=settings(
            "limit",
            "grader_checks/floor",
            "statistics",
            "comparison",
            "report/profile",
            "report/min_patients_shown",
            benchmarks=list(RUN.benchmarks),
            models=list(RUN.models),
            graders=list(RUN.graders),
        ),
        code=code_hash("build_tables"),
    shell:
        "python scripts/build_tables.py --results {params.results} --settings {params.settings:q}"
        " --vocabulary {input.vocabulary:q} --out-tables {params.results}/tables --out-metrics {output.metrics} &> {log}"
