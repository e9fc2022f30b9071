"""TLS by files, the same for both faces and both transports."""

import ssl
from dataclasses import dataclass
from pathlib import Path

import grpc

from memdock.errors import ConfigurationError


@dataclass(frozen=True, slots=True, kw_only=True)
class Tls:
    """PEM files. `cert_file` and `key_file`: who we are (a server needs them; a client for mutual TLS).

    `ca_file`: whom we trust. A client without it trusts the machine's authorities; a server without it asks its
    callers for no certificate, with it refuses those that have none.
    """

    ca_file: Path | None = None
    cert_file: Path | None = None
    key_file: Path | None = None

    def __post_init__(self) -> None:
        if (self.cert_file is None) != (self.key_file is None):
            raise ConfigurationError("TLS: cert_file and key_file belong together; give both or none")


def server_credentials(tls: Tls) -> grpc.ServerCredentials:
    """For a gRPC server. Raises `ConfigurationError` naming the file that is missing."""
    key, certificate, ca = _read(tls.key_file), _read(tls.cert_file), _read(tls.ca_file)
    if key is None or certificate is None:
        raise ConfigurationError("TLS: a server needs cert_file and key_file")
    return grpc.ssl_server_credentials([(key, certificate)], root_certificates=ca, require_client_auth=ca is not None)


def channel_credentials(tls: Tls) -> grpc.ChannelCredentials:
    """For a gRPC client. Raises `ConfigurationError` naming the file that is missing."""
    return grpc.ssl_channel_credentials(
        root_certificates=_read(tls.ca_file),
        private_key=_read(tls.key_file),
        certificate_chain=_read(tls.cert_file),
    )


def client_context(tls: Tls) -> ssl.SSLContext:
    """For an HTTP client. Raises `ConfigurationError` naming the files that cannot be used."""
    try:
        context = ssl.create_default_context(cafile=tls.ca_file)
        if tls.cert_file is not None:
            context.load_cert_chain(tls.cert_file, tls.key_file)
    except OSError as problem:
        files = ", ".join(str(file) for file in (tls.ca_file, tls.cert_file, tls.key_file) if file)
        raise ConfigurationError(f"TLS: cannot use {files}: {problem.strerror or 'not PEM'}") from None
    return context


def _read(file: Path | None) -> bytes | None:
    if file is None:
        return None
    try:
        return file.read_bytes()
    except OSError as problem:
        raise ConfigurationError(f"TLS: cannot read {file}: {problem.strerror}") from None
