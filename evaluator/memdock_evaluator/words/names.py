"""The names that a page shows for what files name in short: an axis, a slice, a place where an answer failed.

The terminal and the files keep the short ones. What is not here, such as a tag of one's own, is shown as it stands.
"""

from collections.abc import Mapping

from memdock_evaluator.words.sentence import said

AXES: Mapping[str, str] = {
    "group": said("Group"),
    "semantic": said("Semantic type"),
    "scope": said("Scope"),
    "temporality": said("Temporality"),
    "scope_temporality": said("Scope × temporality"),
    "temporal_expression": said("Temporal expression"),
    "subcategory": said("Subcategory"),
    "subsubcategory": said("Subsubcategory"),
    "supergroup": said("Supergroup"),
    "reasoning": said("Kind of reasoning"),
    "position": said("Place of the evidence"),
    "position_single": said("Place of the evidence, single-session"),
}

_SCOPES = {"single": said("Single-session"), "multi": said("Multi-session")}
_TEMPORALITIES = {"atemporal": said("Atemporal"), "temporal": said("Temporal")}
_GROUPS = {
    "extraction": said("Information extraction"),
    "general_reasoning": said("General reasoning"),
    "temporal_reasoning": said("Temporal reasoning"),
    "abstention": said("Abstention"),
}
_POSITIONS = {"edge": said("Outer thirds of the dialogue"), "middle": said("Middle third of the dialogue")}
_TYPES = (
    said("StaticUser"),
    said("UpdatingInfo"),
    said("DeleteInfo"),
    said("AsstQuery"),
    said("OpenDomainType"),
    said("DateExtraction"),
    said("SocialRelationship"),
    said("Ordering"),
    said("Arithmetic"),
    said("Comparison"),
    said("UserQA"),
    said("OtherReasoning"),
    said("CalendarUnderstanding"),
    said("TemporalCommonsense"),
    said("TemporallyModifiedGeneralReasoning"),
    said("ComplexRelations"),
    said("Abstention"),
)
_SUBTYPES = (
    said("ExplicitTE"),
    said("NonTE"),
    said("sum"),
    said("less/more"),
    said("average"),
    said("other"),
    said("comparative"),
    said("superlative"),
    said("equivalence"),
    said("CausalReasoning"),
    said("MultiStep"),
    said("ImplicitTE"),
    said("RelativeTimeUnderstanding"),
    said("WeekdayUnderstanding"),
    said("DateQA"),
    said("EventOrdering"),
    said("EventFrequency"),
    said("EventDuration"),
    said("Arithmetic"),
    said("Comparison"),
    said("UserQA"),
    said("EventEventTimeUnderstanding"),
    said("DuringReasoning"),
    said("Trends"),
)
_DATE_SUBTYPES = (
    said("date-question"),
    said("month/year-question"),
    said("span-question"),
    said("date-answer"),
    said("month/year-answer"),
    said("span-answer"),
)

SLICES: Mapping[str, Mapping[str, str]] = {
    "group": _GROUPS,
    "semantic": {str(name): name for name in _TYPES},
    "scope": _SCOPES,
    "temporality": _TEMPORALITIES,
    "scope_temporality": {
        "single+atemporal": said("Single-session atemporal"),
        "multi+atemporal": said("Multi-session atemporal"),
        "single+temporal": said("Single-session temporal"),
        "multi+temporal": said("Multi-session temporal"),
    },
    "temporal_expression": {
        "explicit": said("Explicit expression"),
        "implicit": said("Implicit expression"),
        "none": said("No temporal expression"),
    },
    "subcategory": {str(name): name for name in _SUBTYPES},
    "subsubcategory": {str(name): name for name in _DATE_SUBTYPES},
    "overall": {"all": said("All questions")},
    "supergroup": _GROUPS | {"reasoning": said("Reasoning")},
    "reasoning": _GROUPS,
    "position": _POSITIONS,
    "position_single": _POSITIONS,
}
"""Axis -> slice -> its name. The semantic types and their subtypes keep the paper's names in English."""


STEPS = (
    said("add"),
    said("flush"),
    said("retrieve"),
    said("answer"),
    said("judge"),
    said("store"),
    said("embed"),
    said("rewrite"),
    said("extract"),
    said("search"),
    said("ledger"),
    said("system"),
)
"""Stages of a run and the usual steps inside a system; a step of another name is shown as the system names it."""

UNSTATED_FORMAT = said("found from the first record")
"""The format of data for which a run was told none."""

SKIPPED = (said("no --restart-command was given"), said("it declares no Forget by turn or by session"))
"""Why the suite of leaks did not ask at a moment."""

FEATURES = (
    said("filter sessions"),
    said("filter time"),
    said("forget memories"),
    said("forget turns"),
    said("forget sessions"),
    said("forget dry run"),
    said("list memories"),
    said("sources"),
    said("scores"),
    said("event time"),
    said("time zones"),
    said("reference time"),
    said("times of validity"),
    said("leaving out turns worth no memory"),
    said("buffering of turns"),
    said("counting of usage"),
)
"""The protocol's features, in words."""

_FEATURES = {
    "VALIDITY": "times of validity",
    "NO_MEMORY": "leaving out turns worth no memory",
    "BUFFERING": "buffering of turns",
    "USAGE": "counting of usage",
}


def feature_name(feature: str) -> str:
    """A feature of the protocol as a page names it: of `FEATURES`."""
    return _FEATURES.get(feature, feature.lower().replace("_", " "))


TRACK_NAMES: Mapping[str, str] = {
    "controlled": said("controlled"),
    "vendor": said("vendor"),
    "": said("of no track"),
}

PUBLISHED_FAMILIES = (said("Full context"), said("Agent/RAG"))

SUPPORT = (said("native"), said("emulated"), said("unsupported"))

PURPOSES = (said("embedding"), said("extraction"), said("rewriting"), said("answer"), said("judge"))
"""What a model is for, as adapters say."""
