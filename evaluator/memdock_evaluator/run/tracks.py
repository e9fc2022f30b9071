"""The two tracks: what the systems of one must have in common, and the files that say how a vendor's are set."""

import hashlib
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from memdock_evaluator.results.plan import CONTROLLED_MODELS, SystemFacts, Track, VendorSettings
from memdock_evaluator.run.settings import RunSettings, SettingsError

_MOST_BYTES = 64 * 1024
_NAMES = (
    r"(?:[\w.-]*(?:api|access|secret|private|auth)[_-]?)?key|[\w.-]*(?:secret|password|passwd)"
    r"|credentials?|authorization"
)
_TOKENS = r"(?:[\w.-]*(?:access|auth|api|bearer|refresh)[_-])?token"
_HARMLESS = r"""["']?(?:[$<*{]|(?:env|true|false|null|none|\d+)\b|[\s,}]|$)|""|''"""
"""What stands behind such a name and is no secret: a variable, a blank, a number."""

_SECRET = re.compile(
    "|".join(
        (
            rf"""\b(?:{_NAMES}|{_TOKENS})["']?[ \t]*[:=][ \t]*(?!{_HARMLESS})\S+""",
            r"\bsk-[\w-]{16,}|\bAKIA[0-9A-Z]{16}|\bgh[pousr]_\w{20,}|\bbearer\s+[\w.~+/-]{8,}",
            r"-----BEGIN [\w ]*PRIVATE KEY|://[^/\s:@]+:[^/\s:@]+@",
        )
    ),
    re.IGNORECASE | re.MULTILINE,
)


def read_vendor_settings(written: Sequence[str]) -> Mapping[str, VendorSettings]:
    """The files of words such as "mem0=mem0.yaml", by system; raises `SettingsError`."""
    found: dict[str, VendorSettings] = {}
    for word in written:
        system, equals, file = word.partition("=")
        if not (system and equals and file):
            raise SettingsError(f"--vendor-settings {word}: write SYSTEM=FILE, such as mem0=mem0.yaml")
        if system in found:
            raise SettingsError(f"--vendor-settings {word}: {system} has its file already: {found[system].file}")
        found[system] = _read(word, Path(file))
    return found


def check_settings(settings: RunSettings) -> None:
    """Raises `SettingsError` where the options of a track do not go together."""
    given, systems = settings.vendor_settings, settings.systems
    if given and settings.track is not Track.VENDOR:
        raise SettingsError("--vendor-settings belongs to --track vendor")
    if unknown := sorted(given.keys() - set(systems)):
        raise SettingsError(f"--vendor-settings {unknown[0]}=...: it is no --system of this run")
    if settings.track is Track.VENDOR and (without := [name for name in systems if name not in given]):
        raise SettingsError(
            f"--track vendor shows the settings of each system: give --vendor-settings {without[0]}=FILE"
        )
    if settings.track is Track.CONTROLLED and settings.context_tokens is None:
        raise SettingsError("--track controlled gives every system the same budget of context: give --context-tokens")


def differences_within_tracks(systems: Sequence[SystemFacts]) -> list[str]:
    """What memory systems of one track do not have in common and should; a line each.

    The controlled track, and systems of no track: k, context budget and ingest unit. The controlled track alone: the
    embedding and extraction models that the systems declare. Vendors' systems are free.
    """
    found: list[str] = []
    for track in (None, Track.CONTROLLED):
        members: defaultdict[str, list[SystemFacts]] = defaultdict(list)
        for each in systems:
            if not each.baseline and each.track is track:
                members[each.system].append(each)
        found += _differing("k", {name: _words(sorted({one.k for one in of})) for name, of in members.items()})
        found += _differing("context_tokens", {name: of[0].context_tokens or "all" for name, of in members.items()})
        found += _differing("ingest_unit", {name: of[0].ingest_unit for name, of in members.items()})
        for purpose in CONTROLLED_MODELS if track is Track.CONTROLLED else ():
            found += _differing(f"{purpose} model", _declared(purpose, members))
    return found


def check_tracks(systems: Sequence[SystemFacts]) -> None:
    """Raises `SettingsError` with the differences."""
    if found := differences_within_tracks(systems):
        listed = "\n  ".join(found)
        raise SettingsError(
            f"the systems of one track must be alike. They differ in\n  {listed}\n"
            "Leave out a system, or run it as --track vendor with its settings."
        )


def _declared(purpose: str, members: Mapping[str, Sequence[SystemFacts]]) -> Mapping[str, object]:
    """Of the systems that declare any; of the others the summary says that nobody can tell."""
    models = {
        name: _words(sorted({model.name for model in of[0].models if model.purpose == purpose}))
        for name, of in members.items()
    }
    return {name: words for name, words in models.items() if words}


def _differing(field: str, values: Mapping[str, object]) -> Iterator[str]:
    if len(set(values.values())) > 1:
        yield f"{field}: {'; '.join(f'{name} {value}' for name, value in values.items())}"


def _words(values: Sequence[object]) -> str:
    return ", ".join(map(str, values))


def _read(word: str, path: Path) -> VendorSettings:
    try:
        content = path.read_bytes()
        text = content.decode()
    except (OSError, UnicodeDecodeError) as error:
        raise SettingsError(f"--vendor-settings {word}: no text can be read from it") from error
    if len(content) > _MOST_BYTES:
        raise SettingsError(f"--vendor-settings {word}: it has {len(content)} bytes; give at most {_MOST_BYTES}")
    if secret := _SECRET.search(text):
        line = text.count("\n", 0, secret.start()) + 1
        raise SettingsError(
            f"--vendor-settings {word}, line {line}: it looks like a key, and the manifest and the report show the "
            "file: write the name of a variable in its place, such as ${MEM0_KEY}"
        )
    return VendorSettings(file=str(path), sha256=hashlib.sha256(content).hexdigest(), text=text)
