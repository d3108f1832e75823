"""De-identification, a gate: no output of this stage identifies anybody, and the audit is the pass token for all later stages."""


rule deidentify_case:
    """Clean headers, sidecars, notes and record of one case, convert it to BIDS and remove its face."""
    input:
        case="data/ingested/{benchmark}/sub-{case}/case.json",
        # answer key of a phantom, to score its cleaning
        planted=lambda wildcards: (
            f"data/raw/{wildcards.benchmark}/{wildcards.case}/answer_key.json"
            if RUN.benchmarks[wildcards.benchmark].source == "phantoms"
            else []
        ),
    output:
        case="data/deidentified/{benchmark}/sub-{case}/case.json",
    log:
        "<logs>/deidentify_case/{benchmark}_{case}.log",
    conda:
        "../envs/deidentify.yaml"
    resources:
        mem_mb=2000,
    params:
        # rules and accepted values are read by the command, so that no log holds them
        rules=lambda wildcards: RUN.benchmarks[wildcards.benchmark].cleaning_digest,
        # only the cases of which an entry changed run again
        accepted=lambda wildcards: RUN.accepted_leaks(
            wildcards.benchmark, wildcards.case
        ),
        code=code_hash("deidentify_case"),
    shell:
        "python scripts/deidentify_case.py --benchmark {wildcards.benchmark} --planted {input.planted}"
        " --case {input.case} --out {output.case} &> {log}"


rule deidentify_pictures:
    """Rewrite loose pictures without metadata, search them for burned-in text, and clean notes and records of own cases."""
    input:
        manifest="data/ingested/{benchmark}/pictures.json",
    output:
        manifest="data/deidentified/{benchmark}/pictures.json",
        pictures=directory("data/deidentified/{benchmark}/pictures"),
    log:
        "<logs>/deidentify_pictures/{benchmark}.log",
    conda:
        "../envs/deidentify.yaml"
    resources:
        mem_mb=lambda wildcards: (
            2000 if RUN.benchmarks[wildcards.benchmark].has_cases else 800
        ),
    params:
        rules=lambda wildcards: RUN.benchmarks[wildcards.benchmark].cleaning_digest,
        accepted=lambda wildcards: RUN.accepted_leaks(wildcards.benchmark),
        code=code_hash("deidentify_pictures"),
    shell:
        "python scripts/deidentify_pictures.py --benchmark {wildcards.benchmark} --pictures {input.manifest} --out {output.manifest} &> {log}"


rule describe_scans:
    """Describe the de-identified cases of a benchmark of scans as one BIDS data set."""
    input:
        cases=of_cases("data/deidentified/{benchmark}/sub-{case}/case.json"),
        table="config/benchmarks/{benchmark}.cases.tsv",
    output:
        description="data/deidentified/{benchmark}/dataset_description.json",
        ignored="data/deidentified/{benchmark}/.bidsignore",
        about="data/deidentified/{benchmark}/README",
        participants="data/deidentified/{benchmark}/participants.tsv",
        columns="data/deidentified/{benchmark}/participants.json",
    log:
        "<logs>/describe_scans/{benchmark}.log",
    conda:
        "../envs/deidentify.yaml"
    resources:
        mem_mb=lambda wildcards: mb_of_cases(wildcards, 400, 0.1),
    params:
        code=code_hash("describe_scans"),
    shell:
        "python scripts/describe_scans.py --benchmark {wildcards.benchmark} --table {input.table}"
        " --out {output.description} &> {log}"
