"""The second opinion: what it says of networks worked out by hand, of every construction, and of changed weights."""

import argparse
import ast
import io
import json
import math
import os
import shutil
import struct
import subprocess
import sys
import tracemalloc
import warnings
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.torch import load_file, save_file

import byheart
from byheart import verify
from byheart.certificates import judge
from byheart.certificates.judges import judge_for
from byheart.compiler import CompilerSettings
from byheart.constructions import CONSTRUCTIONS
from byheart.networks import Network, save
from byheart.networks.exact import (
    Affine,
    ExactNetwork,
    FeedForward,
    HardmaxAttention,
    Layer,
    SoftmaxAttention,
    TokenSum,
    UniformAttention,
    integers,
)
from byheart.networks.softmax import SoftmaxNetwork
from byheart.networks.transformer import GatedBlocks as Units
from byheart.networks.transformer import Spec, WindowAttention, transformer_network
from byheart.networks.transformer.transformer_network import TransformerNetwork, from_arrays
from byheart.tasks import (
    NextToken,
    NextTokenDistribution,
    QueryLabels,
    QueryTargets,
    SeqToSeq,
    Task,
    random_distribution,
    random_next_token,
    random_queries,
    random_seq_to_seq,
)
from byheart.tasks import save as save_task

SOURCE = Path(verify.__file__)
FIXTURES, GOLDEN = Path(__file__).parent / "fixtures" / "0.1.0", Path(__file__).parent / "golden" / "files"
TEXT = "It was the best of times, it was the worst of times"
ONE = integers([[1]])
PART, INDEX = "model-{:05}-of-00003.safetensors", "model.safetensors.index.json"


def opinion(folder: Path, *texts: Path, task: Path | None = None, **options: Any) -> dict[str, Any]:
    """What it says, in this process."""
    chosen: dict[str, Any] = {"sample": None, "seed": 0, "tolerance": None, "facts": []} | options
    given = argparse.Namespace(
        folder=str(folder), texts=list(map(str, texts)), task=None if task is None else str(task), **chosen
    )
    return verify.verify(given)


def asked(network: Network, questions: Task | str, folder: Path, **options: Any) -> dict[str, Any]:
    """What it says of a network and its questions, both saved."""
    save(network, folder / "net")
    if isinstance(questions, str):
        (folder / "text").write_text(questions)
        return opinion(folder / "net", folder / "text", **options)
    save_task(questions, folder / "task.npz")
    return opinion(folder / "net", task=folder / "task.npz", **options)


def run(*arguments: object, program: Path = SOURCE, isolated: bool = True) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, *["-I"] * isolated, program, *arguments]
    return subprocess.run(list(map(str, command)), capture_output=True, text=True, check=False, timeout=60)


# By hand.

RANK = HardmaxAttention(W_Q=integers([[1]]), W_K=ONE, W_V=ONE, W_O=ONE)
LAYERS: dict[str, tuple[Layer, list[list[int]]]] = {
    "double": (FeedForward((Affine(integers([[2]]), integers([0])),)), [[0, 2], [2, 2], [4, 0]]),
    "relu": (FeedForward((Affine(integers([[-3]]), integers([4])),), residual=True), [[4, 2], [2, 2], [2, 4]]),
    "halves": (FeedForward((Affine(integers([[6]]), integers([2]), shift=1),)), [[1, 4], [4, 4], [7, 1]]),
    # Sequences (0, 1), (1, 1), (2, 0): twice the means 1/2, 1, 1 are added.
    "mean": (UniformAttention(W_V=ONE, W_O=integers([[2]])), [[1, 2], [3, 3], [4, 2]]),
    # Twice the sums 1, 2, 2 are added.
    "sum": (TokenSum(), [[2, 3], [5, 5], [6, 4]]),
    # Queries of 0 see both alike, others see the largest.
    "hardmax": (HardmaxAttention(ONE, ONE, W_V=ONE, W_O=integers([[2]])), [[1, 3], [3, 3], [6, 2]]),
    "causal": (HardmaxAttention(ONE, ONE, W_V=ONE, W_O=integers([[2]]), causal=True), [[0, 3], [3, 3], [6, 2]]),
    # 0 + 10/2, 1 + 10 e/(1 + e) = 8.31; 1 + 10; 2 + 20 e⁴/(1 + e⁴) = 21.64, 0 + 20/2.
    "softmax": (SoftmaxAttention(ONE, ONE, W_V=ONE, W_O=integers([[10]])), [[5, 8], [11, 11], [22, 10]]),
}
SEQUENCES = [[0, 1], [1, 1], [2, 0]]


