"""The page: templates, their filters, and what they are given."""

from collections.abc import Mapping, Sequence

from jinja2 import Environment, PackageLoader, StrictUndefined, select_autoescape

from memdock_evaluator.leaks.rows import Moment
from memdock_evaluator.report.drawings import FAILURES, failure_bars, forests, recall_curves
from memdock_evaluator.report.explorer import RESULTS, Explorer, explorer_of, names
from memdock_evaluator.report.language import PageWords
from memdock_evaluator.report.scatter import scatters
from memdock_evaluator.report.script import SCRIPTS, script_words
from memdock_evaluator.report.tables import billed, cutoffs, result_bars, slice_table, stages
from memdock_evaluator.results.manifest import Manifest
from memdock_evaluator.results.rows import Row
from memdock_evaluator.suites.attached import Attached
from memdock_evaluator.summary.caveats import FEW_QUESTIONS, TITLES
from memdock_evaluator.summary.comparisons import Comparisons
from memdock_evaluator.summary.costs import PURPOSES
from memdock_evaluator.summary.heat import heat_maps
from memdock_evaluator.summary.ranking import block_of, display_name, ks_of, languages_of, systems_in_order, tracks_of
from memdock_evaluator.summary.recall import recall
from memdock_evaluator.summary.shape import Caveat, Summary
from memdock_evaluator.tables.overview import Glance, overview
from memdock_evaluator.tables.published import SOURCE, published
from memdock_evaluator.words.language import LANGUAGES
from memdock_evaluator.words.names import feature_name

_MOST_NAMED = 4
"""Systems or files that a title names."""


def render(
    summary: Summary,
    rows: Sequence[Row],
    manifest: Manifest,
    comparisons: Comparisons,
    suites: Attached,
    explorer: Explorer,
    *,
    language: str,
    pages: Mapping[str, str],
) -> str:
    """The whole page in one of `LANGUAGES`; `pages` are the files of all of them, which it links to."""
    words = PageWords(language)
    environment = Environment(
        loader=PackageLoader("memdock_evaluator.report"),
        autoescape=select_autoescape(["html"]),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update(
        words.filters, caveats=_about, display=display_name, feature_name=feature_name, recall=recall
    )
    environment.globals |= {"t": words.t, "tn": words.tn}
    environment.tests["inner"] = lambda stage: "/" in stage
    table = slice_table(summary)
    return environment.get_template("report.html").render(
        language=language,
        pages=[(code, LANGUAGES[code], file) for code, file in pages.items() if code != language],
        summary=summary,
        title=_title(manifest, words),
        manifest=manifest,
        plan=manifest.plan,
        languages=languages_of(summary["systems"]),
        systems_in_order=systems_in_order,
        tracks_of=tracks_of,
        ks_of=ks_of,
        block_of=block_of,
        slices=table,
        cutoffs=cutoffs(summary),
        baselines={system.name for system in manifest.plan.systems if system.baseline},
        results=RESULTS,
        stages=stages(summary),
        few=FEW_QUESTIONS,
        caveat_titles=TITLES,
        bars=result_bars(summary, rows),
        comparisons=comparisons,
        forests=forests(comparisons, words),
        failures=FAILURES,
        failure_bars=failure_bars(summary),
        recall_curves=recall_curves(summary),
        scatters=scatters(summary),
        suites=suites,
        glances=_glances(summary, suites),
        moment_order=[moment.value for moment in Moment],
        purposes=PURPOSES,
        billed=billed(summary),
        heats=heat_maps(summary, comparisons.families),
        published=published(manifest),
        source=SOURCE,
        scripts=SCRIPTS,
        script_words=script_words(words),
        explorer=explorer,
        explorer_names=names(rows, _in_order(summary), words),
    )


def packed_rows(summary: Summary, rows: Sequence[Row], manifest: Manifest) -> Explorer:
    """The explorer's part of a page, which is the same in every language."""
    return explorer_of(rows, _in_order(summary), _judges(manifest))


def _title(manifest: Manifest, words: PageWords) -> str:
    """What was evaluated on what: the names where there are few."""
    plan = manifest.plan
    systems = list(dict.fromkeys(each.system or display_name(each.name) for each in plan.systems if not each.baseline))
    systems = systems or [display_name(each.name) for each in plan.systems]
    files = [file.path.rsplit("/", 1)[-1] for file in plan.data.files]
    named = words.tn("{n} system", "{n} systems", len(systems)) if len(systems) > _MOST_NAMED else ", ".join(systems)
    data = words.tn("{n} file", "{n} files", len(files)) if len(files) > _MOST_NAMED else ", ".join(files)
    return words.t("{systems} on {data}", systems=named, data=data)


def _glances(summary: Summary, suites: Attached) -> list[Glance]:
    """None where the other tables tell it all."""
    found = overview(summary, suites)
    return found if any(each.is_more for each in found) else []


def _in_order(summary: Summary) -> list[str]:
    return [column.system for column, _ in slice_table(summary).systems]


def _about(caveats: Sequence[Caveat], *about: str) -> list[str]:
    return [caveat["text"] for caveat in caveats if caveat["about"] in about]


def _judges(manifest: Manifest) -> dict[str, str]:
    """Language -> the name of the judge whose verdict counts there, where a run has several."""
    return {code: name for name, judge in manifest.plan.judges.items() for code in judge.primary_for}
