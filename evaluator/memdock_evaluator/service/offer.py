"""What the service offers: the data, systems and models that a plan may name, and what a run may cost.

Whoever starts a run names things; where they are, and their keys, are the server's own.
"""

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

import yaml
from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from memdock_evaluator.cost.prices import PriceError, Prices, read_prices
from memdock_evaluator.dataset.shipped import OWN
from memdock_evaluator.judging.configured import NAME, read_judges
from memdock_evaluator.run.settings import SettingsError
from memdock_evaluator.service.faults import PlanError, ServiceConfigError


class Answerer(BaseModel):
    """An endpoint that answers; paths count from the file's folder."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)

    name: Annotated[str, Field(pattern=rf"^{NAME.pattern}$")]
    url: Annotated[str, Field(pattern="^https?://")]
    model: Annotated[str, Field(min_length=1)]
    key_file: str = ""
    prompt: str = ""
    temperature: Annotated[float, Field(ge=0, le=2, allow_inf_nan=False)] = 0.0


class _Models(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)

    answerers: list[Answerer] = []
    judges: list[dict[str, object]] = []


@dataclass(frozen=True, slots=True, kw_only=True)
class Models:
    """Models by name. `judges` are entries of a file of `--judges`, with absolute paths."""

    answerers: Mapping[str, Answerer] = field(default_factory=dict)
    judges: Mapping[str, Mapping[str, object]] = field(default_factory=dict)


MOST_QUESTIONS = 100_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Offer:
    """`gateway`: the address of all systems, "" for none; `gateway_key_file` holds its key. `data`: the folder of data
    files, `None` for the bundled data alone. `ceiling`: the most that a run may cost, in the currency of `prices`.
    """

    gateway: str = ""
    gateway_key_file: Path | None = None
    data: Path | None = None
    models: Models = field(default_factory=Models)
    prices: Prices = field(default_factory=read_prices)
    prices_file: Path | None = None
    ceiling: float | None = None
    docker: str = ""
    """The address of the engine that runs the systems' containers, "" where nothing is recorded of them."""
    most_questions: int = MOST_QUESTIONS
    """Of a run: each question for each system, as often as it is answered and judged."""

    def data_file(self, name: str) -> Path:
        """The file of the data folder with this name; raises `PlanError` for anything else."""
        if self.data is None:
            raise PlanError("data", f"{name!r} is not offered: this server has the bundled data alone, {OWN}")
        root = self.data.resolve()
        relative = Path(name)
        plain = name.isprintable() and not relative.is_absolute() and ".." not in relative.parts
        # Resolved, so that a link leads out of the folder as little as a name does.
        found = (root / relative).resolve() if plain else root
        if not (found.is_relative_to(root) and found.is_file()):
            raise PlanError("data", f"there is no data file {name!r}; GET /v1/offer lists those that there are")
        return self.data / relative

    def data_names(self) -> list[str]:
        """The data files by their names in the folder, those of folders inside too; what begins with a dot is hidden.

        A link that leads out of the folder is none of them.
        """
        return [OWN, *sorted(self._files())]

    def without_places(self, said: str, *more: str) -> str:
        """A sentence without the folders in which the server has things; `more`: such folders."""
        for folder in (*more, str(self.data) if self.data else ""):
            said = said.replace(f"{folder}/", "") if folder else said
        return said

    def _files(self) -> Iterator[str]:
        root = None if self.data is None else self.data.resolve()
        for folder, folders, files in os.walk(root) if root else ():
            folders[:] = [name for name in folders if not name.startswith(".")]
            for name in files:
                path = Path(folder, name)
                if not name.startswith(".") and path.resolve().is_relative_to(root or path) and path.is_file():
                    yield path.relative_to(root or path).as_posix()


def read_models(path: Path | None) -> Models:
    """The models of a YAML file; raises `ServiceConfigError` naming the entry and the field.

    answerers: [{name: gpt, url: "https://models.example/v1", model: gpt-4.1-mini, key_file: gpt.key}]
    judges: [...]   # entries as in a file of `run --judges`
    """
    if path is None:
        return Models()
    try:
        found = TypeAdapter(_Models).validate_python(yaml.safe_load(path.read_text("utf-8")))
    except (OSError, UnicodeDecodeError, yaml.YAMLError, RecursionError) as error:
        raise ServiceConfigError(f"--models {path}: it cannot be read ({str(error).splitlines()[0]})") from error
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False, include_context=False)[0]
        place = ".".join(map(str, first["loc"]))
        raise ServiceConfigError(f"--models {path}: {place}: {first['msg']}") from error
    root = path.resolve().parent
    answerers = {each.name: _placed(each, root) for each in found.answerers}
    if len(answerers) < len(found.answerers):
        raise ServiceConfigError(f"--models {path}: two answerers have the same name")
    for each in answerers.values():
        if each.key_file and not Path(each.key_file).is_file():
            raise ServiceConfigError(f"--models {path}: answerer {each.name}: there is no file {each.key_file}")
    judges = [_placed_judge(each, root) for each in found.judges]
    return Models(answerers=answerers, judges={str(each.get("name")): each for each in judges})


def check_judges(models: Models, scratch: Path) -> None:
    """Raises `ServiceConfigError` where the judges are none that a run would take."""
    if models.judges:
        path = scratch / "judges.yaml"
        path.write_text(yaml.safe_dump(list(models.judges.values())), "utf-8")
        try:
            read_judges(path, timeout_s=1, tries=1, concurrency=1)
        except SettingsError as error:
            raise ServiceConfigError(f"--models: judges: {str(error).removeprefix(f'{path}: ')}") from error


def read_price_table(path: Path | None) -> Prices:
    """The price table; raises `ServiceConfigError`."""
    try:
        return read_prices(path)
    except PriceError as error:
        raise ServiceConfigError(str(error)) from error


def _placed(answerer: Answerer, root: Path) -> Answerer:
    paths = {name: str(root / written) for name in ("key_file", "prompt") if (written := getattr(answerer, name))}
    return answerer.model_copy(update=paths)


def _placed_judge(judge: dict[str, object], root: Path) -> dict[str, object]:
    paths = {name: str(root / str(judge[name])) for name in ("key_file", "prompt", "rubric") if judge.get(name)}
    return {**judge, **paths}
