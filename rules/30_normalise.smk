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
        reference_order=config["imaging"]["reference_order"],
        bias_grid_mm=config["imaging"]["bias_grid_mm"],
        registration_grid_mm=config["imaging"]["registration_grid_mm"],
        code=code_hash("normalise_case"),
    shell:
        "python scripts/normalise_case.py --case {input.case} --reference-order {params.reference_order:q}"
        " --bias-grid-mm {params.bias_grid_mm} --registration-grid-mm {params.registration_grid_mm}"
        " --out {output.case} &> {log}"
