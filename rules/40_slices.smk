"""Slices: the pictures that models are sent, and the outcome of every case."""

from dataclasses import asdict


rule cut_slices:
    """Cut the pictures that models are sent from one normalised case."""
    input:
        case="data/normalised/{benchmark}/sub-{case}/case.json",
        # only oracle slices read the answers, and are marked as such
        answers=lambda wildcards: RUN.oracle_files(wildcards.benchmark, wildcards.case),
    output:
        case="data/slices/{benchmark}/sub-{case}/case.json",
        pictures=directory("data/slices/{benchmark}/sub-{case}/png"),
        review=directory("data/slices/{benchmark}/sub-{case}/review"),
    log:
        "<logs>/cut_slices/{benchmark}_{case}.log",
    conda:
        "../envs/imaging.yaml"
    resources:
        mem_mb=800,
    params:
        settings=lambda wildcards: settings(
            "slices", at_lesion=RUN.shows_oracle(wildcards.benchmark)
        ),
        code=code_hash("cut_slices"),
    shell:
        "python scripts/cut_slices.py --case {input.case} --settings {params.settings:q}"
        " --out-pictures {output.pictures} --out {output.case} &> {log}"


rule list_views:
    """List the slices that models may ask for, of all cases of a benchmark."""
    input:
        cases=of_cases("data/normalised/{benchmark}/sub-{case}/case.json"),
        table="config/benchmarks/{benchmark}.cases.tsv",
    output:
        views="data/views/{benchmark}.parquet",
    log:
        "<logs>/list_views/{benchmark}.log",
    conda:
        "../envs/imaging.yaml"
    resources:
        mem_mb=1500,
    params:
        folder="data/normalised/{benchmark}",
        settings=lambda wildcards: settings(
            "slices/field_of_view_mm",
            "slices/sent_px",
            "slices/side_marker",
            views=asdict(RUN.benchmarks[wildcards.benchmark].view_rules),
        ),
        code=code_hash("list_views"),
    shell:
        "python scripts/list_views.py --table {input.table} --folder {params.folder} --settings {params.settings:q} --out {output.views} &> {log}"


rule gather_slices:
    """Gather the pictures of all cases of a benchmark, and the outcome of every case."""
    input:
        cases=of_cases("data/slices/{benchmark}/sub-{case}/case.json"),
        table="config/benchmarks/{benchmark}.cases.tsv",
    output:
        slices="data/slices/{benchmark}/slices.parquet",
        flow="data/slices/{benchmark}/flow.json",
    log:
        "<logs>/gather_slices/{benchmark}.log",
    conda:
        "../envs/imaging.yaml"
    resources:
        mem_mb=lambda wildcards: mb_of_cases(wildcards, 400, 0.1),
    params:
        folder="data/slices/{benchmark}",
        settings=settings(max_quarantined_fraction=RUN.config.max_quarantined_fraction),
        code=code_hash("gather_slices"),
    shell:
        "python scripts/gather_slices.py --benchmark {wildcards.benchmark} --table {input.table}"
        " --folder {params.folder} --settings {params.settings:q}"
        " --out-slices {output.slices} --out-flow {output.flow} &> {log}"
