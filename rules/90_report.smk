"""The report: figures, provenance, and one offline page; none of them computes results."""

from neuralmedbench.figures.gallery import FIGURES
from neuralmedbench.records.results import COLUMNS


rule draw_figures:
    """Draw every figure from the tables only."""
    input:
        tables=expand(
            "<results>/tables/{table}.csv",
            table=sorted(
                {file for figure in FIGURES.values() for file in figure.files}
            ),
        ),
    output:
        figures=expand("<results>/figures/{figure}.svg", figure=FIGURES),
    log:
        "<logs>/draw_figures.log",
    conda:
        "../envs/report.yaml"
    resources:
        mem_mb=800,
    params:
        results=lambda wildcards: RUN.results,
        min_patients_shown=lookup(within=config, dpath="report/min_patients_shown"),
        code=code_hash("draw_figures"),
    shell:
        "python scripts/draw_figures.py --tables {params.results}/tables --min-patients-shown {params.min_patients_shown}"
        " --out {params.results}/figures &> {log}"


rule record_provenance:
    """Record the code, environment, models, prompts and inputs that the numbers come from."""
    input:
        digests=[
            *expand("data/items/{benchmark}.parquet", benchmark=RUN.benchmarks),
            *expand("data/gold/{benchmark}.parquet", benchmark=RUN.benchmarks),
            *expand("data/prompts/{benchmark}.parquet", benchmark=RUN.benchmarks),
            *expand(
                "data/deidentified/{benchmark}/audit.json", benchmark=RUN.benchmarks
            ),
            *expand(
                "<results>/scores/{benchmark}/{model}.parquet",
                benchmark=RUN.benchmarks,
                model=RUN.models,
            ),
            *expand(
                "<results>/similarity/{benchmark}.parquet", benchmark=RUN.benchmarks
            ),
            *expand("<results>/tables/{table}.csv", table=COLUMNS),
            *expand("config/benchmarks/{benchmark}.yaml", benchmark=RUN.benchmarks),
            *expand("config/models/{model}.yaml", model=RUN.models),
            *expand("config/graders/{grader}.yaml", grader=RUN.all_graders),
        ],
        responses=expand(
            "<results>/responses/{benchmark}/{model}.parquet",
            benchmark=RUN.benchmarks,
            model=RUN.models,
        ),
        prompts=sorted(map(str, Path("config/prompts").glob("*.j2"))),
        vocabulary=RUN.config.vocabulary,
        names=RUN.names_files,
        lock="requirements.lock",
    output:
        provenance="<results>/provenance.json",
    log:
        "<logs>/record_provenance.log",
    conda:
        "../envs/report.yaml"
    resources:
        mem_mb=800,
    params:
        results=lambda wildcards: RUN.results,
        benchmarks=list(RUN.benchmarks),
        models=list(RUN.models),
        seed=lookup(within=config, dpath="statistics/seed"),
        configfiles=list(RUN.configfiles),
        limited="--limited" if RUN.config.limit else "",
        code=code_hash("record_provenance"),
    shell:
        "python scripts/record_provenance.py --results {params.results} --benchmarks {params.benchmarks} --models {params.models}"
        " --vocabulary {input.vocabulary:q} --inputs {input.digests} {input.responses} --bootstrap-seed {params.seed}"
        " --configfiles {params.configfiles:q} {params.limited} --out {output.provenance} &> {log}"


rule build_report:
    """Build one offline page from tables, figures and cases."""
    input:
        tables=expand("<results>/tables/{table}.csv", table=COLUMNS),
        verdict="<results>/tables/verdict.json",
        notes="<results>/tables/notes.json",
        figures=expand("<results>/figures/{figure}.svg", figure=FIGURES),
        bundles=expand("<results>/cases/{benchmark}.parquet", benchmark=RUN.benchmarks),
        provenance="<results>/provenance.json",
        audits=expand(
            "data/deidentified/{benchmark}/audit.json", benchmark=RUN.benchmarks
        ),
        benchmark_configs=expand(
            "config/benchmarks/{benchmark}.yaml", benchmark=RUN.benchmarks
        ),
        model_configs=expand("config/models/{model}.yaml", model=RUN.models),
        grader_configs=expand("config/graders/{grader}.yaml", grader=RUN.all_graders),
        prompts=sorted(map(str, Path("config/prompts").glob("*.j2"))),
        readiness="config/readiness.yaml",
        checklists=sorted(map(str, Path("config/checklists").glob("*.yaml"))),
        cards=CARDS,
        descriptions=DESCRIPTIONS,
        published=expand("config/published/{paper}.yaml", paper=RUN.published),
        papers=expand("<results>/tables/paper/{paper}.csv", paper=RUN.published),
    output:
        report="<results>/report.html",
    log:
        "<logs>/build_report.log",
    conda:
        "../envs/report.yaml"
    resources:
        mem_mb=1500 + sum(map(len, RUN.tables.values())),
    params:
        results=lambda wildcards: RUN.results,
        benchmarks=list(RUN.benchmarks),
        models=list(RUN.models),
        graders=list(RUN.all_graders),
        published=list(RUN.published),
        profile=lookup(within=config, dpath="report/profile"),
        max_megabytes=lookup(within=config, dpath="report/max_megabytes"),
        code=code_hash("build_report"),
    shell:
        "python scripts/build_report.py --results {params.results} --benchmarks {params.benchmarks} --models {params.models}"
        " --graders {params.graders} --published {params.published} --profile {params.profile} --max-megabytes {params.max_megabytes}"
        " --out {output.report} &> {log}"
