"""Review: the sheets that a person signs, and the audit, which is the pass token for all later stages."""


rule build_review:
    """Write everything that a person must look at before the data may be used: a first page, and one offline sheet per case."""
    input:
        unpack(lambda wildcards: RUN.review_files(wildcards.benchmark)),
    output:
        shown="data/reviews/{benchmark}/review.json",
        index="data/reviews/{benchmark}/review.html",
        sheets=directory("data/reviews/{benchmark}/sheets"),
    log:
        "<logs>/build_review/{benchmark}.log",
    conda:
        "../envs/deidentify.yaml"
    resources:
        mem_mb=lambda wildcards: mb_of_cases(wildcards, 500, 0.6),
    params:
        rules=lambda wildcards: RUN.benchmarks[wildcards.benchmark].audit_digest,
        code=code_hash("build_review"),
    shell:
        "python scripts/build_review.py --benchmark {wildcards.benchmark} --table {input.table} --out {output.shown} &> {log}"


rule gather_audit:
    """Gather the audit of a benchmark; for patients it stays pending until a person has signed the review."""
    input:
        unpack(lambda wildcards: RUN.audit_files(wildcards.benchmark)),
        # not read here, but whoever has the audit must have the description of the data set too
        described=lambda wildcards: RUN.description_files(wildcards.benchmark),
        # the sheets show the chosen slices too, so they must exist before a signature counts
        shown="data/reviews/{benchmark}/review.json",
        signed=lambda wildcards: [
            path
            for path in (f"data/reviews/{wildcards.benchmark}.json",)
            if Path(path).exists()
        ],
    output:
        audit="data/deidentified/{benchmark}/audit.json",
    log:
        "<logs>/gather_audit/{benchmark}.log",
    conda:
        "../envs/deidentify.yaml"
    resources:
        mem_mb=lambda wildcards: mb_of_cases(wildcards, 500, 0.6),
    params:
        rules=lambda wildcards: RUN.benchmarks[wildcards.benchmark].audit_digest,
        code=code_hash("gather_audit"),
    shell:
        "python scripts/gather_audit.py --benchmark {wildcards.benchmark} --table {input.table}"
        " --folder data/deidentified/{wildcards.benchmark} --shown {input.shown}"
        " --signed data/reviews/{wildcards.benchmark}.json --out {output.audit} &> {log}"