@pytest.mark.parametrize("name", LAYERS)
def test_exact_layers(name: str, tmp_path: Path) -> None:
    layer, labels = LAYERS[name]
    network = ExactNetwork((layer,), inputs="tokens", outputs="every", length=2)
    found = asked(network, SeqToSeq(SEQUENCES, labels), tmp_path)
    assert (found["verdict"], found["right"], found["wrong"], found["undecided"]) == ("right", 6, 0, 0)
    wrong = SeqToSeq(SEQUENCES, [labels[0], labels[1], [labels[2][0], labels[2][1] + 1]])
    found = asked(network, wrong, tmp_path)
    assert (found["verdict"], found["right"], found["wrong"], found["not_right"]) == (
        "not right",
        5,
        1,
        [(2, 1, labels[2][1] + 1)],
    )


def test_a_sum_behind_attention_is_over_all_tokens(tmp_path: Path) -> None:
    """(1, 3): the mean 2 makes (3, 5) of it; 5 + 2·8 = 21 stands at the last position, 3 + 2·8 = 19 at the first."""
    layers = UniformAttention(ONE, ONE), TokenSum()
    network = ExactNetwork(layers, inputs="tokens", outputs="last", length=2)
    assert asked(network, NextToken([[1, 3], [3, 1]], [21, 19]), tmp_path)["verdict"] == "right"
    soft = ExactNetwork((SoftmaxAttention(0 * ONE, ONE, ONE, ONE), TokenSum()), "tokens", "last", 2)
    assert asked(soft, NextToken([[1, 3], [3, 1]], [21, 19]), tmp_path)["verdict"] == "right"
    assert asked(soft, NextToken([[1, 3], [3, 1]], [21, 20]), tmp_path)["right"] == 1


def test_what_is_no_integer_equals_no_label(tmp_path: Path) -> None:
    third = ExactNetwork((UniformAttention(ONE, ONE),), inputs="tokens", outputs="last", length=3)
    assert asked(third, NextToken([[1, 1, 1], [0, 0, 1]], [2, 1]), tmp_path)["not_right"] == [(1, None, 1)]


def test_one_number_for_a_label(tmp_path: Path) -> None:
    wide = ExactNetwork((FeedForward((Affine(integers([[1], [1]]), integers([0, 0])),)),), "tokens", "last", 1)
    with pytest.raises(ValueError, match="too many values"):
        asked(wide, NextToken([[1]], [1]), tmp_path)


def test_softmax_networks(tmp_path: Path) -> None:
    one = np.ones((1, 1, 1))
    network = SoftmaxNetwork(W_Q=one, W_K=one, W_V=one, W_O=one)
    contexts, queries, third = [[0.0], [1.0]], [[0.0], [1.0]], math.e / (1 + math.e)
    targets = QueryTargets(contexts=contexts, queries=queries, targets=[0.5, third])
    assert asked(network, targets, tmp_path)["verdict"] == "right"
    close = targets.with_answers([0.5, third + 1e-5])
    assert asked(network, close, tmp_path)["not_right"] == [(1, None, third + 1e-5)]
    assert asked(network, close, tmp_path, tolerance=1e-4)["verdict"] == "right"
    two = SoftmaxNetwork(W_Q=one, W_K=one, W_V=one, W_O=np.array([[[1.0, 0.75]]]))
    labels = QueryLabels(contexts=contexts, queries=queries, labels=[0, 0], label_count=2)
    assert asked(two, labels, tmp_path)["verdict"] == "right"
    assert asked(two, labels.with_answers([0, 1]), tmp_path)["wrong"] == 1
    vectors = targets.with_answers([[0.5, 0.375], [third, 0.75 * third]])
    assert asked(two, vectors, tmp_path)["verdict"] == "right"
    assert asked(two, vectors.with_answers([[0.5, 0.375], [third, 0.76 * third]]), tmp_path)["wrong"] == 1
    with pytest.raises(ValueError, match="zip"):
        asked(two, targets, tmp_path)
    tie = SoftmaxNetwork(W_Q=one, W_K=one, W_V=one, W_O=np.array([[[1.0, 1.0]]]))
    assert asked(tie, labels, tmp_path)["right"] == 0


def test_distributions(tmp_path: Path) -> None:
    """Logits ½·(0, log 3) with tanh out of the way: softmax is (1, √3)/(1 + √3)."""
    share = 1 / (1 + math.sqrt(3))
    W_O = np.array([[[0.0, math.log(3)]]])
    ones = np.ones((1, 1, 1))
    network = SoftmaxNetwork(ones, ones, ones, W_O, W_E=np.array([[0.0], [1.0]]), W_pos=np.array([[0.0], [0.0]]))
    task = NextTokenDistribution([[0, 1]], [[0.25, 0.75]])  # the last token asks: e/(1 + e) of the way
    assert asked(network, task, tmp_path)["verdict"] == "not right"
    task = NextTokenDistribution([[1, 0]], [[share, 1 - share]])
    assert asked(network, task, tmp_path)["verdict"] == "right"
    two = NextTokenDistribution([[1, 0], [0, 0]], [[share, 1 - share]] * 2)
    with pytest.raises(ValueError, match="all together"):
        asked(network, two, tmp_path, sample=1)


