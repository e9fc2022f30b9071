"""RUMBA's axes of questions (arXiv:2607.21447, Table 2 and Table 26) and the form in which a file writes them."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

EXTRACTION, GENERAL, TEMPORAL, ABSTENTION = "extraction", "general_reasoning", "temporal_reasoning", "abstention"

GROUPS: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        EXTRACTION: ("StaticUser", "UpdatingInfo", "DeleteInfo", "AsstQuery", "OpenDomainType", "DateExtraction"),
        GENERAL: ("SocialRelationship", "Ordering", "Arithmetic", "Comparison", "UserQA", "OtherReasoning"),
        TEMPORAL: (
            "CalendarUnderstanding",
            "TemporalCommonsense",
            "TemporallyModifiedGeneralReasoning",
            "ComplexRelations",
        ),
        ABSTENTION: ("Abstention",),
    }
)
"""Each group's semantic types, in the paper's order."""

TYPES: tuple[str, ...] = tuple(kind for kinds in GROUPS.values() for kind in kinds)
"""The 17 semantic types."""

GROUP_OF: Mapping[str, str] = MappingProxyType({kind: group for group, kinds in GROUPS.items() for kind in kinds})

SCOPES = ("single", "multi")
TEMPORALITIES = ("atemporal", "temporal")
EXPRESSIONS = ("explicit", "implicit", "none")
"""How time stands in the evidence of a temporal question; "none": only the session's date tells."""

SUBTYPES: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "DateExtraction": ("ExplicitTE", "NonTE"),
        "Arithmetic": ("sum", "less/more", "average", "other"),
        "Comparison": ("comparative", "superlative", "equivalence"),
        "OtherReasoning": ("CausalReasoning", "MultiStep"),
        "CalendarUnderstanding": ("ImplicitTE", "RelativeTimeUnderstanding", "WeekdayUnderstanding", "DateQA"),
        "TemporalCommonsense": ("EventOrdering", "EventFrequency", "EventDuration"),
        "TemporallyModifiedGeneralReasoning": ("Arithmetic", "Comparison", "UserQA", "CausalReasoning", "MultiStep"),
        "ComplexRelations": ("EventEventTimeUnderstanding", "DuringReasoning", "Trends"),
    }
)
"""Table 26: the subtypes that it names; a type that is missing has none."""

DATE_SUBTYPES = (
    "date-question",
    "month/year-question",
    "span-question",
    "date-answer",
    "month/year-answer",
    "span-answer",
)
"""Table 26: the sub-subtypes of DateExtraction's subtypes and of CalendarUnderstanding's ImplicitTE."""

AXES = (
    "group",
    "semantic",
    "scope",
    "temporality",
    "scope_temporality",
    "temporal_expression",
    "subcategory",
    "subsubcategory",
)
"""The axes of a RUMBA question, as keys of `Question.axes`. `group` is a key of `GROUPS`; `scope_temporality` is
"single+temporal" and its like; `temporal_expression` is there for temporal questions only, the last two where the file
names them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Category:
    """A question's place on the three axes that RUMBA writes into one string."""

    semantic: str
    scope: str
    temporality: str

    @property
    def abstention(self) -> bool:
        """Whether the dialogue holds no answer; a deleted fact was there once, so DeleteInfo is none."""
        return GROUP_OF[self.semantic] == ABSTENTION


def read_category(written: str) -> Category:
    """Read "StaticUser, single, atemporal": in any order and case, with any of `, ; | /` between, "-session" ignored.

    Raises `ValueError` with a sentence that names the part that is unknown, missing or there twice.
    """
    found: dict[str, str] = {}
    for part in filter(None, map(_plain, re.split(r"[,;|/]", written))):
        axis, value = _KNOWN.get(part, ("", ""))
        if not axis:
            raise ValueError(f"{part!r} is no semantic type, scope or temporality of RUMBA")
        if found.setdefault(axis, value) != value:
            raise ValueError(f"both {found[axis]!r} and {value!r} as its {axis}")
    for axis in ("semantic", "scope", "temporality"):
        if axis not in found:
            raise ValueError(f"no {axis} in {written!r}")
    return Category(**found)


def read_expression(written: str | None) -> str:
    """Read a temporal-expression tag into one of `EXPRESSIONS`, or "" where there is none.

    The data set writes "none" for "no temporal expression"; both are read. Raises `ValueError` for any other word.
    """
    if not written or not written.strip():
        return ""
    word = _plain(written).removesuffix("temporalexpression").removesuffix("te")
    if word in ("no", "none", "non"):
        return "none"
    if word in EXPRESSIONS:
        return word
    raise ValueError(f"{written!r} is none of {', '.join(EXPRESSIONS)}")


def read_subtype(semantic: str, written: str) -> str:
    """A type's subtype as `SUBTYPES` spells it ("(Event)Ordering" is "EventOrdering"); an unknown one as it stands."""
    letters = re.sub(r"[^a-z]", "", written.lower())
    known = {re.sub(r"[^a-z]", "", name.lower()): name for name in SUBTYPES.get(semantic, ())}
    return known.get(letters, written)


def axes(
    category: Category, *, expression: str = "", subcategory: str = "", subsubcategory: str = ""
) -> dict[str, str]:
    """All of `AXES` that apply to a question."""
    values = {
        "group": GROUP_OF[category.semantic],
        "semantic": category.semantic,
        "scope": category.scope,
        "temporality": category.temporality,
        "scope_temporality": f"{category.scope}+{category.temporality}",
        "temporal_expression": expression if category.temporality == "temporal" else "",
        "subcategory": subcategory,
        "subsubcategory": subsubcategory,
    }
    return {axis: value for axis, value in values.items() if value}


def _plain(written: str) -> str:
    """Lower case without spaces, hyphens, underscores or the word "session"."""
    return re.sub(r"[\s_-]|session", "", written.lower())


_KNOWN: Mapping[str, tuple[str, str]] = {
    _plain(value): (axis, value)
    for axis, values in (("semantic", TYPES), ("scope", SCOPES), ("temporality", TEMPORALITIES))
    for value in values
}
