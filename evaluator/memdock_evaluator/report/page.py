"""The page: templates, their filters, and what they are given."""

import re
from collections.abc import Sequence
from datetime import datetime

from jinja2 import Environment, PackageLoader, StrictUndefined, select_autoescape
from markupsafe import Markup

from memdock_evaluator.report.drawings import FAILURES, failure_bars, forests, recall_curves
from memdock_evaluator.report.explorer import RESULTS, explorer, packed
from memdock_evaluator.report.tables import cutoffs, result_bars, slice_table, stages
from memdock_evaluator.results.manifest import Manifest
from memdock_evaluator.results.rows import Row
from memdock_evaluator.summary.caveats import FEW_QUESTIONS
from memdock_evaluator.summary.comparisons import Comparisons
from memdock_evaluator.summary.ranking import display_name, languages_of, systems_in_order
from memdock_evaluator.summary.shape import Caveat, Summary
from memdock_evaluator.tables.published import SOURCE, published
from memdock_evaluator.words import counted

_LANGUAGES = {"ru": "Russian", "en": "English"}


def render(summary: Summary, rows: Sequence[Row], manifest: Manifest, comparisons: Comparisons) -> str:
    """All of `report.html`."""
    environment = Environment(
        loader=PackageLoader("memdock_evaluator.report"),
        autoescape=select_autoescape(["html"]),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {
        "breakable": _breakable,
        "caveats": _about,
        "count": _count,
        "counted": _counted,
        "display": display_name,
        "language": _language,
        "ms": _ms,
        "moment": _moment,
        "points": _points,
        "probability": _probability,
        "share": _share,
    }
    environment.tests["inner"] = lambda stage: "/" in stage
    table = slice_table(summary)
    return environment.get_template("report.html").render(
        summary=summary,
        manifest=manifest,
        plan=manifest.plan,
        languages=languages_of(summary["systems"]),
        systems_in_order=systems_in_order,
        slices=table,
        cutoffs=cutoffs(summary),
        baselines={system.name for system in manifest.plan.systems if system.baseline},
        results=RESULTS,
        stages=stages(summary),
        few=FEW_QUESTIONS,
        bars=result_bars(summary, rows),
        comparisons=comparisons,
        forests=forests(comparisons),
        failures=FAILURES,
        failure_bars=failure_bars(summary),
        recall_curves=recall_curves(summary),
        published=published(manifest),
        source=SOURCE,
        explorer=packed(explorer(rows, [column.system for column, _ in table.systems])),
    )


def _about(caveats: Sequence[Caveat], *about: str) -> list[str]:
    return [caveat["text"] for caveat in caveats if caveat["about"] in about]


def _breakable(word: str) -> Markup:
    """A word that a narrow column may part before a capital and after an underscore or a plus."""
    return Markup("<wbr>").join(re.split(r"(?<=[a-z])(?=[A-Z])|(?<=[_+])", word))


def _share(value: float | None) -> str:
    """A score of 0 to 1 in per cent, without the sign."""
    return "–" if value is None else f"{100 * value:.1f}"


def _points(difference: float) -> str:
    """A difference of shares in points, with its sign."""
    points = round(100 * difference, 1) + 0.0
    return f"{points:+.1f}".replace("-", "−") if points else "0.0"


def _probability(value: float | None) -> str:
    if value is None:
        return "–"
    return "< 0.001" if value < 0.001 else f"{value:.3f}"


def _count(value: float) -> str:
    """A whole number with thin spaces between thousands."""
    return f"{value:,.0f}".replace(",", "\u202f")


def _counted(number: int, one: str) -> str:
    """ "1 dialogue", "2 dialogues", with the same spaces."""
    return counted(number, one).replace(",", "\u202f")


def _ms(value: float) -> str:
    """A time in the unit that reads best, from milliseconds to minutes."""
    if value >= 120_000:
        return f"{value / 60_000:.1f} min"
    if value >= 1000:
        return f"{value / 1000:.1f} s"
    return f"{value:.0f} ms" if value >= 100 else f"{value:.1f} ms"


def _language(code: str) -> str:
    return _LANGUAGES.get(code, code)


def _moment(time: datetime) -> str:
    return f"{time:%Y-%m-%d %H:%M} {time.tzname() or ''}".strip()
