"""The data of a run: its files, read as often as needed, one dialogue in memory at a time."""

import hashlib
from collections import Counter
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from memdock_evaluator.dataset import DatasetError, Dialogue, open_dataset
from memdock_evaluator.dataset.formats import FORMATS
from memdock_evaluator.dataset.shipped import LANGUAGES, OWN, own_dataset_path
from memdock_evaluator.results.plan import DataCounts, DataFacts, DataFile
from memdock_evaluator.run.choice import Choice, ChoiceError, choose, contents, taken
from memdock_evaluator.run.settings import DataSource, RunSettings, SettingsError

_CHUNK_BYTES = 1 << 20
ANY = "found from the first record"


@dataclass(frozen=True, slots=True, kw_only=True)
class DialogueSize:
    """What a dialogue will ask of the run."""

    language: str
    dialogue_id: str
    turns: int
    questions: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Survey:
    """The data read once from end to end: what the manifest says of it, and the sizes of its dialogues."""

    facts: DataFacts
    sizes: tuple[DialogueSize, ...]


class Selection:
    """The dialogues that a run selects."""

    def __init__(self, settings: RunSettings) -> None:
        """Raises `SettingsError` for data that cannot be meant."""
        self._settings = settings
        self._sources = [source for given in settings.data for source in _sources(given, settings.languages)]
        if settings.format is not None and settings.format not in {known.name for known in FORMATS}:
            raise SettingsError(f"there is no format {settings.format!r}")

    def dialogues(self) -> Iterator[Dialogue]:
        """The dialogues to run, in the files' order; raises `DatasetError`, or `SettingsError` for a vain choice."""
        return taken(self._selected(), self._choice) if self._chooses else self._selected()

    def _selected(self) -> Iterator[Dialogue]:
        for source in self._sources:
            for dialogue in open_dataset(
                source.path, format=self._settings.format, language=source.language, zone=self._settings.zone
            ):
                if self._selects(dialogue):
                    yield dialogue

    def survey(self) -> Survey:
        """Reads everything once; raises `DatasetError`, or `SettingsError` where nothing or too much is selected."""
        sizes: dict[tuple[str, str], DialogueSize] = {}
        counts: dict[str, Counter[str]] = {}
        oddities = Counter[str]()
        for dialogue in self.dialogues():
            place = dialogue.language, dialogue.dialogue_id
            if place in sizes:
                raise SettingsError(
                    f"dialogue {dialogue.dialogue_id} in {dialogue.language} stands in two of the files: "
                    "give each dialogue once, or declare the files' languages as --data ru=FILE"
                )
            sizes[place] = DialogueSize(
                language=dialogue.language,
                dialogue_id=dialogue.dialogue_id,
                turns=sum(1 for _ in dialogue.turns),
                questions=len(dialogue.questions),
            )
            counts.setdefault(dialogue.language, Counter()).update(_counts(dialogue))
            oddities.update(oddity.kind for oddity in dialogue.oddities)
        if not self._chooses:
            self._check_selection(sizes)
        if not any(size.questions for size in sizes.values()):
            raise SettingsError("the data that is selected holds no question")
        return Survey(facts=self._facts(counts, oddities), sizes=tuple(sizes.values()))

    @property
    def _chooses(self) -> bool:
        return self._settings.sample is not None or self._settings.shard is not None

    @cached_property
    def _choice(self) -> Choice:
        found = contents(self._selected())
        self._check_selection([(code, name) for name, codes in found.dialogues.items() for code in codes])
        try:
            return choose(found, self._settings.sample, self._settings.shard)
        except ChoiceError as error:
            raise SettingsError(str(error)) from error

    def _selects(self, dialogue: Dialogue) -> bool:
        languages, ids = self._settings.languages, self._settings.dialogues
        return (not languages or dialogue.language in languages) and (not ids or dialogue.dialogue_id in ids)

    def _check_selection(self, places: Collection[tuple[str, str]]) -> None:
        """`places`: languages and dialogues that there are."""
        for wanted in self._settings.languages:
            if not any(language == wanted for language, _ in places):
                raise SettingsError(f"--language: the data holds no dialogue in {wanted!r} that is selected")
        for wanted in self._settings.dialogues:
            if not any(dialogue_id == wanted for _, dialogue_id in places):
                raise SettingsError(f"--dialogue: the data holds no dialogue {wanted!r}")

    def _facts(self, counts: dict[str, Counter[str]], oddities: Counter[str]) -> DataFacts:
        files = (
            DataFile(path=_shown(source), sha256=_sha256(Path(source.path)), language=source.language)
            for source in self._sources
        )
        return DataFacts(
            files=tuple(files),
            format=self._settings.format or ANY,
            zone=self._settings.zone,
            dialogues=self._settings.dialogues,
            sample=self._settings.sample,
            shard=str(self._settings.shard or ""),
            languages={language: DataCounts(**found) for language, found in sorted(counts.items())},
            oddities=dict(sorted(oddities.items())),
        )


def _sources(given: DataSource, languages: tuple[str, ...]) -> list[DataSource]:
    if given.path != OWN:
        return [given]
    wanted = (given.language,) if given.language else [code for code in LANGUAGES if not languages or code in languages]
    return [DataSource(path=str(own_dataset_path(language)), language=language) for language in wanted]


def _shown(source: DataSource) -> str:
    """A bundled file by its name alone: where the package is installed decides nothing."""
    path = Path(source.path)
    return f"{OWN}:{path.name}" if path in map(own_dataset_path, LANGUAGES) else source.path


def source_of(file: DataFile) -> DataSource:
    """The file that a manifest names, as it was given to its run."""
    for language in LANGUAGES:
        bundled = DataSource(path=str(own_dataset_path(language)), language=language)
        if _shown(bundled) == file.path:
            return bundled
    return DataSource(path=file.path, language=file.language)


def stated_format(data: DataFacts) -> str | None:
    """The format that a run was told; `None`: it was found from the first record."""
    return None if data.format == ANY else data.format


def _counts(dialogue: Dialogue) -> dict[str, int]:
    return {
        "dialogues": 1,
        "sessions": len(dialogue.sessions),
        "turns": sum(1 for _ in dialogue.turns),
        "characters": dialogue.characters,
        "questions": len(dialogue.questions),
    }


def _sha256(path: Path) -> str:
    digest = hashlib.sha256()
    try:
        with path.open("rb") as file:
            while chunk := file.read(_CHUNK_BYTES):
                digest.update(chunk)
    except OSError as error:
        raise DatasetError(f"cannot be opened ({error.strerror})", path=path) from error
    return digest.hexdigest()
