"""Every small fault that the mutator knows, as changes of a module's syntax tree."""

from __future__ import annotations

import ast
import copy
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

COMPARISONS: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
}
ARITHMETIC: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Div,
    ast.Div: ast.Mult,
    ast.FloorDiv: ast.Mult,
    ast.Mod: ast.FloorDiv,
    ast.Pow: ast.Mult,
    ast.BitAnd: ast.BitOr,
    ast.BitOr: ast.BitAnd,
    ast.LShift: ast.RShift,
    ast.RShift: ast.LShift,
}
_PAIRS = (
    ("min", "max"),
    ("any", "all"),
    ("minimum", "maximum"),
    ("argmin", "argmax"),
    ("floor", "ceil"),
    ("zeros", "ones"),
    ("nanmin", "nanmax"),
)
NAMES = {a: b for pair in _PAIRS for a, b in (pair, pair[::-1])}
WORDS = {"left": "right", "right": "left"}
_SYMMETRIC = frozenset(
    [
        "min",
        "max",
        "minimum",
        "maximum",
        "zip",
        "isinstance",
        "cast",
        "getattr",
        "array_equal",
        "broadcast_shapes",
        "Literal",
    ]
)
_SILENT = frozenset(["debug", "info", "warning", "log", "warn"])


@dataclass(frozen=True)
class Change:
    """One fault.

    Args:
        where: qualified name of the function or class that holds it, `` at the top of the module.
        what: the expression before and after, `#2` and so on where the same stands several times.
        line: line of the file.
        function: (qualified name, first line) of the innermost compiled function; None where it acts when the
            module is imported.
    """

    where: str
    what: str
    line: int
    function: tuple[str, int] | None
    apply: Callable[[], None] = field(compare=False, repr=False)

    @property
    def key(self) -> str:
        """What names the fault in the table of excuses, whatever line it stands on."""
        return f"{self.where}: {self.what}"


def changes(tree: ast.Module) -> list[Change]:
    """Every change of a tree, in the order of the file; applying one alters the tree itself."""
    seen: Counter[str] = Counter()
    found = []
    for change in _Finder().of_body(tree.body, "", None):
        seen[change.key] += 1
        nth = seen[change.key]
        what = change.what if nth == 1 else f"{change.what} #{nth}"
        found.append(Change(change.where, what, change.line, change.function, change.apply))
    return found


def changed(source: str, place: int) -> ast.Module:
    """The tree of a source with its `place`-th change."""
    tree = ast.parse(source)
    changes(tree)[place].apply()
    return ast.fix_missing_locations(tree)


