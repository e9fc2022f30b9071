"""Options whose value is a secret: a variable may name a file in its place, as container engines hand secrets out."""

import os
from pathlib import Path

import click


class SecretOption(click.Option):
    """Beside its variable `X` there is `X_FILE`, the path of a file that holds the value on one line.

    What is typed goes before both. Both at once, and a file that cannot be read as one line, are usage errors.
    """

    @property
    def variables(self) -> tuple[str, ...]:
        """Every variable that it reads."""
        return (self.envvar, f"{self.envvar}_FILE") if isinstance(self.envvar, str) else ()

    def resolve_envvar_value(self, ctx: click.Context) -> str | None:
        """The variable's value, or the file's."""
        value = super().resolve_envvar_value(ctx)
        name = f"{self.envvar}_FILE"
        path = os.environ.get(name)
        if not path:
            return value
        if value:
            raise click.UsageError(f"{self.envvar} and {name} are both set: leave one of them out", ctx)
        try:
            text = Path(path).read_text("utf-8").strip()
        except (OSError, UnicodeDecodeError) as problem:
            why = problem.strerror if isinstance(problem, OSError) else "it is not UTF-8"
            raise click.UsageError(f"{name}: {path} cannot be read ({why})", ctx) from None
        if not text.isprintable():
            raise click.UsageError(f"{name}: {path} must hold the value on one line", ctx)
        return text or None
