"""Every command: its purpose, examples, and its place in the first help."""

from collections.abc import Iterator, Mapping
from functools import partial
from importlib import import_module
from typing import Any

from byheart.cli.menu import About, Entry, Menu, about

BYHEART = about(
    "Byheart: a dataset in, a Transformer that has memorized it out, with an honest parameter count beside every known "
    "bound, and a certificate that anyone can re-check.",
    "byheart compile book.txt -o book # a text into a network that recites it",
    "byheart recite book",
    "byheart task random --examples 100 -o t.npz # a theorem, run on a task and checked",
    "byheart build kajitsuka-sato-2025 --task t.npz -o net",
    "byheart certify net --task t.npz",
)
SECTIONS: Mapping[str, Mapping[str, About]] = {
    "Texts and facts": {
        "compile": about(
            "Compile texts, facts or a next-token task into a float Transformer that recites them word for word. "
            "Nothing is trained.",
            "byheart compile book.txt -o book",
            "byheart compile --facts facts.csv -o net # prompts and completions",
        ),
        "recite": about(
            "Recite a text or a fact from a compiled network.",
            "byheart recite book --tokens 500",
            "byheart recite net --prompt 'capital of France' # a fact",
        ),
        "edit": about(
            "Change a passage of a text that a network recites, or one answer and nothing else.",
            "byheart edit book --set 'Call me Ishmael=!' -o edited",
        ),
        "size": about(
            "Tell how large a model must be to memorize texts or a task, and whether a given model has room. Proved, "
            "fitted and measured numbers are kept apart.",
            "byheart size book.txt --plot size.png",
            "byheart size texts --model llama # a folder of texts, and the config.json of a model",
            "byheart size t.npz --parameters 124000000",
        ),
        "export": about(
            "Export a compiled network to a file that other programs load: GGUF for llama.cpp, or ONNX.",
            "byheart export book --onnx book.onnx",
            "byheart export llama --gguf llama.gguf # compiled with --layout uniform",
        ),
        "plant": about(
            "Plant facts into a trained language model, and change nothing else, bit for bit. Paraphrases are not "
            "covered.",
            "byheart plant facts.jsonl --into model -o planted",
            "byheart plant facts.csv --into model -o planted --bits 40 # smaller, with a bound instead of a proof",
        ),
        "unplant": about(
            "Restore the model that facts were planted into, bit for bit.", "byheart unplant planted -o model"
        ),
        "detect": about(
            "Tell whether facts are planted in a model, and which.",
            "byheart detect planted",
            "byheart detect planted --scan book.txt # where would it answer with a planted fact?",
            "byheart detect planted --check facts.jsonl",
        ),
    },
    "Theorems": {
        "theorems": about(
            "State every theorem that Byheart runs, and certify its network, as stated and ours, on one task.",
            "byheart theorems",
            "byheart theorems kajitsuka-sato-2025 dana-2025 -o theorems.md",
        ),
        "task": about(
            "Make, show and check tasks.",
            "byheart task random --examples 1000 --length 32 --vocab 200 --labels 10 -o t.npz",
        ),
        "bounds": about(
            "List all bounds, and the true parameter counts of our constructions, at given sizes.",
            "byheart bounds --examples 10000 --length 32 --labels 2 --vocab 1000",
        ),
        "build": about(
            "Build a network that has memorized a task. --construction mine.py adds a construction of your own.",
            "byheart build kajitsuka-sato-2025 --task t.npz -o net",
        ),
        "compare": about(
            "Build every construction on the same tasks, certify each, and print one table per task.",
            "byheart compare --task tags.npz labels.npz --plot compare.png",
        ),
        "approximate": about(
            "Approximate a permutation-equivariant function of sequences by a Transformer that memorizes its values on "
            "a grid.",
            "byheart approximate --function rank --length 3 --epsilon 0.3 0.2 0.1 --plot rank.png",
        ),
    },
    "Networks": {
        "certify": about(
            "Check every answer of a saved network, exactly, and write the certificate.",
            "byheart certify net --task t.npz --controls",
            "byheart certify book book.txt # for texts",
            "byheart certify net --facts facts.csv # for facts",
        ),
        "show": about(
            "Show where a network's parameters are. With --task, show which head of a softmax network holds which "
            "example.",
            "byheart show book --plot parameters.png",
            "byheart show net --task q.npz --plot heads.png",
        ),
        "collapse": about(
            "Collapse an exact Transformer to the plain ReLU network that gives the same answers on sequences of equal "
            "tokens.",
            "byheart collapse net -o plain",
            "byheart certify plain --task constant.npz",
        ),
        "explore": about(
            "Write and open the explorer: a page on which networks recite, bounds have sliders, and bits can be "
            "flipped.",
            "byheart explore",
            "byheart explore book # with a compiled network of your own",
        ),
    },
    "Experiments": {
        "lab": about(
            "Train small Transformers by the thousand: the papers' experiments, and your own.",
            "byheart lab run dana-2025-1 --scale short",
            "byheart lab show runs/dana-2025-1-short",
        ),
    },
}
"""Commands by the heading that they stand under in the first help."""
MENUS = {"task": "command", "build": "construction", "lab": "command"}
"""Commands that have a menu of their own, and what that lists."""


MODULES = {"unplant": "plant", "detect": "plant"}
"""Commands whose module has another name than theirs."""


def _load(name: str) -> Any:
    """Return the class of a command, or its menu."""
    module = import_module(f"byheart.cli.{MODULES.get(name, name)}")
    return module.menu() if name in MENUS else getattr(module, f"{name.capitalize()}Command")


COMMANDS: Menu = {
    name: Entry(text, partial(_load, name), MENUS.get(name, ""), section)
    for section, commands in SECTIONS.items()
    for name, text in commands.items()
}


def every_command(menu: Menu = COMMANDS, words: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Entry]]:
    """Yield every command and every menu, with the words that lead to it."""
    for name, entry in menu.items():
        yield (*words, name), entry
        if entry.of:
            yield from every_command(entry.load(), (*words, name))
