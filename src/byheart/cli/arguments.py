"""The arguments of a command: argparse, told by the fields of the command's dataclass.

A field's type says what its argument takes, its default what happens without it, and the docstring below it is its
help. Fields of a dataclass that is nested in the command are options of the command, under a heading of their own.
"""

import ast
import inspect
import re
import sys
import types
from argparse import SUPPRESS, ArgumentParser, ArgumentTypeError, RawDescriptionHelpFormatter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import MISSING, Field, dataclass, fields, is_dataclass
from functools import cache, partial
from itertools import pairwise
from pathlib import Path
from shlex import quote
from typing import Annotated, Any, Literal, NoReturn, Union, get_args, get_origin, get_type_hints

from byheart.cli.menu import About, columns, prose
from byheart.cli.options import Arg
from byheart.cli.output import typed
from byheart.errors import BadInput, did_you_mean

_NUMBERS = {int: "a whole number, in digits", float: "a number"}
_METAVARS = {int: "INT", float: "FLOAT", str: "TEXT", Path: "PATH"}


@dataclass(frozen=True)
class Argument:
    """An argument of a command, as argparse takes it."""

    names: tuple[str, ...]
    """Flags, the short one first; the name of the field, if it is positional."""
    options: dict[str, Any]
    """Keyword arguments of ``add_argument``."""
    choices: tuple[str, ...]
    """The values that it takes; empty if there are too many to list."""
    is_required: bool
    heading: str
    """The heading of its section in the help; empty for the first section."""

    @property
    def is_positional(self) -> bool:
        """True if it has no flag."""
        return not self.names[-1].startswith("-")

    @property
    def usage(self) -> str:
        """Text for the usage line; empty for an option that may be omitted."""
        metavar = self.options.get("metavar", "")
        shown = f"[{metavar} ...]" if self.options.get("nargs") == "*" else metavar
        if self.is_positional:
            return f"[{shown}]" if self.options.get("nargs") == "?" else shown
        return f"{self.names[-1]} {shown}" if self.is_required else ""


def fill(command: type[Any], prog: str, about: About, words: Sequence[str]) -> Any:
    """Return the command with the arguments in ``words``.

    Raise SystemExit after printing help, and BadInput with one line about the first mistake.
    """
    arguments = list(arguments_of(command))
    parser = _Parser(prog, about, arguments)
    return _filled(command, vars(parser.parse_intermixed_args(_with_hyphens(words, arguments, prog))))


def arguments_of(command: type[Any], prefix: str = "", heading: str = "") -> Iterator[Argument]:
    """Yield the arguments of a dataclass, and of those that are nested in it."""
    hints, docs = get_type_hints(command, include_extras=True), docstrings(command)
    for field in fields(command):
        hint, name = hints[field.name], f"{prefix}{field.name}"
        if is_dataclass(hint):
            assert isinstance(hint, type)
            text = docs.get(field.name) or (hint.__doc__ or "").partition("\n")[0]
            yield from arguments_of(hint, f"{name}.", text.rstrip("."))
        else:
            yield _argument(field, hint, docs.get(field.name, ""), name, heading)


def _argument(field: "Field[Any]", hint: Any, text: str, name: str, heading: str) -> Argument:
    kind, *metadata = get_args(hint) if get_origin(hint) is Annotated else (hint,)
    extra = next((item for item in metadata if isinstance(item, Arg)), Arg())
    is_required, default = field.default is field.default_factory is MISSING, field.default
    element, count, takes_none = _taken_apart(kind)
    flag = f"--{'no-' if default is True else ''}{field.name.replace('_', '-')}"
    options: dict[str, Any] = {"default": SUPPRESS, "help": _help(extra.help or text, default, is_required)}
    choices: tuple[str, ...] = ()
    if element is bool:
        options |= {"dest": name, "action": "store_false" if default is True else "store_true"}
    else:
        choices = tuple(map(str, get_args(element)))
        options |= {"type": _converter(element, takes_none=takes_none and default is not None)}
        options |= {"action": "append"} if extra.repeated else {} if count is None else {"nargs": count}
        plain = field.name.upper().replace("_", "-") if extra.positional else _metavar(element)
        if takes_none and default is not None:
            plain += "|None"
        words = extra.metavar.split() if isinstance(count, int) else []
        options |= {"metavar": tuple(words) if words else extra.metavar or plain}
        if extra.positional:
            options |= {"nargs": "?", "default": default} if count is None and not is_required else {}
            return Argument((name,), options, choices, is_required, heading)
        options |= {"dest": name, "required": is_required}
    return Argument((*extra.aliases, flag), options, choices, is_required, heading)


