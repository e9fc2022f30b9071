"""What holds for every container and every image of ours."""

import json
import os

from support.compose import Stack, docker


def check_bounds(up: Stack, service: str) -> None:
    """A container is bounded, has no rights, and is healthy."""
    found = up.inspect(service)
    host, config = found["HostConfig"], found["Config"]
    assert host["ReadonlyRootfs"], service
    assert host["CapDrop"] == ["ALL"], service
    assert not host["CapAdd"], service
    assert host["SecurityOpt"] == ["no-new-privileges:true"], service
    assert not host["Privileged"], service
    assert host["Memory"] > 0, service
    assert host["MemorySwap"] == host["Memory"], service
    assert host["NanoCpus"] > 0, service
    assert host["PidsLimit"] > 0, service
    assert config["User"].partition(":")[0] in ("10001", "999"), service
    assert found["State"]["Health"]["Status"] == "healthy", service


def check_image(up: Stack, service: str) -> int:
    """An image has labels, a fixed entry and no tools; its size beside the base, in MB."""
    image = up.inspect(service)["Config"]["Image"]
    (found,) = json.loads(docker("image", "inspect", image))
    assert found["Config"]["User"] == "10001:10001"
    assert found["Config"]["Entrypoint"][0].startswith("/opt/memdock/bin/memdock-")
    assert found["Config"]["Labels"]["org.opencontainers.image.title"] == image.partition(":")[0].replace("/", "-")
    assert found["Config"]["Labels"]["org.opencontainers.image.version"] == image.rpartition(":")[2]
    assert found["Config"]["Labels"]["org.opencontainers.image.revision"]
    look = "command -v gcc cc make git; ls /opt/memdock/bin | grep -E '^pip|hatch' || true"
    tools = docker("run", "--rm", "--network", "none", "--entrypoint", "sh", image, "-c", look)
    assert not tools, f"{image}: {tools}"
    base = int(docker("image", "inspect", "-f", "{{.Size}}", os.environ["BASE_IMAGE"]))
    size: int = found["Size"]
    return round((size - base) / 1e6)
