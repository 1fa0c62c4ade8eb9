"""Hide the values of environment variables in a job's code.

A config, and every file that it reads, is private: it may contain such values anywhere. Of private Python
code, only names and syntax are shown, and literals that are arguments of the SDK other than environment
variables, such as ``base_image``; other private files are not shown at all. All other files are the code that
the job runs. They are shown without the texts that are hidden in configs, and without values that a line
assigns to an environment variable.
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
"""A function that returns the mark to show instead of a value."""

_SDK_CLASSES = {name: cls for name, cls in vars(definitions).items() if isinstance(cls, type)}
_SHOWN_ARGUMENTS = {
    field for cls in _SDK_CLASSES.values() if issubclass(cls, BaseModel) for field in cls.model_fields
} - {"environment_variables"}
"""Names of the SDK's arguments whose literals may be shown."""
_LITERAL_NODES: tuple[type[ast.expr], ...] = tuple(
    getattr(ast, name) for name in ("Constant", "JoinedStr", "TemplateStr") if hasattr(ast, name)
)
_DYNAMIC_ACCESS = {
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
"""Names through which code can reach a variable or module whose name it computes."""
_TAKES_VARIABLE_NAME = {"setdefault", "setenv", "putenv", "getenv", "get", "pop"}
"""Functions whose first argument may be the name of an environment variable."""

_ASSIGNMENT_START = (
    r"(?:(?:(?<![\w.$/{-])|(?<=\s-e))[A-Za-z_]\w*(?:\[[^\]\n]{0,80}+\])?\+?=|(?<=\$\{)[A-Za-z_]\w*:?=)"
)
"""The name and the ``=`` of an assignment, as a shell reads it."""
_SHELL_ASSIGNMENT_PATTERN = re.compile(
    rf"({_ASSIGNMENT_START})"
    r"""(?:"(?:[^"\\]|\\.)*+"|'[^']*+'|["'][^\n]*+|`[^`]*+`|\$\([^)\n]{0,400}+\)|[^\s"'])++""",
    re.DOTALL,
)
_ASSIGNING_LINE_PATTERN = re.compile(
    r"(\b(?:export|declare|setenv|ENV|ARG)[ \t]++(?:-\w++[ \t]++){0,3}+\w++[ \t]*+=?+"
    r"|environ\[[^\]\n]{0,80}+\][ \t]*+=|environ\.(?:setdefault|update)\(|putenv\()[ \t]*+\S.*"
)
"""An assignment to an environment variable in a shell, a Dockerfile or Python, up to the end of the line."""


def redaction(files: Mapping[str, str], mark: Mark) -> tuple[Callable[[str], str | None], set[str]]:
    """Return a function that maps a path to its text without values (None: hide it), and the hidden texts."""
    trees = {path: _parse_module(text) for path, text in files.items() if path.endswith(".py")}
    private_paths = _private_paths(files, trees)
    configs = [tree for path, tree in trees.items() if tree and path in private_paths]
    shown_ids = _shown_literals(configs)
    secrets = {
        part.value
        for tree in configs
        for literal in _literals(tree)
        if id(literal) not in shown_ids
        for part in ast.walk(literal)
        if isinstance(part, ast.Constant) and isinstance(part.value, str)
    }

    def shown_literal(node: ast.expr, source: str) -> str:
        return _without_assignments(node, source, mark) if id(node) in shown_ids else mark(source)

    def shown_text(path: str) -> str | None:
        if path not in private_paths:
            return _with_marks(_ASSIGNING_LINE_PATTERN, files[path], mark)
        tree = trees.get(path)
        return None if tree is None else _with_literals(files[path], tree, shown_literal, mark)

    return cache(shown_text), secrets


def _parse_module(text: str) -> ast.Module | None:
    try:
        return ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def _private_paths(files: Mapping[str, str], trees: Mapping[str, ast.Module | None]) -> set[str]:
    """Return the paths of configs, of files that they import or name in hidden texts, and of .env files."""
    paths_by_reference: dict[tuple[str, str], list[str]] = defaultdict(list)
    for path in files:
        for reference in _references_to(PurePosixPath(path)):
            paths_by_reference[reference].append(path)
    pending = [path for path in trees if "truss_train" in files[path]]
    pending += [path for path in files if ".env" in PurePosixPath(path).name]
    private_paths, all_names, has_dynamic_imports = set(pending), set[str](), False
    while pending:
        path = pending.pop()
        if path not in trees:
            continue
        tree = trees[path]
        modules, names = _references_in(files[path], tree)
        all_names |= names
        if has_dynamic_imports:
            modules |= names
        elif tree is not None and _names_in(tree) & _DYNAMIC_ACCESS:
            has_dynamic_imports = True
            # a dynamic import may load any module whose name is in any of the files
            modules |= all_names
        references = [*(("module", module) for module in modules), *(("name", name) for name in names)]
        for reference in references:
            new_paths = set(paths_by_reference.pop(reference, ())) - private_paths
            private_paths |= new_paths
            pending += new_paths
    return private_paths


def _references_to(path: PurePosixPath) -> list[tuple[str, str]]:
    """Return the module names and file names by which other code can refer to a file."""
    if path.suffix != ".py":
        return [("name", name) for name in {*path.parts, path.suffix}]
    return [("module", path.parent.name if path.stem == "__init__" else path.stem), ("name", path.name)]


def _references_in(text: str, tree: ast.Module | None) -> tuple[set[str], set[str]]:
    """Return the names of the modules that a source may import, and of the files that it may read."""
    if tree is None:
        return set(_words_in(text)), set(_words_in(text))
    shown_ids = _shown_literals([tree])
    modules, ignored_literals = set[str](), set[int]()
    for node in ast.walk(tree):
        match node:
            case ast.Import(names=aliases) | ast.ImportFrom(names=aliases):
                module_paths = [getattr(node, "module", None) or "", *(alias.name for alias in aliases)]
                modules.update(part for path in module_paths for part in path.split("."))
            case ast.Expr(value=ast.Constant() as value) | ast.keyword(arg="start_commands", value=value):
                ignored_literals.update(map(id, ast.walk(value)))
    literals = (literal for literal in _literals(tree) if id(literal) not in shown_ids | ignored_literals)
    names = {word for literal in literals for word in _words_in(ast.unparse(literal))}
    return modules, names


def _words_in(text: str) -> list[str]:
    return re.findall(r"[\w.-]+", text)


def _names_in(tree: ast.AST) -> set[str]:
    return {_name_of(node) for node in ast.walk(tree)} - {""}


def _literals(tree: ast.AST) -> Iterator[ast.expr]:
    """Yield all literals; an f-string as one literal, not its parts."""
    pending: list[ast.AST] = [tree]
    while pending:
        node = pending.pop()
        if isinstance(node, _LITERAL_NODES):
            yield node
        else:
            pending += ast.iter_child_nodes(node)


def _literals_that_are_names(tree: ast.AST) -> Iterator[int]:
    """Yield the ``id()`` of each literal that is a name, such as a key of a dictionary, not a value."""
    for node in ast.walk(tree):
        candidates: Sequence[ast.expr | None]
        match node:
            case ast.Dict(keys=keys):
                candidates = keys
            case ast.Subscript(slice=key):
                candidates = [key]
            case ast.Call(func=ast.Attribute(attr=name) | ast.Name(id=name), args=[key, *_]) if (
                name in _TAKES_VARIABLE_NAME
            ):
                candidates = [key]
            case _:
                continue
        for candidate in candidates:
            match candidate:
                case ast.Constant(value=str(text)) if (
                    re.fullmatch("[A-Z_][A-Z0-9_]*", text) or text in _SHOWN_ARGUMENTS
                ):
                    yield id(candidate)


def _shown_literals(configs: Iterable[ast.Module]) -> set[int]:
    """Return the ``id()`` of each literal that is certainly not the value of an environment variable.

    These are names, and arguments in ``_SHOWN_ARGUMENTS``. A literal that is assigned to a variable is shown
    if all uses of the variable are such arguments.
    """
    shown_ids = set[int]()
    uses: dict[str, set[int]] = defaultdict(set)
    assignments: dict[str, list[tuple[list[str], ast.expr]]] = defaultdict(list)
    arguments: list[ast.keyword] = []
    for tree in configs:
        shown_ids.update(_literals_that_are_names(tree))
        aliases = {
            alias.asname: alias.name
            for node in ast.walk(tree)
            if isinstance(node, ast.ImportFrom)
            for alias in node.names
        }
        classes = [node for node in ast.walk(tree) if isinstance(node, ast.ClassDef)]
        class_members = {id(statement) for node in classes for statement in node.body}
        for node in ast.walk(tree):
            match node:
                case ast.Name(id=name, ctx=ast.Load()) | ast.Attribute(attr=name, ctx=ast.Load()):
                    uses[name].add(id(node))
                case ast.Call(func=function) if _is_sdk_class(function, aliases):
                    arguments += node.keywords
                case ast.Assign(value=ast.expr() as value) | ast.AnnAssign(value=ast.expr() as value):
                    targets = node.targets if isinstance(node, ast.Assign) else [node.target]
                    names = [target.id for target in targets if isinstance(target, ast.Name)]
                    if id(node) not in class_members and len(names) == len(targets):
                        for name in names:
                            assignments[name].append((names, value))
    if any(_names_in(tree) & _DYNAMIC_ACCESS for tree in configs):
        assignments.clear()
    shown_values = [
        argument.value
        for argument in arguments
        if argument.arg in _SHOWN_ARGUMENTS and argument.arg not in uses
    ]
    while shown_values:
        match shown_values.pop():
            case ast.Constant() as literal:
                shown_ids.add(id(literal))
            case ast.BinOp() as composed if _has_shell_assignment(composed):
                continue
            case ast.JoinedStr(values=parts) as literal:
                shown_ids.add(id(literal))
                text = "".join(map(_fstring_part_text, parts))
                remaining = _SHELL_ASSIGNMENT_PATTERN.sub("", text)
                shown_values += [
                    part.value
                    for part in parts
                    if isinstance(part, ast.FormattedValue)
                    and text.count(_fstring_part_text(part)) == remaining.count(_fstring_part_text(part))
                ]
            case ast.List(elts=parts) | ast.Tuple(elts=parts) | ast.BoolOp(values=parts):
                shown_values += parts
            case ast.IfExp(body=left, orelse=right):
                shown_values += left, right
            case ast.BinOp(left=left, right=right):  # a variable may hold a part of a shell assignment
                shown_values += [
                    part for part in (left, right) if not isinstance(part, ast.Name | ast.Attribute)
                ]
            case ast.UnaryOp(operand=part) | ast.Starred(value=part):
                shown_values.append(part)
            case ast.Name() | ast.Attribute() as variable:
                other_uses = uses[_name_of(variable)]
                other_uses.discard(id(variable))
                if not other_uses:
                    candidates = assignments.pop(_name_of(variable), [])
                    shown_values += [
                        value for names, value in candidates if not any(uses[name] for name in names)
                    ]
    return shown_ids


def _has_shell_assignment(composed: ast.expr) -> bool:
    """Return True if a shell may read a part of a composed text as an assignment."""
    return any(
        isinstance(part, ast.Constant) and re.search(_ASSIGNMENT_START, str(part.value))
        for part in ast.walk(composed)
    )


def _is_sdk_class(function: ast.expr, aliases: Mapping[str | None, str]) -> bool:
    return any(aliases.get(name, name) in _SDK_CLASSES for name in _names_in(function))


def _name_of(node: ast.AST) -> str:
    match node:
        case ast.Name(id=name) | ast.Attribute(attr=name) | ast.alias(name=name):
            return name
    return ""


def _with_literals(
    text: str,
    tree: ast.Module,
    shown_literal: Callable[[ast.expr, str], str],
    mark: Mark,
) -> str:
    """Return a source with its literals replaced by ``shown_literal``, and its comments by marks."""
    source = text.encode()
    line_offsets = [0]
    for line in source.split(b"\n"):
        line_offsets.append(line_offsets[-1] + len(line) + 1)

    def code_without_comments(start: int, end: int) -> str:
        return re.sub("#.*", lambda match: f"# {mark(match[0])}", source[start:end].decode())

    pieces: list[str] = []
    position = 0
    for literal in sorted(_literals(tree), key=lambda node: (node.lineno, node.col_offset)):
        start = line_offsets[literal.lineno - 1] + literal.col_offset
        end = line_offsets[(literal.end_lineno or literal.lineno) - 1] + (literal.end_col_offset or 0)
        pieces += code_without_comments(position, start), shown_literal(literal, source[start:end].decode())
        position = end
    return "".join([*pieces, code_without_comments(position, len(source))])


def _without_assignments(literal: ast.expr, source: str, mark: Mark) -> str:
    """Return the source of a literal in which marks replace the values that a shell would assign."""
    match literal:
        case ast.Constant(value=str(text)):
            prefix = ""
        case ast.JoinedStr(values=parts):
            prefix, text = "f", "".join(map(_fstring_part_text, parts))
        case _:
            return source
    if "<<" in text:  # a here-document may list environment variables
        return mark(source)
    redacted = _with_marks(_SHELL_ASSIGNMENT_PATTERN, text, mark)
    return source if redacted == text and not prefix else prefix + repr(redacted).replace("\\x00", "\0")


def _fstring_part_text(part: ast.expr) -> str:
    match part:
        case ast.Constant(value=text):
            return str(text)
        case ast.FormattedValue(value=ast.Name(id=name)):
            return f"{{{name}}}"
        case ast.FormattedValue(value=ast.Attribute(value=ast.Name(id=owner), attr=name)):
            return f"{{{owner}.{name}}}"
    return "{…}"


def _with_marks(pattern: re.Pattern[str], text: str, mark: Mark) -> str:
    """Replace the text after the first group of each match by a mark."""
    return pattern.sub(lambda match: match[1] + mark(match[0]), text)
