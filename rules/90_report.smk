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
        settings=settings("report/min_patients_shown"),
        code=code_hash("draw_figures"),
    shell:
        "python scripts/draw_figures.py --tables {params.results}/tables --settings {params.settings:q}"
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
            *RUN.grader_files(),
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
        settings=settings(
            "statistics/seed",
            benchmarks=list(RUN.benchmarks),
            models=list(RUN.models),
            configfiles=list(RUN.configfiles),
            limited=RUN.config.limit > 0,
        ),
        code=code_hash("record_provenance"),
    shell:
        "python scripts/record_provenance.py --results {params.results} --settings {params.settings:q}"
        " --vocabulary {input.vocabulary:q} --inputs {input.digests} {input.responses} --out {output.provenance} &> {log}"


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
        grader_configs=RUN.grader_files(),
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
        settings=settings(
            "report/profile",
            "report/max_megabytes",
            benchmarks=list(RUN.benchmarks),
            models=list(RUN.models),
            graders=list(RUN.all_graders),
            published=list(RUN.published),
        ),
        code=code_hash("build_report"),
    shell:
        "python scripts/build_report.py --results {params.results} --settings {params.settings:q} --out {output.report} &> {log}"
