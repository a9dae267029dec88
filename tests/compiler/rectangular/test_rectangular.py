"""Compiled networks, saved and reloaded, answer every question, with the same bits however they are asked."""

import itertools
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors import safe_open

from byheart import certify, networks
from byheart.compiler import CompilerSettings, Recipe, compile
from byheart.compiler.codes import LOUDNESS, make_code
from byheart.compiler.layouts import Resources
from byheart.compiler.rectangular.attempt import attempt
from byheart.compiler.rectangular.dimensions import WORDS, plan
from byheart.constructions.built import Built
from byheart.errors import BadInput
from byheart.files import memory
from byheart.tasks import NextToken, random_next_token
from byheart.tasks.contexts import Contexts
from byheart.tasks.texts import Text
from byheart.tasks.windows import task_contexts, text_contexts

FORMATS = [(precision, word) for precision, words in WORDS.items() for word in words]
NAMES = [f"{precision}-{word}" for precision, word in FORMATS]


def task_of(examples: int, length: int, vocab: int, labels: int, shape: str = "uniform", seed: int = 0) -> NextToken:
    rng = np.random.default_rng([seed, examples, length])
    return random_next_token(examples=examples, length=length, vocab=vocab, labels=labels, shape=shape, rng=rng)


def windows(contexts: Contexts) -> tuple[torch.Tensor, torch.Tensor]:
    """All contexts as tokens and mask."""
    rows = torch.from_numpy(contexts.windows(slice(None)).astype(np.int64))
    return rows.clamp(min=0), rows >= 0


@torch.no_grad()
def all_logits(module: torch.nn.Module, contexts: Contexts) -> torch.Tensor:
    tokens, mask = windows(contexts)
    logits: torch.Tensor = module(tokens, last=1, mask=mask)
    return logits[:, 0]


def recipe_of(built: Built) -> Recipe:
    return Recipe.from_json(built.network.about["recipe"])


def arrays(built: Built) -> dict[str, np.ndarray]:
    return dict(built.network.tensors())


def check(built: Built, folder: Path) -> torch.Tensor:
    """Saved, reloaded, asked: all answers right, and the logits the same in float64. The logits."""
    contexts = built.questions
    built.save(folder)
    network = networks.load(folder)
    assert network.fingerprint == built.network.fingerprint
    certificate = certify(network, contexts)
    assert certificate.certified, certificate.counterexample
    logits = all_logits(network.module, contexts)
    assert np.array_equal(logits.argmax(dim=1).numpy(), contexts.labels)
    assert torch.equal(logits.double(), all_logits(networks.load(folder).module.double(), contexts))
    as_lines = logits / 2**LOUDNESS
    assert torch.equal(as_lines, as_lines.round())
    assert as_lines.abs().max() < 2**24
    assert (logits.softmax(dim=1).amax(dim=1) == 1).all()
    assert 0 < built.chosen["load"] <= 1
    with safe_open(folder / "model.safetensors", framework="pt") as file:
        entries = sum(file.get_tensor(name).numel() for name in file.keys())  # noqa: SIM118 - it is no dict
    assert built.account.dense == entries
    assert built.network.padded > entries
    return logits


# ── Random tasks ────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    "sizes",
    [
        (1, 1, 2, 1, "uniform"),
        (1, 5, 7, 300, "uniform"),
        (2, 1, 2, 2, "uniform"),
        (13, 12, 2, 3, "uniform"),
        (300, 3, 2000, 10, "skewed"),
        (300, 9, 40, 256, "neighbours"),
    ],
    ids=str,
)
@pytest.mark.parametrize("form", FORMATS, ids=NAMES)
def test_small_tasks(sizes: tuple[int, int, int, int, str], form: tuple[str, int], tmp_path: Path) -> None:
    check(compile(task_of(*sizes), settings=CompilerSettings(*form)), tmp_path / "net")


@pytest.mark.slow
@pytest.mark.parametrize(
    "sizes",
    [(3000, 2, 2000, 2, "uniform"), (3000, 8, 64, 300, "skewed"), (2500, 12, 30, 5000, "neighbours")],
    ids=str,
)
@pytest.mark.parametrize("precision", ["float32", "float64"])
def test_thousands_of_questions(sizes: tuple[int, int, int, int, str], precision: str, tmp_path: Path) -> None:
    check(compile(task_of(*sizes), settings=CompilerSettings(precision)), tmp_path / "net")


