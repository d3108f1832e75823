"""Normalisation: one orientation and one space for all sequences of a case, without resampling."""


rule normalise_case:
    """Bring the scans of one case into one orientation and one space, with quality numbers."""
    input:
        case="data/deidentified/{benchmark}/sub-{case}/case.json",
    output:
        case="data/normalised/{benchmark}/sub-{case}/case.json",
        volumes=directory("data/normalised/{benchmark}/sub-{case}/volumes"),
        review=directory("data/normalised/{benchmark}/sub-{case}/review"),
    log:
        "<logs>/normalise_case/{benchmark}_{case}.log",
    conda:
        "../envs/imaging.yaml"
    resources:
        mem_mb=1500,
    params:
        settings=settings("imaging"),
        code=code_hash("normalise_case"),
    shell:
        "python scripts/normalise_case.py --case {input.case} --settings {params.settings:q} --out {output.case} &> {log}"
