"""What is mutated: a folder with a network and its questions, a task, texts, runs; and the commands that read it."""

import csv
import io
import json
import tempfile
from contextlib import chdir, redirect_stdout, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from shutil import copytree
from typing import Any
from unittest.mock import patch

import numpy as np
from safetensors.numpy import save_file
from tests.networks.trained.small import drawn

import byheart
from byheart import tasks
from byheart.certificates import write
from byheart.cli.main import main
from byheart.compiler import CompilerSettings
from byheart.compiler.layouts import NAME, Resources
from byheart.compiler.rectangular.attempt import attempt
from byheart.compiler.rectangular.recipe import first_recipe
from byheart.compiler.rectangular.shelf import Shelf
from byheart.constructions import Built, known
from byheart.errors import BadInput
from byheart.networks import load, save, weight_files
from byheart.networks.folders import TOKENIZER
from byheart.networks.softmax import softmax
from byheart.networks.trained import Inputs
from byheart.networks.trained.evaluate import evaluate
from byheart.networks.trained.gpt2 import shapes as gpt2_shapes
from byheart.tasks.tokenizers import BytePairs, Bytes, from_files
from byheart.tasks.windows import task_contexts

TESTS = Path(__file__).parents[1]
FIXTURES = TESTS / "fixtures" / "0.1.0"
QUESTIONS = {
    **dict.fromkeys(("causal",), ("causal.jsonl",)),
    **dict.fromkeys(("dana-2025", "facts", "folding", "llama-facts"), ("next.jsonl",)),
    **dict.fromkeys(("kajitsuka-sato-2024", "kim-2023"), ("seq.jsonl",)),
    **dict.fromkeys(("edited", "pairs", "short"), ("a.txt",)),
    "kajitsuka-sato-2025": ("vectors.npz",),
    "llama": ("c.txt",),
    "madden-2024": ("dist.npz",),
    "mahdavi-2024": ("labels.npz",),
    "targets": ("targets.npz",),
    "texts": ("a.txt", "b.txt"),
    "trained": ("trained.npz",),
}

Command = tuple[str, ...]


@dataclass(frozen=True)
class Answer:
    """A prompt and the text that begins with it; or a sequence of token ids, and the token that follows."""

    prompt: str | tuple[int, ...]
    whole: str | int
    ends: bool = True
    """Whether generating stops there."""


@dataclass(frozen=True)
class Seed:
    """Files by their names, and commands that are given them; a network is in ``net``."""

    name: str
    files: dict[str, bytes]
    commands: tuple[Command, ...]
    answers: tuple[Answer, ...] = ()
    """What the user's own files say, for transformers to say the same if the network is certified."""

    @property
    def weights(self) -> bool:
        """Whether there is a network in it."""
        return "net/model.safetensors" in self.files

    @property
    def affirming(self) -> list[Command]:
        """Commands that affirm all answers, if they succeed."""
        certify = [one for one in self.commands if one[0] == "certify" and not {"--count", "--controls"} & {*one}]
        return certify + [one for one in self.commands if "--check" in one]


def seeds() -> list[Seed]:
    """All of them, in one order: the fixtures, what today's constructions build, tasks, texts and runs."""
    found = [_network(name, FIXTURES / name, [FIXTURES / file for file in files]) for name, files in QUESTIONS.items()]
    with tempfile.TemporaryDirectory() as folder:
        found += _built(Path(folder)) + _compiled(Path(folder)) + _trained(Path(folder))
        found += [_facts(Path(folder)), _planted(Path(folder))]
        found += [_in_lots(Path(folder)), _resumed(Path(folder)), *_trained_in_part(Path(folder))]
    found += [_task(path) for path in sorted(FIXTURES.iterdir()) if path.suffix in (".npz", ".jsonl")]
    return [*found, _texts(), _run("dana"), _run("capacity")]


