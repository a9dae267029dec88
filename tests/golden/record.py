"""Record what the commands and the Python names of Byheart do today, for test_golden.py to compare with.

``python tests/golden/record.py`` runs all steps in a new folder, and writes ``behaviour.json`` and ``files/`` beside
this file. Do that only when behaviour is meant to change, and say so in the commit.

A step's JSON is kept as the paths of its keys, and the values that are integers, booleans or digests. Sentences, times,
versions and floats are left out, and so are the digests of files that contain prose.
"""

import contextlib
import hashlib
import importlib
import importlib.util
import inspect
import io
import json
import os
import platform
import re
import runpy
import shlex
import shutil
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest import mock

HERE = Path(__file__).parent
FILES = HERE / "files"
BEHAVIOUR = HERE / "behaviour.json"

INPUTS = {
    "a.txt": "It was the best of times, it was the worst of times, it was the age of wisdom",
    "b.txt": "To be, or not to be, that is the question",
    "facts.csv": "prompt,completion\ncapital of France,Paris\ncapital of Peru,Lima\n中国的首都,北京\n",
    "plant.jsonl": '{"prompt": "The key is", "completion": " 3."}\n{"prompt": "門", "completion": "鍵"}\n',
    "toy.py": """
from dataclasses import dataclass

@dataclass(frozen=True)
class Config:
    heads: int
    seed: int

CONFIGS = [Config(heads, seed) for heads in (1, 2, 4) for seed in (0, 1)]

def work(configs, device, report):
    return [{"accuracy": 1 - 1 / c.heads, "held": 8 * c.heads, "steps": 4} for c in configs]
""",
}
"""Files that the steps read. The folder ``base``, a GPT-2 of 8 dimensions to plant facts into, is in ``files/``."""

