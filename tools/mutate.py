"""Small changes to a source file, each of which a test should notice.

A change replaces one expression or statement in the text, so the rest of the file keeps its lines:
operators are swapped, conditions negated, numbers raised by one, keyword arguments and statements
dropped. Annotations, decorators, strings and what makes an error's message are left as they are.
"""

import ast
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

COMPARISONS: dict[type[ast.cmpop], str] = {
    ast.Lt: "<=", ast.LtE: "<", ast.Gt: ">=", ast.GtE: ">", ast.Eq: "!=", ast.NotEq: "==",
    ast.In: "not in", ast.NotIn: "in", ast.Is: "is not", ast.IsNot: "is",
}  # fmt: skip
ARITHMETIC: dict[type[ast.operator], str] = {
    ast.Add: "-", ast.Sub: "+", ast.Mult: "/", ast.Div: "*", ast.FloorDiv: "*", ast.Mod: "//",
    ast.Pow: "*", ast.BitAnd: "|", ast.LShift: ">>",
}  # fmt: skip
CALLS = {"min": "max", "max": "min", "any": "all", "all": "any"}
# no test on one machine's CPU can see these go
UNSEEN = ("strict", "device", "encoding")
TURNED = (ast.Eq, ast.NotEq, ast.In, ast.NotIn, ast.Is, ast.IsNot)  # the swap is the negation


@dataclass(frozen=True, slots=True)
class Mutant:
    """One change: `start` to `end` of the file's bytes become `text`."""

    function: str  # the qualified name of what it is in; "" at the top of the module
    first: int  # line, from 1
    reach: tuple[int, int]  # a test that runs one of these lines runs the change
    loads: bool  # the change runs when the module loads
    start: int
    end: int
    text: str
    was: str  # the lines before the change, as one
    now: str  # and after it
    again: int = 0  # how many of the same change the function has above

    def apply(self, source: bytes) -> bytes:
        """The whole file with this change."""
        return source[: self.start] + self.text.encode() + source[self.end :]

    @property
    def key(self) -> str:
        """What tells it from all others of its file, whatever moves elsewhere in it."""
        return f"{self.function} | {self.was} | {self.now} | {self.again}"


def mutants(source: bytes) -> list[Mutant]:
    """Every change of a file, in its order."""
    lines = source.splitlines(keepends=True)
    starts = [0]
    for line in lines:
        starts.append(starts[-1] + len(line))
    found: list[Mutant] = []
    seen: Counter[str] = Counter()
    for function, reach, node, text in _changes(ast.parse(source), "", (0, len(lines)), False):
        first, last = node.lineno, node.end_lineno or node.lineno
        start = starts[first - 1] + node.col_offset
        end = starts[last - 1] + (node.end_col_offset or 0)
        before, after = source[starts[first - 1] : start], source[end : starts[last]]
        was = _as_one(before + source[start:end] + after)
        now = _as_one(before + text.encode() + after)
        again = seen[f"{function} | {was} | {now}"]
        seen[f"{function} | {was} | {now}"] += 1
        loads = reach[0] == 0
        found.append(Mutant(function, first, reach, loads, start, end, text, was, now, again))
    return found


def _as_one(text: bytes) -> str:
    return " ".join(text.decode().split())


Lines = tuple[int, int]
Change = tuple[str, Lines, ast.expr | ast.stmt, str]


def _changes(node: ast.AST, function: str, reach: Lines, called: bool) -> Iterator[Change]:
    """The changes of a node and of all inside it."""
    if isinstance(node, ast.FunctionDef) or (isinstance(node, ast.stmt) and called):
        reach, called = _own_lines(node), True  # what is outside runs when the module loads
    if isinstance(node, ast.expr | ast.stmt):
        yield from ((function, reach, where, text) for where, text in _of(node))
    inner = function
    if isinstance(node, ast.FunctionDef | ast.ClassDef):
        inner = f"{function}.{node.name}".lstrip(".")
    if isinstance(node, ast.Raise | ast.Assert | ast.JoinedStr) or _makes_error(node):
        return
    if isinstance(node, ast.keyword) and node.arg in UNSEEN:
        return
    for name, value in ast.iter_fields(node):
        if name in ("annotation", "returns", "decorator_list"):
            continue
        for child in value if isinstance(value, list) else [value]:
            if isinstance(node, ast.If) and isinstance(child, ast.Return):  # an early return
                yield inner, _own_lines(child), child, "pass"
            if isinstance(child, ast.AST):
                yield from _changes(child, inner, reach, called)