def _taken_apart(kind: Any) -> tuple[Any, int | Literal["*"] | None, bool]:
    """Return the type of one value, the number of values as argparse writes it, and whether None is a value.

    >>> _taken_apart(tuple[str, str] | None), _taken_apart(tuple[int, ...]), _taken_apart(float)
    ((<class 'str'>, 2, True), (<class 'int'>, '*', False), (<class 'float'>, None, False))
    """
    members = get_args(kind)
    takes_none = get_origin(kind) in (Union, types.UnionType) and type(None) in members
    if takes_none and len(members) == 2:
        (kind,) = (member for member in members if member is not type(None))
    count: int | Literal["*"] | None = None
    if get_origin(kind) is tuple:
        element, *others = get_args(kind)
        kind, count = element, "*" if others == [...] else 1 + len(others)
    if kind is not bool and kind not in _METAVARS and get_origin(kind) is not Literal:
        raise BadInput(f"an option has the type {kind}; expected bool, int, float, str, Path, Literal, or a tuple")
    return kind, count, takes_none


def _metavar(kind: Any) -> str:
    return f"{{{','.join(map(str, get_args(kind)))}}}" if get_origin(kind) is Literal else _METAVARS[kind]


def _converter(kind: Any, *, takes_none: bool) -> Callable[[str], Any]:
    """Return the function that makes a value out of a word."""

    def convert(word: str) -> Any:
        if takes_none and word == "None":
            return None
        if get_origin(kind) is Literal:
            values = {str(value): value for value in get_args(kind)}
            if word not in values:
                near = did_you_mean(word, values, otherwise=" ")
                message = f"expected one of {', '.join(values)}; got {word!r}{f'; {near}' if near.strip() else ''}"
                raise ArgumentTypeError(message)
            return values[word]
        if kind is Path and not word:
            raise ArgumentTypeError("expected a path, got an empty word")
        try:
            return kind(word)
        except ValueError:
            raise ArgumentTypeError(f"expected {_NUMBERS[kind]}, got {word!r}") from None

    return convert


def _help(text: str, default: object, is_required: bool) -> str:
    """Return the text with the default, if that says anything, escaped for argparse.

    >>> _help("Share in %.", (0.3, 0.2), False), _help("File.", None, False), _help("File.", MISSING, True)
    ('Share in %%. (default: 0.3 0.2)', 'File.', 'File. (required)')
    """
    if is_required:
        text += " (required)"
    elif not (default is MISSING or default is None or isinstance(default, bool) or default in ((), "")):
        text += f" (default: {' '.join(map(str, default)) if isinstance(default, tuple) else default})"
    return text.replace("%", "%%")


def words_of(command: Any, *names: str) -> str:
    """Return the words that give a command the values of these fields, without those that have their defaults."""
    arguments = {item.options.get("dest", item.names[-1]): item for item in arguments_of(type(command))}
    defaults = {field.name: field.default for field in fields(command)}
    return " ".join(
        word
        for name in names
        if getattr(command, name) != defaults[name]
        for word in _words(arguments[name], getattr(command, name))
    )


