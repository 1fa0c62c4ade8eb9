"""Hide the values of environment variables in a job's code, wherever they may be.

A config, and every file it reads, may hold values anywhere. Of its Python code only names and syntax are
shown, and literals in arguments of the SDK that hold no environment variables, such as ``base_image``; of its
other files nothing. All other files are what the job runs: shown without what they set in an environment.
"""

from __future__ import annotations

import ast
import builtins
import json
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import PurePosixPath

from pydantic import BaseModel

from api_client import definitions

Mark = Callable[[str], str]
"""Returns the text to show instead of a value."""

_CLASSES = {name: each for name, each in vars(definitions).items() if isinstance(each, type)}
_ARGUMENTS = {
    field for each in _CLASSES.values() if issubclass(each, BaseModel) for field in each.model_fields
} - {"environment_variables"}
"""Arguments of the SDK whose literals may be shown."""
_LITERALS: tuple[type[ast.expr], ...] = tuple(
    getattr(ast, name) for name in ("Constant", "JoinedStr", "TemplateStr") if hasattr(ast, name)
)
_DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
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
"""Names that reach others by their text."""
_SETS = re.compile(
    r"environb?|environment_variables|putenv|setenv|load_dotenv|(?:exec|spawn)\w+e|posix_spawnp?"
)
"""Names by which Python sets variables."""
_IS_ENVIRONMENT = re.compile(r"(?:\w+_)?env(?:_vars?|ironment(?:_variables|_vars)?)?")
"""Names of arguments and items that are an environment."""
_NAMED_FIRST = {"setdefault", "setenv", "putenv", "getenv", "get", "pop"}
"""Functions whose first argument is the name of a variable."""

_SHELLS = {".sh", ".bash", ".zsh", ".ksh"}
_ASSIGNMENT = (
    r"(?:(?:(?<![\w.$/{-])|(?<=\s-e))[A-Za-z_]\w*(?:\[[^\]\n]{0,80}+\])?\+?=|(?<=\$\{)[A-Za-z_]\w*:?=)"
)
"""The beginning of a word that a shell can read as an assignment."""
_IN_SHELL = re.compile(
    rf"({_ASSIGNMENT})"
    r"""(?:"(?:[^"\\]|\\.)*+"|'[^']*+'|["'][^\n]*+|`[^`]*+`|\$\([^)\n]{0,400}+\)|[^\s"'])++""",
    re.DOTALL,
)
_HERE_DOCUMENT = re.compile(r"(<<-?[ \t]*[\"'\\]?(?P<end>\w+).*\n)(?s:.{0,2000}?)(?=\n[ \t]*(?P=end)\b)")
_OF_SHELL = re.compile(r"\b(?:export|declare|ENV|ARG)\b")
_IN_PROGRAM = re.compile(r"(?<!\w)([A-Z_][A-Z0-9_]*=)[^\s\0]+")
_IN_CAPITALS = re.compile(
    r"((?:\b(?:ENV|ARG|setenv|setx|set\s+-\w*x\w*)\s+\w+\s)"
    r"""|(?<![\w$])(?<!\${)[A-Z_][A-Z0-9_]*[\\"'\])]{0,4}\s?(?:[:+?]?=|:)(?!<\0))\s*\S.*"""
)
_OF_ENVIRONMENT = re.compile(r"((?i:env)[^:=({,]{0,80}[:=({,](?!<\0))\s*\S.*")
_NAMED = re.compile(r"""(\s*(?:- |export )?["']?[\w.-]+["']?\s?[:=])\s*\S.*""")


def redaction(files: Mapping[str, str], mark: Mark) -> tuple[Callable[[str], str | None], set[str]]:
    """Return a function from a path to the text to show, None for none; and the texts that are hidden."""
    trees = {path: _parsed(text) for path, text in files.items() if path.endswith(".py")}
    private = _configs_and_what_they_read(files, trees)
    configs = [tree for path, tree in trees.items() if tree and path in private]
    programs = [tree for path, tree in trees.items() if tree and path not in private]
    shown, hidden = _shown_literals(configs), _environment_literals(programs)
    literals = [each for tree in configs for each in _literals(tree) if id(each) not in shown]
    literals += [each for tree in programs for each in _literals(tree) if id(each) in hidden]
    secrets = {
        part.value
        for literal in literals
        for part in ast.walk(literal)
        if isinstance(part, ast.Constant) and isinstance(part.value, str)
    }

    def of_config(node: ast.expr, source: str) -> str:
        return _without_assignments(node, source, mark) if id(node) in shown else mark(source)

    def of_program(node: ast.expr, source: str) -> str:
        return mark(source) if id(node) in hidden else _substituted(_IN_PROGRAM, source, mark)

    def shown_text(path: str) -> str | None:
        text = files[path]
        if path not in trees:
            return None if path in private else _plain_text(path, text, mark)
        if (tree := trees[path]) is None:
            return None
        if path in private:
            return _with_literals(text, tree, of_config, lambda comment: f"# {mark(comment)}")
        return _with_literals(
            text, tree, of_program, lambda comment: _substituted(_IN_PROGRAM, comment, mark)
        )

    return cache(shown_text), secrets


