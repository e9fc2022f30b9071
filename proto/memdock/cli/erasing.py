"""`forget` and `reset`: what goes."""

from collections.abc import Sequence

import click

from memdock.cli.output import count, print_json, print_residual
from memdock.cli.parameters import SPACE
from memdock.cli.target import Target

_REQUEST_ID = click.option(
    "--request-id", default="", help="A name for this request: sent again, it is answered as it was the first time."
)


@click.command()
@SPACE
@click.option("--memory", "memory_ids", multiple=True, help="A memory and the turns it was made from; may be repeated.")
@click.option("--turn", "turn_ids", multiple=True, help="A turn; may be repeated.")
@click.option("--session", "session_ids", multiple=True, help="All turns of a session; may be repeated.")
@click.option("--dry-run", is_flag=True, help="Tell what would go; erase nothing.")
@_REQUEST_ID
@click.pass_obj
def forget(
    target: Target,
    space: str,
    memory_ids: Sequence[str],
    turn_ids: Sequence[str],
    session_ids: Sequence[str],
    dry_run: bool,
    request_id: str,
) -> None:
    """Erase memories, turns or sessions, and tell what is left where.

    \b
      memdock forget anna --session s1 --dry-run
      memdock forget anna --turn t1 --turn t2

    To forget by meaning, `retrieve` first, then forget by --memory.
    """
    if sum(map(bool, (memory_ids, turn_ids, session_ids))) != 1:
        raise click.UsageError("give exactly one kind of --memory, --turn and --session")
    with target.connect() as client:
        done = client.forget(
            space,
            memory_ids=memory_ids,
            turn_ids=turn_ids,
            session_ids=session_ids,
            dry_run=dry_run,
            request_id=request_id,
        )
    if target.as_json:
        print_json(done)
        return
    verb = "would erase" if dry_run else "erased"
    memories, turns = count(len(done.erased_memory_ids), "memory"), count(len(done.erased_turn_ids), "turn")
    click.echo(f"{verb} {memories} and {turns}")
    for label, ids in (
        ("memories", done.erased_memory_ids),
        ("turns", done.erased_turn_ids),
        ("not found", done.not_found),
    ):
        if ids:
            click.echo(f"{label}: {', '.join(ids)}")
    print_residual(done.residual)


@click.command()
@SPACE
@click.option("--yes", is_flag=True, help="Do not ask.")
@_REQUEST_ID
@click.pass_obj
def reset(target: Target, space: str, yes: bool, request_id: str) -> None:
    """Make a space as if it had never been used."""
    if not yes:
        click.confirm(f"Erase all of the space {space}?", abort=True, err=True)
    with target.connect() as client:
        done = client.reset(space, request_id=request_id)
    if target.as_json:
        print_json(done)
        return
    click.echo(f"erased {count(done.erased_memories, 'memory')} and {count(done.erased_turns, 'turn')}")
    print_residual(done.residual)
