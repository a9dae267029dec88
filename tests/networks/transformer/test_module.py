"""The float Transformer: what it calculates, and that nothing but its weights and tokens changes a bit of it."""

from itertools import pairwise

import numpy as np
import pytest
import torch

from byheart.errors import BadInput
from byheart.networks.transformer import Spec, WindowAttention
from byheart.networks.transformer.answers import ON_GPU, PORTION, TAKES, answers, at_once
from byheart.networks.transformer.module import Transformer
from byheart.networks.transformer.transformer_network import from_arrays

from .small import drawn, evaluated, hand_built


@pytest.fixture
def two_threads(threads_as_before):
    torch.set_num_threads(2)


def network(seed=0, precision="float64"):
    return from_arrays(*drawn(np.random.default_rng(seed), precision)).module.requires_grad_(False)


def test_by_hand():
    """x = 1, 4, 2 gives 1, 4 + 10, 2 + 40 with the tokens before; less 10, and 0 at least: 0, 4, 32."""
    logits = from_arrays(*hand_built()).module(torch.tensor([[0, 2, 1]]))
    assert logits.tolist() == [[[0, 5], [4, 1], [32, -27]]]


def test_attention_by_hand():
    """Without queries and biases all in the window weigh the same, the zeros before the start too."""
    layer = WindowAttention("mean", reads=(0,), writes=(1,), window=2, dilation=1, heads=1, d_head=1)
    spec = Spec(3, 1, 2, 2, "float32", embeds=(0,), unembeds=(1,), sublayers=(layer,))
    tensors = {name: np.zeros(shape, np.float32) for name, shape in spec.shapes().items()}
    tensors |= {name: np.ones((1, 1), np.float32) for name in ("mean.W_V", "mean.W_O", "unembedding.W_U")}
    tensors["embedding.W_E"] = np.array([[1], [2], [4]], np.float32)
    assert from_arrays(spec, tensors).module(torch.tensor([[0, 2, 1]])).flatten().tolist() == [0.5, 2.5, 3]
    tensors["mean.W_Q"] = tensors["mean.W_K"] = np.ones((1, 1), np.float32)
    last = from_arrays(spec, tensors).module(torch.tensor([[2, 1]]))[0, 1, 0]
    weights = np.exp([2 * 2, 2 * 4])
    assert last.item() == pytest.approx(weights @ [2, 4] / weights.sum())


@pytest.mark.parametrize("seed", range(20))
def test_all_kinds_of_sublayers(seed):
    spec, tensors = drawn(np.random.default_rng(seed))
    tokens = np.random.default_rng(seed).integers(0, spec.vocab, 12)
    with torch.inference_mode():
        found = from_arrays(spec, tensors).module(torch.as_tensor(tokens)[None])[0].numpy()
    assert found.any()
    assert found.tolist() == evaluated(spec, tensors, tokens).tolist()


def test_the_cache_changes_nothing():
    module, length = network(), 14
    tokens = torch.as_tensor(np.random.default_rng(0).integers(0, 11, (3, length)))
    whole = module(tokens)
    assert torch.equal(module(tokens, last=2), whole[:, -2:])
    assert torch.equal(module(tokens, last=99), whole)
    for split in range(1, length):
        first, cache = module.step(tokens[:, :split], None)
        second, _ = module.step(tokens[:, split:], cache)
        assert torch.equal(first, whole[:, split - 1])
        assert torch.equal(second, whole[:, -1])
    cache = None
    for place in range(length):
        logits, cache = module.step(tokens[:, place : place + 1], cache)
        assert torch.equal(logits, whole[:, place])


def test_it_sees_so_many_tokens_and_no_more():
    module = network()
    assert module.sees == 1 + 2 + 3
    tokens = torch.as_tensor(np.random.default_rng(0).integers(0, 11, (200, 20)))
    whole = module(tokens, last=1)
    assert torch.equal(module(tokens[:, -6:], last=1), whole)
    assert not torch.equal(module(tokens[:, -5:], last=1), whole)


def test_batches_and_threads_change_nothing(two_threads):
    module = network()
    tokens = torch.as_tensor(np.random.default_rng(1).integers(0, 11, (512, 9)))
    whole = module(tokens)
    shuffled = torch.randperm(512, generator=torch.Generator().manual_seed(0))
    assert torch.equal(module(tokens[shuffled]), whole[shuffled])
    assert all(torch.equal(module(tokens[i : i + 1])[0], whole[i]) for i in range(0, 512, 37))
    assert torch.get_num_threads() == 2
    torch.set_num_threads(1)
    assert torch.equal(module(tokens), whole)


