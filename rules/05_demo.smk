"""The built-in demo: simulated patients instead of real ones. No picture or text of a person is in them."""


rule generate_phantom:
    """Make one simulated patient; scans, notes and record lie beside the listing of them."""
    input:
        key="config/demo.key",
    output:
        files="data/raw/{benchmark}/{case}/files.json",
        answer="data/raw/{benchmark}/{case}/answer.json",
        planted="data/raw/{benchmark}/{case}/planted.json",
        slices=directory("data/raw/{benchmark}/{case}/slices"),
    log:
        "logs/generate_phantom/{benchmark}_{case}.log",
    wildcard_constraints:
        benchmark="demo|demo-tiny",
    conda:
        "../envs/demo.yaml"
    resources:
        mem_mb=1200,
    params:
        code=code_hash("generate_phantom"),
    shell:
        "python scripts/generate_phantom.py --case {wildcards.case} --key-file {input.key} --out {output.files} &> {log}"


rule gather_answers:
    """Gather the answers of the simulated patients, and what was planted in them."""
    input:
        answers=of_table("data/raw/{benchmark}/{case}/answer.json"),
        planted=of_table("data/raw/{benchmark}/{case}/planted.json"),
    output:
        answers="data/raw/{benchmark}/answers.csv",
        planted="data/raw/{benchmark}/planted.json",
    log:
        "logs/gather_answers/{benchmark}.log",
    wildcard_constraints:
        benchmark="demo|demo-tiny",
    conda:
        "../envs/demo.yaml"
    resources:
        mem_mb=300,
    params:
        code=code_hash("gather_answers"),
    shell:
        "python scripts/gather_answers.py --answers {input.answers} --planted {input.planted}"
        " --out-answers {output.answers} --out-planted {output.planted} &> {log}"


rule cut_demo_pictures:
    """Collect single pictures of the simulated patients as a small data set of loose slices."""
    input:
        cases=of_table("data/raw/{benchmark}/{case}/files.json"),
        key="config/demo.key",
    output:
        images="data/raw/{benchmark}-slices/images.csv",
        pictures=directory("data/raw/{benchmark}-slices/pictures"),
    log:
        "logs/cut_demo_pictures/{benchmark}-slices.log",
    wildcard_constraints:
        benchmark="demo|demo-tiny",
    conda:
        "../envs/demo.yaml"
    resources:
        mem_mb=300,
    params:
        code=code_hash("cut_demo_pictures"),
    shell:
        "python scripts/cut_demo_pictures.py --cases {input.cases} --key-file {input.key}"
        " --pictures {output.pictures} --out {output.images} &> {log}"
