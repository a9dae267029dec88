"""Many tables behind one front: cut equally full, solved one by one, all answers right, whatever brings the pieces."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from byheart import certify, load
from byheart.compiler import CompilerSettings, compile, edit
from byheart.compiler.codes import make_code
from byheart.compiler.rectangular import shards
from byheart.compiler.rectangular.dimensions import MOST_SHARDS, SHARD, plan
from byheart.compiler.rectangular.draft import Draft
from byheart.compiler.rectangular.recipe import Recipe, first_recipe
from byheart.compiler.rectangular.table import router
from byheart.constructions.built import Built
from byheart.errors import BadInput
from byheart.networks import generate
from byheart.networks.folders import WEIGHTS
from byheart.networks.transformer import transformer_network
from byheart.networks.transformer.transformer_network import TransformerNetwork
from byheart.networks.weight_files import INDEX
from byheart.tasks import NextToken, random_next_token
from byheart.tasks.contexts import Contexts
from byheart.tasks.windows import task_contexts


def task_of(examples: int, length: int, vocab: int, labels: int) -> NextToken:
    rng = np.random.default_rng(examples + length)
    return random_next_token(examples=examples, length=length, vocab=vocab, labels=labels, rng=rng)


def compiled(task: NextToken, count: int, **settings: object) -> Built:
    return compile(task, window=task.tokens.shape[1], shards=count, **settings)  # type: ignore[union-attr]


@pytest.fixture(scope="module")
def built() -> Built:
    return compiled(task_of(700, 8, 64, 256), 3)


@pytest.fixture(scope="module")
def folder(built: Built, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("shards") / "net"
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(transformer_network, "LARGE", 1)
        built.save(folder)
    return folder


SHAPES = [
    ((150, 1, 200, 7), 2, {}),
    ((900, 3, 20, 16), 5, {}),
    ((500, 20, 9, 256), 2, {"words": 31}),
    ((400, 8, 64, 100), 3, {"precision": "bfloat16"}),
    ((300, 2, 40, 2), 2, {"precision": "float64"}),
]


@pytest.mark.parametrize(("shape", "count", "settings"), SHAPES, ids=str)
def test_random_tasks(shape: tuple[int, int, int, int], count: int, settings: dict[str, object]) -> None:
    made = compiled(task_of(*shape), count, **settings)
    certificate = certify(made, made.questions)
    assert certificate.certified
    assert certificate.errors == 0
    assert made.chosen["shards"] == count
    notes = made.network.about["shards"]
    assert sum(note["questions"] for note in notes) == len(made.questions.answers)
    assert [note["shard"] for note in notes] == list(range(count))


def test_the_same_logits_in_float64(built: Built) -> None:
    """Every value is exact, so a wider format changes nothing."""
    network, contexts = built.network, built.questions
    assert isinstance(network, TransformerNetwork)
    assert isinstance(contexts, Contexts)
    windows = torch.from_numpy(contexts.windows(slice(0, 200)).astype(np.int64))
    wide = TransformerNetwork(
        replace(network.spec, precision="float64"), {name: weight.double() for name, weight in network.weights.items()}
    )
    with torch.no_grad():
        assert torch.equal(network.module(windows).double(), wide.module(windows))


def test_one_shard_is_what_it_always_was() -> None:
    task = task_of(300, 4, 30, 16)
    plain, one = compile(task, window=4), compile(task, window=4, shards=1)
    assert plain.network.fingerprint == one.network.fingerprint
    assert not plain.network.spec.experts  # type: ignore[attr-defined]


def test_shards_are_cut_equally_full(built: Built) -> None:
    sizes = [note["questions"] for note in built.network.about["shards"]]
    assert sum(sizes) == 700
    assert max(sizes) - min(sizes) <= 3


def test_cuts_and_router_by_hand() -> None:
    """Routes 0 … 5 with 1, 1, 4, 1, 1, 0 questions: in halves behind route 2, or before it; in equal widths, too."""
    counts = np.array([1, 1, 4, 1, 1, 0])
    assert shards.cut(counts, 2).tolist() == [0, 3, 6]
    assert shards.cut(counts, 3).tolist() == [0, 2, 3, 6]
    W, b = router(shards.cut(counts, 3))
    scores = np.arange(6)[:, None] * W[:, 0] + b
    assert scores.argmax(axis=1).tolist() == [0, 0, 1, 2, 2, 2]
    first, second = np.sort(scores, axis=1)[:, :-3:-1].T
    assert (first - second >= 1).all()


def test_routers_are_exact_at_any_size() -> None:
    """At the most shards, at the end of all routes: integers below 2²⁴, and no two scores alike."""
    sizes = replace(plan(make_code(np.arange(600) % 256, 256), precision="float32", word=24), shards=MOST_SHARDS)
    for cuts in (
        np.arange(MOST_SHARDS + 1) * sizes.routes // MOST_SHARDS,
        np.array([0, *[sizes.routes] * MOST_SHARDS]),
        np.array([*[0] * MOST_SHARDS, sizes.routes]),
    ):
        W, b = router(cuts)
        x = np.unique(np.concatenate([cuts[:-1], [sizes.routes - 1]]))
        x = x[x < sizes.routes]
        assert max(np.abs(W).max() * x.max(), np.abs(b).max()) <= 2**23
        right = np.searchsorted(cuts[1:-1], x, side="right")
        scores = x[:, None] * W[:, 0] + b
        assert (scores.argmax(axis=1) == right).all()
        assert ((scores == scores.max(axis=1, keepdims=True)).sum(axis=1) == 1).all()


def test_pieces_may_come_in_any_size_and_order() -> None:
    """The same shard, bit for bit: it depends on its records as a set."""
    contexts = task_contexts(task_of(700, 8, 64, 256), 8)
    recipe = first_recipe(contexts, CompilerSettings(shards=3))
    draft = Draft.of(recipe, contexts)

    def solved(size: int, backwards: bool) -> str:
        mapped = [
            shards.map_piece(draft.wiring, recipe.sizes, *shards.piece_of(contexts, part))
            for part in shards.pieces(len(contexts), size)
        ]
        counts = sum(shards.count_routes(piece, recipe.sizes) for piece in mapped)
        cuts = shards.cut(np.asarray(counts), 3)
        records = shards.records_of(mapped[::-1] if backwards else mapped, cuts, 1)
        _, note = shards.solve_shard(records, recipe.sizes, draft.code, recipe.draw, 1, draft.wiring.precision)
        return note.records + note.tensor

    assert solved(700, False) == solved(64, False) == solved(101, True)


def test_pieces_of_texts_know_what_came_before(tmp_path: Path) -> None:
    """A text in segments gives the records that it gives in one piece: no token within sight is missing."""
    text = np.random.default_rng(1).integers(97, 101, 900).astype(np.uint8).tobytes()
    contexts = compile({"one": text, "two": text[::-1]}, shards=2).questions
    assert isinstance(contexts, Contexts)
    recipe = first_recipe(contexts, CompilerSettings(shards=2))
    draft = Draft.of(recipe, contexts)

    def mapped(size: int) -> shards.Records:
        parts = [
            shards.map_piece(draft.wiring, recipe.sizes, *shards.piece_of(contexts, part))
            for part in shards.pieces(len(contexts), size)
        ]
        return shards.records_of(parts, np.array([0, recipe.sizes.routes]), 0).arranged()

    assert mapped(len(contexts)).fingerprint == mapped(100).fingerprint


def test_a_flipped_word_is_found(built: Built) -> None:
    """One bit of one word of one shard: at most the questions of that shard go wrong, and some do."""
    network = built.network
    assert isinstance(network, TransformerNetwork)
    name = "table.W_out.1"
    words = network.weights[name].clone()
    words[0, 0] += 2.0**13
    certificate = certify(network.with_tensor(name, words), built.questions)
    assert not certificate.certified
    assert 0 < certificate.errors <= network.about["shards"][1]["questions"]


def test_swapped_experts_are_found(built: Built) -> None:
    network = built.network
    assert isinstance(network, TransformerNetwork)
    one, two = (network.weights[f"table.W_out.{k}"] for k in (0, 1))
    swapped = network.with_tensor("table.W_out.0", two).with_tensor("table.W_out.1", one)
    assert certify(swapped, built.questions).errors > 300


def test_every_expert_of_a_large_network_has_a_file(built: Built, folder: Path, tmp_path: Path) -> None:
    built.save(tmp_path / "net")
    assert (tmp_path / "net" / WEIGHTS).exists()
    index = json.loads((folder / INDEX).read_text())
    files = index["weight_map"]
    assert [files[f"table.W_out.{k}"] for k in range(3)] == [f"model-0000{k}-of-00004.safetensors" for k in (2, 3, 4)]
    assert files["table.W_in"] == "model-00001-of-00004.safetensors"
    assert not (folder / WEIGHTS).exists()
    assert load(folder).fingerprint == built.network.fingerprint


def lie(folder: Path, copy: Path, **change: object) -> Path:
    """A copy of a folder whose config.json, or index, says something else."""
    copy.mkdir()
    for path in folder.iterdir():
        (copy / path.name).write_bytes(path.read_bytes())
    config, index = (json.loads((copy / name).read_text()) for name in ("config.json", INDEX))
    table = next(layer for layer in config["spec"]["sublayers"] if layer["kind"] == "mixture")
    places = index["weight_map"]
    if "experts" in change or "units" in change:
        table |= change
    if change.get("swap"):
        places["table.W_out.0"], places["table.W_out.1"] = places["table.W_out.1"], places["table.W_out.0"]
    if change.get("forget"):
        places.pop("table.W_out.2")
    if change.get("lose"):
        (copy / places["table.W_out.2"]).unlink()
    for name, said in (("config.json", config), (INDEX, index)):
        (copy / name).write_text(json.dumps(said))
    return copy


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"experts": 4}, r"table\.W_route is \[3, 1\]; config.json describes \[4, 1\]"),
        ({"experts": 2}, r"table\.W_(route|out)"),
        ({"experts": 1 << 60}, "expected a number from 1 to 4,096"),
        ({"units": 5}, "table.W_in is .*; config.json describes"),
        ({"swap": True}, "expected the tensors that model.safetensors.index.json says"),
        ({"forget": True}, "names .*model-00003.*; expected model-00001-of-00003"),
        ({"lose": True}, "model-00004-of-00004.safetensors is missing"),
    ],
    ids=str,
)
def test_folders_that_lie(folder: Path, tmp_path: Path, change: dict[str, object], message: str) -> None:
    with pytest.raises(BadInput, match=message):
        load(lie(folder, tmp_path / "net", **change))


def test_how_many_there_are() -> None:
    """One as long as one will do; then as many as it takes, each of about as many words."""
    code = make_code(np.arange(1 << 16) % 256, 256)
    for times, count in ((1, 1), (34, 1), (40, 7), (160, 28)):
        sizes = plan(code.repeated(times), precision="float32", word=24)
        assert sizes.shards == count
        assert count == 1 or sizes.words <= 1.01 * SHARD
    for wrong in (0, -1, MOST_SHARDS + 1):
        with pytest.raises(BadInput, match=r"shards is .*; expected 1 to 2,000"):
            plan(code, precision="float32", word=24, shards=wrong)


def test_a_recipe_that_is_another_networks(built: Built) -> None:
    about = built.network.about["recipe"]
    labels, parameters = len(about["lengths"]), built.account.dense
    Recipe.from_json(about).check(labels=labels, parameters=parameters)
    lies = [{"shards": count} for count in (0, MOST_SHARDS + 1, 400)]
    lies += [{"stretches": 1}, {"stretches": 1, "aligned": 8, "exponent": 1}, {"stretches": -1}, {"stretches": True}]
    lies += [{"stretches": 1200, "aligned": 8, "starts": 1200, "margin": 0, "columns": 1, "shards": 1}]
    for lie in lies:
        told = Recipe.from_json({**about, "sizes": {**about["sizes"], **lie}})
        with pytest.raises(BadInput, match="not the recipe of this network"):
            told.check(labels=labels, parameters=parameters)


def test_refusing_has_one_table() -> None:
    with pytest.raises(BadInput, match="shards is 2, which does not go with refuse yet"):
        compile([("a", "b"), ("c", "d")], shards=2, refuse="auto")


def test_editing_solves_one_shard_again(built: Built) -> None:
    contexts = built.questions
    assert isinstance(contexts, Contexts)
    assert isinstance(built.network, TransformerNetwork)
    place, label = int(contexts.places[5]), int(contexts.labels[5] + 1) % 256
    edited = edit(built.network, contexts, place, label)
    assert edited.words_changed
    tensors = dict(edited.built.network.tensors())
    other = [name for name, tensor in built.network.tensors() if not np.array_equal(tensor, tensors[name])]
    assert len(other) == 1
    assert other[0].startswith("table.W_out.")
    wanted = contexts.labels.copy()
    wanted[5] = label
    assert certify(edited.built, contexts.with_answers(wanted)).certified
    assert certify(edited.built, contexts).errors == 1
    back = edit(edited.built.network, contexts, place, int(contexts.labels[5]))  # type: ignore[arg-type]
    assert back.built.network.fingerprint == built.network.fingerprint
    for lie in (None, 5, [1], {"shard": 0}):
        lying = replace(built.network, about={**built.network.about, "shards": lie})
        with pytest.raises(BadInput, match=r"about\.shards .* \d+ notes"):
            edit(lying, contexts, place, label)


TEXTS = {"one": "To be, or not to be, that is the question:\nWhether 'tis nobler in the mind\n", "two": "To b.." * 9}


def test_texts_are_recited(tmp_path: Path) -> None:
    """Huffman codes, several texts, long windows; by the module and by compiled code, from the saved folder."""
    made = compile(TEXTS, shards=2)
    made.save(tmp_path / "net")
    network = load(tmp_path / "net")
    assert isinstance(network, TransformerNetwork)
    assert network.program is not None
    for text in network.about["texts"]:
        said = list(generate(network, text["prompt"], end=256, tokens=text["tokens"]))
        assert bytes([*text["prompt"], *said[:-1]]).decode() == TEXTS[text["name"]]
    tokens = list(TEXTS["one"].encode())
    by_code = np.full((len(tokens), network.spec.labels), np.nan)
    network.program.answers(tokens, np.array([0, len(tokens)]), np.arange(len(tokens)), by_code)
    with torch.no_grad():
        assert np.array_equal(network.module(torch.tensor([tokens]))[0].double().numpy(), by_code)
