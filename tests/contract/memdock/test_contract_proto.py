"""The .proto is clean, breaks nothing that was released, and everything derived from it is true to it."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import grpc
import pytest
from google.protobuf import descriptor_pb2

from memdock.errors import REASONS, VerbError
from memdock.service import GATEWAY_SERVICE, MEMORY_SERVICE, METHODS
from memdock.v1 import memory_pb2 as pb

PROTO = Path(__file__).parents[3] / "proto"
SOURCE = PROTO / "memdock/v1/memory.proto"
IMAGE = PROTO / "contract/memdock.v1.binpb"
BUF = Path(sys.executable).with_name("buf")
CODES = {code.name: code.value[0] for code in grpc.StatusCode}


def buf(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run([BUF, *arguments], capture_output=True, text=True, check=False)


def copy_with(tmp_path: Path, before: str, after: str) -> Path:
    """The contract with one change."""
    folder = tmp_path / "proto"
    shutil.copytree(SOURCE.parent, folder / "memdock/v1", ignore=shutil.ignore_patterns("*.py*", "__pycache__"))
    shutil.copy(PROTO / "buf.yaml", folder)
    source = folder / "memdock/v1/memory.proto"
    text = source.read_text()
    assert text.count(before) == 1
    source.write_text(text.replace(before, after))
    return folder


@pytest.mark.parametrize("arguments", [("lint", PROTO), ("format", PROTO, "--diff", "--exit-code")])
def test_the_contract_is_clean(arguments: tuple[str | Path, ...]) -> None:
    ran = buf(*arguments)
    assert ran.returncode == 0, ran.stdout + ran.stderr


def test_nothing_released_is_broken() -> None:
    ran = buf("breaking", PROTO, "--against", IMAGE)
    assert ran.returncode == 0, ran.stdout + ran.stderr


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("string turn_id = 1;\n  // The session that", "string turn_id = 11;\n  // The session that"),
        ("optional uint32 top_k = 4;", "optional uint64 top_k = 4;"),
        ("  TURN_STATE_FORGOTTEN = 5;\n", ""),
        ("rpc Flush(FlushRequest)", "rpc Settle(FlushRequest)"),
    ],
)
def test_a_change_that_breaks_is_found(tmp_path: Path, before: str, after: str) -> None:
    ran = buf("breaking", copy_with(tmp_path, before, after), "--against", IMAGE)
    assert ran.returncode != 0
    assert "memory.proto" in ran.stdout


def test_a_field_may_be_added(tmp_path: Path) -> None:
    changed = copy_with(tmp_path, "  uint32 dimension = 3;\n", "  uint32 dimension = 3;\n  string digest = 4;\n")
    assert buf("breaking", changed, "--against", IMAGE).returncode == 0


def test_the_image_is_of_this_contract() -> None:
    """A field that is here and not in the image would be unprotected once it is released."""
    files = descriptor_pb2.FileDescriptorSet.FromString(IMAGE.read_bytes()).file
    released = next(file for file in files if file.name == "memdock/v1/memory.proto")
    current = descriptor_pb2.FileDescriptorProto.FromString(pb.DESCRIPTOR.serialized_pb)
    assert [message.name for message in released.message_type] == [message.name for message in current.message_type]
    assert released.service == current.service


def test_the_stubs_are_fresh(tmp_path: Path) -> None:
    command = [
        sys.executable,
        "-m",
        "grpc_tools.protoc",
        f"-I{PROTO}",
        f"--python_out={tmp_path}",
        f"--pyi_out={tmp_path}",
    ]
    subprocess.run([*command, "memdock/v1/memory.proto"], check=True)
    for name in ("memory_pb2.py", "memory_pb2.pyi"):
        made = (tmp_path / "memdock/v1" / name).read_text()
        assert made == (SOURCE.parent / name).read_text(), f"run `make proto`: {name}"


def test_every_call_has_the_http_binding_that_its_comment_tells() -> None:
    text = SOURCE.read_text()
    told = re.findall(r"// HTTP: (GET|POST) (\S+)\n  rpc (\w+)\((\w+)\) returns \((\w+)\);", text)
    assert len(told) == len(re.findall(r"^  rpc ", text, re.MULTILINE))
    assert {name: (verb, path, request, response) for verb, path, name, request, response in told} == {
        method.name: (method.verb, method.path, method.request.__name__, method.response.__name__)
        for method in METHODS.values()
    }


def test_every_call_is_in_the_service_that_it_says() -> None:
    services = {service.full_name: service for service in pb.DESCRIPTOR.services_by_name.values()}
    assert set(services) == {MEMORY_SERVICE, GATEWAY_SERVICE}
    for method in METHODS.values():
        descriptor = services[method.service].methods_by_name[method.name]
        assert descriptor.input_type is method.request.DESCRIPTOR
        assert descriptor.output_type is method.response.DESCRIPTOR
        assert set(method.path_fields) <= set(descriptor.input_type.fields_by_name)


def test_every_enum_begins_with_unspecified() -> None:
    for enum in pb.DESCRIPTOR.enum_types_by_name.values():
        assert enum.values_by_number[0].name.endswith("_UNSPECIFIED")


def test_reasons_that_the_contract_names_exist() -> None:
    named = set(re.findall(r"\b[A-Z]+(?:_[A-Z]+)+\b", SOURCE.read_text()))
    words = {value for enum in pb.DESCRIPTOR.enum_types_by_name.values() for value in enum.values_by_name}
    assert named - words - set(CODES) - set(REASONS) - {"NO_MEMORY"} == set()


def test_the_table_of_errors_is_the_one_of_the_code() -> None:
    rows = re.findall(r"^//   ([A-Z_]+) +([A-Z_]+) +(\d{3})  \S", SOURCE.read_text(), re.MULTILINE)
    own = {"VERB_NOT_ALLOWED": VerbError.http_status}
    assert [(reason, CODES[code], int(status)) for reason, code, status in rows] == [
        (reason, kind.code, own.get(reason, kind.http_status)) for reason, kind in REASONS.items()
    ]
