"""The option `--zone` of every command that reads data files."""

from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import click


def _known(_: click.Context, __: click.Parameter, name: str) -> str:
    try:
        ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError) as error:
        raise click.BadParameter(f"{name!r} is no IANA time zone, such as Europe/Moscow") from error
    return name


zone_option = click.option(
    "--zone",
    metavar="ZONE",
    callback=_known,
    default="UTC",
    show_default=True,
    help="IANA zone of times without one.",
)