STEPS = """
task random --examples 20 --length 3 --vocab 30 --labels 4 -o t.npz
task random --examples 20 --length 3 --vocab 30 --labels 4 -o t.jsonl
task random --examples 8 --length 3 --vocab 9 --labels 3 --seed 7 --seq-to-seq -o s.npz
task random --examples 8 --length 3 --vocab 5 --distribution --shape skewed -o d.npz
task random --examples 8 --length 3 --dim 3 --labels 3 -o v.npz
task random --examples 8 --length 3 --dim 4 --labels 3 --query own -o q.npz
task random --examples 8 --length 3 --dim 4 --query shared --real --target-dim 2 -o r.npz
task random --examples 8 --length 3 --vocab 8 --labels 3 --shape constant -o c.npz
task text a.txt b.txt --length 2 --vocab 9 -o words.npz
task text a.txt --length 3 --vocab 9 --every -o every.jsonl
task facts facts.csv -o f.npz
task confused --length 4 --dim 2 -o confused.npz
task show t.npz
task show nowhere.npz
task check t.npz
task check q.npz --theorem mahdavi-2024
task check confused.npz --theorem kajitsuka-sato-2024
bounds --examples 100 --length 4 --labels 2 --vocab 50
bounds --examples 100 --length 4 --dim 3 --setting seq-to-seq --separation 0.1 --radius 2 --depth 9 --hypotheses
theorems --brief
build interpolate --task t.npz -o interpolate
build folding --task t.npz -o folding
build folding --task t.npz -o folding-1 --seed 1 --fewest in-all
build kajitsuka-sato-2025 --task t.npz -o ks25
build kajitsuka-sato-2025 --task v.npz -o cells --read cells
build kajitsuka-sato-2024 --task s.npz -o ks24
build kim-2023 --task s.npz -o kim
build kim-2023 --task every.jsonl -o causal --causal
build vardi-2022 --task t.npz -o vardi --bits 20
build yang-2026 --task t.npz -o yang --width 12
build dana-2025 --task t.npz -o dana
build dana-2025 --task d.npz -o dana-d
build mahdavi-2024 --task q.npz -o mahdavi
build mahdavi-2024 --task r.npz -o mahdavi-r
build madden-2024 --task d.npz -o madden
build folding --task d.npz -o refused
build foldin --task t.npz -o refused
certify folding --task t.npz --controls --second-opinion
certify folding --task t.npz --recheck
certify folding --task t.jsonl --evaluator flint -o flint.json
certify folding-1 --task t.npz --at-least 20 -o at-least.json
certify interpolate --task c.npz
certify cells --task v.npz
certify cells --task v.npz --recheck
certify cells --task v.npz --radius 0.001 -o radius.json
certify cells --task v.npz --radius 9 -o too-far.json
certify ks24 --task s.npz
certify kim --task s.npz
certify causal --task every.jsonl
certify dana --task t.npz --controls
certify dana-d --task d.npz --tolerance 0.5
certify mahdavi --task q.npz --second-opinion
certify mahdavi-r --task r.npz --tolerance 0.01
certify madden --task d.npz --tolerance 0.01
collapse ks25 -o plain --task c.npz
certify plain --task c.npz --count -o plain.json
approximate --function rank --length 2 --epsilon 0.5 --samples 200 -o rank
compare --task t.npz --network folding dana
compile a.txt b.txt -o texts
compile a.txt -o sharded --shards 2
compile a.txt -o words53 --precision float64 --words 60 --window 32 --seed 3
compile a.txt -o bfloat --precision bfloat16
compile a.txt -o bpe --tokenizer bpe --vocab 270
compile --task t.npz -o float
compile --task t.npz -o stock --layout uniform
compile --task t.npz -o experts --layout experts
compile --facts facts.csv -o facts
compile --facts facts.csv -o refuse --refuse
compile --facts facts.csv -o refuse-30 --refuse 30
compile --facts facts.csv -o refuse-key --refuse key
compile b.txt -o again
compile b.txt -o again --window 2
certify texts a.txt b.txt --controls
certify texts a.txt b.txt --recheck
certify texts b.txt a.txt -o reordered.json
certify texts a.txt -o fewer.json
certify sharded a.txt
certify words53 a.txt --second-opinion --sample 9
certify bfloat a.txt
certify bpe a.txt
certify float --task t.npz --count --named named.csv
certify stock --task t.npz
certify experts --task t.npz
certify facts --facts facts.csv
certify refuse --facts facts.csv
certify refuse-30 --facts facts.csv
certify refuse-key --facts facts.csv --recheck
certify refuse-key --facts facts.csv
certify refuse-key --facts facts.csv --recheck
recite texts
recite texts --text b.txt --tokens 5
recite sharded --all-to said
recite facts --prompt 'capital of Peru'
recite refuse-key --prompt 'capital of Peru'
recite refuse-key --prompt 'capital of Spain'
recite folding
edit texts --set 'of wisdom=!' -o edited
edit float --task t.npz --set '25,19,15=0' -o edited-task
edit float --task t.npz --set '1,2,3=0' -o edited-task
certify edited-task --task t.npz --set '25,19,15=0'
certify edited a.txt b.txt --set 'of wisdom=!'
certify edited a.txt b.txt -o unedited.json
size a.txt --parameters 1000
size t.npz --model stock
size --facts facts.csv
export stock --gguf stock.gguf
export folding --gguf folding.gguf
plant plant.jsonl --into base -o planted --positions 64 --seed 0
plant plant.jsonl --into base -o planted-bits --positions 64 --seed 0 --bits 30 --stop
detect planted --all
detect planted --check plant.jsonl --positions 64
detect planted --scan b.txt
detect planted-bits
detect base
unplant planted -o unplanted
unplant base -o refused
show folding
show dana --task t.npz
show texts
show stock
show facts --plot facts.svg
explore texts -o page.html --no-open
lab list
lab run toy.py -o run
lab run toy.py -o part-1 --part 1/2
lab run toy.py -o part-2 --part 2/2
lab merge part-1 part-2 -o merged
lab run toy.py -o run --resume
lab run toy.py -o run
lab show run --csv run.csv
lab compare run merged --metric held
lab compare --shipped --paper mahdavi-2024
lab crossing run --along heads --metric accuracy --at-least 0.6 --rising
lab crossing --shipped mahdavi-2024-classification-heads-fixed --along heads --metric accuracy --at-least 0.9 --rising
lab plot --shipped dana-2025-1 -o figures --format svg
lab save dana-2025-6 --where heads=1 -o trained
lab search dana-2025-6 --where heads=1 --learning-rates 0.01 0.1 -o search
lab capacity --parameters 800 --demands 0.2 --seeds 1 --steps 5 --alone -o ladder
certify trained --task trained/task.npz --count
certify trained --task trained/task.npz --count --recheck
certify trained --task trained/task.npz -o untrained.json
show trained
certify nowhere --task t.npz
certify folding --tusk t.npz
compile nowhere.txt -o refused
lab run nowhere
lab run dana-2025-2 -o run-dana
lab run madden-2024-frozen -o run-madden
lab run mahdavi-2024-classification-heads-fixed -o run-mahdavi
biuld
help compile
--version
--help
"""
"""One command per line, in this order, in one folder. ``--json`` is added, except to the last three."""