@pytest.mark.slow
@pytest.mark.parametrize("examples", [1, 3, 100, 3000])
@pytest.mark.parametrize("labels", [1, 3, 10, 300])
@pytest.mark.parametrize(("length", "vocab"), [(1, 3000), (2, 200), (5, 60), (12, 20)])
def test_many_tasks(examples: int, labels: int, length: int, vocab: int, tmp_path: Path) -> None:
    shapes = itertools.cycle(["uniform", "skewed", "neighbours"])
    for number, (form, shape) in enumerate(zip(FORMATS, shapes, strict=False)):
        small = length == 1 or examples * 2 > vocab
        task = task_of(examples, length, vocab, labels, "uniform" if small else shape, seed=number)
        if form[0] == "bfloat16" and labels > 256:
            continue
        check(compile(task, settings=CompilerSettings(*form), seed=number), tmp_path / str(number))


@pytest.mark.parametrize("word", WORDS["bfloat16"])
@pytest.mark.parametrize("labels", [300, 5000])
def test_more_labels_than_a_bfloat16_word_says(word: int, labels: int, tmp_path: Path) -> None:
    """Code words longer than the words of the table: right, or refused; never a network that is wrong."""
    task = task_of(1000, 3, 60, labels)
    try:
        built = compile(task, settings=CompilerSettings("bfloat16", word))
    except BadInput as error:
        assert "labels" in str(error)  # noqa: PT017 - either is right
    else:
        check(built, tmp_path / "net")


@pytest.mark.parametrize("form", FORMATS, ids=NAMES)
def test_skewed_labels(form: tuple[str, int], tmp_path: Path) -> None:
    """Frequencies that halve from label to label: code words of up to 9 bits and more."""
    labels = np.minimum(np.random.default_rng(0).geometric(0.5, 600) - 1, 11)
    task = NextToken(tokens=np.arange(600)[:, None], labels=labels)
    check(compile(task, settings=CompilerSettings(*form)), tmp_path / "net")


@pytest.mark.parametrize("form", FORMATS, ids=NAMES)
def test_bits_a_parameter(form: tuple[str, int]) -> None:
    """Nearly all bits of the table are used, and nearly all parameters are words."""
    task = task_of(4000, 4, 64, 2)
    built = compile(task, settings=CompilerSettings(*form))
    assert built.bits == pytest.approx(4000, rel=0.01)
    words = arrays(built)["table.W_out"]
    assert words.size == recipe_of(built).sizes.words
    if form[0] != "float64":
        assert built.chosen["load"] > 0.5


# ── The same bits ───────────────────────────────────────────────────────────────────────────────────────────────────


@contextmanager
def threads(count: int) -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(count)
    try:
        yield
    finally:
        torch.set_num_threads(before)


@pytest.mark.parametrize("form", [("float32", 24), ("float32", 31), ("bfloat16", 8)], ids=str)
def test_bit_for_bit(form: tuple[str, int], tmp_path: Path) -> None:
    """Batches of 1, of 512, of all, shuffled, with one thread and two."""
    built = compile(task_of(700, 4, 50, 200), settings=CompilerSettings(*form))
    logits = check(built, tmp_path / "net")
    module = built.network.module
    tokens, mask = windows(built.questions)
    order = torch.from_numpy(np.random.default_rng(0).permutation(len(tokens)))
    with torch.no_grad():
        for count in (1, 2):
            with threads(count):
                for size in (1, 512, len(tokens)):
                    some = order[:60] if size == 1 else order
                    parts = [module(tokens[part], last=1, mask=mask[part])[:, 0] for part in some.split(size)]
                    assert torch.equal(torch.cat(parts), logits[some])


def test_the_same_seed_gives_the_same_tensors() -> None:
    task = task_of(300, 4, 50, 20)
    one, same, other = (compile(task, seed=seed) for seed in (3, 3, 4))
    assert recipe_of(one) == recipe_of(same)
    assert all(np.array_equal(tensor, arrays(same)[name]) for name, tensor in one.network.tensors())
    assert one.network.fingerprint == same.network.fingerprint
    assert not np.array_equal(arrays(one)["embedding.W_E"], arrays(other)["embedding.W_E"])


