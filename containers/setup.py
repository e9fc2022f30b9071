"""Writes what the parts of docker-compose.yml need before they start: keys, the gateway's configuration, passwords.

Runs in the gateway's image at each `docker compose up`. What is there already stays, but for the gateway's addresses
and systems. $SYSTEMS: the profiles that are switched on, with commas between; those that are adapters stand behind the
gateway, beside the reference memory.

/gateway   the gateway's: configuration, space keys, audit
/keys      the gateway's and the evaluator's: who may call both, and first.key, which may do everything at both
/stores    the adapters' and their stores': passwords, and addresses that hold them
"""

import os
import secrets
import shutil
import subprocess
import sys
from pathlib import Path

import yaml

GATEWAY, KEYS, STORES = Path("/gateway"), Path("/keys"), Path("/stores")
REFERENCE = ("rag-dense", "rag-hybrid")
ADAPTERS = ("mem0", "mem0g", "graphiti", "cortex", "memos", "zep-cloud", "mem0-hosted")
OTHERS = ("meter", "mem0g-neo4j", "graphiti-neo4j", "gpu", "*")
"""Profiles that bring no system."""


def main() -> None:
    """All of it; safe to run again after it was killed."""
    gateway({name: f"grpc://{name}.system:7470" for name in systems(os.environ.get("SYSTEMS", ""))})
    password = kept(STORES / "password", secrets.token_urlsafe(24))
    for server in ("postgres", "mem0-postgres", "memos-postgres"):
        kept(STORES / f"{server}.url", f"postgresql://memdock:{password}@{server}:5432/memdock")
    kept(STORES / "neo4j.auth", f"neo4j/{password}")


def systems(profiles: str) -> list[str]:
    """The systems behind the gateway. Ends the program where a profile means nothing: its system would be missed."""
    wanted = {profile.strip() for profile in profiles.split(",") if profile.strip()}
    if unknown := sorted(wanted.difference(ADAPTERS, OTHERS)):
        sys.exit(
            f"COMPOSE_PROFILES: there is no profile {unknown[0]}, known are {', '.join((*ADAPTERS, *OTHERS[:-1]))}"
        )
    if "*" in wanted:
        wanted.update(ADAPTERS)
    return [*REFERENCE, *(name for name in ADAPTERS if name in wanted)]


def gateway(addresses: dict[str, str]) -> None:
    """Lets the gateway write its folder, once, and puts addresses and systems of today into its configuration."""
    config = GATEWAY / "gateway.yaml"
    if not config.exists():
        new = GATEWAY / "new"
        shutil.rmtree(new, ignore_errors=True)
        flags = [word for name, address in addresses.items() for word in ("--system", f"{name}={address}")]
        command = ["/opt/memdock/bin/memdock-gateway", "init", str(new), "--tenant", "local", *flags]
        subprocess.run(command, check=True)  # noqa: S603 - our own
        for name, folder in (("keys.json", KEYS), ("first.key", KEYS), ("space-keys.yaml", GATEWAY)):
            shutil.copy2(new / name, folder / name)  # between two volumes nothing can be moved
        (new / "gateway.yaml").rename(config)  # the last, so that what is there is whole
        shutil.rmtree(new)
    settings = yaml.safe_load(config.read_text())
    settings["listen"] = {"grpc": "gateway.front:7450", "http": "gateway.front:7451"}
    settings["keys_file"] = str(KEYS / "keys.json")
    of_before = {system["name"]: system for system in settings["systems"]}
    settings["systems"] = [
        {**of_before.get(name, {}), "name": name, "address": address} for name, address in addresses.items()
    ]
    partial = config.with_suffix(".partial")
    partial.write_text(yaml.safe_dump(settings, sort_keys=False))
    partial.rename(config)


def kept(path: Path, text: str) -> str:
    """What the file holds; written where it is missing. Readable by a store that runs as another user."""
    if not path.exists():
        partial = path.with_name(path.name + ".partial")
        partial.write_text(text)
        partial.chmod(0o444)
        partial.rename(path)
    return path.read_text()


main()
