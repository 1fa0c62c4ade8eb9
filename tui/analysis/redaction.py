"""Hide the values of environment variables in a job's code.

A config, and every file that it reads, may contain such values anywhere. Of their Python code, only names and
syntax are shown, and literals in arguments of the SDK that are no environment variables, such as
``base_image``; the other files among them are not shown. All files besides these are what the job runs: they
are shown without the texts that are hidden in configs, and without values that a line assigns to a variable
of the environment.
"""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache
from pathlib import PurePosixPath

from pydantic import BaseModel

from api_client import definitions

Mark = Callable[[str], str]
"""Returns the mark to show instead of a value."""

_CLASSES = {name: cls for name, cls in vars(definitions).items() if isinstance(cls, type)}
_ARGUMENTS = {
    field for cls in _CLASSES.values() if issubclass(cls, BaseModel) for field in cls.model_fields
} - {"environment_variables"}
"""Arguments of the SDK whose literals may be shown."""
_LITERALS: tuple[type[ast.expr], ...] = tuple(
    getattr(ast, name) for name in ("Constant", "JoinedStr", "TemplateStr") if hasattr(ast, name)
)
_INDIRECT = {
    "globals",
    "locals",
    "vars",
    "dir",
    "eval",
    "exec",
    "getattr",
    "__dict__",
    "import_module",
    "__import__",
}
"""Builtins that reach a variable by its name as text."""
_TAKES_NAME = {"setdefault", "setenv", "putenv", "getenv", "get", "pop"}
"""Functions whose first argument is the name of a variable."""

_ASSIGNMENT = (
    r"(?:(?:(?<![\w.$/{-])|(?<=\s-e))[A-Za-z_]\w*(?:\[[^\]\n]{0,80}+\])?\+?=|(?<=\$\{)[A-Za-z_]\w*:?=)"
)
"""The beginning of a word that a shell can read as an assignment."""
_IN_SHELL = re.compile(
    rf"({_ASSIGNMENT})"
    r"""(?:"(?:[^"\\]|\\.)*+"|'[^']*+'|["'][^\n]*+|`[^`]*+`|\$\([^)\n]{0,400}+\)|[^\s"'])++""",
    re.DOTALL,
)
_ASSIGNING_LINE = re.compile(
    r"(\b(?:export|declare|setenv|ENV|ARG)[ \t]++(?:-\w++[ \t]++){0,3}+\w++[ \t]*+=?+"
    r"|environ\[[^\]\n]{0,80}+\][ \t]*+=|environ\.(?:setdefault|update)\(|putenv\()[ \t]*+\S.*"
)
"""An assignment to an environment variable in a shell, a Dockerfile or Python, up to the end of the line."""


def redaction(files: Mapping[str, str], mark: Mark) -> tuple[Callable[[str], str | None], set[str]]:
    """Return a function that maps a path to the text to show (None: nothing), and the hidden texts."""
    trees = {path: _parsed(text) for path, text in files.items() if path.endswith(".py")}
    private = _private_paths(files, trees)
    configs = [tree for path, tree in trees.items() if tree and path in private]
    shown = _shown_literals(configs)
    secrets = {
        part.value
        for tree in configs
        for literal in _literals(tree)
        if id(literal) not in shown
        for part in ast.walk(literal)
        if isinstance(part, ast.Constant) and isinstance(part.value, str)
    }

    def literal_of(node: ast.expr, source: str) -> str:
        return _without_assignments(node, source, mark) if id(node) in shown else mark(source)

    def shown_text(path: str) -> str | None:
        if path not in private:
            return _substituted(_ASSIGNING_LINE, files[path], mark)
        tree = trees.get(path)
        return None if tree is None else _with_literals(files[path], tree, literal_of, mark)

    return cache(shown_text), secrets


def _parsed(text: str) -> ast.Module | None:
    try:
        return ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def _private_paths(files: Mapping[str, str], trees: Mapping[str, ast.Module | None]) -> set[str]:
    """Return the paths of configs, of files that they import or name in hidden texts, and of .env files."""
    places: dict[tuple[str, str], list[str]] = defaultdict(list)
    for path in files:
        for place in _references_to(PurePosixPath(path)):
            places[place].append(path)
    pending = [path for path in trees if "truss_train" in files[path]]
    pending += [path for path in files if ".env" in PurePosixPath(path).name]
    private, all_names, has_dynamic_imports = set(pending), set[str](), False
    while pending:
        path = pending.pop()
        if path not in trees:
            continue
        tree = trees[path]
        modules, names = _references_in(files[path], tree)
        all_names |= names
        if has_dynamic_imports:
            modules |= names
        elif tree is not None and _mentions(tree) & _INDIRECT:
            has_dynamic_imports = True
            # with dynamic imports, a file may import a module that another file names
            modules |= all_names
        for place in [*(("module", module) for module in modules), *(("name", name) for name in names)]:
            reached = set(places.pop(place, ())) - private
            private |= reached
            pending += reached
    return private