def test_a_recipe_is_all_that_is_needed(tmp_path: Path) -> None:
    """config.json's recipe and the questions give the network again."""
    built = compile(task_of(300, 4, 50, 20, "skewed"), settings=CompilerSettings("float32", 31))
    built.save(tmp_path / "net")
    recipe = Recipe.from_json(networks.load(tmp_path / "net").about["recipe"])
    assert recipe == recipe_of(built)
    assert recipe.settings == built.settings
    assert Recipe.from_json(recipe.as_json()) == recipe
    assert isinstance(built.questions, Contexts)
    assert attempt(recipe, built.questions, Resources()).network.fingerprint == built.network.fingerprint


@pytest.mark.parametrize("broken", [{}, {"settings": {}}, {"settings": {"size": 3}, "sizes": {}}])
def test_no_recipe(broken: dict[str, object]) -> None:
    with pytest.raises(BadInput, match=r"config\.json has no recipe of a compiled network"):
        Recipe.from_json(broken)


# ── By hand ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_three_questions_by_hand(tmp_path: Path) -> None:
    """Three questions of two tokens, ω = 3, C = 3: code words of 1, 2 and 2 bits; the least table."""
    task = NextToken(tokens=[[0, 1], [1, 0], [1, 1]], labels=[2, 0, 1])
    built = compile(task)
    check(built, tmp_path / "net")
    shapes = {name: tensor.shape for name, tensor in built.network.tensors()}
    assert shapes["embedding.W_E"] == (2, 1)
    assert shapes["unembedding.W_U"] == (3, 1)
    assert shapes["unembedding.b_U"] == (3,)
    # Two heads of one dimension, one for each token; six sums: start, rows, three pairs of columns, offset.
    for name in ("W_Q", "W_K", "W_V"):
        assert shapes[f"hash_0.{name}"] == (2, 1)
    assert shapes["hash_0.W_O"] == (6, 2)
    assert shapes["hash_0.bias"] == (2, 2)
    # Two halves of seven rows, each of three lanes of four words.
    assert shapes["table.W_in"] == (2, 7, 2)
    assert shapes["table.b_in"] == (2, 7)
    assert shapes["table.W_out"] == (2, 12, 7)
    # Six lanes of four columns, read by number and square.
    assert shapes["select.W_gate"] == (6, 4, 2)
    assert shapes["select.b_gate"] == shapes["select.W_up"] == (6, 4)
    assert shapes["select.W_out"] == (6, 1, 4)
    # Nine products: two rows, six columns, one scale.
    assert shapes["squares.W_gate"] == shapes["squares.W_up"] == shapes["squares.W_out"] == (9, 1, 1)
    # The first two bits of y: thresholds ¼, ½, ¾ and one that is always on; into y and Y.
    assert shapes["bits_0.W_in"] == (1, 4, 1)
    assert shapes["bits_0.W_out"] == (1, 2, 4)
    assert built.account.dense == sum(int(np.prod(shape)) for shape in shapes.values())
    assert built.chosen["load"] == (1 + 2 + 2) / (168 * 24)
    assert built.bits == pytest.approx(3 * np.log2(3))
    # Plain words: even lanes from 0 on, odd lanes below 0, all of them integers of 24 bits.
    words = arrays(built)["table.W_out"].reshape(2, 3, 4, 7)
    lanes = np.concatenate(list(words))
    assert (lanes[::2] >= 0).all()
    assert (lanes[1::2] < 0).all()
    assert np.array_equal(lanes, np.round(lanes))
    assert np.abs(lanes).max() <= 2**24


def test_what_is_noted(tmp_path: Path) -> None:
    task = task_of(20, 3, 50, 4)
    built = compile(task, seed=5)
    built.save(tmp_path / "net")
    about = networks.load(tmp_path / "net").about
    assert about["construction"] == "reciting"
    none = dict.fromkeys(("words", "refuse", "shards"))
    assert about["settings"] == {"precision": "float32", "layout": "rectangular", **none}
    assert (about["seed"], about["task"]) == (5, built.questions.fingerprint)
    assert (about["texts"], about["edits"], about["end"]) == ([], [], None)
    assert about["window"] == built.chosen["window"] == built.questions.window
    assert about["bits"] == built.bits
    assert about["chosen"] == built.chosen
    assert repr(built) == f"<Built: reciting, {built.account.dense:,} parameters for 20 contexts>"


