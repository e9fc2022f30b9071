"""`add` and `flush`: what goes in."""

import sys
from collections import Counter
from collections.abc import Sequence
from datetime import datetime

import click

from memdock.check import ROLES, check_turn
from memdock.cli import parameters
from memdock.cli.output import count, print_json, print_turns, print_usage
from memdock.cli.parameters import SPACE, label
from memdock.cli.target import Target
from memdock.cli.turn_lines import batches, read_lines
from memdock.convert import wire_turn
from memdock.errors import MemdockError, PermissionDeniedError, UnimplementedError
from memdock.sync_client import Client
from memdock.types import Added, Limits, Turn, TurnResult, TurnState

SHOWN_TURNS = 20


@click.command()
@SPACE
@click.option("--turn-id", help="Your name for the turn, unique in the space; sending it again is safe.")
@click.option("--session", "session_id", help="The session that the turn belongs to.")
@click.option("--role", type=click.Choice(ROLES), default="user", show_default=True)
@click.option("--text", help="What was said.")
@click.option("--name", default="", help="The speaker's name.")
@click.option("--time", type=parameters.time, help="When it was said: 2024-05-01T09:30:00+03:00. Left out: unknown.")
@click.option("--time-zone", default="", help='The zone in which "yesterday" is read: Europe/Moscow. Left out: UTC.')
@click.option("--metadata", type=label, multiple=True, help="A label of your own; may be repeated.")
@click.pass_obj
def add(
    target: Target,
    space: str,
    turn_id: str | None,
    session_id: str | None,
    role: str,
    text: str | None,
    name: str,
    time: datetime | None,
    time_zone: str,
    metadata: Sequence[tuple[str, str]],
) -> None:
    """Add one turn from options, or many from JSON lines on standard input.

    \b
      memdock add anna --turn-id t1 --session s1 --text "I moved to Kazan." --time 2024-05-01T09:30:00+03:00
      memdock add anna < turns.jsonl

    A line is a turn as the protocol has it; a line that is wrong is named, and then nothing is sent:

    \b
      {"turn_id": "t2", "session_id": "s1", "role": "assistant", "text": "How is it there?"}

    Adding the same turns again is safe: they are told as duplicates and cost nothing.
    """
    if text is not None and (turn_id is None or session_id is None):
        raise click.UsageError("--text needs --turn-id and --session")
    if text is None and sys.stdin.isatty():
        raise click.UsageError("give --turn-id, --session and --text, or JSON lines on standard input")
    with target.connect() as client:
        limits = _limits(client)
        if text is None:
            turns = _read_input(limits)
        else:
            turn = Turn(
                turn_id=turn_id or "",
                session_id=session_id or "",
                role=role,
                text=text,
                name=name,
                time=time,
                time_zone=time_zone,
                metadata=dict(metadata),
            )
            check_turn(wire_turn(turn), limits)
            turns = [turn]
        added = _add_all(client, space, turns, limits)
    _print_added(added, as_json=target.as_json)


@click.command()
@SPACE
@click.option(
    "--wait", "wait_s", type=click.FloatRange(min=0), default=300.0, show_default=True, help="Seconds to wait at most."
)
@click.pass_obj
def flush(target: Target, space: str, wait_s: float) -> int:
    """Wait until every turn added so far can be found, or has failed. Exit code 1: the time was too short."""
    with target.connect() as client:
        flushed = client.flush(space, timeout_s=wait_s)
    if target.as_json:
        print_json(flushed)
        return 0 if flushed.done else 1
    state = "done" if flushed.done else "not done"
    click.echo(f"{state}: {count(flushed.pending, 'turn')} pending, {flushed.failed_count} failed")
    print_turns(flushed.failed)
    print_usage(flushed.space_usage)
    return 0 if flushed.done else 1


def _limits(client: Client) -> Limits:
    """Those of the server; the protocol's where the key may not ask for them, or nobody answers that."""
    try:
        return client.describe().limits
    except (PermissionDeniedError, UnimplementedError):
        return Limits()


def _read_input(limits: Limits) -> list[Turn]:
    turns = read_lines(sys.stdin.buffer, limits)
    if not turns:
        raise click.ClickException("standard input holds no turn; give JSON lines, or --text")
    return turns


def _add_all(client: Client, space: str, turns: Sequence[Turn], limits: Limits) -> Added:
    results: list[TurnResult] = []
    for batch in batches(turns, limits):
        try:
            results.extend(client.add_turns(space, batch).results)
        except MemdockError:
            if results:
                click.echo(f"{len(results)} of {len(turns)} turns were accepted; adding all again is safe", err=True)
            raise
    return Added(results=tuple(results))


def _print_added(added: Added, *, as_json: bool) -> None:
    if as_json:
        print_json(added)
        return
    if len(added.results) <= SHOWN_TURNS:
        print_turns(added.results)
    else:
        print_turns(result for result in added.results if result.state is TurnState.FAILED)
    states = Counter(str(result.state) for result in added.results)
    parts = [f"{number} {state}" for state, number in sorted(states.items())]
    duplicates = sum(result.duplicate for result in added.results)
    told = f" ({count(duplicates, 'duplicate')})" if duplicates else ""
    click.echo(f"{count(len(added.results), 'turn')}: {', '.join(parts)}{told}")
