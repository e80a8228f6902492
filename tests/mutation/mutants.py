"""Mutants of the guards and of the decisions: each with one thing of its source changed, as one might get it wrong."""

import ast
import inspect
from collections.abc import Iterator
from types import CodeType, FunctionType, ModuleType
from typing import Any, Final, cast

from attrs import field, frozen

from looplatch.states import decisions, guards, recover_guards
from looplatch.states.transition import Guard

MODULES: Final = (guards, recover_guards, decisions)
_BESIDE: Final[dict[type[ast.cmpop], type[ast.cmpop]]] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
}
_CONTRARY: Final[dict[type[ast.cmpop], type[ast.cmpop]]] = {
    ast.Lt: ast.GtE,
    ast.LtE: ast.Gt,
    ast.Gt: ast.LtE,
    ast.GtE: ast.Lt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
}


@frozen
class Mutant:
    """A module with one change. `names`: the functions that it is in, or that read the constant that it is in.

    path: the way from the module's tree to the expression in whose place `changed` is.
    """

    module: ModuleType
    line: int
    was: str
    now: str
    names: frozenset[str]
    path: "_Path" = field(repr=False)
    changed: ast.expr = field(repr=False)

    @property
    def description(self) -> str:
        """Where it is, and what was changed; the same in each process, and as long as nothing is changed there."""
        file = self.module.__name__.rpartition(".")[2]
        return f"{file}: {', '.join(sorted(self.names))}: {self.was} -> {self.now}"

    def install(self) -> None:
        """Change what this process runs: the code of functions in their place, and constants."""
        tree = tree_of(self.module)
        _replace(tree, self.path, self.changed)
        made: dict[str, Any] = {"__name__": self.module.__name__}
        exec(compile(ast.fix_missing_locations(tree), inspect.getfile(self.module), "exec"), made)
        for name, code in codes(made).items():
            function_named(self.module, name).__code__ = code
        for name, value in made.items():
            if type(value) is int:
                setattr(self.module, name, value)


def _predicate_of(value: Any) -> object:
    """What a guard asks; anything else is itself."""
    return value.test if issubclass(type(value), Guard) else value


def codes(names: dict[str, Any]) -> dict[str, CodeType]:
    """The code of each function among `names`: guards, plain ones, and the methods of classes."""
    found: dict[str, CodeType] = {}
    for name, named in names.items():
        value = _predicate_of(named)
        if inspect.isfunction(value) and value.__module__ == names["__name__"]:
            found[name] = value.__code__
        if inspect.isclass(value) and value.__module__ == names["__name__"]:
            found |= {
                f"{name}.{inner}": one.__code__
                for inner, one in vars(value).items()
                if inspect.isfunction(one) and not inner.startswith("__")
            }
    return found


def function_named(module: ModuleType, name: str) -> FunctionType:
    """The function that a name of `codes` stands for."""
    value: Any = module
    for part in name.split("."):
        value = getattr(value, part)
    found = _predicate_of(value)
    assert inspect.isfunction(found)
    return found


def tree_of(module: ModuleType) -> ast.Module:
    """The source of a module, read."""
    return ast.parse(inspect.getsource(module))


def mutants() -> Iterator[Mutant]:
    """Every mutant, in the order of the source."""
    for module in MODULES:
        tree = tree_of(module)
        functions = dict(functions_of(tree))
        for path, names in sorted(_places(tree, functions), key=lambda place: _position(_at(tree, place[0]))):
            for was, now, changed in _changes(_at(tree, path)):
                yield Mutant(module, _at(tree, path).lineno, was, now, names, path, changed)


_Path = tuple[tuple[str, int | None], ...]


def functions_of(tree: ast.Module) -> Iterator[tuple[str, ast.FunctionDef]]:
    """The functions that may be changed, by the names that `codes` has for them."""
    for node in tree.body:
        if isinstance(node, ast.FunctionDef):
            yield node.name, node
        elif isinstance(node, ast.ClassDef):
            methods = (inner for inner in node.body if isinstance(inner, ast.FunctionDef))
            yield from ((f"{node.name}.{method.name}", method) for method in methods)


def _places(tree: ast.Module, functions: dict[str, ast.FunctionDef]) -> Iterator[tuple[_Path, frozenset[str]]]:
    """The way to each expression that may be changed, and the functions that this changes."""
    named = {id(node): name for name, node in functions.items()}
    left: list[tuple[ast.AST, _Path, str | None]] = [(tree, (), None)]
    while left:
        node, path, inside = left.pop()
        inside = named.get(id(node), inside)
        if inside is not None and isinstance(node, ast.expr):
            yield path, frozenset({inside})
        if inside is None and isinstance(node, ast.AnnAssign) and isinstance(node.value, ast.Constant):
            assert isinstance(node.target, ast.Name)
            constant = node.target.id
            readers = {
                name
                for name, function in functions.items()
                if any(isinstance(one, ast.Name) and one.id == constant for one in ast.walk(function))
            }
            yield (*path, ("value", None)), frozenset(readers)
        if isinstance(node, ast.FunctionDef):
            left.extend((one, (*path, ("body", number)), inside) for number, one in enumerate(node.body))
            continue  # not what it is decorated with, nor its annotations
        for name, value in ast.iter_fields(node):
            several = cast("list[object]", value) if isinstance(value, list) else []
            children: list[tuple[int | None, object]] = [(None, value), *enumerate(several)]
            left.extend((one, (*path, (name, place)), inside) for place, one in children if isinstance(one, ast.AST))


def _at(tree: ast.AST, path: _Path) -> Any:
    node: Any = tree
    for name, number in path:
        node = getattr(node, name)
        node = node if number is None else node[number]
    return node


def _position(node: ast.expr) -> tuple[int, int]:
    return node.lineno, node.col_offset


def _replace(tree: ast.AST, path: _Path, changed: ast.expr) -> None:
    name, number = path[-1]
    outer = _at(tree, path[:-1])
    ast.copy_location(changed, _at(tree, path))
    if number is None:
        setattr(outer, name, changed)
    else:
        getattr(outer, name)[number] = changed


def _changes(node: ast.expr) -> Iterator[tuple[str, str, ast.expr]]:
    """What may be in the place of an expression, with both as text."""
    for changed in _instead(node):
        yield ast.unparse(node), ast.unparse(ast.fix_missing_locations(changed)), changed


def _instead(node: ast.expr) -> Iterator[ast.expr]:
    match node:
        case ast.Compare(left=left, ops=[op], comparators=comparators):
            for other in (_BESIDE.get(type(op)), _CONTRARY[type(op)]):
                if other is not None:
                    yield ast.Compare(left, [other()], comparators)
        case ast.Constant(value=bool() as value):
            yield ast.Constant(not value)
        case ast.Constant(value=int() as value):
            yield from (ast.Constant(value + 1), ast.Constant(value - 1))
        case ast.BoolOp(op=op, values=values):
            yield ast.BoolOp(ast.Or() if isinstance(op, ast.And) else ast.And(), values)
            for place in range(len(values)):
                rest = [*values[:place], *values[place + 1 :]]
                yield ast.BoolOp(op, rest) if len(rest) > 1 else rest[0]
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            yield operand
        case ast.Call():
            yield ast.UnaryOp(ast.Not(), node)
        case ast.BinOp(left=left, op=ast.Add(), right=right):
            yield ast.BinOp(left, ast.Sub(), right)
        case _:
            pass