SQUARE = Units("square", "relu", reads=(0,), writes=(1,), units=1, bias=False, up="dense", up_reads=(0,))
LOOK = WindowAttention("look", (1,), (2,), window=2, dilation=1, heads=2, d_head=1)


def squares(**changes: Any) -> Network:
    """Label 1 where the square of this token's number, less that of the token before, is larger than 4."""
    tensors: dict[str, Any] = {
        "embedding.W_E": [[0], [1], [2], [3]],
        "square.W_gate": [[[1]]],
        "square.W_up": [[[1]]],
        "square.W_out": [[[1]]],
        **{f"look.{name}": [[0], [0]] for name in ("W_Q", "W_K")},
        "look.W_V": [[1], [1]],
        "look.W_O": [[1, -1]],
        "look.bias": [[0, -2000], [-2000, 0]],
        "unembedding.W_U": [[0], [1]],
        "unembedding.b_U": [0, -4.5],
    } | changes
    spec = Spec(4, 2, 2, 3, "float32", (0,), (2,), (SQUARE, LOOK))
    return from_arrays(spec, {name: np.array(tensor, np.float32) for name, tensor in tensors.items()})


TOKENS = NextToken([[1, 3], [3, 3], [2, 3], [0, 2], [0, 3]], [1, 0, 1, 0, 1])


def test_transformers(tmp_path: Path) -> None:
    assert judge(squares(), TOKENS).certified
    assert asked(squares(), TOKENS, tmp_path)["verdict"] == "right"
    found = asked(squares(), TOKENS.with_labels([1, 1, 1, 0, 1]), tmp_path)
    assert (found["wrong"], found["not_right"]) == (1, [(1, 1, 1)])


@pytest.mark.parametrize(
    "changes",
    [
        {"embedding.W_E": [[0], [1], [2], [3 + 2.0**-20]]},  # its square has more than 24 bits
        {"look.bias": [[0, -200], [-2000, 0]]},  # exp(-200) is not 0
        {"look.W_Q": [[1], [0]], "look.W_K": [[1], [0]]},  # attends to what it reads
        {"look.W_V": [[2.0**120], [1]], "look.W_O": [[2.0**-120, -1]]},  # overflows where the square is 2⁷ at least
        {"unembedding.b_U": [2.0**-30, -4.5]},  # more bits than the sum has room for: only the label's own is exact
    ],
    ids=["bits", "softmax", "content", "range", "sum"],
)
def test_what_floating_point_may_round_is_undecided(changes: dict[str, Any], tmp_path: Path) -> None:
    changes = {**changes}
    if "look.W_V" in changes:
        changes["embedding.W_E"] = [[0], [1], [2], [3 * 2.0**4]]
    if "unembedding.b_U" in changes:
        changes["unembedding.W_U"] = [[1], [1]]
    found = asked(squares(**changes), NextToken([[2, 3]], [1]), tmp_path)
    assert (found["right"], found["wrong"], found["undecided"]) == (0, 0, 1)


# Constructions, and changed weights.

RNG = np.random.default_rng(0)
NEXT = random_next_token(examples=20, length=3, vocab=12, labels=4, rng=RNG)
SEQ = random_seq_to_seq(examples=8, length=3, vocab=12, labels=4, rng=RNG)
CAUSAL = SeqToSeq([[0, 1, 2], [3, 1, 1], [4, 4, 0]], [[1, 0, 2], [0, 0, 1], [2, 1, 0]])
VECTORS = random_next_token(examples=10, length=3, vocab=None, labels=3, dim=2, rng=RNG)
TASKS: dict[str, list[tuple[Task, dict[str, Any]]]] = {
    "interpolate": [(NEXT, {}), (VECTORS, {"positions": True})],
    "vardi-2022": [(NEXT, {}), (VECTORS, {})],
    "yang-2026": [(NEXT, {}), (VECTORS, {"width": 8})],
    "kajitsuka-sato-2025": [(NEXT, {}), (SEQ, {"width": "constant"}), (VECTORS, {})],
    "kim-2023": [(SEQ, {}), (CAUSAL, {"causal": True})],
    "kajitsuka-sato-2024": [(SEQ, {})],
    "folding": [(NEXT, {}), (VECTORS, {})],
    "mahdavi-2024": [
        (random_queries(examples=5, length=3, dim=4, labels=3, rng=RNG), {}),
        (random_queries(examples=5, length=3, dim=4, labels=None, shared=True, rng=RNG), {}),
    ],
    "dana-2025": [(NEXT, {}), (NEXT, {"query_dim": 1})],
    "madden-2024": [(random_distribution(examples=5, length=2, vocab=4, rng=RNG), {})],
}
COMPILED: dict[str, tuple[Task | str, CompilerSettings]] = {
    "text": (TEXT, CompilerSettings()),
    "task": (NEXT, CompilerSettings()),
    "float64": (TEXT, CompilerSettings(precision="float64")),
    "bfloat16": (TEXT, CompilerSettings(precision="bfloat16")),
    "packed": (TEXT, CompilerSettings(words=31)),
    "packed float64": (TEXT, CompilerSettings(precision="float64", words=60)),
    "packed bfloat16": (TEXT, CompilerSettings(precision="bfloat16", words=15)),
}


