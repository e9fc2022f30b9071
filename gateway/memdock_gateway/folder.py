"""A folder with everything that a gateway needs, written once; and its space key's rotation."""

import sys
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path

import yaml

from memdock.key_document import check_bindings
from memdock.key_file import editing
from memdock.keys import ANY, create_key
from memdock.whole_file import write_whole
from memdock_gateway.config import Config, ConfigError
from memdock_gateway.config_file import config_of
from memdock_gateway.space_key import SpaceKeyError, new_space_key, read_space_keys, write_space_keys

CONFIG_NAME = "gateway.yaml"
KEYS_NAME = "keys.json"
SPACE_KEYS_NAME = "space-keys.yaml"
FIRST_KEY_NAME = "first.key"

_CONFIG = """\
# A gateway's configuration; `memdock-gateway check --config {name}` tells whether it can be used.
# Paths are relative to this file.
listen:
  grpc: 127.0.0.1:7450
  http: 127.0.0.1:7451
  # tls: {{cert_file: server.pem, key_file: server-key.pem}}

# Who may call: `memdock keys create|rotate|revoke` change the file, and the gateway takes the change within a second.
keys_file: {keys}

# What names spaces at the systems. The fingerprint holds the gateway to the key: without it spaces cannot be found.
space_key:
  file: {space_keys}
  fingerprints:
    1: {fingerprint}

# One line for each erasure that was asked for and one for its end.
audit_file: audit.jsonl

systems:
{systems}
# limits: {{max_request_bytes: 4194304, max_turns_per_request: 256, max_top_k: 100}}
# telemetry: {{otlp_endpoint: "http://127.0.0.1:4318", sample_ratio: 0.1}}
# drain_s: 30
"""

_SYSTEM = """\
  - name: {name}
    address: {address}
    # token_file: {name}.token     # the bearer token that the system asks for
    # tls: {{ca_file: ca.pem}}       # for grpcs:// and https://
    # deadline_s: 60
    # concurrency: 64
    # queue: 256
"""


def create_folder(folder: Path, *, tenant: str, systems: Sequence[tuple[str, str]], now: datetime) -> None:
    """Writes the configuration, a space key and a key of `tenant` that may do everything, handed out in `first.key`.

    `systems`: name and address of each.

    Raises `ConfigError` when one of the files is there already, or a system cannot be one, and `ValueError` for a
    tenant that cannot be one; then nothing is written.
    """
    config_of(systems, {})
    key, credential = create_key(tenant=tenant, systems=[ANY], spaces=[ANY], calls=[ANY], now=now)
    check_bindings(key)
    for name in (CONFIG_NAME, KEYS_NAME, SPACE_KEYS_NAME, FIRST_KEY_NAME):
        if (folder / name).exists():
            raise ConfigError(f"{folder / name} is there already; nothing was written")
    folder.mkdir(parents=True, exist_ok=True)
    space_key = new_space_key(1)
    write_space_keys(folder / SPACE_KEYS_NAME, {1: space_key})
    with editing(folder / KEYS_NAME) as file:
        file.keys[key.key_id] = key
    write_whole(folder / FIRST_KEY_NAME, credential + "\n", private=True)
    write_whole(
        folder / CONFIG_NAME,
        _CONFIG.format(
            name=CONFIG_NAME,
            keys=KEYS_NAME,
            space_keys=SPACE_KEYS_NAME,
            fingerprint=space_key.fingerprint,
            systems="".join(_SYSTEM.format(name=_plain(name), address=_plain(address)) for name, address in systems),
        ),
    )


def rotate_space_key(config: Config) -> tuple[int, str]:
    """Adds the next version to the space key's file; gives the version and its fingerprint. Changes no system."""
    if config.space_key is None:
        raise config.wrong("is missing; `memdock-gateway init FOLDER` writes one", "space_key")
    try:
        keys = read_space_keys(config.space_key.file)
    except SpaceKeyError as problem:
        raise config.wrong(str(problem), "space_key", "file") from None
    version = max(keys) + 1
    key = new_space_key(version)
    write_space_keys(config.space_key.file, {**keys, version: key})
    return version, key.fingerprint


def _plain(text: str) -> str:
    """The text as YAML: in quotes where YAML would take it for something else."""
    return yaml.safe_dump(text, width=sys.maxsize).removesuffix("...\n").strip()