def _parsed(text: str) -> ast.Module | None:
    try:
        return ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def _configs_and_what_they_read(files: Mapping[str, str], trees: Mapping[str, ast.Module | None]) -> set[str]:
    """Return the paths of configs, of modules they import, and of files they name outside shown arguments."""
    private = {path for path in trees if "truss_train" in files[path]}
    while True:
        configs = [tree for path, tree in trees.items() if tree and path in private]
        shown = _shown_literals(configs)
        modules, names = set[str](), set[str]()
        for path in private:
            tree = trees.get(path)
            if tree is None:
                modules |= names.union(_words(files[path])) if path in trees else set()
                names |= modules
                continue
            for node in ast.walk(tree):
                if isinstance(node, ast.Import | ast.ImportFrom):
                    paths = [getattr(node, "module", None) or "", *(alias.name for alias in node.names)]
                    modules.update(part for path in paths for part in path.split("."))
            unread = {
                id(part)
                for node in ast.walk(tree)
                if (isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant))
                or (isinstance(node, ast.keyword) and node.arg == "start_commands")
                for part in ast.walk(node.value)
            }
            names |= {
                word
                for literal in _literals(tree)
                if id(literal) not in shown | unread
                for word in _words(ast.unparse(literal))
            }
            if _mentions(tree) & _INDIRECT:
                modules |= names
        reached = {path for path in files if _is_reached(PurePosixPath(path), modules, names)}
        if reached <= private:
            return private
        private |= reached


def _words(text: str) -> list[str]:
    return re.findall(r"[\w.-]+", text)


def _is_reached(path: PurePosixPath, modules: set[str], names: set[str]) -> bool:
    if path.suffix != ".py":
        return not names.isdisjoint((*path.parts, path.suffix))
    module = path.parent.name if path.stem == "__init__" else path.stem
    return path.name in names or module in modules


def _mentions(tree: ast.AST) -> set[str]:
    return {_name(node) for node in ast.walk(tree)} - {""}


def _literals(tree: ast.AST) -> Iterator[ast.expr]:
    """Yield all constants, and f-strings as a whole."""
    rest: list[ast.AST] = [tree]
    while rest:
        node = rest.pop()
        if isinstance(node, _LITERALS):
            yield node
        else:
            rest += ast.iter_child_nodes(node)


def _names_of_variables(tree: ast.AST) -> Iterator[int]:
    """Yield the ids of literals that name an item, such as keys of dictionaries, not its value."""
    for node in ast.walk(tree):
        places: Sequence[ast.expr | None]
        match node:
            case ast.Dict(keys=keys):
                places = keys
            case ast.Subscript(slice=key):
                places = [key]
            case ast.Call(func=ast.Attribute(attr=name) | ast.Name(id=name), args=[key, *_]) if (
                name in _NAMED_FIRST
            ):
                places = [key]
            case _:
                continue
        for place in places:
            match place:
                case ast.Constant(value=str(text)) if (
                    re.fullmatch("[A-Z_][A-Z0-9_]*", text) or text in _ARGUMENTS
                ):
                    yield id(place)