def _references_to(path: PurePosixPath) -> list[tuple[str, str]]:
    """Return the module names and file names by which other code can refer to a file."""
    if path.suffix != ".py":
        return [("name", name) for name in {*path.parts, path.suffix}]
    return [("module", path.parent.name if path.stem == "__init__" else path.stem), ("name", path.name)]


def _references_in(text: str, tree: ast.Module | None) -> tuple[set[str], set[str]]:
    """Return the modules that a source may import, and the names of files that it may read."""
    if tree is None:
        return set(_words(text)), set(_words(text))
    shown = _shown_literals([tree])
    modules, unread = set[str](), set[int]()
    for node in ast.walk(tree):
        match node:
            case ast.Import(names=aliases) | ast.ImportFrom(names=aliases):
                paths = [getattr(node, "module", None) or "", *(alias.name for alias in aliases)]
                modules.update(part for path in paths for part in path.split("."))
            case ast.Expr(value=ast.Constant() as value) | ast.keyword(arg="start_commands", value=value):
                unread.update(map(id, ast.walk(value)))
    read = (literal for literal in _literals(tree) if id(literal) not in shown | unread)
    names = {word for literal in read for word in _words(ast.unparse(literal))}
    return modules, names


def _words(text: str) -> list[str]:
    return re.findall(r"[\w.-]+", text)


def _mentions(tree: ast.AST) -> set[str]:
    return {_name(node) for node in ast.walk(tree)} - {""}


def _literals(tree: ast.AST) -> Iterator[ast.expr]:
    """Yield all constants, and f-strings as a whole."""
    pending: list[ast.AST] = [tree]
    while pending:
        node = pending.pop()
        if isinstance(node, _LITERALS):
            yield node
        else:
            pending += ast.iter_child_nodes(node)


def _names_of_variables(tree: ast.AST) -> Iterator[int]:
    """Yield the ids of literals that are names, such as keys of dictionaries, not values."""
    for node in ast.walk(tree):
        places: Sequence[ast.expr | None]
        match node:
            case ast.Dict(keys=keys):
                places = keys
            case ast.Subscript(slice=key):
                places = [key]
            case ast.Call(func=ast.Attribute(attr=name) | ast.Name(id=name), args=[key, *_]) if (
                name in _TAKES_NAME
            ):
                places = [key]
            case _:
                continue
        for literal in places:
            match literal:
                case ast.Constant(value=str(text)) if (
                    re.fullmatch("[A-Z_][A-Z0-9_]*", text) or text in _ARGUMENTS
                ):
                    yield id(literal)


