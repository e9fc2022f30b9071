import pytest

from memdock_evaluator.dataset import taxonomy


def test_types_are_seventeen_in_four_groups() -> None:
    assert len(set(taxonomy.TYPES)) == 17
    assert [len(kinds) for kinds in taxonomy.GROUPS.values()] == [6, 6, 4, 1]
    assert taxonomy.GROUP_OF["DateExtraction"] == "extraction"
    assert taxonomy.GROUP_OF["ComplexRelations"] == "temporal_reasoning"
    assert set(taxonomy.SUBTYPES) <= set(taxonomy.TYPES)


@pytest.mark.parametrize(
    "written",
    [
        "StaticUser, single, atemporal",
        "static_user,SINGLE-session , Atemporal",
        "atemporal; single; StaticUser",
        "Static User | single session | atemporal,",
    ],
)
def test_category_is_read_in_any_form(written: str) -> None:
    category = taxonomy.read_category(written)

    assert (category.semantic, category.scope, category.temporality) == ("StaticUser", "single", "atemporal")


@pytest.mark.parametrize("kind", taxonomy.TYPES)
def test_every_type_is_read_back(kind: str) -> None:
    category = taxonomy.read_category(f"{kind}, multi, temporal")

    assert category.semantic == kind
    assert category.abstention == (kind == "Abstention")


@pytest.mark.parametrize(
    ("written", "sentence"),
    [
        ("StaticUser, single", "no temporality in 'StaticUser, single'"),
        ("Oracle, single, temporal", "'oracle' is no semantic type, scope or temporality"),
        ("StaticUser, single, multi, temporal", "both 'single' and 'multi' as its scope"),
        ("", "no semantic in ''"),
    ],
)
def test_category_that_cannot_be_read_says_why(written: str, sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        taxonomy.read_category(written)


@pytest.mark.parametrize(
    ("written", "read"),
    [
        ("explicit", "explicit"),
        ("Implicit temporal expression", "implicit"),
        ("no temporal expression", "none"),
        ("none", "none"),
        ("NonTE", "none"),
        ("ExplicitTE", "explicit"),
        ("", ""),
        (None, ""),
        ("  ", ""),
    ],
)
def test_temporal_expression_is_read(written: str | None, read: str) -> None:
    assert taxonomy.read_expression(written) == read


def test_unknown_temporal_expression_is_refused() -> None:
    with pytest.raises(ValueError, match="'soon' is none of explicit, implicit, none"):
        taxonomy.read_expression("soon")


def test_axes_hold_only_what_applies() -> None:
    atemporal = taxonomy.axes(taxonomy.read_category("Ordering, multi, atemporal"), expression="explicit")
    temporal = taxonomy.axes(taxonomy.read_category("Ordering, multi, temporal"), expression="explicit")

    assert "temporal_expression" not in atemporal
    assert temporal["temporal_expression"] == "explicit"
    assert temporal["scope_temporality"] == "multi+temporal"
    assert temporal["group"] == "general_reasoning"
    assert set(temporal) <= set(taxonomy.AXES)


@pytest.mark.parametrize(
    ("kind", "written", "read"),
    [
        ("TemporalCommonsense", "(Event)Ordering", "EventOrdering"),
        ("OtherReasoning", "Multi Step", "MultiStep"),
        ("OtherReasoning", "riddle", "riddle"),
        ("StaticUser", "", ""),
    ],
)
def test_subtype_is_spelled_as_in_the_table(kind: str, written: str, read: str) -> None:
    assert taxonomy.read_subtype(kind, written) == read