def _network(name: str, folder: Path, questions: list[Path]) -> Seed:
    asked = (["--task"] if questions[0].suffix in (".npz", ".jsonl") else []) + [path.name for path in questions]
    task, certify = asked[0] == "--task", ("certify", "net", *asked)
    commands: list[Command] = [certify, (*certify, "--json"), (*certify, "--recheck"), (*certify, "-o", "own.json")]
    commands += [(*certify, "--count", "-o", "own.json"), (*certify, "--count", "--recheck")]
    commands += [(*certify, "--controls", "--json"), ("show", "net"), ("show", "net", "--json")]
    if (folder / "tokenizer.json").exists():
        commands += [("recite", "net", "--tokens", "30"), ("recite", "net", "--all-to", "own")]
        commands += [("recite", "net", "--prompt", "b", "--tokens", "9", "-o", "own.txt")]
        piece = questions[0].read_text()[:5] + "=x"
        commands += [
            ("edit", "net", "--set", piece, "--answer-only", "-o", "net"),
            ("edit", "net", "--set", piece, "-f", *asked, "-o", "own"),
        ]
    if b"byheart-exact" in (folder / "config.json").read_bytes():
        commands += [(*certify, "--evaluator", "flint"), ("collapse", "net", "-o", "own")]
    commands += [("build", "interpolate", "--task", asked[1], "-o", "net")] if task else []
    files = {path.name: path.read_bytes() for path in questions}
    files |= {f"net/{path.name}": path.read_bytes() for path in folder.iterdir()}
    return Seed(name, files, tuple(commands), _answers(folder, questions))


def _answers(folder: Path, questions: list[Path]) -> tuple[Answer, ...]:
    """What a network that transformers can load is to say: texts from their prompts on, completions, labels."""
    network: Any = load(folder)
    if "format" in json.loads((folder / "config.json").read_bytes()):
        return ()
    if questions[0].suffix == ".csv":
        return tuple(Answer(prompt, prompt + rest) for prompt, rest in _pairs(questions[0]))
    if questions[0].suffix in (".npz", ".jsonl"):
        task = tasks.load(questions[0])
        rows = zip(task.inputs.tolist(), task.labels.tolist(), strict=True)
        return tuple(Answer(tuple(row), label) for row, label in rows) if isinstance(task, tasks.NextToken) else ()
    tokenizer: Any = from_files(network.files)
    prompts = [tokenizer.decode(text["prompt"]).decode() for text in network.about["texts"]]
    return tuple(Answer(prompt, path.read_text()) for prompt, path in zip(prompts, questions, strict=True))


def _pairs(path: Path) -> list[tuple[str, str]]:
    with path.open(encoding="utf-8", newline="") as file:
        return [(row["prompt"], row["completion"]) for row in csv.DictReader(file)]


def _built(folder: Path) -> list[Seed]:
    """The network of every construction for the first of some tasks that it takes, and other forms of two."""
    rng, found = np.random.default_rng(0), []
    sizes = {"examples": 6, "length": 3, "vocab": 9, "rng": rng}
    given = {
        "next": tasks.random_next_token(labels=3, **sizes),
        "seq": tasks.random_seq_to_seq(labels=3, **sizes),
        "points": tasks.random_next_token(examples=6, length=1, vocab=9, labels=3, rng=rng),
        "dist": tasks.random_distribution(**sizes),
        "query": tasks.load(FIXTURES / "targets.npz"),
    }
    forms = [(name, name, {}) for name in known()]
    forms += [("deep sets", "kajitsuka-sato-2025", {"mixing": "sum"})]
    for form, name, settings in forms:
        for kind, task in given.items():
            try:
                built = byheart.build(name, task, **settings)
            except BadInput:
                continue
            _save(built, folder / form)
            tasks.save(task, folder / f"{kind}.npz")
            found.append(_network(f"built {form}", folder / form, [folder / f"{kind}.npz"]))
            break
    vectors = tasks.random_queries(examples=4, length=3, dim=4, labels=None, target_dim=2, rng=rng)
    tasks.save(vectors, folder / "vectors.npz")
    _save(byheart.build("mahdavi-2024", vectors), folder / "vectors")
    return [*found, _network("built vectors", folder / "vectors", [folder / "vectors.npz"])]


def _save(built: Built, folder: Path, **options: Any) -> None:
    built.save(folder)
    write(byheart.certify(folder, built.questions, **options), folder / "certificate.json")


