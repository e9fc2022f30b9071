"""The options of `run` and `report` on what is compared with what."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import click

from memdock_evaluator.results.manifest import Compared, NamedFamily


def _families(_: click.Context, __: click.Parameter, written: Sequence[str]) -> tuple[NamedFamily, ...]:
    """ "rag=rag-dense,rag-hybrid" is a family of two."""
    found: dict[str, NamedFamily] = {}
    for each in written:
        name, equals, systems = each.partition("=")
        members = tuple(system.strip() for system in systems.split(",") if system.strip())
        if not (name.strip() and equals and members):
            raise click.BadParameter(f"{each!r}: write NAME=SYSTEM,SYSTEM, such as rag=rag-dense,rag-hybrid")
        if name.strip() in found:
            raise click.BadParameter(f"the family {name.strip()!r} is given twice: name all its systems at once")
        found[name.strip()] = NamedFamily(name=name.strip(), systems=members)
    return tuple(found.values())


_OPTIONS = (
    click.option(
        "--family",
        "families",
        multiple=True,
        callback=_families,
        metavar="NAME=SYSTEMS",
        help="Systems whose mean the report compares, with commas between; may be repeated, the first minus the later "
        "ones. A system's name without its k stands for it at every k, here and in the next two.  "
        "[default: all memory systems, and full context]",
    ),
    click.option(
        "--atemporal",
        multiple=True,
        metavar="SYSTEM",
        help="A system without times, which leaves the slices of time; may be repeated. Those that declare no "
        "EVENT_TIME do so by themselves.",
    ),
    click.option(
        "--case-study",
        "case_studies",
        multiple=True,
        metavar="SYSTEM",
        help="A system whose slices and languages are compared for itself (the paper's Appendix G); may be repeated.  "
        "[default: the memory system of a run that has one]",
    ),
)


def compare_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Puts the options before a command."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


def compared_of(given: Mapping[str, Any]) -> Compared:
    """What they say."""
    return Compared(families=given["families"], atemporal=given["atemporal"], case_studies=given["case_studies"])