class _Finder:
    """Walks what runs, and leaves out annotations, docstrings, error texts, logs, decorators and assertions.

    `strict=True` of `zip` is an assertion too: it acts only where this project is wrong already.
    """

    def of_body(self, body: list[ast.stmt], where: str, function: tuple[str, int] | None) -> Iterator[Change]:
        for at, statement in enumerate(body):
            yield from self._of_statement(body, at, statement, where, function)

    def _of_statement(
        self, body: list[ast.stmt], at: int, node: ast.stmt, where: str, function: tuple[str, int] | None
    ) -> Iterator[Change]:
        if isinstance(node, ast.Raise | ast.Import | ast.ImportFrom | ast.Assert):
            return
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            inner = f"{where}.<locals>.{node.name}" if function else f"{where}.{node.name}".lstrip(".")
            if isinstance(node, ast.ClassDef):
                yield from self.of_body(node.body, inner, function)
                return
            for default in [*node.args.defaults, *(d for d in node.args.kw_defaults if d)]:
                yield from self._of_expression(default, inner, function)
            first = min([node.lineno, *(d.lineno for d in node.decorator_list)])
            yield from self.of_body(node.body, inner, (inner, first))
            return
        if isinstance(node, ast.Expr):
            if isinstance(node.value, ast.Constant) or _is_log(node.value):
                return
            if isinstance(node.value, ast.Call):

                def drop() -> None:
                    body[at] = ast.copy_location(ast.Pass(), node)

                yield Change(where, f"{_text(node)} -> pass", node.lineno, function, drop)
        if isinstance(node, ast.Return) and node.value is not None and not _is_none(node.value):
            value = node.value

            def give_none() -> None:
                node.value = ast.copy_location(ast.Constant(None), value)

            yield Change(where, f"return {_text(value)} -> None", node.lineno, function, give_none)
        if isinstance(node, ast.If | ast.While):
            yield from self._negated(node, where, function)
        if isinstance(node, ast.AugAssign) and type(node.op) in ARITHMETIC:
            yield self._operator(node, where, function)
        for name, value in ast.iter_fields(node):
            if name == "annotation":
                continue
            if name in ("body", "orelse", "finalbody") and isinstance(value, list):
                yield from self.of_body(value, where, function)
            elif name == "handlers":
                for handler in value:
                    yield from self.of_body(handler.body, where, function)
            elif name == "items":
                for item in value:
                    yield from self._of_expression(item.context_expr, where, function)
            elif name == "cases":
                for case in value:
                    yield from self.of_body(case.body, where, function)
            else:
                for each in value if isinstance(value, list) else [value]:
                    if isinstance(each, ast.expr):
                        yield from self._of_expression(each, where, function)

    def _of_expression(self, node: ast.AST, where: str, function: tuple[str, int] | None) -> Iterator[Change]:
        if isinstance(node, ast.JoinedStr) or (isinstance(node, ast.expr) and _is_log(node)):
            return
        if isinstance(node, ast.Subscript) and _text(node.value).split(".")[-1] in (
            "Callable",
            "Literal",
            "NDArray",
            "dict",
            "list",
            "tuple",
        ):
            return
        if isinstance(node, ast.IfExp | ast.comprehension):
            yield from self._negated(node, where, function)
        yield from self._of_node(node, where, function)
        for child in ast.iter_child_nodes(node):
            if not (isinstance(child, ast.keyword) and child.arg == "strict"):
                yield from self._of_expression(child, where, function)

    def _of_node(self, node: ast.AST, where: str, function: tuple[str, int] | None) -> Iterator[Change]:
        if isinstance(node, ast.Compare):
            for at, operator in enumerate(node.ops):
                yield self._edit(
                    node,
                    where,
                    function,
                    lambda n, at=at, operator=operator: n.ops.__setitem__(at, COMPARISONS[type(operator)]()),
                )
        elif isinstance(node, ast.BinOp) and type(node.op) in ARITHMETIC:
            words = any(_is_word(side) for side in (node.left, node.right))
            types = function is None and isinstance(node.op, ast.BitOr)
            if not words and not types:
                yield self._operator(node, where, function)
        elif isinstance(node, ast.BoolOp):
            other = ast.Or if isinstance(node.op, ast.And) else ast.And
            yield self._edit(node, where, function, lambda n: setattr(n, "op", other()))
        elif isinstance(node, ast.UnaryOp) and not isinstance(node.operand, ast.Constant):
            if isinstance(node.op, ast.Not):
                yield self._edit(node, where, function, _double)
            elif isinstance(node.op, ast.USub | ast.Invert):
                yield self._edit(node, where, function, _bare if isinstance(node.op, ast.USub) else _double)
        elif isinstance(node, ast.Constant):
            other_value = _other_constant(node.value)
            if other_value is not None:
                yield self._edit(node, where, function, lambda n: setattr(n, "value", other_value))
        elif isinstance(node, ast.Call):
            yield from self._of_call(node, where, function)

    def _of_call(self, node: ast.Call, where: str, function: tuple[str, int] | None) -> Iterator[Change]:
        called = node.func
        name = called.id if isinstance(called, ast.Name) else getattr(called, "attr", "")
        if name in NAMES:
            kept = "id" if isinstance(called, ast.Name) else "attr"
            yield self._edit(node, where, function, lambda n: setattr(n.func, kept, NAMES[name]))
        plain = not any(isinstance(arg, ast.Constant | ast.Starred) for arg in node.args)
        differ = plain and len(node.args) == 2 and _text(node.args[0]) != _text(node.args[1])
        if differ and name not in _SYMMETRIC:
            yield self._edit(node, where, function, lambda n: n.args.reverse())

    def _operator(
        self, node: ast.BinOp | ast.AugAssign, where: str, function: tuple[str, int] | None
    ) -> Change:
        other = ARITHMETIC[type(node.op)]
        return self._edit(node, where, function, lambda n: setattr(n, "op", other()))

    def _negated(
        self,
        node: ast.If | ast.While | ast.IfExp | ast.comprehension,
        where: str,
        function: tuple[str, int] | None,
    ) -> Iterator[Change]:
        if isinstance(node, ast.comprehension):
            for at, test in enumerate(node.ifs):

                def negate(at: int = at, test: ast.expr = test) -> None:
                    node.ifs[at] = _not(test)

                yield Change(where, f"if {_text(test)} -> if not", test.lineno, function, negate)
            return
        test = node.test

        def negate_test() -> None:
            node.test = _not(test)

        yield Change(where, f"if {_text(test)} -> if not", test.lineno, function, negate_test)

    def _edit(
        self, node: Any, where: str, function: tuple[str, int] | None, edit: Callable[[Any], object]
    ) -> Change:
        """The change that an edit of a node in place makes, described by trying it on a copy."""
        after = copy.deepcopy(node)
        edit(after)
        what = f"{_text(node)} -> {_text(after)}"
        return Change(where, what, node.lineno, function, lambda: edit(node) and None)


def _double(node: Any) -> None:
    """Undo `not` and `~` by doing it twice."""
    node.operand = ast.copy_location(ast.UnaryOp(node.op, node.operand), node)


def _bare(node: Any) -> None:
    """Take a minus away."""
    node.op = ast.UAdd()


def _not(test: ast.expr) -> ast.expr:
    return ast.copy_location(ast.UnaryOp(ast.Not(), test), test)


def _other_constant(value: object) -> object:
    """A number close by: one more, 1 % more below 2, a hundredfold where tiny; None for the rest."""
    if isinstance(value, bool):
        return not value
    if isinstance(value, int):
        return value + 1
    if isinstance(value, float):
        if value == 0 or abs(value) >= 2:
            return value + 1
        return value * 100 if abs(value) < 1e-3 else value * 1.01
    return WORDS.get(value) if isinstance(value, str) else None


def _is_none(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is None


def _is_word(node: ast.expr) -> bool:
    return isinstance(node, ast.JoinedStr) or (isinstance(node, ast.Constant) and isinstance(node.value, str))


def _is_log(node: ast.expr) -> bool:
    called = node.func if isinstance(node, ast.Call) else None
    return isinstance(called, ast.Attribute) and called.attr in _SILENT and _text(called.value).isupper()


def _text(node: ast.AST) -> str:
    return ast.unparse(node).replace("\n", " ")