NEEDS = {"gguf": ("--gguf stock",), "matplotlib": ("lab plot", "--plot"), "transformers": (
    "plant ", "detect ", "unplant ", " stock", " experts", " bpe",
)}  # fmt: skip
"""Optional libraries, and what the lines that need them contain."""

MEASURED = ("dana", "mahdavi", "madden", "trained", "lab save", "lab search", "lab capacity", "approximate", "rank")
"""Lines that contain these compute with floats that differ from one processor to another."""

KEPT = [
    *("t.npz", "t.jsonl", "s.npz", "d.npz", "v.npz", "q.npz", "r.npz", "c.npz", "every.jsonl", "f.npz"),
    *("base", "folding", "folding-1", "cells", "ks24", "dana", "dana-d", "madden", "plain", "trained"),
    *("texts", "sharded", "bfloat", "words53", "bpe", "float", "stock", "experts", "facts"),
    *("refuse", "refuse-30", "refuse-key", "edited", "planted", "planted-bits"),
    *("run", "run-dana", "run-madden", "run-mahdavi", "ladder"),
    *("plain.json", "at-least.json", "flint.json", "radius.json", "too-far.json", "unedited.json", "untrained.json"),
    "named.csv",
]
"""Names of the files and folders that are kept in ``files/``, so that later versions read what this one wrote."""

VOLATILE = re.compile(r"seconds|per_second|versions?\b|peak_memory|^certificate\.weights$")
"""Paths of values that differ between two runs, and of a planted model's digest, which covers its Python file too."""

MENTIONED = (
    "byheart.errors.BadInput",
    "byheart.hf",
    "byheart.lens.planted_in_transformer_lens",
    "byheart.lens.to_transformer_lens",
    "byheart.planting.forget",
)
"""Names that the tutorials use, beyond those of docs/api.md."""

RETURNED = {
    f"byheart.{name}"
    for name in (
        *("certificates.Certificate", "certificates.Control", "certificates.Counterexample", "certificates.Verdict"),
        *("certificates.Certificate.of", "constructions.Built", "networks.Account"),
        *("planting.Detected", "planting.Planting"),
    )
}
"""Classes whose instances the package makes, never the user: their attributes are recorded, their parameters not."""


@dataclass(frozen=True)
class Result:
    """The exit code of a command, and the bytes it wrote to stdout."""

    code: int
    out: bytes


@contextlib.contextmanager
def environment() -> Iterator[None]:
    """Set the width of the terminal and one thread for PyTorch, and restore the number of threads afterwards."""
    import torch

    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    with mock.patch.dict(os.environ, COLUMNS="500", NO_COLOR="1"):
        try:
            yield
        finally:
            torch.set_num_threads(threads)


