"""The built-in demo: simulated patients, without any picture or text of a real person."""


rule generate_phantom:
    """Make one simulated patient; scans, notes and record are next to the file that lists them."""
    input:
        key="config/demo.key",
    output:
        files="data/raw/{benchmark}/{case}/files.json",
        # not private: a clone without the private zone can still gather the answers of cases that it did not make
        answer="data/answers/{benchmark}/{case}.json",
        lesion_mask="data/answers/{benchmark}/{case}.nii.gz",
        planted="data/raw/{benchmark}/{case}/planted.json",
        answer_key="data/raw/{benchmark}/{case}/answer_key.json",
        slices=directory("data/raw/{benchmark}/{case}/slices"),
    log:
        "<logs>/generate_phantom/{benchmark}_{case}.log",
    wildcard_constraints:
        benchmark="demo|demo-tiny|demo-words",
    conda:
        "../envs/demo.yaml"
    resources:
        mem_mb=1200,
    params:
        code=code_hash("generate_phantom"),
    shell:
        "python scripts/generate_phantom.py --case {wildcards.case} --key-file {input.key}"
        " --answer {output.answer} --out {output.files} &> {log}"


rule gather_answers:
    """Gather the answers of the simulated patients."""
    input:
        answers=of_cases("data/answers/{benchmark}/{case}.json"),
    output:
        answers="data/answers/{benchmark}.csv",
    log:
        "<logs>/gather_answers/{benchmark}.log",
    wildcard_constraints:
        benchmark="demo|demo-tiny|demo-words",
    conda:
        "../envs/demo.yaml"
    resources:
        mem_mb=300,
    params:
        code=code_hash("gather_answers"),
    shell:
        "python scripts/gather_answers.py --answers {input.answers} --out {output.answers} &> {log}"


rule simulate_ratings:
    """SIMULATED: two simulated raters fill in a round of the demo's answers. No person rated anything here."""
    input:
        responses=expand(
            "<results>/responses/{benchmark}/{model}.parquet",
            benchmark=RUN.simulated,
            model=RUN.models,
        ),
        grades=expand(
            "<results>/grades/{benchmark}/{model}/{grader}.parquet",
            benchmark=RUN.simulated,
            model=RUN.models,
            grader=RUN.graders_of("rubric")[:1],
        ),
        asked=expand(
            "data/{table}/{benchmark}.parquet",
            table=["items", "gold", "prompts"],
            benchmark=RUN.simulated,
        ),
        audits=expand(
            "data/deidentified/{benchmark}/audit.json", benchmark=RUN.simulated
        ),
        benchmark_configs=expand(
            "config/benchmarks/{benchmark}.yaml", benchmark=RUN.simulated
        ),
        model_configs=expand("config/models/{model}.yaml", model=RUN.models),
        form="config/rating.yaml",
    output:
        key="<simulated_round>/key.json",
        exports=expand(
            "<simulated_round>/{rater}.json", rater=["simulated-1", "simulated-2"]
        ),
    log:
        "<logs>/simulate_ratings/all.log",
    conda:
        "../envs/ratings.yaml"
    resources:
        mem_mb=700,
    params:
        results=lambda wildcards: RUN.results,
        settings=settings(benchmarks=RUN.simulated, models=list(RUN.models)),
        code=code_hash("simulate_ratings"),
    shell:
        "python scripts/simulate_ratings.py --results {params.results} --settings {params.settings:q} --form {input.form}"
        " --grades {input.grades} --out-key {output.key} --out {output.exports} &> {log}"


rule cut_demo_pictures:
    """Collect single pictures of the simulated patients as a small data set of loose slices."""
    input:
        # a separate list: adding a case to the scans does not change the pictures
        cases=lambda wildcards: expand(
            "data/raw/{benchmark}/{case}/files.json",
            benchmark=wildcards.benchmark,
            case=used_cases(Path("config"), f"{wildcards.benchmark}-slices"),
        ),
        key="config/demo.key",
    output:
        images="data/raw/{benchmark}-slices/images.csv",
        pictures=directory("data/raw/{benchmark}-slices/pictures"),
    log:
        "<logs>/cut_demo_pictures/{benchmark}-slices.log",
    wildcard_constraints:
        benchmark="demo|demo-tiny|demo-words",
    conda:
        "../envs/demo.yaml"
    resources:
        mem_mb=300,
    params:
        code=code_hash("cut_demo_pictures"),
    shell:
        "python scripts/cut_demo_pictures.py --cases {input.cases} --key-file {input.key}"
        " --out-pictures {output.pictures} --out {output.images} &> {log}"
