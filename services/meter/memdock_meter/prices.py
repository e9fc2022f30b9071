"""The price table: a YAML file with its date, its currency, and each model's prices of a million tokens."""

from datetime import date
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from memdock_meter.problems import ConfigError, first_problem
from memdock_meter.wire import Tokens
from memdock_meter.yaml_file import read_fields

_MILLION = 1_000_000


class Price(BaseModel):
    """Of a million tokens."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    input: float = Field(ge=0, allow_inf_nan=False)
    output: float = Field(ge=0, allow_inf_nan=False)


class Prices(BaseModel):
    """`date` is the day on which the prices were listed. The form is that of `memdock-eval run --prices`."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    date: date
    currency: str = Field(min_length=1)
    models: dict[str, Price]

    def money(self, model: str, tokens: Tokens) -> float | None:
        """In the table's currency; `None` for a model that it does not know. "openai/gpt-4o" is also "gpt-4o"."""
        price = self.models.get(model) or self.models.get(model.rpartition("/")[2])
        if price is None:
            return None
        return (price.input * tokens.input + price.output * tokens.output) / _MILLION


def read_prices(path: Path) -> Prices:
    """Raises `ConfigError` naming the file and the field."""
    try:
        return Prices.model_validate(read_fields(path))
    except ValidationError as error:
        raise ConfigError(f"{path}: {first_problem(error)}") from error