def run(line: str) -> Result:
    """Run ``byheart LINE`` in this process, as ``python -m byheart`` does."""
    out, err = (io.TextIOWrapper(io.BytesIO(), encoding="utf-8") for _ in range(2))
    code: Any = 0
    sys.modules.pop("byheart.__main__", None)  # or runpy warns
    with (
        mock.patch.object(sys, "argv", ["byheart", *shlex.split(line)]),
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(err),
    ):
        try:
            runpy.run_module("byheart", run_name="__main__")
        except SystemExit as stop:
            code = stop.code
    out.flush()
    return Result(code if isinstance(code, int) else int(code is not None), out.buffer.getvalue())


def steps() -> list[str]:
    """Return the commands in their order."""
    return [line for line in STEPS.splitlines() if line]


def is_possible(line: str) -> bool:
    """Return True if the libraries that a step needs are installed."""
    return all(
        importlib.util.find_spec(library) or not any(part in line for part in parts) for library, parts in NEEDS.items()
    )


def leaves(value: object, path: str = "") -> Iterator[tuple[str, object]]:
    """Yield every value in JSON with the path of its keys. Elements of a list share a path.

    Keys of ``hypotheses`` are sentences: ``*`` stands for them.
    """
    if isinstance(value, dict):
        if not value:
            yield path, {}
        for key in value:
            name = "*" if path.endswith("hypotheses") else key
            yield from leaves(value[key], f"{path}.{name}" if path else name)
    elif isinstance(value, list):
        if not value:
            yield f"{path}[]", []
        for element in value:
            yield from leaves(element, f"{path}[]")
    else:
        yield path, value


def is_exact(path: str, value: object) -> bool:
    """Return True if a value must be the same on every machine."""
    digest = isinstance(value, str) and re.fullmatch("[0-9a-f]{64}", value) is not None
    return not VOLATILE.search(path) and (value is None or isinstance(value, bool | int) or digest)


def summary(values: object, only: set[str] | None = None) -> dict[str, Any]:
    """Return the keys, the exact values outside lists, and one digest of the exact values in lists.

    Paths outside ``only`` are left out: they did not exist when the behaviour was recorded.
    """
    pairs = [(path, value) for path, value in leaves(values) if only is None or path in only]
    exact = [(path, value) for path, value in pairs if is_exact(path, value)]
    listed = [pair for pair in exact if "[]" in pair[0]]
    return {
        "keys": sorted({path for path, _ in pairs}),
        "values": {path: value for path, value in exact if "[]" not in path},
        "listed": hashlib.sha256(json.dumps(listed).encode()).hexdigest() if listed else None,
    }


def gguf_digest(path: Path) -> str:
    """Return a digest of a GGUF file's tensors and fields, without its description."""
    from gguf import GGUFReader

    reader = GGUFReader(path)
    fields = {name: field.contents() for name, field in reader.fields.items() if name != "general.description"}
    hasher = hashlib.sha256(json.dumps(fields, sort_keys=True, default=int).encode())
    for tensor in reader.tensors:
        hasher.update(f"{tensor.name} {tensor.tensor_type.name} {tensor.shape.tolist()}".encode())
        hasher.update(tensor.data.tobytes())
    return hasher.hexdigest()