def _shown_literals(configs: Iterable[ast.Module]) -> set[int]:
    """Return the ids of literals that are certain to be no values of environment variables.

    Names lead to further literals if they are used in such places only.
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
    certain = [each.value for each in arguments if each.arg in _ARGUMENTS and each.arg not in uses]
    while certain:
        match certain.pop():
            case ast.Constant() as literal:
                shown.add(id(literal))
            case ast.BinOp() as composed if _assigns(composed):
                continue
            case ast.JoinedStr(values=parts) as literal:
                shown.add(id(literal))
                text = "".join(map(_part, parts))
                kept = _IN_SHELL.sub("", text)
                certain += [
                    part.value
                    for part in parts
                    if isinstance(part, ast.FormattedValue)
                    and text.count(_part(part)) == kept.count(_part(part))
                ]
            case ast.List(elts=parts) | ast.Tuple(elts=parts) | ast.BoolOp(values=parts):
                certain += parts
            case ast.IfExp(body=left, orelse=right) | ast.BinOp(left=left, right=right):
                certain += left, right
            case ast.UnaryOp(operand=part) | ast.Starred(value=part):
                certain.append(part)
            case ast.Name() | ast.Attribute() as use:
                others = uses[_name(use)]
                others.discard(id(use))
                if not others:
                    candidates = values.pop(_name(use), [])
                    certain += [value for names, value in candidates if not any(uses[name] for name in names)]
    return shown


def _assigns(composed: ast.expr) -> bool:
    """Return True if a shell may assign parts of a text to a name."""
    return any(
        isinstance(part, ast.Constant) and re.search(_ASSIGNMENT, str(part.value))
        for part in ast.walk(composed)
    )


def _is_of_sdk(function: ast.expr, aliases: Mapping[str | None, str]) -> bool:
    return any(aliases.get(name, name) in _CLASSES for name in _mentions(function))


@dataclass(frozen=True, eq=False)
class _Statement:
    """A statement without those in its body; ``function`` is the function or class it belongs to."""

    function: str
    nodes: list[ast.AST]

    def environment(self) -> list[ast.AST]:
        """Return the nodes that set an environment: all, or those that are named one."""
        reads = set[int]()
        named: list[ast.AST] = []
        for node in self.nodes:
            match node:
                case ast.Subscript(value=place, ctx=ast.Load()):
                    reads.add(id(place))
                case ast.Call(func=ast.Attribute(value=place, attr="get")):
                    reads.add(id(place))
                case ast.Compare(comparators=places):
                    reads.update(map(id, places))
                case ast.keyword(arg=str(name), value=value) if _IS_ENVIRONMENT.fullmatch(name):
                    named += ast.walk(value)
                case ast.Dict(keys=keys, values=values):
                    for key, value in zip(keys, values, strict=True):
                        if isinstance(key, ast.Constant) and _IS_ENVIRONMENT.fullmatch(str(key.value)):
                            named += ast.walk(value)
        if any(_SETS.fullmatch(_name(node)) and id(node) not in reads for node in self.nodes):
            return self.nodes
        return named

    def binds(self, parameters: Mapping[str, set[str]]) -> set[str]:
        """Return the names whose values the statement gives or changes."""
        bound = set[str]()
        for node in self.nodes:
            match node:
                case (
                    ast.Name(ctx=ast.Store())
                    | ast.Attribute(ctx=ast.Store())
                    | ast.Subscript(ctx=ast.Store())
                ):
                    bound |= _mentions(node)
                case ast.Expr(value=ast.Call(func=ast.Attribute(value=owner))):
                    bound |= _mentions(owner)
                case ast.Expr(value=ast.Call(func=ast.Name(id=name))) | ast.arg(arg=name):
                    bound.add(name)
                case ast.Return() | ast.Yield() | ast.YieldFrom():
                    bound.add(self.function)
            if isinstance(node, ast.Call):
                bound |= parameters.get(_name(node.func), set())
        return bound


def _name(node: ast.AST) -> str:
    match node:
        case ast.Name(id=name) | ast.Attribute(attr=name) | ast.alias(name=name):
            return name
    return ""


def _environment_literals(programs: Iterable[ast.Module]) -> set[int]:
    """Return the ids of literals in statements that set an environment, or give values to names in these."""
    statements = [statement for tree in programs for statement in _statements(tree)]
    parameters: dict[str, set[str]] = defaultdict(set)
    ignored = {"self", "cls", "", *dir(builtins)}
    for statement in statements:
        for node in statement.nodes:
            if isinstance(node, ast.arg):
                parameters[statement.function].add(node.arg)
            elif isinstance(node, ast.Import):
                ignored |= {(alias.asname or alias.name).partition(".")[0] for alias in node.names}
    makers: dict[str, list[_Statement]] = defaultdict(list)
    for statement in statements:
        for name in statement.binds(parameters) - ignored:
            makers[name].append(statement)
    hidden = set[int]()
    rest = [node for statement in statements for node in statement.environment()]
    while rest:
        hidden.add(id(node := rest.pop()))
        for name in (_name(node), getattr(node, "asname", None) or ""):
            rest += [part for statement in makers.pop(name, ()) for part in statement.nodes]
    return hidden - {key for tree in programs for key in _names_of_variables(tree)}


def _statements(tree: ast.Module) -> Iterator[_Statement]:
    bodies: list[tuple[str, ast.AST]] = [("", tree)]
    while bodies:
        function, owner = bodies.pop()
        if isinstance(owner, _DEFINITIONS) and owner.name != "__init__":
            function = owner.name
        nodes: list[ast.AST] = []
        rest = [owner]
        while rest:
            nodes.append(node := rest.pop())
            for child in ast.iter_child_nodes(node):
                if isinstance(child, ast.stmt | ast.excepthandler | ast.match_case):
                    bodies.append((function, child))
                else:
                    rest.append(child)
        yield _Statement(function, nodes)


def _with_literals(
    text: str,
    tree: ast.Module,
    literal_of: Callable[[ast.expr, str], str],
    comment_of: Callable[[str], str],
) -> str:
    """Return a source with replaced literals and comments: the rest is names and syntax."""
    source = text.encode()
    starts = [0]
    for line in source.split(b"\n"):
        starts.append(starts[-1] + len(line) + 1)

    def between(start: int, end: int) -> str:
        return re.sub("#.*", lambda match: comment_of(match[0]), source[start:end].decode())

    pieces: list[str] = []
    done = 0
    for node in sorted(_literals(tree), key=lambda each: (each.lineno, each.col_offset)):
        begin = starts[node.lineno - 1] + node.col_offset
        end = starts[(node.end_lineno or node.lineno) - 1] + (node.end_col_offset or 0)
        pieces += between(done, begin), literal_of(node, source[begin:end].decode())
        done = end
    return "".join([*pieces, between(done, len(source))])


def _without_assignments(literal: ast.expr, source: str, mark: Mark) -> str:
    """Return a literal without what a shell would assign in it."""
    match literal:
        case ast.Constant(value=str(text)):
            prefix = ""
        case ast.JoinedStr(values=parts):
            prefix, text = "f", "".join(map(_part, parts))
        case _:
            return source
    clean = _without_shell_values(text, mark)
    return source if clean == text and not prefix else prefix + repr(clean).replace("\\x00", "\0")


def _part(part: ast.expr) -> str:
    match part:
        case ast.Constant(value=text):
            return str(text)
        case ast.FormattedValue(value=ast.Name(id=name)):
            return f"{{{name}}}"
        case ast.FormattedValue(value=ast.Attribute(value=ast.Name(id=owner), attr=name)):
            return f"{{{owner}.{name}}}"
    return "{…}"


def _substituted(pattern: re.Pattern[str], text: str, mark: Mark) -> str:
    """Hide what follows the first group of matches."""
    return pattern.sub(lambda match: match[1] + mark(match[0]), text)


def _without_shell_values(text: str, mark: Mark) -> str:
    return _substituted(_IN_SHELL, _substituted(_HERE_DOCUMENT, text, mark), mark)


def _plain_text(path: str, text: str, mark: Mark) -> str:
    name = PurePosixPath(path)
    if ".env" in name.name:
        lines = _without_shell_values(text, mark).split("\n")
        return "\n".join(line if "\0" in line else _only_name(line, mark) for line in lines)
    if name.suffix in _SHELLS or re.match(r"#!.*sh\b", text):
        lines = _without_shell_values(text, mark).split("\n")
        return "\n".join(_substituted(_IN_CAPITALS, line, mark) for line in lines)
    with suppress(ValueError, RecursionError):
        text = json.dumps(json.loads(text), indent=2, ensure_ascii=False)  # _lines relies on indentation
    return "\n".join(_lines(text, mark))


def _only_name(line: str, mark: Mark) -> str:
    match = _NAMED.fullmatch(line)
    return f"{match[1]} {mark(line)}" if match else _hidden(line, mark)


def _hidden(line: str, mark: Mark) -> str:
    """Hide a line except for its indentation; brackets are no value."""
    return line[: len(line) - len(line.lstrip())] + mark(line) if re.search(r"\w", line) else line


def _lines(text: str, mark: Mark) -> Iterator[str]:
    """Yield lines without the values of names in capitals, and below a line that names an environment."""
    environment: int | None = None  # indentation of the line that names it
    value: int | None = None  # indentation of a name whose value continues where lines are indented more
    for raw in text.split("\n"):
        line = _substituted(_IN_SHELL, raw, mark) if _OF_SHELL.search(raw) else raw
        content = line.strip()
        indent = len(line) - len(line.lstrip())
        if content and value is not None and indent <= value:
            value = None
        if content and environment is not None:
            is_over = indent < environment or (indent == environment and content[0] != "-")
            is_over |= environment < 0 and content[0] == "["
            environment = None if is_over else environment
        if value is not None:
            yield _hidden(line, mark)
        elif environment is not None:
            value = indent if content else value
            yield _only_name(line, mark)
        elif match := _OF_ENVIRONMENT.search(line):
            environment = indent
            yield f"{line[: match.end(1)]} {mark(content)}"
        elif match := _IN_CAPITALS.search(line):
            value = indent
            yield f"{line[: match.end(1)]} {mark(content)}"
        else:
            if "env" in content.lower():
                environment = -1 if content[0] == "[" else indent
            yield line
