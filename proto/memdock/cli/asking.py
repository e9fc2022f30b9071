"""`ping`, `describe`, `retrieve`, `turns` and `export`: what comes out."""

import time
from collections.abc import Sequence
from datetime import datetime

import click

from memdock.cli import parameters
from memdock.cli.output import count, print_json, print_table, print_turns, print_usage
from memdock.cli.parameters import SPACE
from memdock.cli.target import Target
from memdock.errors import NotFoundError, PermissionDeniedError
from memdock.sync_client import Client
from memdock.types import Description, Memory, Retrieved, SystemSummary


@click.command()
@click.pass_obj
def ping(target: Target) -> None:
    """Ask whether something answers at the address, and what it is."""
    started = time.perf_counter()
    with target.connect() as client:
        found = _what_answers(client, target.system)
    elapsed_ms = (time.perf_counter() - started) * 1e3
    if isinstance(found, Description):
        if target.as_json:
            print_json({"system": found.system, "elapsed_ms": elapsed_ms})
        else:
            click.echo(f"{target.url}: {found.system} answers in {elapsed_ms:.1f} ms")
    elif found is None:
        if target.as_json:
            print_json({"ready": True})
        else:
            click.echo(f"{target.url}: ready; the key may not ask what it is")
    elif target.as_json:
        print_json({"systems": found})
    else:
        click.echo(f"{target.url}: a gateway for {count(len(found), 'system')}; choose one with --system")
        print_table(("SYSTEM", "READY"), ((one.system, one.ready) for one in found))


def _what_answers(client: Client, system: str) -> Description | tuple[SystemSummary, ...] | None:
    """A system; without its name, the systems of a gateway; where the key may ask neither, `None` for what is ready."""
    try:
        return client.describe()
    except NotFoundError:
        if system:
            raise
    except PermissionDeniedError:
        if system:
            client.check_ready()
            return None
    try:
        return client.list_systems()
    except PermissionDeniedError:
        client.check_ready()
        return None


@click.command()
@click.pass_obj
def describe(target: Target) -> None:
    """Show what a system is: versions, features, limits, models, and the digest of its configuration."""
    with target.connect() as client:
        found = client.describe()
    if target.as_json:
        print_json(found)
        return
    _print_description(found)


@click.command()
@SPACE
@click.argument("query")
@click.option("--top-k", type=click.IntRange(min=1), help="How many memories at most. Left out: 10.")
@click.option("--reference-time", type=parameters.time, help='The question\'s "now"; it interprets, it never filters.')
@click.option("--time-zone", default="", help="The zone of --reference-time. Left out: UTC.")
@click.option("--session", "session_ids", multiple=True, help="Only memories of this session; may be repeated.")
@click.option("--since", type=parameters.time, help="Only memories said at or after this time.")
@click.option("--until", type=parameters.time, help="Only memories said before this time.")
@click.pass_obj
def retrieve(
    target: Target,
    space: str,
    query: str,
    top_k: int | None,
    reference_time: datetime | None,
    time_zone: str,
    session_ids: Sequence[str],
    since: datetime | None,
    until: datetime | None,
) -> None:
    """Find the memories that fit a question, best first.

    \b
      memdock retrieve anna "Where does she live?" --top-k 3
      memdock retrieve anna "What happened in May?" --since 2024-05-01T00:00:00Z --until 2024-06-01T00:00:00Z
    """
    with target.connect() as client:
        found = client.retrieve(
            space,
            query,
            top_k=top_k,
            reference_time=reference_time,
            time_zone=time_zone,
            session_ids=session_ids,
            since=since,
            until=until,
        )
    if target.as_json:
        print_json(found)
        return
    _print_retrieved(found)


@click.command()
@SPACE
@click.pass_obj
def turns(target: Target, space: str) -> None:
    """List every turn that the space holds, with its state."""
    with target.connect() as client:
        if target.as_json:
            for record in client.list_turns(space):
                print_json(record)
            return
        records = list(client.list_turns(space))
    print_turns(records)
    click.echo(count(len(records), "turn"))


@click.command()
@SPACE
@click.pass_obj
def export(target: Target, space: str) -> None:
    """Write every memory of the space as JSON lines, where the system can list them.

    \b
      memdock export anna > anna.jsonl
    """
    with target.connect() as client:
        for memory in client.list_memories(space):
            print_json(memory)


def _print_description(found: Description) -> None:
    for name, value in (
        ("system", found.system),
        ("adapter", f"{found.adapter.name} {found.adapter.version}"),
        ("framework", f"{found.framework.name} {found.framework.version}"),
        ("protocol", ", ".join(found.protocol_versions)),
        ("configuration", found.config_digest),
    ):
        click.echo(f"{name:14}{value}")
    limits = found.limits
    click.echo(
        f"limits        {limits.max_turns_per_request} turns and {limits.max_request_bytes} bytes a request,"
        f" {limits.max_turn_bytes} bytes a turn, top_k {limits.max_top_k}, query {limits.max_query_bytes} bytes,"
        f" {limits.max_page_size} items a page, wait {limits.max_wait_s:g} s"
    )
    click.echo()
    print_table(("MODEL", "PURPOSE", "DIMENSION"), ((one.name, one.purpose, one.dimension) for one in found.models))
    print_table(("FEATURE", "SUPPORT"), found.features.items())


def _print_retrieved(found: Retrieved) -> None:
    for rank, memory in enumerate(found.memories, 1):
        click.echo(f"{rank}. {memory.text}")
        click.echo(f"   {_origin(memory)}")
    click.echo(count(len(found.memories), "memory"))
    if found.pending or found.failed_count:
        click.echo(f"may be stale: {count(found.pending, 'turn')} pending, {found.failed_count} failed")
    print_usage(found.usage)


def _origin(memory: Memory) -> str:
    parts = [memory.memory_id, memory.kind]
    if memory.score is not None:
        parts.append(f"score {memory.score:.4f}")
    if memory.time is not None:
        parts.append(memory.time.isoformat())
    if memory.sources:
        parts.append("from " + ", ".join(f"{source.session_id}/{source.turn_id}" for source in memory.sources))
    return "  ".join(part for part in parts if part)