def test_missing_tokens(two_threads):
    """Masked tokens on the left are as good as none, whatever they are."""
    module = network()
    tokens = torch.as_tensor(np.random.default_rng(2).integers(0, 11, (4, 12)))
    mask = torch.ones_like(tokens)
    mask[:, :5] = 0
    masked = module(tokens, mask=mask)
    assert torch.equal(masked[:, 5:], module(tokens[:, 5:]))
    assert not torch.equal(masked[:, 5:], module(tokens)[:, 5:])


def test_modes_that_round_factors_are_off_while_it_runs():
    """The words of 24 bits that a product with 1 must give back."""
    spec = Spec(300, 300, 1, 300, "float32", embeds=tuple(range(300)), unembeds=tuple(range(300)), sublayers=())
    words = np.random.default_rng(0).integers(2**23, 2**24, (300, 300)).astype(np.float32)
    eye = np.eye(300, dtype=np.float32)
    tensors = {"embedding.W_E": eye, "unembedding.W_U": words.T, "unembedding.b_U": np.zeros(300, np.float32)}
    module, tokens = from_arrays(spec, tensors).module, torch.arange(300)[None]
    with torch.no_grad():
        for precision in ("highest", "high", "medium"):
            torch.set_float32_matmul_precision(precision)
            try:
                assert module(tokens)[0].numpy().tolist() == words.tolist()
                assert torch.get_float32_matmul_precision() == precision
            finally:
                torch.set_float32_matmul_precision("highest")
        with torch.autocast("cpu", dtype=torch.bfloat16):
            assert module(tokens)[0].numpy().tolist() == words.tolist()
            assert torch.is_autocast_enabled("cpu")


def test_gradients():
    spec, tensors = drawn(np.random.default_rng(0))
    module = from_arrays(spec, tensors).module
    tokens = torch.as_tensor(np.random.default_rng(0).integers(0, spec.vocab, (8, 9)))
    logits = module(tokens)
    with torch.no_grad():
        assert torch.equal(logits, module(tokens))
    logits.square().mean().backward()
    gradients = {name: parameter.grad for name, parameter in module.named_parameters()}
    assert all(gradient is not None and gradient.isfinite().all() for gradient in gradients.values())
    some = ("embedding.W_E", "near.W_V", "alone.W_out", "far.W_O", "wide.W_in", "dense.W_up", "diagonal.W_up")
    assert all(gradients[name].any() for name in (*some, "unembedding.W_U"))


def test_a_gradient_is_a_slope():
    spec, tensors = hand_built("float64")
    module = from_arrays(spec, tensors).module
    module(torch.tensor([[0, 2, 1]]))[0, 2, 0].backward()  # x_t + 10·x_{t−1} − 10
    assert module.embedding.W_E.grad.flatten().tolist() == [0, 1, 10]


def test_tensors_that_do_not_fit():
    spec, tensors = hand_built()
    given = {name: torch.from_numpy(tensor) for name, tensor in tensors.items()}
    for changed in (
        {name: tensor for name, tensor in given.items() if name != "less.b_in"},
        given | {"x": torch.zeros(1)},
    ):
        with pytest.raises(BadInput, match=r"\['(less.b_in|x)'\] are missing or unknown"):
            Transformer(spec).load(changed)
    with pytest.raises(BadInput, match=r"less.b_in is torch.float64 \[1, 1\]; expected torch.float32 \[1, 1\]"):
        Transformer(spec).load(given | {"less.b_in": torch.zeros(1, 1, dtype=torch.float64)})


@pytest.mark.parametrize("portion", [1, 7, 64, 10**4])
def test_answers(portion):
    """Labels and margins are those of the logits, however sequences of different lengths are batched."""
    module, rng = network(3), np.random.default_rng(3)
    starts = np.cumsum([0, *rng.integers(1, 30, 20)])
    tokens = rng.integers(0, 11, starts[-1])
    places = np.sort(rng.choice(starts[-1], 100, replace=False))
    found = answers(module, tokens, starts, places, portion=portion)
    logits = [module(torch.as_tensor(tokens[a:b])[None])[0].numpy() for a, b in pairwise(starts)]
    wanted = np.concatenate(logits)[places]
    top = np.sort(wanted, axis=1)
    assert found.labels.tolist() == wanted.argmax(axis=1).tolist()
    assert found.margins.tolist() == (top[:, -1] - top[:, -2]).tolist()


def test_more_is_read_at_once_on_a_gpu() -> None:
    spec = Spec(vocab=2, labels=100, stream=1, window=1, precision="float32", embeds=(0,), unembeds=(0,), sublayers=())
    assert (at_once(spec), at_once(spec, 10)) == (PORTION, 10)
    assert at_once(spec, 10, free=1 << 40) == ON_GPU
    assert at_once(spec, free=TAKES * 100 * 7) == 7
    assert at_once(spec, free=0) == 1
