"""`keys`: the file of API keys that a gateway, or an evaluation server, reads."""

from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path

import click

from memdock.cli.output import print_json, print_table
from memdock.cli.parameters import span
from memdock.cli.target import Target
from memdock.key_document import check_bindings
from memdock.key_file import editing, read_keys
from memdock.keys import ANY, Key, create_key, rotate_key, utc_now

_FILE = click.option(
    "--file",
    type=click.Path(dir_okay=False, path_type=Path),
    default=Path("keys.json"),
    show_default=True,
    envvar="MEMDOCK_KEYS_FILE",
    help="The file of keys.",
)


@click.group()
def keys() -> None:
    """Create, rotate, list and revoke the API keys of a gateway or an evaluation server, in its file of keys.

    \b
      memdock keys create --tenant acme --system rag-hybrid --space "acme-*"
      memdock keys list
      memdock keys rotate 3f9c1a2b4d --overlap 12h
      memdock keys revoke 3f9c1a2b4d
    """


@keys.command()
@_FILE
@click.option("--tenant", required=True, help="Whose key it is; spaces of different tenants never meet.")
@click.option("--system", "systems", multiple=True, default=[ANY], help="A system it may use; may be repeated.  [all]")
@click.option(
    "--space", "spaces", multiple=True, default=[ANY], help="A space, or a beginning with *; may be repeated.  [all]"
)
@click.option(
    "--call",
    "calls",
    multiple=True,
    default=[ANY],
    help="A call, such as Retrieve or ReadRuns; may be repeated.  [all]",
)
@click.option("--lifetime", type=span, help="How long it is valid: 90d, 12h. Left out: until it is revoked.")
@click.pass_obj
def create(
    target: Target,
    file: Path,
    tenant: str,
    systems: Sequence[str],
    spaces: Sequence[str],
    calls: Sequence[str],
    lifetime: timedelta | None,
) -> None:
    """Make a key. It is shown once: the file holds only a hash of it."""
    with editing(file) as edited:
        key, credential = create_key(
            tenant=tenant, systems=systems, spaces=spaces, calls=calls, now=utc_now(), lifetime=lifetime
        )
        try:
            check_bindings(key)
        except ValueError as problem:
            raise click.BadParameter(str(problem)) from None
        edited.keys[key.key_id] = key
    _hand_out(target, key, credential)


@keys.command()
@_FILE
@click.argument("key_id")
@click.option(
    "--overlap",
    type=span,
    default="24h",
    show_default=True,
    help="How long the old secret stays valid; 0s: not at all.",
)
@click.pass_obj
def rotate(target: Target, file: Path, key_id: str, overlap: timedelta) -> None:
    """Give a key a new secret; what it may do stays."""
    with editing(file) as edited:
        key, credential = rotate_key(edited.find(key_id), overlap=overlap, now=utc_now())
        edited.keys[key_id] = key
    _hand_out(target, key, credential)


@keys.command("list")
@_FILE
@click.pass_obj
def list_keys(target: Target, file: Path) -> None:
    """Show the keys and what they may do; never a secret."""
    found = read_keys(file)
    if target.as_json:
        for key in found:
            print_json(_facts(key))
        return
    print_table(
        ("KEY", "TENANT", "SYSTEMS", "SPACES", "CALLS", "CREATED", "EXPIRES", "SECRETS"),
        (
            (
                key.key_id,
                key.tenant,
                ",".join(key.systems),
                ",".join(key.spaces),
                ",".join(key.calls),
                key.created,
                key.expires,
                sum(secret.expires is None or secret.expires > utc_now() for secret in key.secrets),
            )
            for key in found
        ),
    )


@keys.command()
@_FILE
@click.argument("key_id")
def revoke(file: Path, key_id: str) -> None:
    """Remove a key; it is refused as soon as the server has read the file again."""
    with editing(file) as edited:
        edited.find(key_id)
        del edited.keys[key_id]
    click.echo(f"revoked {key_id}", err=True)


def _hand_out(target: Target, key: Key, credential: str) -> None:
    if target.as_json:
        print_json({"key_id": key.key_id, "key": credential})
        return
    click.echo(credential)
    click.echo(f"This is the key {key.key_id} of {key.tenant}. Keep it: it is not shown again.", err=True)


def _facts(key: Key) -> dict[str, object]:
    return {
        "key_id": key.key_id,
        "tenant": key.tenant,
        "systems": key.systems,
        "spaces": key.spaces,
        "calls": key.calls,
        "created": key.created,
        "expires": key.expires,
        "secrets": [{"expires": secret.expires} for secret in key.secrets],
    }
