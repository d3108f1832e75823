"""Slices: the pictures that models are sent, and the outcome of every case."""


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
        policy=config["slices"]["policy"],
        per_sequence=config["slices"]["per_sequence"],
        field_of_view_mm=config["slices"]["field_of_view_mm"],
        sent_px=config["slices"]["sent_px"],
        layout=config["slices"]["layout"],
        ct_windows=config["slices"]["ct_windows"],
        marker="--side-marker" if RUN.config.slices.side_marker else "",
        at_lesion=lambda wildcards: (
            "--at-lesion" if RUN.shows_oracle(wildcards.benchmark) else ""
        ),
        code=code_hash("cut_slices"),
    shell:
        "python scripts/cut_slices.py --case {input.case} --policy {params.policy}"
        " --per-sequence {params.per_sequence} --field-of-view-mm {params.field_of_view_mm}"
        " --sent-px {params.sent_px} --layout {params.layout} --ct-windows {params.ct_windows} {params.marker} {params.at_lesion}"
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
        views=lambda wildcards: RUN.benchmarks[wildcards.benchmark].view_arguments,
        field_of_view_mm=config["slices"]["field_of_view_mm"],
        sent_px=config["slices"]["sent_px"],
        marker="--side-marker" if RUN.config.slices.side_marker else "",
        code=code_hash("list_views"),
    shell:
        "python scripts/list_views.py {params.views:q} --table {input.table} --folder {params.folder} --field-of-view-mm {params.field_of_view_mm}"
        " --sent-px {params.sent_px} {params.marker} --out {output.views} &> {log}"


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
        max_quarantined_fraction=lookup(within=config, dpath="max_quarantined_fraction"),
        code=code_hash("gather_slices"),
    shell:
        "python scripts/gather_slices.py --benchmark {wildcards.benchmark} --table {input.table}"
        " --folder {params.folder} --max-quarantined-fraction {params.max_quarantined_fraction}"
        " --out-slices {output.slices} --out-flow {output.flow} &> {log}"
