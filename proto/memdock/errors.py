"""The one error tree, and the one table from its classes and reasons to gRPC codes and HTTP statuses.

Codes are plain numbers here (google.rpc.Code), so that nothing of gRPC is needed to raise or read an error.
"""

from collections.abc import Sequence
from dataclasses import dataclass

MAX_FIELDS = 16
MAX_FIELD_BYTES = 128
MAX_MESSAGE_BYTES = 512


def sentence(fault: Exception) -> str:
    """What a user is told of a fault: our own message, or what the system says of which file, without its number."""
    if isinstance(fault, MemdockError):
        return fault.message
    if isinstance(fault, OSError) and fault.strerror:
        return f"{fault.filename}: {fault.strerror}" if fault.filename else fault.strerror
    return str(fault)


def cut(text: str, max_bytes: int) -> str:
    """The longest beginning of `text` of at most `max_bytes` of UTF-8: gRPC holds 8 KiB of trailers and no more."""
    return text.encode(errors="replace")[:max_bytes].decode(errors="ignore")


@dataclass(frozen=True, slots=True)
class FieldError:
    """What is wrong with one field of a request, by its path: `turns[3].text`. Both are cut to 128 bytes."""

    field: str
    description: str

    def __post_init__(self) -> None:
        object.__setattr__(self, "field", cut(self.field, MAX_FIELD_BYTES))
        object.__setattr__(self, "description", cut(self.description, MAX_FIELD_BYTES))


class MemdockError(Exception):
    """An error of the protocol.

    `reason` is a word of `REASONS`; `message` a sentence for people that names what to do and holds no text of a turn,
    cut to 512 bytes; `fields` at most 16; `retry_after_s` where a later try may succeed; `retried` is set where
    somebody on the way, such as a gateway, has tried again already: to do so too would multiply the calls.
    """

    code: int = 13
    http_status: int = 500

    def __init__(
        self,
        reason: str,
        message: str,
        *,
        fields: Sequence[FieldError] = (),
        retry_after_s: float | None = None,
    ) -> None:
        self.reason = reason
        self.message = cut(message, MAX_MESSAGE_BYTES)
        self.fields = tuple(fields[:MAX_FIELDS])
        self.retry_after_s = retry_after_s
        self.retried = False
        super().__init__(f"{reason}: {self.message}")


class InvalidArgumentError(MemdockError):
    """The request is wrong whatever the state of the system."""

    code, http_status = 3, 400


class ConfigurationError(InvalidArgumentError, ValueError):
    """What a program was given to start with cannot be used: an address, a key, a file. Nothing was sent."""

    def __init__(self, message: str) -> None:
        super().__init__("VALIDATION_FAILED", message)

    def __str__(self) -> str:
        return self.message


class ContentTypeError(InvalidArgumentError):
    """HTTP only: the body is not JSON by its header."""

    http_status = 415


class UnauthenticatedError(MemdockError):
    """Nobody known calls."""

    code, http_status = 16, 401


class PermissionDeniedError(MemdockError):
    """The caller may not do this."""

    code, http_status = 7, 403


class NotFoundError(MemdockError):
    """There is no such system, path or call."""

    code, http_status = 5, 404


class VerbError(NotFoundError):
    """HTTP only: the path is known, the verb is not one of its own. `allow`: those that are."""

    http_status = 405

    def __init__(self, message: str, allow: Sequence[str]) -> None:
        self.allow = tuple(allow)
        super().__init__("VERB_NOT_ALLOWED", message)


class AlreadyExistsError(MemdockError):
    """The turn id stands for other content."""

    code, http_status = 6, 409


class AbortedError(MemdockError):
    """The work goes on; the same call later tells how it ended."""

    code, http_status = 10, 409


class ResourceExhaustedError(MemdockError):
    """A rate, a queue or a quota is used up."""

    code, http_status = 8, 429


class PayloadTooLargeError(ResourceExhaustedError):
    """The request is too large; the same request will never be taken."""

    http_status = 413


class DeadlineExceededError(MemdockError):
    """The time was used up."""

    code, http_status = 4, 504


class UnimplementedError(MemdockError):
    """The system lacks the feature."""

    code, http_status = 12, 501


class UnavailableError(MemdockError):
    """Nobody can answer now; nothing was done."""

    code, http_status = 14, 503


class InternalError(MemdockError):
    """A fault of the server or of what stands behind it."""

    code, http_status = 13, 500


REASONS: dict[str, type[MemdockError]] = {
    "VALIDATION_FAILED": InvalidArgumentError,
    "UNKNOWN_FIELD": InvalidArgumentError,
    "BAD_TIMESTAMP": InvalidArgumentError,
    "BAD_PAGE_TOKEN": InvalidArgumentError,
    "SELECTOR_MISSING": InvalidArgumentError,
    "MALFORMED_REQUEST": InvalidArgumentError,
    "CONTENT_TYPE_UNSUPPORTED": ContentTypeError,
    "CREDENTIAL_MISSING": UnauthenticatedError,
    "CREDENTIAL_INVALID": UnauthenticatedError,
    "CREDENTIAL_EXPIRED": UnauthenticatedError,
    "SYSTEM_FORBIDDEN": PermissionDeniedError,
    "SPACE_FORBIDDEN": PermissionDeniedError,
    "CALL_FORBIDDEN": PermissionDeniedError,
    "SYSTEM_NOT_FOUND": NotFoundError,
    "PATH_NOT_FOUND": NotFoundError,
    "VERB_NOT_ALLOWED": NotFoundError,
    "TURN_ID_CONFLICT": AlreadyExistsError,
    "IN_PROGRESS": AbortedError,
    "RATE_LIMITED": ResourceExhaustedError,
    "QUEUE_FULL": ResourceExhaustedError,
    "PROVIDER_RATE_LIMITED": ResourceExhaustedError,
    "PAYLOAD_TOO_LARGE": PayloadTooLargeError,
    "DEADLINE_EXCEEDED": DeadlineExceededError,
    "ADAPTER_TIMEOUT": DeadlineExceededError,
    "PROVIDER_TIMEOUT": DeadlineExceededError,
    "FILTER_UNSUPPORTED": UnimplementedError,
    "SELECTOR_UNSUPPORTED": UnimplementedError,
    "FEATURE_UNSUPPORTED": UnimplementedError,
    "ADAPTER_UNREACHABLE": UnavailableError,
    "STORE_UNREACHABLE": UnavailableError,
    "PROVIDER_UNREACHABLE": UnavailableError,
    "DRAINING": UnavailableError,
    "ADAPTER_PROTOCOL_ERROR": InternalError,
    "PROVIDER_AUTH_FAILED": InternalError,
    "PROVIDER_PROTOCOL_ERROR": InternalError,
    "EMBEDDER_MISMATCH": InternalError,
    "INTERNAL": InternalError,
}


def error(
    reason: str, message: str, *, fields: Sequence[FieldError] = (), retry_after_s: float | None = None
) -> MemdockError:
    """The error of the class that `REASONS` gives; an unknown reason is a programming error (KeyError)."""
    return REASONS[reason](reason, message, fields=fields, retry_after_s=retry_after_s)