def networks() -> Iterator[Any]:
    """Every construction with what it is for, and every format of compiled networks."""
    assert sorted(TASKS) == sorted(CONSTRUCTIONS)
    for name, tasks in TASKS.items():
        for number, (task, flags) in enumerate(tasks):
            yield pytest.param(
                lambda name=name, task=task, flags=flags: (byheart.build(name, task, **flags).network, task),
                id=f"{name} {number}",
            )
    for name, (questions, settings) in COMPILED.items():
        yield pytest.param(
            lambda questions=questions, settings=settings: (
                byheart.compile(questions, settings=settings).network,
                questions,
            ),
            id=f"compiled {name}",
        )


@pytest.mark.parametrize("made", [*networks()])
def test_agrees_with_the_judge(made: Any, tmp_path: Path) -> None:
    network, questions = made()
    verdict, found = judge(network, questions), asked(network, questions, tmp_path)
    assert verdict.certified
    assert (found["verdict"], found["right"], found["undecided"]) == ("right", verdict.checked, 0)


def changes_agree(made: Any, folder: Path, count: int) -> tuple[int, int]:
    """Networks with changed weights: what it calls right, the judge does too. How many were not; how many undecided."""
    network, questions = made()
    rng, wrong, undecided = np.random.default_rng(1), 0, 0
    for attempt in range(count):
        changed, place = judge_for(network).perturbed(network, rng, attempt % (16 if network.kind == "softmax" else 3))
        changed = replace(changed, files=network.files, about=network.about)
        verdict, found = judge(changed, questions), asked(changed, questions, folder)
        wrong += not verdict.certified
        undecided += verdict.certified and found["verdict"] != "right"
        assert verdict.certified or found["verdict"] != "right", place
        assert found["verdict"] == "right" or not verdict.certified or (found["undecided"] and not found["wrong"]), (
            place
        )
    return wrong, undecided


@pytest.mark.parametrize("made", [made for made in networks() if "packed" not in str(made.id)])
def test_changed_weights(made: Any, tmp_path: Path) -> None:
    changes_agree(made, tmp_path, 2)


@pytest.mark.slow
@pytest.mark.parametrize("made", [*networks()])
def test_many_changed_weights(made: Any, tmp_path: Path) -> None:
    wrong, undecided = changes_agree(made, tmp_path, 16)
    assert wrong > 0
    print(f"{wrong} of 16 not certified, {undecided} certified but undecided here")


QUESTIONS = {
    **{"causal": "causal.jsonl", "dana-2025": "next.jsonl", "facts": "next.jsonl", "folding": "next.jsonl"},
    **{"kajitsuka-sato-2024": "seq.jsonl", "kajitsuka-sato-2025": "vectors.npz", "kim-2023": "seq.jsonl"},
    **{"madden-2024": "dist.npz", "mahdavi-2024": "labels.npz", "targets": "targets.npz", "short": "a.txt"},
}


@pytest.mark.parametrize("name", QUESTIONS)
def test_networks_of_before(name: str) -> None:
    file = FIXTURES / QUESTIONS[name]
    found = opinion(FIXTURES / name, file) if file.suffix == ".txt" else opinion(FIXTURES / name, task=file)
    assert found["verdict"] == "right"


