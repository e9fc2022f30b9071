"""Certificates for one test: an authority, a server on 127.0.0.1 and a client, made by the openssl command."""

import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest

from memdock.tls import Tls


@dataclass(frozen=True, slots=True)
class Certificates:
    """Files in one folder."""

    folder: Path

    def server(self, *, asks_clients: bool = False) -> Tls:
        """What a server needs; `asks_clients`: it refuses a client without a certificate of the authority."""
        return Tls(
            ca_file=self.folder / "ca.pem" if asks_clients else None,
            cert_file=self.folder / "server.pem",
            key_file=self.folder / "server.key",
        )

    def client(self, *, with_certificate: bool = False) -> Tls:
        """What a client needs."""
        return Tls(
            ca_file=self.folder / "ca.pem",
            cert_file=self.folder / "client.pem" if with_certificate else None,
            key_file=self.folder / "client.key" if with_certificate else None,
        )


def make_certificates(folder: Path) -> Certificates:
    """Makes them; skips the test, and says so, where there is no openssl command."""
    if shutil.which("openssl") is None:
        pytest.skip("needs the openssl command to make certificates")
    key = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2"]
    _openssl(folder, "req", "-x509", *key, "-keyout", "ca.key", "-out", "ca.pem", "-subj", "/CN=authority")
    (folder / "names").write_text("subjectAltName=IP:127.0.0.1")
    for name in ("server", "client"):
        _openssl(folder, "req", *key[:-2], "-keyout", f"{name}.key", "-out", f"{name}.csr", "-subj", f"/CN={name}")
        signing = ["-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial", "-days", "2", "-extfile", "names"]
        _openssl(folder, "x509", "-req", "-in", f"{name}.csr", "-out", f"{name}.pem", *signing)
    return Certificates(folder)


def _openssl(folder: Path, *arguments: str) -> None:
    subprocess.run(["openssl", *arguments], cwd=folder, check=True, capture_output=True)
