"""Collects what is wrong with a request, field by field; the one place that caps the list."""

from memdock.errors import MAX_FIELDS, FieldError, InvalidArgumentError


class Findings:
    """What is wrong with one request. The first finding gives the error its reason."""

    def __init__(self) -> None:
        self._reason = ""
        self._fields: list[FieldError] = []

    def add(self, reason: str, field: str, description: str) -> None:
        """Notes one finding; with the 16th the error is raised at once, so that a bad request costs little."""
        self._reason = self._reason or reason
        self._fields.append(FieldError(field, description))
        if len(self._fields) == MAX_FIELDS:
            self.raise_any()

    def raise_any(self) -> None:
        """Raises `InvalidArgumentError` when there is a finding; returns otherwise."""
        if not self._fields:
            return
        first, others = self._fields[0], len(self._fields) - 1
        more = f" (and {others} more)" if others else ""
        raise InvalidArgumentError(self._reason, f"{first.field}: {first.description}{more}", fields=self._fields)


def refuse(reason: str, field: str, description: str) -> InvalidArgumentError:
    """The error of a single field."""
    return InvalidArgumentError(reason, f"{field}: {description}", fields=[FieldError(field, description)])