def test_texts_that_begin_alike(tmp_path: Path) -> None:
    """Where they part nothing is asked; and edits that the folder mentions are not applied."""
    found = opinion(FIXTURES / "texts", FIXTURES / "a.txt", FIXTURES / "b.txt")
    assert (found["verdict"], found["questions"]) == ("right", 141)
    assert opinion(FIXTURES / "edited", FIXTURES / "a.txt")["not_right"] == [(0, 76, 10)]
    for name, text in {"a": "abcX", "b": "abdX", "c": "eX"}.items():
        (tmp_path / name).write_text(text)
    (tmp_path / "tokenizer.json").write_text('{"model": {"merges": []}}')
    _, questions = verify.read_texts(str(tmp_path), [(b"", (tmp_path / name).read_bytes()) for name in "abc"])
    after_a, end = ord("b"), 256
    assert [label for text, place, label in questions if text == 0] == [after_a, ord("X"), end]
    assert (0, 1, ord("c")) not in questions
    assert (2, 1, end) in questions


def test_facts_are_asked_after_their_prompts(tmp_path: Path) -> None:
    """By hand: two facts, one of them twice; a prompt with a flipped bit, unless that is another fact's."""
    (tmp_path / "tokenizer.json").write_text('{"model": {"merges": []}}')
    (tmp_path / "a.csv").write_text('\ufeffprompt,completion\n"a,b",c\n"a,b",c\n', encoding="utf-8")
    (tmp_path / "b.jsonl").write_text('{"question": "b", "answer": "é"}\n\n')
    pairs = verify.read_facts([str(tmp_path / "a.csv"), str(tmp_path / "b.jsonl")])
    assert pairs == [(b"a,b", b"c"), (b"b", "é".encode())]
    texts, questions = verify.read_texts(str(tmp_path), pairs)
    assert texts == [[*b"a,bc", 256], [*b"b", 0xC3, 0xA9, 256]]
    assert questions == [(0, 2, ord("c")), (0, 3, 256), (1, 0, 0xC3), (1, 1, 0xA9), (1, 2, 256)]
    assert verify.others([*pairs, (b"c", b"d")]) == [b"`,b"], "b and c are one flipped bit apart, and both are facts"


def test_a_sample_is_stated(tmp_path: Path) -> None:
    found = opinion(FIXTURES / "short", FIXTURES / "a.txt", sample=10, seed=3)
    assert (found["verdict"], found["right"], found["asked"], found["questions"]) == ("right", 10, 10, 78)
    said = run(FIXTURES / "short", FIXTURES / "a.txt", "--sample", 10, "--seed", 3)
    assert said.returncode == 0
    assert "10 of 78 questions, a sample (seed 3)" in said.stdout


# The file itself, and hostile ones.


def test_shards(tmp_path: Path) -> None:
    """A mixture: right, wrong where a shard's words are others, undecided where two experts have the same score."""
    built = byheart.compile(
        random_next_token(examples=60, length=3, vocab=9, labels=4, rng=np.random.default_rng(0)), window=3, shards=2
    )
    contexts = built.questions
    task = NextToken(contexts.windows(slice(None)), contexts.answers)
    assert asked(built.network, task, tmp_path)["right"] == len(contexts.answers)
    words = dict(built.network.tensors())
    assert isinstance(built.network, TransformerNetwork)
    other = from_arrays(built.network.spec, words | {"table.W_out.1": words["table.W_out.0"].copy()})
    found = asked(other, task, tmp_path)
    assert 0 < found["wrong"] <= built.network.about["shards"][1]["questions"]
    alike = {name: np.zeros_like(words[name]) for name in ("table.W_route", "table.b_route")}
    assert asked(from_arrays(built.network.spec, words | alike), task, tmp_path)["undecided"] == len(contexts.answers)


