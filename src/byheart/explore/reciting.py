"""Compiled networks as the explorer takes them: the spec, and the bytes of every tensor.

The page evaluates the spec itself, in float32, and finds in it where the front leaves rows, columns and the offset: the
features that the sublayers ``table``, ``select`` and ``shift`` read. What the texts are it asks the network. A network
compiled from facts does not hold its prompts: they are listed if the facts are at hand.
"""

import base64
from typing import Any

import numpy as np

from byheart.compiler import Recipe, compile
from byheart.compiler.rectangular.dimensions import LANES, TableSizes
from byheart.compiler.rectangular.table import TABLE
from byheart.errors import BadInput
from byheart.networks import Network
from byheart.networks.about import end_of, facts_of, texts_of
from byheart.networks.transformer.generate import checked
from byheart.networks.transformer.spec import Spec, WindowAttention
from byheart.networks.transformer.transformer_network import TransformerNetwork
from byheart.tasks import Facts
from byheart.tasks.questions import as_contexts
from byheart.tasks.tokenizers import Bytes, from_files

TEXTS = {
    "Hamlet": "To be, or not to be, that is the question:\nWhether 'tis nobler in the mind to suffer\n"
    "The slings and arrows of outrageous fortune,\nOr to take arms against a sea of troubles",
    "Jabberwocky": "'Twas brillig, and the slithy toves\nDid gyre and gimble in the wabe:\n"
    "All mimsy were the borogoves,\nAnd the mome raths outgrabe.",
    "Peter Piper": "Peter Piper picked a peck of pickled peppers.",
    "π": "3.1415926535897932384626433832795028841971693993751058209749445923078164062862089986280348253421170679",
}
"""Short texts, each compiled into a network of its own: some 3,000 parameters."""
MOST_PARAMETERS = 50_000
MOST_TOKENS = 20_000
"""Most tokens of all texts or facts together: the page recites all of them when it opens, in about two seconds."""


def shown(name: str, network: Network, facts: Facts | None = None) -> dict[str, Any]:
    """Return the network as JSON for the page, with its ``facts`` if given; raise BadInput if it cannot be shown."""
    compiled = _checked(network)
    spec, note = compiled.spec, facts_of(network)
    listed = [] if note is None or facts is None else _listed(facts, note["count"])
    recipe = Recipe.from_json(compiled.about.get("recipe", {}))
    recipe.check(labels=spec.labels, parameters=compiled.account.dense)
    if recipe.sizes.exponent:
        raise BadInput("has words that use sign and exponent; the explorer shows plain ones: compile without --words")
    if recipe.settings.refuse:
        raise BadInput("refuses what it has not memorized, which the explorer does not show: compile without --refuse")
    _check_places(spec, recipe.sizes)
    return {
        "name": name,
        "parameters": compiled.account.dense,
        "spec": spec.as_json(),
        "tensors": {name: _base64(tensor) for name, tensor in compiled.tensors()},
        "shapes": {name: list(shape) for name, shape in spec.shapes().items()},
        "word": recipe.sizes.word,
        "moduli": list(recipe.sizes.moduli),
        "lengths": list(recipe.lengths),
        "texts": [{key: text[key] for key in ("name", "prompt", "tokens")} for text in texts_of(compiled)],
        "facts": listed,
        "longest": 0 if note is None else note["longest"],
        "end": end_of(compiled),
    }


def _listed(facts: Facts, count: int) -> list[dict[str, list[int]]]:
    """Return the facts as token ids; raise BadInput if the network has learned another number of them."""
    contexts = as_contexts(facts, tokenizer=None if facts.are_ids else Bytes())
    if len(facts) != count:
        raise BadInput(f"has learned {count:,} facts; --facts has {len(facts):,}: give the files it was compiled from")
    _check_sizes({"tokens of facts": len(contexts.tokens)})
    sequences = [part.tolist() for part in np.split(contexts.tokens, contexts.starts[1:-1])]
    return [
        {"prompt": ids[:given], "completion": ids[given:]}
        for ids, given in zip(sequences, contexts.prompts, strict=True)
    ]


def examples() -> list[dict[str, Any]]:
    """Compile the texts that come with the explorer."""
    return [shown(name, compile(text).network) for name, text in TEXTS.items()]


def _checked(network: Network) -> TransformerNetwork:
    """Return the network if the page can evaluate and show it; raise BadInput otherwise."""
    if not isinstance(network, TransformerNetwork):
        instead = ", whose table it shows: compile the same texts without --layout" if network.kind == "stock" else ""
        takes = f"the explorer takes what `byheart compile` made in the rectangular layout{instead}"
        raise BadInput(f"is {network.title}; {takes}")
    spec, texts = network.spec, texts_of(network)
    if (not texts and facts_of(network) is None) or end_of(network) is None:
        raise BadInput("was compiled from a task; the explorer takes texts and facts")
    if spec.precision != "float32":
        raise BadInput(f"has weights in {spec.precision}; the explorer computes in float32")
    for text in texts:
        checked(text["prompt"], spec.vocab)
    if not isinstance(from_files(network.files), Bytes):
        raise BadInput("has tokens other than bytes, which the explorer does not show: compile without --tokenizer")
    tokens = sum(text["tokens"] for text in texts)
    _check_sizes({"parameters": network.account.dense, "tokens of text": tokens})
    return network


def _check_sizes(sizes: dict[str, int]) -> None:
    for name, size in sizes.items():
        most = MOST_PARAMETERS if name == "parameters" else MOST_TOKENS
        if size > most:
            raise BadInput(f"has {size:,} {name}; the explorer takes at most {most:,}, or a page would be slow")


def _check_places(spec: Spec, sizes: TableSizes) -> None:
    """Raise BadInput unless the sublayers that the page shows match the recipe: a folder may say anything."""
    if sizes.shards > 1:
        raise BadInput(f"has {sizes.shards} shards; the explorer takes one table: compile with --shards 1")
    shapes, layers = spec.shapes(), {layer.name: layer for layer in spec.sublayers}
    expected = {
        TABLE: (2, LANES // 2 * sizes.columns, sizes.rows),
        "table.W_in": (2, sizes.rows, 2),
        "select.W_gate": (LANES, sizes.columns, 2),
        "shift.W_gate": (1, 1, 1),
        "embedding.W_E": (Bytes.vocab, sizes.code_features),
    }
    fits = len(spec.unembeds) == 1 and all(shapes.get(name) == shape for name, shape in expected.items())
    if not fits or not isinstance(layers.get("hash_0"), WindowAttention) or "reduce_0_0" not in layers:
        raise BadInput("config.json: about.recipe is not the recipe of this network")


def _base64(tensor: np.ndarray[Any, Any]) -> str:
    return base64.b64encode(np.ascontiguousarray(tensor, dtype="<f4").tobytes()).decode()