def _compiled(folder: Path) -> list[Seed]:
    """A text in every format of the weights, with weights in several files, and as a stock model of experts."""
    layouts = [("float64", None), ("float64", 60), ("bfloat16", None), ("bfloat16", 15), ("float32", 31)]
    found, text = [], FIXTURES / "c.txt"
    for precision, words in layouts:
        place = folder / f"{precision}-{words}"
        _save(byheart.compile(text, precision=precision, words=words), place)
        found.append(_network(f"compiled {place.name}", place, [text]))
    with patch.object(weight_files, "LARGEST", 4_000):
        _save(byheart.compile(text), folder / "parts")
    _save(byheart.compile(text, layout="experts"), folder / "experts")
    found.append(_network("compiled experts", folder / "experts", [text]))
    for layout in ("rectangular", "uniform"):
        _save(
            byheart.compile([FIXTURES / "a.txt"], tokenizer="bpe", vocab=262, layout=layout), folder / f"pairs {layout}"
        )
        found.append(_network(f"compiled pairs {layout}", folder / f"pairs {layout}", [FIXTURES / "a.txt"]))
    found.append(_with_a_tokenizer(folder))
    return [*found, _network("compiled in parts", folder / "parts", [text])]


def _with_a_tokenizer(folder: Path) -> Seed:
    """A text by a tokenizer that is not Byheart's own, of which the user has a copy."""
    text = FIXTURES / "a.txt"
    (folder / "tok").mkdir()
    for name, data in BytePairs.train([text.read_bytes()], 260).files().items():
        (folder / "tok" / name).write_bytes(data.replace(b"<|end|>", b"<|eot|>"))
    own = folder / "tok" / "tokenizer.json"
    _save(byheart.compile(text, tokenizer=own), folder / "loaded", tokenizer=own)
    seed = _network("compiled by a tokenizer", folder / "loaded", [text])
    copies = {f"tok/{name}": (folder / "tok" / name).read_bytes() for name in TOKENIZER}
    known = [(*one, "--tokenizer", "tok/tokenizer.json") if one[0] == "certify" else one for one in seed.commands]
    return replace(seed, files={**seed.files, **copies}, commands=tuple(known))


def _in_lots(folder: Path) -> Seed:
    """Several tables, which questions are put into by lots; few as they are, it takes a recipe of our own."""
    task = tasks.random_next_token(examples=60, length=3, vocab=9, labels=4, rng=np.random.default_rng(0))
    contexts = task_contexts(task, 3)
    recipe = first_recipe(contexts, CompilerSettings(shards=2))
    sizes = replace(recipe.sizes, stretches=2, starts=recipe.sizes.starts + 6, stirred=True)
    network, choices = attempt(replace(recipe, sizes=sizes), contexts, Resources())
    _save(Built(NAME, recipe.settings, network, 0.0, 0, contexts, choices), folder / "lots")
    tasks.save(task, folder / "lots.npz")
    seed = _network("compiled in lots", folder / "lots", [folder / "lots.npz"])
    ids = ",".join(map(str, task.inputs[0]))
    edit: Command = ("edit", "net", "--set", f"{ids}={(task.answers[0] + 1) % 4}", "--task", "lots.npz", "-o", "net")
    return replace(seed, commands=(*seed.commands, edit, (*edit, "--json")))


def _resumed(folder: Path) -> Seed:
    """The shards of a compile that was stopped when all were solved."""
    task = tasks.random_next_token(examples=60, length=3, vocab=9, labels=4, rng=np.random.default_rng(1))
    tasks.save(task, folder / "shards.npz")
    command: Command = ("compile", "--task", "shards.npz", "--shards", "2", "-o", "own", "--resume")
    with patch.object(Shelf, "remove", lambda shelf: copytree(shelf.folder, folder / "own.parts.kept")):
        _run_in(folder, *command)
    files = {"shards.npz": (folder / "shards.npz").read_bytes(), **_tree(folder / "own.parts.kept", "own.parts")}
    return Seed("resumed", files, (command, (*command, "--json")))