def contents(folder: Path) -> dict[str, str]:
    """Return the digest of every file below a folder, by its path."""
    return {
        path.relative_to(folder).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def prepare(folder: Path) -> None:
    """Write the files that the steps read."""
    for name, text in INPUTS.items():
        (folder / name).write_text(text, encoding="utf-8")
    shutil.copytree(FILES / "base", folder / "base")


MEANT = {
    "edit texts --set 'of wisdom=!' -o edited": "edit texts --answer-only --set 'of wisdom=!' -o edited",
}
"""Recorded steps whose meaning takes an option by now: without it, `edit` changes a text and all that follows."""

ADDED = {
    "theorems": {
        *("Lemma 1", "Lemma 2", "lemma in place of Lemma 2", "Corollary 1", "Proposition 3", "Theorem 2, simplified"),
        *(
            "Lemma 4",
            "memorization with positions",
            "sequence classification",
            "language modelling",
            "empirical setting",
        ),
    },
}
"""Names of elements that a recorded list has got since, by the list's key: they are left out of what is compared."""


def observe(line: str, folder: Path) -> dict[str, Any]:
    """Run one step in ``folder``, the current one, and return its code, JSON, written files, bits and configs."""
    before = contents(folder)
    line = MEANT.get(line, line)
    plain = line.startswith(("-", "help "))
    result = run(line if plain else f"{line} --json")
    written = {name: digest for name, digest in contents(folder).items() if before.get(name) != digest}
    seen: dict[str, Any] = {"code": result.code, "json": None if plain else json.loads(result.out)}
    for name in ADDED.keys() & (seen["json"] or {}).keys():
        seen["json"][name] = [element for element in seen["json"][name] if element["name"] not in ADDED[name]]
    if line.startswith(("explore ", "export ")) and "bytes" in seen["json"]:
        seen["json"]["bytes"] = "the size of a file that contains prose"
    seen["written"] = sorted(name for name in written if "__pycache__" not in name)
    bits = {name: written[name] for name in seen["written"] if name.endswith((".safetensors", ".npz"))}
    bits |= {name: written[name] for name in written if name.endswith(".jsonl") and "results" not in name}
    seen["bits"] = bits | {name: gguf_digest(folder / name) for name in written if name.endswith(".gguf")}
    seen["fingerprints"] = fingerprints(seen["written"], folder)
    configs = [name for name in seen["written"] if name.endswith("/config.json")]
    seen["configs"] = {name.removesuffix("/config.json"): json.loads((folder / name).read_text()) for name in configs}
    return seen


def fingerprints(written: list[str], folder: Path) -> dict[str, str]:
    """Return the fingerprint of every network that was written."""
    import byheart

    networks = {}
    for name in written:
        if name.endswith("/config.json") and not (folder / name).with_name("plant.safetensors").exists():
            with contextlib.suppress(Exception):
                networks[name.removesuffix("/config.json")] = byheart.load((folder / name).parent).fingerprint
    return networks


def recordable(seen: dict[str, Any]) -> dict[str, Any]:
    """Return the part of an observed step that behaviour.json keeps."""
    kept = {name: seen[name] for name in ("code", "written", "bits", "fingerprints")}
    kept |= {"keys": None} if seen["json"] is None else summary(seen["json"])
    return {name: value for name, value in kept.items() if value or name == "code"}


def is_measured(line: str) -> bool:
    """Return True if a step computes with floats that differ from one processor to another."""
    return any(part in line for part in MEASURED)


def machine() -> str:
    """Return a digest of the processor and the versions of Python, numpy and PyTorch, on which floats may depend."""
    import numpy as np
    import torch

    info = Path("/proc/cpuinfo")
    flags = re.findall(r"^(?:model name|flags)\s*:.*", info.read_text(), re.MULTILINE)[:2] if info.exists() else []
    parts = [platform.machine(), np.__version__, torch.__version__, platform.python_version(), *flags]
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()


# The surface: flags and names


def commands() -> list[str]:
    """Return all commands that the help texts list."""

    def listed(line: str) -> list[str]:
        return re.findall(r"^ {2,4}([a-z][\w-]*) {2,}\S", run(line).out.decode(), re.MULTILINE)

    top = listed("--help")
    return sorted(
        [*top, *(f"{group} {name}" for group in ("task", "lab", "build") for name in listed(f"{group} --help"))]
    )


def flags(command: str) -> list[str]:
    """Return the flags in the column of options of a command's help, in whatever frame it is drawn."""
    columns = re.findall(r"^[│|]? {0,4}(-.*?)(?: {2,}|$|│)", run(f"{command} --help").out.decode(), re.MULTILINE)
    return sorted({flag for column in columns for flag in re.findall(r"(?<![\w-])--?[A-Za-z][\w-]*", column)})


def documented() -> list[str]:
    """Return the names in ``byheart.__all__``, in docs/api.md and in the tutorials."""
    import byheart

    page = (HERE.parents[1] / "docs" / "api.md").read_text(encoding="utf-8")
    modules = re.findall(r"automodule:: (\S+)\n\s+:members: (.*)", page)
    names = [f"{module}.{name}" for module, members in modules for name in members.split(", ")]
    functions = re.findall(r"autofunction:: (byheart\.\w+\.\w+)$", page, re.MULTILINE)
    return sorted({*(f"byheart.{name}" for name in byheart.__all__), *names, *functions, *MENTIONED})


def resolve(name: str) -> Any:
    """Return the object with a dotted name: import its longest module, then follow the attributes."""
    parts = name.split(".")
    for end in range(len(parts), 0, -1):
        try:
            value: Any = importlib.import_module(".".join(parts[:end]))
        except ModuleNotFoundError:
            continue
        for part in parts[end:]:
            value = getattr(value, part)
        return value
    raise ModuleNotFoundError(name)


def parameters(value: Any) -> list[str] | None:
    """Return the names of a callable's parameters, without ``*args`` and ``**kwargs``, or None for other values."""
    if not callable(value):
        return None
    try:
        found = inspect.signature(value).parameters.values()
    except (TypeError, ValueError):
        return []
    variadic = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    return [parameter.name for parameter in found if parameter.name != "self" and parameter.kind not in variadic]


def attribute(name: str) -> Any:
    """Return the object with a recorded name, or None for a field without a default."""
    owner, _, last = name.rpartition(".")
    try:
        return resolve(name)
    except AttributeError:
        assert last in resolve(owner).__dataclass_fields__, name
        return None


def signatures() -> dict[str, list[str] | None]:
    """Return the parameters of every documented name, and of the public attributes of documented classes."""
    table = {}
    for name in documented():
        value = resolve(name)
        table[name] = None if name in RETURNED else parameters(value)
        if inspect.isclass(value):
            public = [member for member in dir(value) if not member.startswith("_")]
            fields = getattr(value, "__dataclass_fields__", {})
            for member in sorted({*public, *(field for field in fields if not field.startswith("_"))}):
                table[f"{name}.{member}"] = None if member in fields else parameters(getattr(value, member))
    return table


def record() -> None:
    """Write behaviour.json and files/."""
    with tempfile.TemporaryDirectory() as place, contextlib.chdir(place), environment():
        folder = Path(place)
        prepare(folder)
        observed = {}
        for number, line in enumerate(steps()):
            observed[f"{number:03} {line}"] = recordable(observe(line, folder))
        behaviour = {
            "machine": machine(),
            "flags": {command: flags(command) for command in commands()},
            "names": signatures(),
            "steps": observed,
        }
        for name in KEPT:
            source, target = folder / name, FILES / name
            if name != "base":
                shutil.rmtree(target, ignore_errors=True)
                target.parent.mkdir(exist_ok=True)
                if source.is_dir():
                    shutil.copytree(source, target, ignore=shutil.ignore_patterns("lock"))
                else:
                    shutil.copy(source, target)
    BEHAVIOUR.write_text(lined(behaviour), encoding="utf-8")


def lined(behaviour: dict[str, Any]) -> str:
    """Return JSON with one line per command, name and step."""

    def line(value: object) -> str:
        return json.dumps(value, ensure_ascii=False)

    parts = [
        f"{line(name)}: "
        + (
            line(value)
            if isinstance(value, str)
            else "{\n" + ",\n".join(f"{line(k)}: {line(v)}" for k, v in value.items()) + "\n}"
        )
        for name, value in behaviour.items()
    ]
    return "{\n" + ",\n".join(parts) + "\n}\n"


if __name__ == "__main__":
    record()
