"""De-identification: a gate. What leaves this stage identifies nobody, and the audit is the pass token for everything after it."""


rule deidentify_case:
    """Clean headers, sidecars, notes and record of one case, convert it to BIDS and take its face away."""
    input:
        case="data/ingested/{benchmark}/sub-{case}/case.json",
    output:
        case="data/deidentified/{benchmark}/sub-{case}/case.json",
    log:
        "logs/deidentify_case/{benchmark}_{case}.log",
    conda:
        "../envs/deidentify.yaml"
    resources:
        mem_mb=2000,
    params:
        profile=lambda wildcards: RUN.benchmarks[wildcards.benchmark].profile,
        code=code_hash("deidentify_case"),
    shell:
        "python scripts/deidentify_case.py --benchmark {wildcards.benchmark} --profile {params.profile}"
        " --case {input.case} --out {output.case} &> {log}"


rule deidentify_pictures:
    """Write loose pictures anew without metadata, and look for text that is burned in."""
    input:
        manifest="data/ingested/{benchmark}/pictures.json",
    output:
        manifest="data/deidentified/{benchmark}/pictures.json",
        pictures=directory("data/deidentified/{benchmark}/pictures"),
    log:
        "logs/deidentify_pictures/{benchmark}.log",
    conda:
        "../envs/deidentify.yaml"
    resources:
        mem_mb=800,
    params:
        code=code_hash("deidentify_pictures"),
    shell:
        "python scripts/deidentify_pictures.py --pictures {input.manifest} --out {output.manifest} &> {log}"


rule gather_audit:
    """Gather the audit of a benchmark; for patients it stays pending until a person signed what they saw."""
    input:
        unpack(lambda wildcards: RUN.audit_files(wildcards.benchmark)),
        signed=lambda wildcards: [
            path
            for path in (f"data/reviews/{wildcards.benchmark}.json",)
            if Path(path).exists()
        ],
    output:
        audit="data/deidentified/{benchmark}/audit.json",
        review="data/deidentified/{benchmark}/review.html",
    log:
        "logs/gather_audit/{benchmark}.log",
    conda:
        "../envs/deidentify.yaml"
    resources:
        mem_mb=lambda wildcards: mb_of_cases(wildcards, 500, 0.6),
    params:
        sources=lambda wildcards, input: (
            ["--pictures", input.pictures]
            if input.get("pictures")
            else [
                "--table",
                input.table,
                "--folder",
                f"data/deidentified/{wildcards.benchmark}",
            ]
        ),
        profile=lambda wildcards: RUN.benchmarks[wildcards.benchmark].profile,
        subjects=lambda wildcards: RUN.benchmarks[wildcards.benchmark].subjects,
        code=code_hash("gather_audit"),
    shell:
        "python scripts/gather_audit.py --benchmark {wildcards.benchmark} --profile {params.profile}"
        " --subjects {params.subjects} {params.sources:q}"
        " --signed data/reviews/{wildcards.benchmark}.json --out-review {output.review} --out {output.audit} &> {log}"
