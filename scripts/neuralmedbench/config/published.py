"""Keys of `config/published/<paper>.yaml`: numbers that others have published, and where ours stand."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, model_validator

from neuralmedbench.config.section import Name, Section


class Lookup(Section):
    """Where our own value of a column stands; the columns `low` and `high` of the same row are its interval."""

    table: str = Field(description="Table of results, without `.csv`.")
    where: dict[str, str] = Field(description="What the row says in other columns; `{model}` stands for the model.")
    value: str = Field(description="Column of the value.")
    n: str = Field(description="Column of its number.")


class PublishedColumn(Section):
    """One column of a published table."""

    label: str = Field(description="Head of the column.")
    unit: Literal["percent", "score", "count", "usd"] = Field(description="`percent` is 0 to 100.")
    n: int | None = Field(None, ge=1, description="Denominator of the published percentages; with it they get Wilson intervals.")
    ours: Lookup | None = Field(None, description="Where ours stands; absent: nothing of ours means the same.")


class PublishedRow(Section):
    """One row of a published table."""

    label: str = Field(description="Name as published.")
    group: str = Field("", description="Group as published.")
    source: str = Field(description="Which source says so.")
    model: Name | None = Field(None, description="Model of this pipeline that answers as the row's, a file in `config/models/`.")
    conflict: str = Field("", description="How another source contradicts the row.")
    denominators: bool = Field(True, description="Whether the denominators of the columns hold for the row.")
    values: dict[str, float] = Field(description="Published values by column; one that was not published is left out.")


class PublishedTable(Section):
    """One published table."""

    caption: str = Field(description="What it shows.")
    notes: tuple[str, ...] = Field((), description="What a reader has to know before comparing.")
    columns: dict[str, PublishedColumn] = Field(min_length=1, description="Columns in order.")
    rows: tuple[PublishedRow, ...] = Field(description="Rows in order.")

    @model_validator(mode="after")
    def _values_have_columns(self) -> PublishedTable:
        for row in self.rows:
            if unknown := sorted(set(row.values) - set(self.columns)):
                message = f"the row {row.label!r} has values of columns that the table does not have: {', '.join(unknown)}"
                raise ValueError(message)
        return self


class PublishedSize(Section):
    """How much there is to ask, for a plan before the data set is here."""

    calls: int = Field(ge=1, description="Calls of one answer to everything.")
    images: int = Field(ge=0, description="Pictures of one answer to everything.")
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
