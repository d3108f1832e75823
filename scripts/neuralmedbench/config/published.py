"""Keys of `config/published/<paper>.yaml`: published numbers of others, and where to find ours."""

from __future__ import annotations

from collections import Counter
from typing import Literal

from pydantic import Field, model_validator

from neuralmedbench.config.section import Name, Section


class Lookup(Section):
    """Where our own value of a column is found."""

    table: str = Field(description="Table of results, without `.csv`.")
    where: dict[str, str | tuple[str, ...]] = Field(
        default_factory=dict,
        description="Required values in columns other than `benchmark` and `model`, which are ours. The values of a list are summed.",
    )
    value: str = Field(description="Column of the value.")
    low: str = Field("low", description="Column of the lower end of its interval, if the table has one.")
    high: str = Field("high", description="Column of the upper end.")
    n: str = Field(description="Column of its number.")
    per: str = Field("", description="Column by which the value is divided, to turn a total into a mean.")
    times: float = Field(1.0, gt=0, description="Factor of the value, for example for a price per 1,000 pictures.")
    made_from: str = Field(description="File or files that would provide it; `{benchmark}` and `{model}` stand for ours.")


class PublishedColumn(Section):
    """One column of a published table."""

    label: str = Field(description="Head of the column.")
    unit: Literal["percent", "score", "count", "usd", "seconds"] = Field(description="`percent` is 0 to 100.")
    n: int | None = Field(None, ge=1, description="Denominator of the published percentages; with it they get Wilson intervals.")
    ours: Lookup | None = Field(None, description="Where ours is found; absent: we have no equivalent.")


class PublishedRow(Section):
    """One row of a published table."""

    label: str = Field(description="Name as published.")
    group: str = Field("", description="Group as published.")
    source: str = Field(description="Its source.")
    model: Name | None = Field(
        None,
        description="The same model in this pipeline, a file in `config/models/`; if a run lacks it, our line says so.",
    )
    ids: tuple[str, ...] = Field(
        (),
        description="Patterns of the part of a model's `id` after its last `/`; matching models of a run are shown below the row.",
    )
    conflict: str = Field("", description="How another source contradicts the row.")
    denominators: bool = Field(True, description="Whether the denominators of the columns hold for the row.")
    n: int | None = Field(None, ge=1, description="Denominator of the whole row, if it differs from that of the columns.")
    values: dict[str, float] = Field(description="Published values by column; unpublished ones are left out.")


class PublishedTable(Section):
    """One published table."""

    caption: str = Field(description="What it shows.")
    notes: tuple[str, ...] = Field((), description="What a reader must know before comparing.")
    denominators: str = Field("", description="How the denominators of the columns are known, for the caption.")
    by_labeller: bool = Field(False, description="One line of ours per labeller (column `source`); simulated raters fill no cell.")
    columns: dict[str, PublishedColumn] = Field(min_length=1, description="Columns in order.")
    rows: tuple[PublishedRow, ...] = Field(description="Rows in order.")

    @model_validator(mode="after")
    def _values_have_columns(self) -> PublishedTable:
        for row in self.rows:
            if unknown := sorted(set(row.values) - set(self.columns)):
                message = f"the row {row.label!r} has values of columns that the table does not have: {', '.join(unknown)}"
                raise ValueError(message)
        # rows are identified by label and source
        label, times = Counter((row.label, row.source) for row in self.rows).most_common(1)[0] if self.rows else (("", ""), 1)
        if times > 1:
            message = f"{times} rows are called {label[0]!r} by the source {label[1]!r}: one of them would hide the others"
            raise ValueError(message)
        return self


class PublishedSize(Section):
    """Size of the published benchmark, for a plan before the data set is imported."""

    calls: int = Field(ge=1, description="Calls for one answer to every question.")
    images: int = Field(ge=0, description="Pictures for one answer to every question.")
    samples: int = Field(5, ge=1, description="Answers per question, as set by the import of the data set.")
    arms_without_images: int = Field(0, ge=0, description="Arms that repeat every question without pictures, as set by the import.")
    graded: bool = Field(True, description="Whether LLM graders judge the answers.")
    tokens_per_image: int = Field(ge=0, description="Assumed tokens per picture.")
    words_per_call: int = Field(ge=0, description="Assumed words per call; a word counts as 4/3 tokens.")
    basis: str = Field(description="Source of these numbers.")


class PublishedConfig(Section):
    """`config/published/<paper>.yaml`: numbers published by a paper's authors, shown beside ours and never mixed with them."""

    title: str = Field(description="Name of the benchmark in the report.")
    source: str = Field(description="Where the numbers come from.")
    benchmark: Name = Field(description="Our benchmark of the same items, a file in `config/benchmarks/`.")
    import_: str = Field(alias="import", description="Command that imports the data set.")
    size: PublishedSize = Field(description="Size of the published benchmark.")
    tables: dict[Name, PublishedTable] = Field(min_length=1, description="The published tables.")
