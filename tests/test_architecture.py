"""Who may import whom, what the core may not do, and how long a file may be."""

import ast
from collections.abc import Iterator
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
FOLDERS = {
    "engine": "looplatch",
    "states": "looplatch.states",
    "recovery": "looplatch.recovery",
    "diagrams": "looplatch.diagrams",
}
LONGEST = 350

# What each layer may import of the others; `engine` stands for all of the root that is no other layer.
LAYERS = {
    "states": {"states"},
    "recovery": {"states", "recovery"},
    "diagrams": {"states", "diagrams"},
    "engine": {"states", "recovery", "engine"},
}
MAY_DRAW = (
    "looplatch.cli.",
    "looplatch.audit.log.",
    "looplatch.loop.",
    "looplatch.run.",
    "looplatch.testing.covering.",
)  # the last four as they are shown, and for coverage
MAY_IMPORT_SDK = ("looplatch.model.", "looplatch.tools.", "looplatch.testing.")

# What reaches outside, waits, or answers differently each time.
IMPURE = {
    "anthropic", "asyncio", "concurrent", "ctypes", "datetime", "http", "httpx2", "io", "logging", "multiprocessing",
    "os", "pathlib", "random", "secrets", "select", "shutil", "signal", "socket", "subprocess", "tempfile", "threading",
    "time", "urllib", "uuid",
}  # fmt: skip
IMPURE_CALLS = {"open", "print", "input", "exec", "eval", "__import__"}


def files() -> Iterator[Path]:
    """Every file of the package."""
    for folder in FOLDERS:
        yield from sorted((ROOT / folder).rglob("*.py"))


@cache
def tree_of(file: Path) -> ast.Module:
    """The file, parsed."""
    return ast.parse(file.read_text(encoding="utf-8"), str(file))


@cache
def module_of(file: Path) -> str:
    """The import name of a file."""
    folder, *rest = file.relative_to(ROOT).with_suffix("").parts
    return ".".join([FOLDERS[folder], *(part for part in rest if part != "__init__")])


@cache
def modules() -> dict[str, Path]:
    """Every module of the package, by its import name."""
    return {module_of(file): file for file in files()}


def layer_of(module: str) -> str:
    """The folder at the root of the repository that a module is in."""
    return next(
        (folder for folder in ("states", "recovery", "diagrams") if f"{module}.".startswith(f"looplatch.{folder}.")),
        "engine",
    )


def imports_of(file: Path, *, typing: bool = True) -> Iterator[str]:
    """The modules that a file imports, at its top or later; `typing=False` leaves out what only type checkers see."""
    hidden = set[ast.AST]()
    if not typing:
        for node in ast.walk(tree_of(file)):
            if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
                hidden.update(inner for statement in node.body for inner in ast.walk(statement))
    for node in ast.walk(tree_of(file)):
        if node in hidden:
            continue
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module is not None:
            # `from looplatch.states import events` is an import of the module `events`.
            for alias in node.names:
                inner = f"{node.module}.{alias.name}"
                yield inner if inner in modules() else node.module


def importers(package: str) -> set[str]:
    """The modules that import `package`, a distribution's top name."""
    return {module_of(file) for file in files() if any(name.partition(".")[0] == package for name in imports_of(file))}


@pytest.mark.parametrize("layer", LAYERS)
def test_a_layer_imports_only_what_is_below_it(layer: str) -> None:
    wrong = [
        f"{module} imports {name}"
        for module, file in modules().items()
        if layer_of(module) == layer
        for name in imports_of(file, typing=module != "looplatch")  # the root names the packages for type checkers
        if name.partition(".")[0] == "looplatch" and layer_of(name) not in LAYERS[layer]
        if not (layer_of(name) == "diagrams" and f"{module}.".startswith(MAY_DRAW))
    ]
    assert wrong == []


def test_nothing_inside_imports_the_root() -> None:
    """The root gathers the public names; inside, each is imported from where it is."""
    wrong = [module for module, file in modules().items() for name in imports_of(file) if name == "looplatch"]
    assert wrong == []


def test_only_the_machine_imports_transitions() -> None:
    assert importers("transitions") == {"looplatch.machine"}


def test_the_sdk_is_imported_by_adapters_and_the_testing_kit_only() -> None:
    wrong = {module for module in importers("anthropic") if not f"{module}.".startswith(MAY_IMPORT_SDK)}
    assert wrong == set()


def test_files_do_not_import_one_another_in_circles() -> None:
    graph = {
        module: {name for name in imports_of(file, typing=False) if name in modules() and name != module}
        for module, file in modules().items()
    }
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        pytest.fail(f"a cycle: {' <- '.join(error.args[1])}")


def pure() -> list[Path]:
    """The files without input and output: the states, the recovery and the machine."""
    core = [file for file in files() if layer_of(module_of(file)) in ("states", "recovery")]
    return [*core, ROOT / "engine" / "machine.py"]


@pytest.mark.parametrize("file", pure(), ids=lambda file: str(file.relative_to(ROOT)))
def test_the_core_does_no_io(file: Path) -> None:
    """No async, no clock, no random, no file, no network."""
    assert {name.partition(".")[0] for name in imports_of(file)} & IMPURE == set()
    for node in ast.walk(tree_of(file)):
        assert not isinstance(node, ast.AsyncFunctionDef | ast.Await | ast.AsyncFor | ast.AsyncWith), ast.unparse(node)
        called = isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in IMPURE_CALLS
        assert not called, ast.unparse(node)


def test_no_file_is_longer_than_350_lines() -> None:
    lengths = {str(file.relative_to(ROOT)): len(file.read_text(encoding="utf-8").splitlines()) for file in files()}
    assert {name: length for name, length in lengths.items() if length > LONGEST} == {}


def test_only_the_table_makes_rows() -> None:
    """A `Transition` that is made elsewhere would be a move outside of the table, or of one of an earlier looplatch."""
    made = {
        str(file.relative_to(ROOT))
        for file in files()
        for node in ast.walk(tree_of(file))
        if isinstance(node, ast.Call) and ast.unparse(node.func).rpartition(".")[2] == "Transition"
    }
    assert made == {"states/table.py", "states/past.py"}
