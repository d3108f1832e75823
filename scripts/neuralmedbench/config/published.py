"""Keys of `config/published/<paper>.yaml`: numbers that others have published, and where ours stand."""

from __future__ import annotations

from collections import Counter
from typing import Literal

from pydantic import Field, model_validator

from neuralmedbench.config.section import Name, Section


class Lookup(Section):
    """Where our own value of a column stands."""

    table: str = Field(description="Table of results, without `.csv`.")
    where: dict[str, str | tuple[str, ...]] = Field(
        default_factory=dict,
        description="What the row says in other columns than `benchmark` and `model`, which are ours. The values of a list are added up.",
    )
    value: str = Field(description="Column of the value.")
    low: str = Field("low", description="Column of the lower end of its interval, where the table has one.")
    high: str = Field("high", description="Column of the upper end.")
    n: str = Field(description="Column of its number.")
    per: str = Field("", description="Column by which the value is divided: a total becomes a mean.")
    times: float = Field(1.0, gt=0, description="What the value is multiplied by, for a price of 1,000 pictures.")
    made_from: str = Field(description="File, or files, that would fill it; `{benchmark}` and `{model}` stand for ours.")


class PublishedColumn(Section):
    """One column of a published table."""

    label: str = Field(description="Head of the column.")
    unit: Literal["percent", "score", "count", "usd", "seconds"] = Field(description="`percent` is 0 to 100.")
    n: int | None = Field(None, ge=1, description="Denominator of the published percentages; with it they get Wilson intervals.")
    ours: Lookup | None = Field(None, description="Where ours stands; absent: nothing of ours means the same.")


class PublishedRow(Section):
    """One row of a published table."""

    label: str = Field(description="Name as published.")
    group: str = Field("", description="Group as published.")
    source: str = Field(description="Which source says so.")
    model: Name | None = Field(
        None,
        description="Model of this pipeline that is meant, a file in `config/models/`: when a run does not have it, the line of ours says so.",
    )
    ids: tuple[str, ...] = Field(
        (),
        description="Patterns of `id` in the yaml of a model, without what stands before its last `/`: such a model of a run stands below the row.",
    )
    conflict: str = Field("", description="How another source contradicts the row.")
    denominators: bool = Field(True, description="Whether the denominators of the columns hold for the row.")
    n: int | None = Field(None, ge=1, description="Denominator of the whole row, where it is another than that of the columns.")
    values: dict[str, float] = Field(description="Published values by column; one that was not published is left out.")


class PublishedTable(Section):
    """One published table."""

    caption: str = Field(description="What it shows.")
    notes: tuple[str, ...] = Field((), description="What a reader has to know before comparing.")
    denominators: str = Field("", description="How the denominators of the columns are known, for the caption.")
    by_labeller: bool = Field(
        False, description="A line of ours for each who labelled (columns `source`, `kind`, `simulated`); simulated raters fill no cell."
    )
    columns: dict[str, PublishedColumn] = Field(min_length=1, description="Columns in order.")
    rows: tuple[PublishedRow, ...] = Field(description="Rows in order.")

    @model_validator(mode="after")
    def _values_have_columns(self) -> PublishedTable:
        for row in self.rows:
            if unknown := sorted(set(row.values) - set(self.columns)):
                message = f"the row {row.label!r} has values of columns that the table does not have: {', '.join(unknown)}"
                raise ValueError(message)
        label, times = Counter((row.label, row.source) for row in self.rows).most_common(1)[0] if self.rows else (("", ""), 1)
        if times > 1:
            message = f"{times} rows are called {label[0]!r} by the source {label[1]!r}: one of them would hide the others"
            raise ValueError(message)
        return self


class PublishedSize(Section):
    """How much there is to ask, for a plan before the data set is here."""

    calls: int = Field(ge=1, description="Calls of one answer to everything.")
    images: int = Field(ge=0, description="Pictures of one answer to everything.")
    samples: int = Field(5, ge=1, description="Answers to everything, as the import of the data set sets them.")
    arms_without_images: int = Field(0, ge=0, description="Arms that ask everything once more without a picture, as the import sets them.")
    graded: bool = Field(True, description="Whether graders that ask a model judge the answers.")
    tokens_per_image: int = Field(ge=0, description="Tokens that a picture is taken for.")
    words_per_call: int = Field(ge=0, description="Words that a call is taken to hold; a word is taken for 4/3 tokens.")
    basis: str = Field(description="Where these numbers come from.")


class PublishedConfig(Section):
    """`config/published/<paper>.yaml`: what a paper's authors published, to stand beside ours and never mixed with it."""

    title: str = Field(description="Name of the benchmark in the report.")
    source: str = Field(description="Where the numbers come from.")
    benchmark: Name = Field(description="Our benchmark of the same items, a file in `config/benchmarks/`.")
    import_: str = Field(alias="import", description="Command that brings the data set here.")
    size: PublishedSize = Field(description="How much there is to ask.")
    tables: dict[Name, PublishedTable] = Field(min_length=1, description="The published tables.")
