"""A gate as people, programs and build servers read it."""

import xml.etree.ElementTree as ET
from collections.abc import Iterable
from dataclasses import asdict
from math import isfinite
from typing import Any

import orjson
from rich.box import SIMPLE_HEAD
from rich.table import Table

from memdock_evaluator.gate.shape import Check, Gate, Verdict


def to_json(gate: Gate) -> bytes:
    """All of it, indented; a bound that is infinite is null."""
    whole: dict[str, Any] = {"verdict": gate.verdict, **asdict(gate)}
    return orjson.dumps(whole, option=orjson.OPT_INDENT_2) + b"\n"


def to_junit(gate: Gate) -> bytes:
    """JUnit's XML: a suite a baseline, a case a check. A regression fails; what is inconclusive is an error, so that no
    build server takes it for passed.
    """
    root = ET.Element("testsuites", name="memdock-eval gate")
    for address in gate.baselines:
        checks = [check for check in gate.checks if check.baseline == address]
        counts = {verdict: sum(check.verdict is verdict for check in checks) for verdict in Verdict}
        suite = ET.SubElement(
            root,
            "testsuite",
            name=f"against {address}",
            tests=str(len(checks)),
            failures=str(counts[Verdict.REGRESSION]),
            errors=str(counts[Verdict.INCONCLUSIVE]),
        )
        for check in checks:
            language = f".{check.language}" if check.language else ""
            name = f"{check.measure}{f', {check.of}' if check.of else ''}"
            case = ET.SubElement(suite, "testcase", classname=f"{check.system}{language}", name=name)
            if check.verdict is not Verdict.PASSED:
                kind = "failure" if check.verdict is Verdict.REGRESSION else "error"
                ET.SubElement(case, kind, message=sentence(check))
    ET.indent(root)
    return bytes(ET.tostring(root, encoding="utf-8", xml_declaration=True)) + b"\n"


def sentence(check: Check) -> str:
    """What became of a check and why."""
    cells = _cells(check)
    figures = (
        "" if check.by is None else f"baseline {cells[0]}, now {cells[1]}: worse by {cells[2]}, at most {cells[3]}, "
    )
    why = f"; {check.why}" if check.why else ""
    return f"{check.name}: {check.verdict}: {figures}margin {cells[4]}{why}"


def table(checks: Iterable[Check]) -> Table:
    """A row a check."""
    made = Table(box=SIMPLE_HEAD, padding=(0, 1, 0, 0), pad_edge=False)
    made.add_column("check", no_wrap=True)
    for name in ("n", "of", "baseline", "now", "worse by", "at most", "margin"):
        made.add_column(name, justify="right", no_wrap=True)
    made.add_column("", no_wrap=True)
    for check in checks:
        counts = (str(check.n), str(check.clusters)) if check.by is not None else ("–", "–")
        made.add_row(check.name, *counts, *_cells(check), check.verdict)
    return made


def _cells(check: Check) -> tuple[str, str, str, str, str]:
    """Baseline, now, worse by, at most, margin: shares in points of a hundred, parts of the baseline in percent."""
    percent = " %" if check.relative else ""

    def apart(value: float | None, sign: str = "+") -> str:
        if value is None:
            return "–"
        return f"{100 * value:{sign}.1f}{percent}" if isfinite(value) else "unbounded"

    def figure(value: float | None) -> str:
        if value is None:
            return "–"
        return f"{value:.4g}" if check.relative else f"{100 * value:.1f}"

    return figure(check.first), figure(check.second), apart(check.by), apart(check.bound), apart(check.margin, "")