@pytest.fixture(scope="module")
def parts(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a mixture of two experts in three files, and an index; and the task."""
    rng, folder = np.random.default_rng(0), tmp_path_factory.mktemp("parts")
    task = random_next_token(examples=60, length=3, vocab=9, labels=4, rng=rng)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(transformer_network, "LARGE", 1)
        byheart.compile(task, window=3, shards=2).save(folder / "net")
    save_task(task, folder / "task.npz")
    return folder


def test_weights_in_parts(parts: Path) -> None:
    net, task = parts / "net", parts / "task.npz"
    assert sorted(path.name for path in net.glob("model*s*")) == [*(PART.format(i) for i in (1, 2, 3)), INDEX]
    assert opinion(net, task=task)["right"] == 60
    assert opinion(net, task=task, sample=7)["right"] == 7


THIRD = PART.format(3)
INDEXES: dict[str, tuple[Any, str]] = {
    "outside": ({"table.W_out.1": f"../net/{THIRD}"}, "expected parts by their numbers"),
    "absolute": ({"table.W_out.1": f"/{THIRD}"}, "expected parts by their numbers"),
    "absent": ({"table.W_out.2": THIRD}, "not the tensors of"),
    "exchanged": ({"table.W_out.0": THIRD, "table.W_out.1": PART.format(2)}, "not the tensors of"),
    "unsaid": ({"embedding.W_E": None}, "not the tensors of"),
    "empty": (None, "weight_map"),
    "no object": ([THIRD], "no attribute 'values'"),
}


@pytest.mark.parametrize("lie", INDEXES)
def test_an_index_that_lies(parts: Path, lie: str, tmp_path: Path) -> None:
    net, (change, message) = shutil.copytree(parts / "net", tmp_path / "net"), INDEXES[lie]
    index = json.loads((net / INDEX).read_text())
    if isinstance(change, dict):
        places = {name: place for name, place in (index["weight_map"] | change).items() if place is not None}
    else:
        places = change
    (net / INDEX).write_text(json.dumps({"weight_map": places} if places else {}))
    if not isinstance(change, dict):
        assert message in refused(run(net, "--task", parts / "task.npz"))
        return
    with pytest.raises(ValueError, match=message):
        opinion(net, task=parts / "task.npz")


FILES = {
    **{"file": "No such file", "pipe": "no such file", "loop": "symbolic link", "same": "not the tensors of"},
    **{"whole": "no model.safetensors", "large": "over 67,108,864 bytes", "twice": "or is there twice"},
}


@pytest.mark.parametrize("lie", FILES)
def test_parts_that_are_not_what_the_index_says(parts: Path, lie: str, tmp_path: Path) -> None:
    net = shutil.copytree(parts / "net", tmp_path / "net")
    data = (net / THIRD).read_bytes()
    if lie in ("file", "pipe", "loop", "same"):
        (net / THIRD).unlink()
    if lie == "pipe":
        os.mkfifo(net / THIRD)
    if lie in ("loop", "same"):
        (net / THIRD).symlink_to(net / (THIRD if lie == "loop" else PART.format(2)))
    if lie == "whole":
        shutil.copy(net / THIRD, net / "model.safetensors")
    if lie == "large":
        os.truncate(net / THIRD, verify.LARGEST)  # alone, it would do
    if lie == "twice":  # the header names the one tensor again
        end = 8 + int.from_bytes(data[:8], "little")
        header = data[8:end].rstrip()[:-1] + b"," + data[9:end]
        (net / THIRD).write_bytes(len(header).to_bytes(8, "little") + header + data[end:])
    with pytest.raises((ValueError, OSError), match=FILES[lie]):
        opinion(net, task=parts / "task.npz")


def test_links_to_files_are_read(parts: Path, tmp_path: Path) -> None:
    """As in the cache of huggingface_hub, where all files are links."""
    (tmp_path / "net").mkdir()
    for path in (parts / "net").iterdir():
        (tmp_path / "net" / path.name).symlink_to(path)
    assert opinion(tmp_path / "net", task=parts / "task.npz", sample=3)["right"] == 3


def test_a_person_can_read_it() -> None:
    assert len(SOURCE.read_text(encoding="utf-8").splitlines()) <= 600


def test_it_needs_the_standard_library_alone() -> None:
    names = set()
    for node in ast.walk(ast.parse(SOURCE.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names |= {alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0
            names.add(str(node.module).split(".")[0])
    assert names <= sys.stdlib_module_names


def test_a_copy_runs_anywhere(tmp_path: Path) -> None:
    copy = shutil.copy(SOURCE, tmp_path / "verify.py")
    given = (FIXTURES / "folding", "--task", FIXTURES / "next.jsonl")
    assert run(*given, program=copy).returncode == 0
    for name in ("json", "zipfile", "byheart", "decimal"):
        (tmp_path / f"{name}.py").write_text("raise SystemExit('imported what lies beside it')")
    for isolated in (True, False):
        said = run(*given, "--json", program=copy, isolated=isolated)
        assert (said.returncode, json.loads(said.stdout)["right"]) == (0, 12), said.stderr
    assert run(FIXTURES / "edited", FIXTURES / "a.txt", program=copy).returncode == 1
    assert "example: " in run("--help", program=copy).stdout


def refused(said: subprocess.CompletedProcess[str]) -> str:
    assert (said.returncode, said.stdout, said.stderr.count("\n")) == (2, "", 1), said
    return said.stderr


def test_other_kinds_are_refused(tmp_path: Path) -> None:
    assert "not a kind that is known here" in refused(run(FIXTURES / "llama", FIXTURES / "c.txt"))
    trained = (FIXTURES / "trained", "--task", FIXTURES / "trained.npz")
    assert "'byheart-trained-1' is not a kind that is known here" in refused(run(*trained))
    assert "byte pairs" in refused(run(FIXTURES / "pairs", FIXTURES / "a.txt"))
    assert "no such file" in refused(run(tmp_path, "--task", FIXTURES / "next.jsonl"))
    assert "the task asks for" in refused(run(FIXTURES / "folding", "--task", FIXTURES / "seq.jsonl"))
    assert "expected texts, --task or --facts FILE" in refused(run(FIXTURES / "short"))
    assert "real answers" in refused(run(FIXTURES / "short", FIXTURES / "a.txt", "--tolerance", 1))
    labels = (FIXTURES / "mahdavi-2024", "--task", FIXTURES / "labels.npz")
    assert "real answers" in refused(run(*labels, "--tolerance", 1))
    targets = (FIXTURES / "targets", "--task", FIXTURES / "targets.npz")
    for tolerance in (0, -1, "inf", "nan"):
        refused(run(*targets, f"--tolerance={tolerance}"))


def changed(folder: Path, name: str, change: dict[str, Any]) -> Path:
    """A network of before, entries of its config.json replaced ("spec.stream": value, lists by number)."""
    shutil.copytree(FIXTURES / name, folder, dirs_exist_ok=True)
    config = json.loads((folder / "config.json").read_text())
    for path, value in change.items():
        *parts, last = path.split(".")
        place = config
        for part in parts:
            place = place[int(part) if part.isdigit() else part]
        place[int(last) if last.isdigit() else last] = value
    (folder / "config.json").write_text(json.dumps(config))
    return folder


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("short", {"spec.sublayers.0.dilation": -1}),  # would read what it is asked for
        ("short", {"spec.sublayers.0.dilation": 0}),
        ("short", {"spec.stream": 10**12}),
        ("short", {"spec.embeds": ["0:1000000000000"]}),
        ("short", {"spec.embeds": ["-1:1"]}),
        ("short", {"spec.precision": "float64"}),
        ("short", {"spec.sublayers": []}),
        ("short", {"spec": 3}),
        ("folding", {"network.length": 2}),
        ("folding", {"network.outputs": "every"}),
        ("folding", {"network.layers.0.shapes.W_E": [10**12, 0]}),
        ("folding", {"network.layers.0.shapes.W_E": [10**12, 1]}),
        ("folding", {"network.layers.0.shapes.W_E": [-1, -1]}),
        ("kajitsuka-sato-2025", {"network.layers.0.layers.0.shift": 1 << 62}),
        ("kajitsuka-sato-2025", {"network.layers.0.layers.0.shift": -1}),
        ("dana-2025", {"skip": 1}),
        ("folding", {"network": {}}),
    ],
)
def test_hostile_configs(name: str, change: dict[str, Any], tmp_path: Path) -> None:
    folder = changed(tmp_path / "net", name, change)
    given = FIXTURES / {"short": "a.txt", "kajitsuka-sato-2025": "vectors.npz"}.get(name, "next.jsonl")
    found = run(folder, *(["--task"] if given.suffix != ".txt" else []), given)
    if name == "short" and change == {"spec.sublayers": []}:
        assert found.returncode == 1
    else:
        refused(found)


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{",
        b"[" * 100_000,
        b'{"task": "next-token"}',
        b'{"tokens": [0, -1, 2], "label": 1}',
        b'{"tokens": [0, 1, 99], "label": 1}',
        b'{"tokens": [0, 1, true], "label": 1}',
        b'{"tokens": [0, 1, 2], "label": 1.0}',
        b'{"tokens": [0, 1, 2]}',
        b'{"tokens": [0, 1, 2], "label": ' + b"9" * 10_000 + b"}",
    ],
)
def test_hostile_tasks(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "t.jsonl").write_bytes(content)
    refused(run(FIXTURES / "folding", "--task", tmp_path / "t.jsonl"))


def test_no_more_is_unpacked_than_an_entry_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Sixteen megabytes of zeros, said to be one: as much is there at a time."""
    with zipfile.ZipFile(tmp_path / "t.npz", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("tokens.npy", bytes(1 << 24))
    content = bytearray((tmp_path / "t.npz").read_bytes())
    entry = content.rfind(b"PK\x01\x02")
    content[entry + 24 : entry + 28] = (1 << 20).to_bytes(4, "little")
    (tmp_path / "t.npz").write_bytes(content)
    monkeypatch.setattr(verify, "LARGEST", 1 << 21)
    tracemalloc.start()
    with pytest.raises(zipfile.BadZipFile, match="Bad CRC"):
        verify.read_npz(str(tmp_path / "t.npz"))
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert most < 1 << 23


def test_hostile_arrays(tmp_path: Path) -> None:
    """Headers that claim more than there is, and weights that are no numbers."""
    task = tmp_path / "t.npz"
    np.savez(task, tokens=np.zeros((1, 3), np.int64), labels=np.zeros(1, np.int64))
    task.write_bytes(task.read_bytes().replace(b"(1, 3)", b"(9, 9)"))
    refused(run(FIXTURES / "folding", "--task", task))
    np.savez_compressed(task, tokens=np.zeros((1 << 24, 1), np.int64), labels=np.zeros(1 << 24, np.int64))
    assert "too large" in refused(run(FIXTURES / "folding", "--task", task))
    with zipfile.ZipFile(task, "w", zipfile.ZIP_BZIP2) as archive:  # which nobody can unpack up to a bound
        archive.writestr("tokens.npy", b"")
    assert "too large when unpacked, or packed in an unknown way" in refused(run(FIXTURES / "folding", "--task", task))
    folder = changed(tmp_path / "net", "dana-2025", {})
    weights = folder / "model.safetensors"
    data = weights.read_bytes()
    weights.write_bytes(data[:-8] + struct.pack("<d", math.nan))
    refused(run(folder, "--task", FIXTURES / "next.jsonl"))
    weights.write_bytes(data[:-8])
    refused(run(folder, "--task", FIXTURES / "next.jsonl"))
    weights.write_bytes(struct.pack("<Q", 1 << 62) + data[8:])
    refused(run(folder, "--task", FIXTURES / "next.jsonl"))
    assert "no such file" in refused(run(FIXTURES / "folding", "--task", "/dev/zero"))


def without_end(folder: Path) -> None:
    """Take away what tells transformers where texts end: it would say more after them."""
    config = json.loads((folder / "config.json").read_text())
    for name in ("eos_token_id", "pad_token_id"):
        del config[name]
    (folder / "config.json").write_text(json.dumps(config))
    (folder / "generation_config.json").unlink()


def with_settings_of_another_file(folder: Path) -> None:
    """Replace the settings of the tokenizer: "<|end|>" in a text would be the end token."""
    shutil.copy(folder / "tokenizer.json", folder / "tokenizer_config.json")


def with_end_unknown(folder: Path) -> None:
    """Remove the tokenizer: for a task of token ids, no token ends a text."""
    for name in ("tokenizer.json", "tokenizer_config.json"):
        (folder / name).unlink()


def with_more_bits(folder: Path) -> None:
    """Store in float32 a tensor that transformers rounds to bfloat16, because config.json says so."""
    tensors = load_file(folder / "model.safetensors")
    save_file({name: tensor.float() for name, tensor in tensors.items()}, folder / "model.safetensors")


@pytest.mark.parametrize(
    ("name", "lie", "reason"),
    [
        ("texts", without_end, "eos_token_id"),
        ("texts", with_settings_of_another_file, "tokenizer_config.json"),
        ("texts", with_end_unknown, "another token"),
        ("bfloat", with_more_bits, "precision"),
    ],
)
def test_what_transformers_would_run_otherwise_is_refused(
    name: str, lie: Callable[[Path], None], reason: str, tmp_path: Path
) -> None:
    folder = Path(shutil.copytree(GOLDEN / name, tmp_path / name))
    (tmp_path / "a.txt").write_text(f"{TEXT}, it was the age of wisdom")
    save_task(NextToken([[*b"It was t"]], [ord("h")]), tmp_path / "t.npz")
    questions = ("--task", tmp_path / "t.npz") if lie is with_end_unknown else (tmp_path / "a.txt", "--sample", 1)
    assert run(folder, *questions).returncode == 0
    lie(folder)
    assert reason in refused(run(folder, *questions))


def test_no_tensor_is_expanded_beyond_its_bytes(tmp_path: Path) -> None:
    """Many axes take a list per entry each, and features that all rows of a matrix read take as much as the matrix."""
    shape = [1 << 14, *[1] * 1000]
    with pytest.raises(ValueError, match="too many lists"):
        verify.decoded("U8", shape, bytes(1 << 14))
    wide = {"spec.stream": 999_999, "spec.sublayers.0.reads": ["0:999999"]}
    assert "no such features" in refused(run(changed(tmp_path / "net", "short", wide), FIXTURES / "a.txt"))


def test_nothing_that_a_terminal_interprets_is_printed(tmp_path: Path) -> None:
    """A name in an archive that is there twice is quoted in an error."""
    with zipfile.ZipFile(tmp_path / "t.npz", "w") as archive, warnings.catch_warnings(action="ignore"):
        array = io.BytesIO()
        np.save(array, np.zeros(1, np.int64))
        for _ in range(2):
            archive.writestr("\x1b]0;title\x07.npy", array.getvalue())
    said = refused(run(FIXTURES / "folding", "--task", tmp_path / "t.npz"))
    assert "is there twice" in said
    assert said.strip().isprintable()
