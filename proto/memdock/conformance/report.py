"""What a run has shown: a table and a line for people, JUnit XML for CI, JSON for programs."""

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from memdock.conformance.case import Case
from memdock.conformance.run import Result, Verdict, conforms
from memdock.conformance.target import Settings, Target
from memdock.types import Description

_COLOURS = {
    Verdict.PASSED: "green",
    Verdict.FAILED: "bold red",
    Verdict.UNEXPECTED: "bold red",
    Verdict.KNOWN: "yellow",
    Verdict.UNPROVEN: "cyan",
    Verdict.SKIPPED: "dim",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """A finished run."""

    target: Target
    settings: Settings
    results: Sequence[Result]
    seconds: float

    @property
    def conforms(self) -> bool:
        """See `memdock.conformance.run.conforms`."""
        return conforms(self.results)

    @property
    def counts(self) -> Mapping[Verdict, int]:
        """How many of each verdict."""
        return Counter(result.verdict for result in self.results)

    @property
    def line(self) -> str:
        """The summary."""
        counts = ", ".join(f"{self.counts[verdict]} {_plural(verdict, self.counts)}" for verdict in Verdict
                           if self.counts.get(verdict))  # fmt: skip
        says = "conforms" if self.conforms else "does not conform"
        return f"{self.target.description.system} {says}: {counts}, in {self.seconds:.0f} s (seed {self.settings.seed})"


def _plural(verdict: Verdict, counts: Mapping[Verdict, int]) -> str:
    return f"{verdict}s" if verdict is Verdict.KNOWN and counts[verdict] != 1 else str(verdict)


def print_report(report: Report, console: Console) -> None:
    """The table, with one row for faces that agree, and the summary."""
    described = report.target.description
    console.print(
        f"{described.system}: {described.adapter.name} {described.adapter.version} on {described.framework.name}"
        f" {described.framework.version}, over {' and '.join(face.name for face in report.target.faces)}",
        markup=False,
        highlight=False,
    )
    table = Table(box=None, pad_edge=False, show_edge=False)
    for heading in ("id", "verdict", "face", "case, and why it did not pass", "s"):
        narrow = heading != "case, and why it did not pass"
        table.add_column(heading, justify="right" if heading == "s" else "left", no_wrap=narrow, overflow="fold")
    for row in _merged(report.results):
        first = row[0]
        colour = _COLOURS[first.verdict]
        table.add_row(
            first.case.id,
            f"[{colour}]{first.verdict}[/]",
            "+".join(result.face for result in row),
            escape(first.case.title) + (f"\n[{colour}]{escape(first.reason)}[/]" if first.reason else ""),
            f"{max(result.seconds for result in row):.1f}",
        )
    console.print(table)
    console.print(report.line, style="bold green" if report.conforms else "bold red", highlight=False, soft_wrap=True)


def _merged(results: Sequence[Result]) -> list[list[Result]]:
    """Results of one case with the same verdict and reason, together."""
    rows: list[list[Result]] = []
    for result in results:
        last = rows[-1][0] if rows else None
        same = last is not None and (last.case.id, last.verdict, last.reason) == (
            result.case.id,
            result.verdict,
            result.reason,
        )
        if same:
            rows[-1].append(result)
        else:
            rows.append([result])
    return rows


def write_json(report: Report, path: Path) -> None:
    """Every result, with what the system says of itself."""
    document = {
        "conforms": report.conforms,
        "finished": datetime.now(UTC).isoformat(timespec="seconds"),
        "seconds": round(report.seconds, 1),
        "seed": report.settings.seed,
        "faces": [face.name for face in report.target.faces],
        "given": sorted(report.target.given()),
        "system": _described(report.target.description),
        "counts": {str(verdict): count for verdict, count in report.counts.items()},
        "results": [
            {
                "id": result.case.id,
                "level": str(result.case.level),
                "title": result.case.title,
                "proves": result.case.proves,
                "face": result.face,
                "verdict": str(result.verdict),
                "reason": result.reason,
                "seconds": round(result.seconds, 2),
            }
            for result in report.results
        ],
    }
    path.write_text(json.dumps(document, ensure_ascii=False, indent=2) + "\n", encoding="utf-8")


def write_cases(cases: Sequence[Case], path: Path) -> None:
    """The cases as data."""
    document = [
        {
            "id": case.id,
            "level": str(case.level),
            "title": case.title,
            "proves": case.proves,
            "features": [str(feature) for feature in case.features],
            "needs": [str(need) for need in case.needs],
        }
        for case in cases
    ]
    path.write_text(json.dumps(document, ensure_ascii=False, indent=2) + "\n", encoding="utf-8")


def write_junit(report: Report, path: Path) -> None:
    """A suite with one test case for each case and face; unproven and known failures are told as skipped."""
    failed = report.counts.get(Verdict.FAILED, 0) + report.counts.get(Verdict.UNEXPECTED, 0)
    quiet = sum(report.counts.get(kind, 0) for kind in (Verdict.SKIPPED, Verdict.UNPROVEN, Verdict.KNOWN))
    suite = ElementTree.Element(
        "testsuite",
        name=f"memdock-conformance {report.target.description.system}",
        tests=str(len(report.results)),
        failures=str(failed),
        skipped=str(quiet),
        errors="0",
        time=f"{report.seconds:.1f}",
    )
    properties = ElementTree.SubElement(suite, "properties")
    for name, value in _described(report.target.description).items():
        text = value if isinstance(value, str) else json.dumps(value)
        ElementTree.SubElement(properties, "property", name=name, value=text)
    for result in report.results:
        test = ElementTree.SubElement(
            suite,
            "testcase",
            classname=f"memdock.{result.face}",
            name=f"{result.case.id} {result.case.title}",
            time=f"{result.seconds:.2f}",
        )
        if result.verdict in (Verdict.FAILED, Verdict.UNEXPECTED):
            ElementTree.SubElement(test, "failure", message=result.reason, type=str(result.verdict))
        elif result.verdict is not Verdict.PASSED:
            ElementTree.SubElement(test, "skipped", message=f"{result.verdict}: {result.reason}")
    ElementTree.indent(suite)
    ElementTree.ElementTree(suite).write(path, encoding="utf-8", xml_declaration=True)


def _described(description: Description) -> dict[str, Any]:
    limits = description.limits
    return {
        "system": description.system,
        "adapter": f"{description.adapter.name} {description.adapter.version}",
        "framework": f"{description.framework.name} {description.framework.version}",
        "protocol_versions": list(description.protocol_versions),
        "features": {str(feature): str(support) for feature, support in description.features.items()},
        "models": [f"{model.purpose}: {model.name}" for model in description.models],
        "limits": {name: getattr(limits, name) for name in limits.__slots__},
        "config_digest": description.config_digest,
    }
