"""Ingest: copy raw files under neutral names, and label every scan by its headers before they are cleaned."""


rule ingest_case:
    """Copy the usable scans, notes and record of one case; every raw file is accounted for."""
    input:
        # raw files of users are in the private zone, which no clone has: a changed source changes its digest in the case table
        files=lambda wildcards: (
            f"data/raw/{wildcards.benchmark}/{wildcards.case}/files.json"
            if RUN.benchmarks[wildcards.benchmark].source == "phantoms"
            else []
        ),
    output:
        case="data/ingested/{benchmark}/sub-{case}/case.json",
        identity="data/ingested/{benchmark}/sub-{case}/identity.json",
        series=directory("data/ingested/{benchmark}/sub-{case}/series"),
        text=directory("data/ingested/{benchmark}/sub-{case}/text"),
    log:
        "<logs>/ingest_case/{benchmark}_{case}.log",
    conda:
        "../envs/ingest.yaml"
    resources:
        mem_mb=1500,
    params:
        source=lambda wildcards: RUN.case(
            wildcards.benchmark, wildcards.case
        ).source_sha256,
        settings=lambda wildcards: settings(
            overrides=write_overrides(
                RUN.case(wildcards.benchmark, wildcards.case).sequence_overrides
            ),
            **RUN.benchmarks[wildcards.benchmark].reading,
        ),
        code=code_hash("ingest_case"),
    shell:
        "python scripts/ingest_case.py --benchmark {wildcards.benchmark} --case {wildcards.case}"
        " --files data/raw/{wildcards.benchmark}/{wildcards.case}/files.json --settings {params.settings:q}"
        " --out {output.case} &> {log}"


rule ingest_pictures:
    """Copy the pictures of a benchmark without scans, pixels only; for cases of users also notes and records."""
    input:
        # raw files of users are in the private zone, which no clone has: a changed source changes its digest in the case table
        table=lambda wildcards: RUN.source_table(wildcards.benchmark),
    output:
        manifest="data/ingested/{benchmark}/pictures.json",
        pictures=directory("data/ingested/{benchmark}/pictures"),
    log:
        "<logs>/ingest_pictures/{benchmark}.log",
    conda:
        "../envs/ingest.yaml"
    resources:
        mem_mb=800,
    params:
        code=code_hash("ingest_pictures"),
    shell:
        "python scripts/ingest_pictures.py --benchmark {wildcards.benchmark} --out {output.manifest} &> {log}"