def test_one_question() -> None:
    built = compile(NextToken(tokens=[[0]], labels=[0]))
    assert built.questions.window == 1
    assert built.bits == 0
    assert built.network.module(torch.tensor([[0]])).argmax().item() == 0


# ── Refusals ────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_nothing_to_answer() -> None:
    empty = np.zeros(0, dtype=np.int64)
    nowhere = np.zeros((2, 0), dtype=np.int32)
    contexts = Contexts(np.zeros(2, np.int32), np.array([0, 2]), empty, empty, nowhere, 1, 2, 2, (1,), None)
    with pytest.raises(BadInput, match="there is no question to answer; expected at least one"):
        compile(contexts)


@pytest.mark.parametrize("window", [9, 12, 15, 17, 100])
def test_windows_that_no_layers_have(window: int) -> None:
    tokens = np.random.default_rng(0).integers(0, 50, 200).astype(np.int32)
    contexts = text_contexts([Text("t", tokens)], vocab=51, end=50, window=window)
    with pytest.raises(BadInput, match=f"the window is {window}; expected at most 8 or a power of two, such as"):
        compile(contexts)
    short = text_contexts([Text("t", tokens[:window])], vocab=51, end=50, window=window)
    assert compile(short).network.window == window, "there is nothing before the window to be seen"


@pytest.mark.parametrize(
    ("precision", "words"), [("float32", 53), ("float32", 8), ("float64", 24), ("bfloat16", 24), ("float32", -1)]
)
def test_words_that_do_not_fit(precision: str, words: int) -> None:
    with pytest.raises(BadInput, match=f"words of {words} bits do not fit {precision}; expected"):
        compile(task_of(3, 2, 5, 3), settings=CompilerSettings(precision, words))


def test_zero_words() -> None:
    with pytest.raises(BadInput, match="words of 0 bits do not fit float32"):
        compile(task_of(3, 2, 5, 3), settings=CompilerSettings("float32", 0))


def test_packed_words_and_thousands_of_labels() -> None:
    task = task_of(4500, 3, 100, 5000)
    with pytest.raises(BadInput, match="words of 31 bits do not go with 5000 labels; expected --words 24"):
        compile(task, settings=CompilerSettings("float32", 31))


def test_vectors() -> None:
    task = random_next_token(examples=3, length=2, vocab=9, labels=2, dim=2, rng=np.random.default_rng(0))
    with pytest.raises(BadInput, match="the task's tokens are vectors; expected token ids"):
        compile(task)


def test_two_answers() -> None:
    with pytest.raises(BadInput, match="example 0 and example 2 are equal, but ask for label 0 and label 1"):
        compile(NextToken(tokens=[[0, 1], [2, 2], [0, 1]], labels=[0, 0, 1]))
    with pytest.raises(BadInput, match="agree on the last 1 tokens"):
        compile(task_contexts(NextToken(tokens=[[0, 1], [2, 1]], labels=[0, 1]), 1))


def test_memory_that_would_not_do(monkeypatch: pytest.MonkeyPatch) -> None:
    """A task is refused when its sizes are planned, before anything is solved; with a little more, it is not."""
    task = task_of(3000, 4, 100, 256)
    needed = plan(make_code(task.labels, 256), precision="float32", word=24).solving_memory(3000)
    monkeypatch.setattr(memory, "available", lambda: int(needed / memory.USABLE_SHARE) - 10)
    with monkeypatch.context() as solving:
        solving.setattr("byheart.compiler.rectangular.attempt.solve", None)
        with pytest.raises(BadInput) as refused:
            compile(task)
    assert "to compile 3,000 questions into one table would take 1.3 MiB of memory; expected at most 1.3 MiB" in str(
        refused.value
    )
    assert str(refused.value).endswith("of what is available: split what there is to learn into several networks")
    monkeypatch.setattr(memory, "available", lambda: int(needed / memory.USABLE_SHARE) + 10)
    assert compile(task).chosen["attempts"] == 1