def _words(argument: Argument, value: Any) -> list[str]:
    """Return the words for one argument, quoted for a shell.

    >>> _words(Argument(("-r", "--rates"), {}, (), False, ""), (0.1, 100.0))
    ['--rates', '0.1', '100']
    """
    flag, values = argument.names[-1], value if isinstance(value, tuple) else (value,)
    texts = [typed(item) if isinstance(item, Path) else quote(str(item).removesuffix(".0")) for item in values]
    if argument.is_positional:
        return texts
    if argument.options.get("action") == "append":
        return [word for text in texts for word in (flag, text)]
    return [flag] if isinstance(value, bool) else [flag, *texts]


class _Parser(ArgumentParser):
    """An argparse parser whose help has examples, and whose errors are one line for ``byheart`` to print."""

    def __init__(self, prog: str, about: About, arguments: list[Argument]) -> None:
        usage = [prog, *(item.usage for item in arguments if not item.is_positional and item.usage), "[OPTIONS]"]
        usage += [item.usage for item in arguments if item.is_positional]
        super().__init__(
            prog=prog,
            usage="\n".join(prose(" ".join(usage), "           ")),
            description=str(about),
            formatter_class=partial(RawDescriptionHelpFormatter, width=columns()),
            allow_abbrev=False,
        )
        self._example = about.examples[0].partition(" # ")[0]
        sections: dict[str, Any] = {"": self}
        for item in arguments:
            section = sections.get(item.heading) or self.add_argument_group(item.heading)
            sections[item.heading] = section
            section.add_argument(*item.names, **item.options)

    def error(self, message: str) -> NoReturn:
        """Raise BadInput with the message, and an example unless the message already suggests something."""
        example = "" if message.endswith("?") else f"; as in: {self._example}"
        raise BadInput(f"{self.prog.removeprefix('byheart ')}: {message}{example}")


def _with_hyphens(words: Sequence[str], arguments: list[Argument], prog: str) -> list[str]:
    """Return the words with hyphens for underscores in options.

    Raise BadInput with the closest option for one that does not exist.
    """
    options = {"--help", *(name for item in arguments for name in item.names if name.startswith("--"))}
    end = words.index("--") if "--" in words else len(words)
    spelled = []
    for word in words[:end]:
        option, equals, value = word.partition("=")
        if re.fullmatch(r"--\w[\w-]*", option):
            option = option.replace("_", "-")
            if option not in options:
                near = did_you_mean(option, sorted(options))
                raise BadInput(f"{prog.removeprefix('byheart ')}: there is no option {option}; {near}")
        spelled.append(f"{option}{equals}{value}")
    return [*spelled, *words[end:]]


def _filled(command: type[Any], values: dict[str, Any], prefix: str = "") -> Any:
    """Return an instance of a dataclass with the values that argparse found, by the names of their fields."""
    hints, chosen = get_type_hints(command), {}
    for field in fields(command):
        name = f"{prefix}{field.name}"
        if is_dataclass(hints[field.name]):
            chosen[field.name] = _filled(hints[field.name], values, f"{name}.")
        elif name in values:
            value = values[name]
            chosen[field.name] = tuple(value) if isinstance(value, list) else value
    return command(**chosen)


def docstrings(command: type[Any]) -> dict[str, str]:
    """Return the docstrings of the fields of a class and its bases, each as one line; none if there is no source."""
    return {name: text for kind in reversed(command.__mro__) for name, text in _field_docstrings(kind)}


def _field_docstrings(kind: type[Any]) -> Iterator[tuple[str, str]]:
    for node in _class_definitions(kind.__module__):
        if node.name == kind.__name__:
            for statement, after in pairwise(node.body):
                match statement, after:
                    case ast.AnnAssign(target=ast.Name(id=name)), ast.Expr(value=ast.Constant(value=str(text))):
                        yield name, " ".join(text.split())


@cache
def _class_definitions(module: str) -> list[ast.ClassDef]:
    """Return the classes that a module's source defines, or none if it has no source."""
    try:
        tree = ast.parse(inspect.getsource(sys.modules[module]))
    except (KeyError, OSError, TypeError):
        return []
    return [node for node in ast.walk(tree) if isinstance(node, ast.ClassDef)]