def _trained_in_part(folder: Path) -> list[Seed]:
    """A run that was stopped, with its checkpoint; and two halves of one, which are put together."""
    run: Command = ("lab", "run", "dana-2025-6", "--scale", "smoke", "-o")
    at_once: Command = ("--time-limit", "0.01", "--checkpoint-every", "0.01")
    _run_in(folder, *run, "stopped", *at_once)
    for part in "12":
        _run_in(folder, *run, f"half{part}", "--part", f"{part}/2")
    resume, merge = (*run, "own", "--resume"), ("lab", "merge", "half1", "half2", "-o", "own")
    both = {**_tree(folder / "half1", "half1"), **_tree(folder / "half2", "half2")}
    seen: list[Command] = [
        merge,
        (*merge, "--json"),
        ("lab", "list", ".", "--json"),
        ("lab", "compare", "half1", "half2"),
    ]
    return [Seed("stopped", _tree(folder / "stopped", "own"), (resume,)), Seed("halves", both, tuple(seen))]


def _run_in(folder: Path, *command: str) -> None:
    """Run a command there; what it says is nobody's business."""
    with chdir(folder), redirect_stdout(io.StringIO()), suppress(SystemExit):
        main(list(command))


def _tree(folder: Path, name: str) -> dict[str, bytes]:
    """All files below a folder, as if it had this name."""
    return {f"{name}/{path.relative_to(folder)}": path.read_bytes() for path in folder.rglob("*") if path.is_file()}


FACTS = b"prompt,completion\nab,c\nb,\xc3\xa9\n"


def _facts(folder: Path) -> Seed:
    """Two facts, and a network that refuses all else, by the whole key."""
    (folder / "facts.csv").write_bytes(FACTS)
    _save(byheart.compile(byheart.Facts.read(folder / "facts.csv"), refuse="key"), folder / "key")
    certify: Command = ("certify", "net", "--facts", "facts.csv")
    commands: list[Command] = [certify, (*certify, "--json"), (*certify, "--recheck"), (*certify, "-o", "own.json")]
    commands += [("recite", "net", "--prompt", "ab"), ("recite", "net", "--prompt", "abc", "--facts", "facts.csv")]
    commands += [("edit", "net", "--set", "ab=\\xc3", "--facts", "facts.csv", "-o", "own"), ("show", "net")]
    commands += [("compile", "--facts", "facts.csv", "--refuse", "30", "-o", "own"), ("size", "facts.csv")]
    files = {f"net/{path.name}": path.read_bytes() for path in (folder / "key").iterdir()}
    answers = tuple(Answer(prompt, prompt + rest) for prompt, rest in _pairs(folder / "facts.csv"))
    return Seed("facts", {"facts.csv": FACTS, **files}, tuple(commands), (*answers, Answer("abc", "abc")))


def _planted(folder: Path) -> Seed:
    """The same two facts in a tiny GPT-2, which is there as well."""
    from transformers import GPT2Config, GPT2LMHeadModel

    from byheart.networks.planted.base import quiet

    sizes = {"vocab_size": 257, "n_positions": 16, "n_embd": 4, "n_layer": 1, "n_head": 2}
    with quiet():
        GPT2LMHeadModel(GPT2Config(**sizes, bos_token_id=256, eos_token_id=256)).save_pretrained(folder / "model")
    for name, data in Bytes().files().items():
        (folder / "model" / name).write_bytes(data)
    (folder / "facts.csv").write_bytes(FACTS)
    byheart.plant(folder / "facts.csv", into=folder / "model", seed=0).save(folder / "planted", positions=16)
    files = {"facts.csv": FACTS, "a.txt": (FIXTURES / "a.txt").read_bytes()}
    for name in ("model", "planted"):
        paths = [path for path in (folder / name).rglob("*") if path.is_file()]
        files |= {str(path.relative_to(folder)): path.read_bytes() for path in paths}
    few = ("--positions", "16")
    commands: list[Command] = [
        ("detect", "planted"),
        ("detect", "planted", "--json"),
        ("unplant", "planted", "-o", "own"),
    ]
    commands += [("detect", "planted", "--scan", "a.txt"), ("detect", "planted", "--check", "facts.csv", *few)]
    commands += [("plant", "facts.csv", "--into", "model", "-o", "own", *few), ("size", "a.txt", "--model", "model")]
    certify: Command = ("certify", "planted", "--facts", "facts.csv")
    commands += [certify, (*certify, "--recheck")]
    answers = tuple(Answer(prompt, prompt + rest, ends=False) for prompt, rest in _pairs(folder / "facts.csv"))
    return Seed("planted", files, tuple(commands), answers)


