"""TLS on both hops, and credentials from files: adapters are trusted by certificate, the gateway shows its own."""

from pathlib import Path
from typing import Any

import pytest

from memdock.client import connect_async
from memdock.errors import MemdockError
from memdock.face_http import HttpFace
from memdock.http_server import HttpServer
from memdock.server import require_token
from support.certificates import Certificates, make_certificates
from support.faces import ScriptedService, faces_of
from support.gateways import gateway_over

SCHEMES = ("grpcs", "https")


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    return make_certificates(tmp_path_factory.mktemp("certificates"))


def systems(scheme: str, port: int, tls: dict[str, str], **more: Any) -> list[dict[str, Any]]:
    return [{"name": "rag", "address": f"{scheme}://127.0.0.1:{port}", "tls": tls, **more}]


@pytest.mark.parametrize("scheme", SCHEMES)
async def test_mutual_tls_to_an_adapter(tmp_path: Path, certificates: Certificates, scheme: str) -> None:
    service = ScriptedService()
    trusted = {"ca_file": str(certificates.folder / "ca.pem")}
    shown = {
        "cert_file": str(certificates.folder / "client.pem"),
        "key_file": str(certificates.folder / "client.key"),
    }
    async with faces_of(service, tls=certificates.server(asks_clients=True)) as faces:
        port = faces.grpc_port if scheme == "grpcs" else faces.http_port
        for number, (tls, works) in enumerate((({**trusted, **shown}, True), (trusted, False), (shown, False))):
            folder = tmp_path / str(number)
            folder.mkdir()
            async with (
                gateway_over(folder, systems(scheme, port, tls)) as gateway,
                gateway.client("http", "rag", timeout_s=30) as client,
            ):
                if works:
                    await client.retrieve("s", "q")
                    continue
                with pytest.raises(MemdockError) as refused:
                    await client.retrieve("s", "q")
                assert refused.value.reason in ("ADAPTER_UNREACHABLE", "ADAPTER_PROTOCOL_ERROR")
                assert (await client.list_systems())[0].ready is False
    assert len(service.seen) == 1


async def test_the_gateway_speaks_tls_itself(tmp_path: Path, certificates: Certificates) -> None:
    folder = certificates.folder
    listen = {
        "grpc": "127.0.0.1:0",
        "http": "127.0.0.1:0",
        "tls": {"cert_file": str(folder / "server.pem"), "key_file": str(folder / "server.key")},
    }
    async with (
        faces_of(ScriptedService()) as faces,
        gateway_over(tmp_path, [{"name": "rag", "address": faces.grpc}], listen=listen) as gateway,
    ):
        for url in (f"grpcs://127.0.0.1:{gateway.grpc_port}", f"https://127.0.0.1:{gateway.http_port}"):
            options: dict[str, Any] = {"system": "rag", "key": gateway.keys["all"], "tls": certificates.client()}
            async with connect_async(url, **options) as client:
                assert (await client.retrieve("s", "q")).memories == ()


@pytest.mark.parametrize("scheme", ["grpc", "http"])
async def test_an_adapter_gets_the_token_of_its_file(tmp_path: Path, scheme: str) -> None:
    (tmp_path / "right").write_text("adapter-token\n")
    (tmp_path / "wrong").write_text("other-token\n")
    async with faces_of(ScriptedService(), admit=require_token("adapter-token")) as faces:
        named = [{"name": name, "address": getattr(faces, scheme), "token_file": name} for name in ("right", "wrong")]
        async with gateway_over(tmp_path, named) as gateway:
            async with gateway.client("grpc", "right") as client:
                await client.retrieve("s", "q")
            async with gateway.client("grpc", "wrong") as client:
                with pytest.raises(MemdockError) as refused:
                    await client.retrieve("s", "q")
    assert refused.value.reason == "ADAPTER_PROTOCOL_ERROR"
    assert "the gateway's own credential" in refused.value.message


async def test_an_adapter_gets_the_headers_of_their_files(tmp_path: Path) -> None:
    (tmp_path / "api-key").write_text("k3y\n")
    seen: list[str] = []

    class Noting:
        """The HTTP face, with an ear for one header."""

        def __init__(self) -> None:
            self._face = HttpFace(ScriptedService())

        async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
            seen.append(dict(scope["headers"]).get(b"x-api-key", b"").decode())
            await self._face(scope, receive, send)

    server = HttpServer(Noting(), "127.0.0.1:0")
    await server.start()
    system = {
        "name": "rag",
        "address": f"http://127.0.0.1:{server.port}",
        "header_files": {"X-Api-Key": "api-key"},
    }
    async with gateway_over(tmp_path, [system]) as gateway, gateway.client("grpc", "rag") as client:
        await client.retrieve("s", "q")
    await server.stop()
    assert seen == ["k3y"]
