"""The price table: a YAML file with its date, its currency, and each model's prices of a million tokens."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from pathlib import Path

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from memdock_evaluator.results.manifest import Price

SHIPPED = Path(__file__).with_name("prices.yaml")
_MILLION = 1_000_000


class PriceError(ValueError):
    """A price table that cannot be used; the message names the file and the field."""


class _Price(BaseModel):
    model_config = ConfigDict(extra="forbid")
    input: float = Field(ge=0, allow_inf_nan=False)
    output: float = Field(ge=0, allow_inf_nan=False)


class _File(BaseModel):
    model_config = ConfigDict(extra="forbid")
    date: date
    currency: str = Field(min_length=1)
    models: Mapping[str, _Price]


@dataclass(frozen=True, slots=True, kw_only=True)
class Prices:
    """`date` is the day on which the prices were listed, in ISO 8601."""

    date: str
    currency: str
    models: Mapping[str, Price]

    def of(self, model: str) -> Price | None:
        """A model's prices; of "openai/gpt-4.1-mini" also those of "gpt-4.1-mini". `None`: it is not in the table."""
        return self.models.get(model) or self.models.get(model.rpartition("/")[2])


def read_prices(path: Path | None = None) -> Prices:
    """The table of a file, by default the one that is shipped; raises `PriceError`."""
    path = path or SHIPPED
    try:
        found = _File.model_validate(yaml.safe_load(path.read_text(encoding="utf-8")))
    except (OSError, UnicodeDecodeError) as error:
        raise PriceError(f"{path}: the prices cannot be read from it") from error
    except yaml.YAMLError as error:
        raise PriceError(f"{path}: it is no YAML: {' '.join(str(error).split())}") from error
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False, include_context=False)[0]
        place = ".".join(map(str, first["loc"])) or "the file"
        raise PriceError(f"{path}: {place}: {first['msg']} (see {SHIPPED})") from error
    return Prices(
        date=found.date.isoformat(),
        currency=found.currency,
        models={name: Price(input=price.input, output=price.output) for name, price in found.models.items()},
    )


def money(price: Price, input_tokens: int, output_tokens: int) -> float:
    """In the table's currency."""
    return (price.input * input_tokens + price.output * output_tokens) / _MILLION
