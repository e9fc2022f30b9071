"""`memdock-eval cache`: what a cache of replies holds, and what is derived from a space taken out of it."""

import click

from memdock_evaluator.answer.reply_cache import CacheError, ReplyCache
from memdock_evaluator.words import counted


@click.group("cache")
def cache() -> None:
    """Show and purge a cache of models' replies, as --cache of `run` keeps it.

    A cache holds digests of requests and the replies to them, and never a prompt. Replies tell of the memories that
    stood in their prompts: what was derived from a space is to go when its user is forgotten.
    """


@cache.command("show")
@click.argument("file")
def show(file: str) -> None:
    """Print how many replies FILE holds, and of which spaces."""
    try:
        facts = _opened(file).facts()
    except CacheError as error:
        raise click.ClickException(str(error)) from error
    click.echo(f"{counted(facts.replies, 'reply', 'replies')}, {facts.bytes:,} bytes")
    for space, replies in facts.spaces.items():
        click.echo(f"{space}: {replies:,}")


@cache.command("purge")
@click.argument("file")
@click.option("--space", "spaces", multiple=True, required=True, metavar="SPACE", help="A space's id; may be repeated.")
def purge(file: str, spaces: tuple[str, ...]) -> None:
    """Take out of FILE every reply to a prompt in which memories of SPACE stood, whatever the system.

    None comes in again from that space. The pages of the file are overwritten.
    """
    try:
        replies = _opened(file)
        for space in spaces:
            click.echo(f"{space}: {counted(replies.purge(space), 'reply', 'replies')} purged")
    except CacheError as error:
        raise click.ClickException(str(error)) from error


def _opened(file: str) -> ReplyCache:
    replies = ReplyCache(file, create=False)
    click.get_current_context().call_on_close(replies.close)
    return replies
