"""What RUMBA's two shapes have in common: a question's own fields."""

from memdock_evaluator.dataset import taxonomy
from memdock_evaluator.dataset.notes import Notes
from memdock_evaluator.dataset.shapes import Filled, Joined, Label, Shape, Texts


class RumbaQuestion(Shape):
    """A question as both shapes write it; `question_date` is wall clock without an offset."""

    question: Filled
    answer: Texts
    category: Joined
    subcategory: Label = ""
    subsubcategory: Label = ""
    text_temporal_expression: Label = ""
    question_date: Label = ""


def classify(written: RumbaQuestion, notes: Notes) -> tuple[dict[str, str], bool]:
    """A question's axes, and whether its dialogue holds no answer.

    A category that cannot be read stays as the one axis `category`, so that its question is asked all the same.
    """
    try:
        category = taxonomy.read_category(written.category)
    except ValueError as error:
        notes.add("category-unreadable", f"{error}; the question has no slice but its own words")
        return {"category": written.category}, False
    axes = taxonomy.axes(
        category,
        expression=_expression(written.text_temporal_expression, category, notes),
        subcategory=taxonomy.read_subtype(category.semantic, written.subcategory),
        subsubcategory=written.subsubcategory,
    )
    return axes, category.abstention


def _expression(written: str, category: taxonomy.Category, notes: Notes) -> str:
    try:
        expression = taxonomy.read_expression(written)
    except ValueError as error:
        notes.add("expression-unreadable", f"{error}; the question is in no slice of that axis")
        return ""
    if category.temporality == "temporal":
        if not expression:
            notes.add("expression-missing", "a temporal question without its tag is in no slice of that axis")
        return expression
    if expression not in ("", "none"):
        notes.add("expression-unexpected", f"an atemporal question is tagged {expression!r}; the tag is left out")
    return ""
