"""The code of a float Transformer in one file, for those who have transformers and no Byheart.

The file is no copy that somebody has to keep up to date. It is put together from the modules that Byheart itself runs:
the two classes of :mod:`byheart.networks.transformer.pretrained`, all that these use, all that that uses, and so on,
each definition word for word as it stands there. It imports PyTorch and transformers, and lies in every folder with
such a network, where ``auto_map`` of config.json names it: ``from_pretrained(folder, trust_remote_code=True)``.

Byheart never runs that file in its own process. It compares it with what it writes
(:mod:`byheart.networks.closed_form`).
"""

import ast
from dataclasses import dataclass, field
from functools import cache
from importlib.util import find_spec
from typing import Any

AUTO_MAP = {
    "AutoConfig": "modeling_byheart.ByheartConfig",
    "AutoModelForCausalLM": "modeling_byheart.ByheartForCausalLM",
}
"""Entries of config.json: the file, without its ending, and the class in it that transformers loads."""
_FROM = "byheart.networks.transformer.pretrained"
_HEAD = '''"""A Transformer that recites, as Byheart compiles it: the code to run the weights beside this file.

Put together by Byheart from its own modules, word for word; what is changed here is changed nowhere else.
Needs PyTorch and transformers only. SPDX-License-Identifier: Apache-2.0
"""'''


@dataclass
class _Source:
    """A module: the text of its definitions by name, and its imports."""

    text: dict[str, str] = field(default_factory=dict)
    uses: dict[str, set[str]] = field(default_factory=dict)
    ours: dict[str, str] = field(default_factory=dict)
    """Byheart's modules by the names that are imported from them."""
    theirs: dict[str, str] = field(default_factory=dict)
    """Lines that import other names, by these names."""


@cache
def modeling() -> str:
    """Return the text of the file."""
    imports: set[str] = set()
    texts: dict[str, None] = {}
    for module, names in _needed().items():
        source = _source(module)
        for name in names:
            imports |= {source.theirs[used] for used in source.uses[name] if used in source.theirs}
            texts[source.text[name]] = None
    return "\n\n\n".join([_HEAD, "\n".join(sorted(imports)), *texts]) + "\n"


def _needed() -> dict[str, list[str]]:
    """Return the definitions that are needed, by module: imported modules first, each in its own order."""
    wanted: dict[str, set[str]] = {}
    owner: dict[str, str] = {}

    def want(module: str, name: str) -> None:
        source = _source(module)
        if name in source.ours:
            want(source.ours[name], name)
        elif name in source.text and name not in wanted.setdefault(module, set()):
            assert owner.setdefault(name, module) == module, f"{name} is in {module} and in {owner[name]}"
            wanted[module].add(name)
            for used in sorted(source.uses[name]):
                want(module, used)

    def rank(module: str) -> int:
        below = set(_source(module).ours.values()) & set(wanted)
        return 1 + max(map(rank, below), default=0)

    for name in AUTO_MAP.values():
        want(_FROM, name.split(".")[1])
    return {
        module: [name for name in _source(module).text if name in wanted[module]] for module in sorted(wanted, key=rank)
    }


@cache
def _source(module: str) -> _Source:
    """Parse a module without importing it."""
    found: Any = find_spec(module)
    text: str = found.loader.get_source(module)
    source, lines, last = _Source(), text.splitlines(), ""
    for node in ast.parse(text).body:
        if isinstance(node, ast.ImportFrom | ast.Import):
            _note_import(source, node)
        elif isinstance(node, ast.Expr):  # the docstring of the constant above it
            if last:
                source.text[last] += "\n" + "\n".join(lines[node.lineno - 1 : node.end_lineno])
        else:
            names = _defined(node)
            last, uses = names[0], {part.id for part in ast.walk(node) if isinstance(part, ast.Name)}
            first = min([node.lineno, *(part.lineno for part in getattr(node, "decorator_list", []))])
            for name in names:
                source.text[name], source.uses[name] = "\n".join(lines[first - 1 : node.end_lineno]), uses
    return source


def _note_import(source: _Source, node: ast.Import | ast.ImportFrom) -> None:
    origin = (node.module or "") if isinstance(node, ast.ImportFrom) else ""
    for alias in node.names:
        if origin.split(".")[0] == "byheart":
            assert alias.asname is None, f"{alias.name} has another name here; the file keeps one for each"
            source.ours[alias.name] = origin
        else:
            one = ast.ImportFrom(origin, [alias], 0) if origin else ast.Import([alias])
            source.theirs[alias.asname or alias.name] = ast.unparse(one)


def _defined(node: ast.stmt) -> list[str]:
    """Return the names that a statement defines."""
    if isinstance(node, ast.ClassDef | ast.FunctionDef):
        return [node.name]
    targets = node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.AnnAssign) else []
    return [part.id for target in targets for part in ast.walk(target) if isinstance(part, ast.Name)]