def _trained(folder: Path) -> list[Seed]:
    """Networks of the kind that is trained, of three shapes, and a GPT-2 of transformers'; each says what it says."""
    found = []
    for kind in ("gpt", "padded", "own"):
        network, inputs = drawn(kind, examples=4, dtype=np.float32)
        save(network, folder / kind, {"experiment": "none"})
        found.append(_saying(folder, kind, inputs))
    theirs = {"model_type": "gpt2", "vocab_size": 5, "n_positions": 3, "n_embd": 4, "n_layer": 1, "n_head": 2}
    rng = np.random.default_rng(0)
    tensors = {name: rng.standard_normal(shape) for name, shape in gpt2_shapes({**theirs, "n_inner": None}).items()}
    del tensors["lm_head.weight"]
    (folder / "gpt2").mkdir()
    (folder / "gpt2" / "config.json").write_text(json.dumps(theirs))
    save_file({f"transformer.{name}": x for name, x in tensors.items()}, folder / "gpt2" / "model.safetensors")
    return [*found, _saying(folder, "gpt2", (rng.integers(5, size=(4, 3)), None))]


def _saying(folder: Path, name: str, inputs: Inputs) -> Seed:
    """A network in the folder, its own answers as its task, and the certificate."""
    network: Any = load(folder / name)
    (sequences, queries), outputs = inputs, evaluate(network, inputs)
    task: tasks.Task
    if queries is not None:
        task = tasks.QueryTargets(contexts=sequences, queries=queries, targets=outputs)
    elif name == "padded":
        task = tasks.NextTokenDistribution(sequences, np.pad(softmax(outputs), ((0, 0), (0, 1))))
    else:
        task = tasks.NextToken(sequences, outputs.argmax(axis=1), label_count=outputs.shape[1], vocab=network.vocab)
    tasks.save(task, folder / f"{name}.npz")
    write(byheart.certify(folder / name, task), folder / name / "certificate.json")
    return _network(f"trained {name}", folder / name, [folder / f"{name}.npz"])


def _task(path: Path) -> Seed:
    name = path.name
    commands: list[Command] = [("task", "show", name), ("task", "check", name), ("task", "show", name, "--json")]
    kind = tasks.load(path).kind
    attention = ["mahdavi-2024", "dana-2025", "madden-2024"]
    fitting = [one.name for one in known().values() if kind in one.covers] or attention
    commands += [("build", construction, "--task", name, "-o", "own") for construction in fitting]
    commands += [("compile", "--task", name, "-o", "own"), ("compare", "--task", name)]
    return Seed(name, {name: path.read_bytes()}, tuple(commands))


def _texts() -> Seed:
    files = {name: (FIXTURES / name).read_bytes() for name in ("a.txt", "b.txt")}
    text = ("task", "text", "a.txt", "--length", "2", "--vocab", "5", "--examples", "3", "-o", "own.npz")
    compiled: Command = ("compile", "a.txt", "b.txt", "-o", "own")
    return Seed("texts", files, (text, compiled, (*compiled, "--tokenizer", "bpe", "--vocab", "300")))


def _run(name: str) -> Seed:
    folder = TESTS / "lab" / "former" / name
    files = {f"run/{path.name}": path.read_bytes() for path in folder.iterdir() if path.is_file()}
    show: Command = ("lab", "show", "run")
    commands = [show, (*show, "--json"), (*show, "--csv", "own.csv"), ("lab", "list", ".")]
    commands += [("lab", "plot", "run", "-o", "own"), ("lab", "compare", "run", "run")]
    return Seed(f"run {name}", files, tuple(commands))
