"""Completion scripts for bash, zsh and fish: commands, constructions, flags and the values of flags, with their help.

A script holds one table, whose keys are the words so far: "byheart lab" for a menu or a command, "byheart compile
--layout" for a flag with listed values. Anywhere else the shell completes files.
"""

import shlex
from collections.abc import Iterator, Mapping

from byheart.cli.arguments import Argument, arguments_of
from byheart.cli.commands import COMMANDS
from byheart.cli.menu import Menu

SHELLS = ("bash", "zsh", "fish")

_BASH = """_byheart_words() {{
    case "$1" in
{cases}
    esac
}}
_byheart() {{
    local at=byheart word words
    for word in "${{COMP_WORDS[@]:1:COMP_CWORD-1}}"; do
        [[ $word != -* && -n $(_byheart_words "$at $word") ]] && at="$at $word"
    done
    words=$(_byheart_words "$at ${{COMP_WORDS[COMP_CWORD-1]}}")
    [[ -n $words && $at != *" ${{COMP_WORDS[COMP_CWORD-1]}}" ]] || words=$(_byheart_words "$at")
    COMPREPLY=($(compgen -W "$(cut -f 1 <<< "$words")" -- "${{COMP_WORDS[COMP_CWORD]}}"))
}}
complete -o default -F _byheart byheart
"""
_ZSH = """#compdef byheart
_byheart_words() {{
    case "$1" in
{cases}
    esac
}}
_byheart() {{
    local at=byheart word lines
    local -a entries
    for word in "${{(@)words[2,CURRENT-1]}}"; do
        [[ $word != -* && -n $(_byheart_words "$at $word") ]] && at="$at $word"
    done
    lines=$(_byheart_words "$at ${{words[CURRENT-1]}}")
    [[ -n $lines && $at != *" ${{words[CURRENT-1]}}" ]] || lines=$(_byheart_words "$at")
    entries=("${{(@f)${{lines//:/\\\\:}}}}")
    entries=("${{(@)entries/$'\\t'/:}}")
    _describe byheart entries
    _files
}}
_byheart "$@"
"""
_FISH = """function __byheart_words
    switch "$argv"
{cases}
    end
end
function __byheart
    set -l words (commandline -opc)
    set -l at byheart
    for word in $words[2..-1]
        if not string match -q -- '-*' $word; and test -n "$(__byheart_words "$at $word")"
            set at "$at $word"
        end
    end
    if string match -q -- '-*' $words[-1]; and test -n "$(__byheart_words "$at $words[-1]")"
        __byheart_words "$at $words[-1]"
    else
        __byheart_words "$at"
    end
end
complete -c byheart -a '(__byheart)'
"""


def script(shell: str) -> str:
    """Return the completion script of a shell."""
    table = dict(_words(COMMANDS, "byheart"))
    if shell == "fish":
        return _FISH.format(cases="\n".join(f"case {_fish(key)}\n echo {_fish(_lines(table[key]))}" for key in table))
    cases = "\n".join(f"{shlex.quote(key)}) echo {shlex.quote(_lines(table[key]))} ;;" for key in table)
    return (_BASH if shell == "bash" else _ZSH).format(cases=cases)


def _words(menu: Menu, path: str) -> Iterator[tuple[str, Mapping[str, str]]]:
    """Yield the words that may follow a path, with their help, for every path below a menu."""
    yield path, {name: entry.about.first for name, entry in menu.items()}
    for name, entry in menu.items():
        if entry.of:
            yield from _words(entry.load(), f"{path} {name}")
            continue
        arguments = [item for item in arguments_of(entry.load()) if not item.is_positional]
        yield f"{path} {name}", {item.names[-1]: _first(item) for item in arguments} | {"--help": "print help"}
        for item in arguments:
            if item.choices:
                yield from ((f"{path} {name} {flag}", dict.fromkeys(item.choices, "")) for flag in item.names)


def _first(argument: Argument) -> str:
    return str(argument.options["help"]).replace("%%", "%").partition(". ")[0].rstrip(".")


def _lines(words: Mapping[str, str]) -> str:
    return "\n".join(f"{word}\t{text}".rstrip() for word, text in words.items())


def _fish(text: str) -> str:
    r"""Return a text in fish's quotes.

    >>> print(_fish("it's"))
    'it\'s'
    """
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"