def _shown_literals(configs: Iterable[ast.Module]) -> set[int]:
    """Return the ids of literals that are certainly not values of environment variables.

    A literal that is assigned to a name is one if the name is used only where literals are shown.
    """
    shown = set[int]()
    uses: dict[str, set[int]] = defaultdict(set)
    values: dict[str, list[tuple[list[str], ast.expr]]] = defaultdict(list)
    arguments: list[ast.keyword] = []
    for tree in configs:
        shown.update(_names_of_variables(tree))
        aliases = {
            alias.asname: alias.name
            for node in ast.walk(tree)
            if isinstance(node, ast.ImportFrom)
            for alias in node.names
        }
        classes = [node for node in ast.walk(tree) if isinstance(node, ast.ClassDef)]
        members = {id(statement) for node in classes for statement in node.body}
        for node in ast.walk(tree):
            match node:
                case ast.Name(id=name, ctx=ast.Load()) | ast.Attribute(attr=name, ctx=ast.Load()):
                    uses[name].add(id(node))
                case ast.Call(func=function) if _is_of_sdk(function, aliases):
                    arguments += node.keywords
                case ast.Assign(value=ast.expr() as value) | ast.AnnAssign(value=ast.expr() as value):
                    targets = node.targets if isinstance(node, ast.Assign) else [node.target]
                    names = [target.id for target in targets if isinstance(target, ast.Name)]
                    if id(node) not in members and len(names) == len(targets):
                        for name in names:
                            values[name].append((names, value))
    if any(_mentions(tree) & _INDIRECT for tree in configs):
        values.clear()
    shown_values = [
        argument.value for argument in arguments if argument.arg in _ARGUMENTS and argument.arg not in uses
    ]
    while shown_values:
        match shown_values.pop():
            case ast.Constant() as literal:
                shown.add(id(literal))
            case ast.BinOp() as composed if _assigns(composed):
                continue
            case ast.JoinedStr(values=parts) as literal:
                shown.add(id(literal))
                text = "".join(map(_part_text, parts))
                remaining = _IN_SHELL.sub("", text)
                shown_values += [
                    part.value
                    for part in parts
                    if isinstance(part, ast.FormattedValue)
                    and text.count(_part_text(part)) == remaining.count(_part_text(part))
                ]
            case ast.List(elts=parts) | ast.Tuple(elts=parts) | ast.BoolOp(values=parts):
                shown_values += parts
            case ast.IfExp(body=left, orelse=right):
                shown_values += left, right
            case ast.BinOp(left=left, right=right):  # a name may hold a part of an assignment
                shown_values += [
                    part for part in (left, right) if not isinstance(part, ast.Name | ast.Attribute)
                ]
            case ast.UnaryOp(operand=part) | ast.Starred(value=part):
                shown_values.append(part)
            case ast.Name() | ast.Attribute() as use:
                others = uses[_name(use)]
                others.discard(id(use))
                if not others:
                    candidates = values.pop(_name(use), [])
                    shown_values += [
                        value for names, value in candidates if not any(uses[name] for name in names)
                    ]
    return shown


def _assigns(composed: ast.expr) -> bool:
    """Return True if a shell may read an assignment in the parts of a text."""
    return any(
        isinstance(part, ast.Constant) and re.search(_ASSIGNMENT, str(part.value))
        for part in ast.walk(composed)
    )


def _is_of_sdk(function: ast.expr, aliases: Mapping[str | None, str]) -> bool:
    return any(aliases.get(name, name) in _CLASSES for name in _mentions(function))


def _name(node: ast.AST) -> str:
    match node:
        case ast.Name(id=name) | ast.Attribute(attr=name) | ast.alias(name=name):
            return name
    return ""


def _with_literals(
    text: str,
    tree: ast.Module,
    literal_of: Callable[[ast.expr, str], str],
    mark: Mark,
) -> str:
    """Return a source with replaced literals and comments: the rest is names and syntax."""
    source = text.encode()
    starts = [0]
    for line in source.split(b"\n"):
        starts.append(starts[-1] + len(line) + 1)

    def between(start: int, end: int) -> str:
        return re.sub("#.*", lambda match: f"# {mark(match[0])}", source[start:end].decode())

    pieces: list[str] = []
    done = 0
    for node in sorted(_literals(tree), key=lambda literal: (literal.lineno, literal.col_offset)):
        begin = starts[node.lineno - 1] + node.col_offset
        end = starts[(node.end_lineno or node.lineno) - 1] + (node.end_col_offset or 0)
        pieces += between(done, begin), literal_of(node, source[begin:end].decode())
        done = end
    return "".join([*pieces, between(done, len(source))])


def _without_assignments(literal: ast.expr, source: str, mark: Mark) -> str:
    """Return a literal in which the values that a shell would assign are hidden."""
    match literal:
        case ast.Constant(value=str(text)):
            prefix = ""
        case ast.JoinedStr(values=parts):
            prefix, text = "f", "".join(map(_part_text, parts))
        case _:
            return source
    if "<<" in text:  # a here-document may be a file of variables
        return mark(source)
    clean = _substituted(_IN_SHELL, text, mark)
    return source if clean == text and not prefix else prefix + repr(clean).replace("\\x00", "\0")


def _part_text(part: ast.expr) -> str:
    match part:
        case ast.Constant(value=text):
            return str(text)
        case ast.FormattedValue(value=ast.Name(id=name)):
            return f"{{{name}}}"
        case ast.FormattedValue(value=ast.Attribute(value=ast.Name(id=owner), attr=name)):
            return f"{{{owner}.{name}}}"
    return "{…}"


def _substituted(pattern: re.Pattern[str], text: str, mark: Mark) -> str:
    """Hide the part of each match that follows its first group."""
    return pattern.sub(lambda match: match[1] + mark(match[0]), text)