def _own_lines(node: ast.stmt) -> Lines:
    """A statement's lines; of one with a body, those of its head; of a definition, all."""
    last = node.end_lineno or node.lineno
    if isinstance(node, ast.If | ast.For | ast.While | ast.With):
        last = max(node.lineno, node.body[0].lineno - 1)
    return node.lineno, last


def _makes_error(node: ast.AST) -> bool:
    if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Name)):
        return False
    return node.func.id.endswith(("Error", "Warning", "TypeVar"))


def _of(node: ast.expr | ast.stmt) -> Iterator[tuple[ast.expr | ast.stmt, str]]:
    match node:
        case ast.Compare():
            for i, op in enumerate(node.ops):
                yield node, _compare(node, i, COMPARISONS[type(op)])
        case ast.BinOp(op=ast.BitOr()):
            yield node, ast.unparse(node.left)
        case ast.BinOp() if type(node.op) in ARITHMETIC and not _joins(node):
            left, right = ast.unparse(node.left), ast.unparse(node.right)
            yield node, f"(({left}) {ARITHMETIC[type(node.op)]} ({right}))"
        case ast.BoolOp():
            other = " or " if isinstance(node.op, ast.And) else " and "
            yield node, f"({other.join(f'({ast.unparse(value)})' for value in node.values)})"
        case ast.UnaryOp(op=ast.Not() | ast.USub() | ast.Invert()):
            yield node, f"({ast.unparse(node.operand)})"
        case ast.Constant(value=bool()):
            yield node, str(not node.value)
        case ast.Constant(value=int() | float()):
            yield node, f"({ast.unparse(node)} + 1)" if node.value != 0 else "1"
        case ast.Call():
            if isinstance(node.func, ast.Name) and node.func.id in CALLS:
                yield node.func, CALLS[node.func.id]
            if not _makes_error(node):
                for keyword in (k for k in node.keywords if k.arg not in UNSEEN):
                    fewer = ast.Call(
                        node.func, node.args, [k for k in node.keywords if k != keyword]
                    )
                    yield node, ast.unparse(fewer)
        case ast.Raise() | ast.AugAssign() | ast.Continue() | ast.Break() | ast.Delete():
            yield node, "pass"
        case ast.Expr(value=ast.Call() | ast.Await()):
            yield node, "pass"
        case ast.Assign(targets=[ast.Attribute() | ast.Subscript(), *_]):
            yield node, "pass"
        case _:
            pass
    if isinstance(node, ast.If | ast.IfExp) and not _type_checking(node.test):
        yield from _negated(node.test)
    if isinstance(node, ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp):
        for part in node.generators:
            for test in part.ifs:
                yield from _negated(test)


def _compare(node: ast.Compare, which: int, sign: str) -> str:
    text = f"({ast.unparse(node.left)})"
    for i, (op, right) in enumerate(zip(node.ops, node.comparators, strict=True)):
        empty = ast.Compare(ast.Name("x"), [op], [ast.Name("y")])
        kept = ast.unparse(empty).removeprefix("x ").removesuffix(" y")
        text += f" {sign if i == which else kept} ({ast.unparse(right)})"
    return f"({text})"


def _joins(node: ast.BinOp) -> bool:
    """Strings or lists put together: a minus between them is no mutant, it is a TypeError."""
    kinds = (ast.List, ast.Tuple, ast.JoinedStr, ast.ListComp)
    for side in (node.left, node.right):
        if isinstance(side, kinds) or (
            isinstance(side, ast.Constant) and isinstance(side.value, str)
        ):
            return True
    return False


def _negated(test: ast.expr) -> Iterator[tuple[ast.expr, str]]:
    turned = isinstance(test, ast.Compare) and len(test.ops) == 1
    if turned and isinstance(test.ops[0], TURNED):  # type: ignore[attr-defined]
        return
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        return
    yield test, f"(not ({ast.unparse(test)}))"


def _type_checking(test: ast.expr) -> bool:
    return isinstance(test, ast.Name) and test.id == "TYPE_CHECKING"
