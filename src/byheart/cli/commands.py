"""Every command: what it is for, an example, and where it is. The order is that of the first help."""

from collections.abc import Iterator
from importlib import import_module
from typing import Any

from byheart.cli.menu import About, Entry, Menu, about

TEXTS = "Texts and facts"
THEOREMS = "Theorems"
NETWORKS = "Networks"
EXPERIMENTS = "Experiments"

BYHEART = about(
    "Byheart: a dataset in, a Transformer that has memorized it out, with an honest parameter count beside every known "
    "bound, and a certificate that anyone can re-check.",
    "byheart compile book.txt -o book # a text into a network that recites it",
    "byheart recite book",
    "byheart task random --examples 100 -o t.npz # a theorem, run on a task and checked",
    "byheart build kajitsuka-sato-2025 --task t.npz -o net",
    "byheart certify net --task t.npz",
)


def _entry(section: str, place: str, said: About, of: str = "") -> Entry:
    """A command in a module of this package; a module's ``menu`` is a function, all else is a class."""
    module, _, name = place.partition(":")

    def load() -> Any:
        found = getattr(import_module(f"byheart.cli.{module}"), name)
        return found() if of else found

    return Entry(said, load, of, section)


COMMANDS: Menu = {
    "compile": _entry(
        TEXTS,
        "compile:CompileCommand",
        about(
            "Compile texts, facts or a next-token task into a float Transformer that says them word for word. No "
            "training.",
            "byheart compile book.txt -o book",
            "byheart compile --facts facts.csv -o net # prompts and completions",
        ),
    ),
    "recite": _entry(
        TEXTS,
        "recite:ReciteCommand",
        about(
            "Recite from a compiled network.",
            "byheart recite book --tokens 500",
            "byheart recite net --prompt 'capital of France' # a fact",
        ),
    ),
    "edit": _entry(
        TEXTS,
        "edit:EditCommand",
        about(
            "Change what a compiled network answers to one context, and nothing else.",
            "byheart edit book --set 'Call me Ishmael=!' -o edited",
        ),
    ),
    "size": _entry(
        TEXTS,
        "size:SizeCommand",
        about(
            "How large a model must be to memorize texts or a task, and whether a model at hand has room: proved, "
            "fitted and measured, each apart.",
            "byheart size book.txt --plot size.png",
            "byheart size texts --model llama # a folder of texts, and the config.json of a model",
            "byheart size t.npz --parameters 124000000",
        ),
    ),
    "export": _entry(
        TEXTS,
        "export:ExportCommand",
        about(
            "Export a compiled network to a file that other programs load: GGUF for llama.cpp, or ONNX.",
            "byheart export book --onnx book.onnx",
            "byheart export llama --gguf llama.gguf # compiled with --layout uniform",
        ),
    ),
    "plant": _entry(
        TEXTS,
        "plant:PlantCommand",
        about(
            "Plant facts into a trained language model, which is otherwise what it was, bit for bit. Paraphrases are "
            "not covered.",
            "byheart plant facts.jsonl --into model -o planted",
            "byheart plant facts.csv --into model -o planted --bits 40 # smaller, with a bound instead of a proof",
        ),
    ),
    "unplant": _entry(
        TEXTS,
        "unplant:UnplantCommand",
        about("Give back the model that facts were planted into, bit for bit.", "byheart unplant planted -o model"),
    ),
    "detect": _entry(
        TEXTS,
        "detect:DetectCommand",
        about(
            "Say whether and what a model has planted in it.",
            "byheart detect planted",
            "byheart detect planted --scan book.txt # where would it speak?",
            "byheart detect planted --check facts.jsonl",
        ),
    ),
    "theorems": _entry(
        THEOREMS,
        "theorems:TheoremsCommand",
        about(
            "Every theorem that Byheart runs: what it says, and its network as stated beside ours, certified on one "
            "task.",
            "byheart theorems",
            "byheart theorems kajitsuka-sato-2025 dana-2025 -o theorems.md",
        ),
    ),
    "task": _entry(
        THEOREMS,
        "task:menu",
        about(
            "Make, show and check tasks.",
            "byheart task random --examples 1000 --length 32 --vocab 200 --labels 10 -o t.npz",
        ),
        "command",
    ),
    "bounds": _entry(
        THEOREMS,
        "bounds:BoundsCommand",
        about(
            "All bounds and the true counts of our constructions at given sizes.",
            "byheart bounds --examples 10000 --length 32 --labels 2 --vocab 1000",
        ),
    ),
    "build": _entry(
        THEOREMS,
        "build:menu",
        about(
            "Build a network that has memorized a task. --construction mine.py adds a construction of your own.",
            "byheart build kajitsuka-sato-2025 --task t.npz -o net",
        ),
        "construction",
    ),
    "compare": _entry(
        THEOREMS,
        "compare:CompareCommand",
        about(
            "Build every construction on the same tasks, certify each, and print one table per task.",
            "byheart compare --task tags.npz labels.npz --plot compare.png",
        ),
    ),
    "approximate": _entry(
        THEOREMS,
        "approximate:ApproximateCommand",
        about(
            "Approximate a permutation-equivariant function of sequences by a Transformer: quantise, memorize the "
            "grid.",
            "byheart approximate --function rank --length 3 --epsilon 0.3 0.2 0.1 --plot rank.png",
        ),
    ),
    "certify": _entry(
        NETWORKS,
        "certify:CertifyCommand",
        about(
            "Check every answer of a saved network, exactly, and write the certificate.",
            "byheart certify net --task t.npz --controls",
            "byheart certify book book.txt # for texts",
            "byheart certify net --facts facts.csv # for facts",
        ),
    ),
    "show": _entry(
        NETWORKS,
        "show:ShowCommand",
        about(
            "Show where a network's parameters are; with --task, which head of a softmax network holds which example.",
            "byheart show book --plot parameters.png",
            "byheart show net --task q.npz --plot heads.png",
        ),
    ),
    "collapse": _entry(
        NETWORKS,
        "collapse:CollapseCommand",
        about(
            "Collapse an exact Transformer to the plain ReLU network that answers as it does on sequences of equal "
            "tokens.",
            "byheart collapse net -o plain",
            "byheart certify plain --task constant.npz",
        ),
    ),
    "explore": _entry(
        NETWORKS,
        "explore:ExploreCommand",
        about(
            "Write and open the explorer: a page on which networks recite, bounds have sliders, and bits can be "
            "flipped.",
            "byheart explore",
            "byheart explore book # with a compiled network of your own",
        ),
    ),
    "lab": _entry(
        EXPERIMENTS,
        "lab:menu",
        about(
            "Train small Transformers by the thousand: the papers' experiments, and your own.",
            "byheart lab run dana-2025-1 --scale short",
            "byheart lab show runs/dana-2025-1-short",
        ),
        "command",
    ),
}


def every_command(menu: Menu = COMMANDS, words: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Entry]]:
    """Every command and every menu, with the words that lead to it."""
    for name, entry in menu.items():
        yield (*words, name), entry
        if entry.of:
            yield from every_command(entry.load(), (*words, name))
