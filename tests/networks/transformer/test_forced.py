"""Answers that compiled code proves where all tokens are given; what it does not prove is left to ``proved``."""

import numpy as np
import pytest
import torch

from byheart.networks.transformer import Spec, forced
from byheart.networks.transformer.forced import forced_answers
from byheart.networks.transformer.proved import proved_answers
from byheart.networks.transformer.spec import Mixture
from byheart.networks.transformer.transformer_network import TransformerNetwork, from_arrays

from .small import drawn, hand_built


def asked(*sequences: list[int]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Every place of some sequences."""
    tokens = np.concatenate(sequences)
    return tokens, np.cumsum([0, *map(len, sequences)]), np.arange(len(tokens))


def test_by_hand() -> None:
    """Codes 1, 2, 4; y = max(0, x_t + 10·x_{t−1} − 10), logits (y, 5 − y); before the first token there is 0."""
    program = from_arrays(*hand_built()).program
    assert program is not None
    labels, margins = program.answers(*asked([0, 2, 1], [1], [2, 0]))
    assert labels.tolist() == [1, 0, 0, 1, 1, 0]
    assert margins.tolist() == [5, 3, 59, 5, 5, 57]
    tokens, starts, _ = asked([0, 2, 1], [1], [2, 0])
    labels, margins = program.answers(tokens, starts, np.array([2, 5]))
    assert (labels.tolist(), margins.tolist()) == ([0, 0], [59, 57])
    with pytest.raises(IndexError, match="tokens are 0 to 3; expected 0 to 2"):
        program.answers(*asked([0, 3]))


def sometimes_inexact(seed: int) -> tuple[TransformerNetwork, np.ndarray]:
    """A network for which token 10 is a third, and tokens of which that is one in thirty."""
    rng = np.random.default_rng(seed)
    spec, tensors = drawn(rng)
    tensors["embedding.W_E"][10] = [1 / 3, 1 / 7]
    return from_arrays(spec, tensors), np.where(rng.random(300) < 1 / 30, 10, rng.integers(0, 10, 300))


@pytest.mark.parametrize("seed", range(3))
def test_what_is_not_proved_is_forgotten_as_soon_as_nothing_sees_it(seed: int) -> None:
    network, tokens = sometimes_inexact(seed)
    program = network.program
    assert program is not None
    given = asked(tokens[:100].tolist(), tokens[100:].tolist())
    expected, (labels, margins) = proved_answers(network.module, *given), program.answers(*given)
    sure, known = ~np.isnan(margins), ~np.isnan(expected.margins)
    assert 0 < sure.sum() < 300
    assert (known >= sure).all()
    assert np.array_equal(labels[sure], expected.labels[sure])
    assert np.array_equal(margins[sure], expected.margins[sure])
    since = np.array([(tokens[max(0, t + 1 - network.spec.sees) : t + 1] == 10).any() for t in range(300)])
    assert sure[~since].all(), "none within sight"


@pytest.mark.parametrize("small", [1.0, 2.0**-30])
def test_experts_side_by_side(small: float) -> None:
    """Tokens 0, 1, 2 take expert 0, 1, and none that is known: 2 has two scores alike. Expert k writes 2k ± small.

    By hand: logits (x, −x) with x = 2k + small, which is exact for small = 1, and in float32 for 2^−30 only if k = 0.
    """
    mixture = Mixture("pick", "sigmoid", reads=(0,), routes=(1,), writes=(2,), units=1, experts=2)
    spec = Spec(3, 2, 1, 3, "float32", embeds=(0, 1, 2), unembeds=(2,), sublayers=(mixture,))
    tensors = {
        "embedding.W_E": [[64, -1, small], [64, 1, small], [64, 0, small]],
        **{"pick.W_in": [[[1]]], "pick.b_in": [[0]], "pick.W_route": [[-1], [1]], "pick.b_route": [0, 0]},
        **{"pick.W_out.0": [[[0]]], "pick.W_out.1": [[[2]]]},
        **{"unembedding.W_U": [[1], [-1]], "unembedding.b_U": [0, 0]},
    }
    network = from_arrays(spec, {name: np.array(tensor, np.float32) for name, tensor in tensors.items()})
    assert network.program is not None
    tokens = np.tile([0, 1, 2], 30)
    labels, margins = network.program.answers(tokens, np.arange(91), np.arange(90))
    expected = [2 * small, 6 if small == 1 else np.nan, np.nan]
    assert np.array_equal(margins, np.tile(expected, 30), equal_nan=True)
    assert not labels[::3].any()


@pytest.mark.parametrize("threads", [1, 3])
def test_all_that_can_be_proved_is(threads: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """In stretches of 20 tokens, by several threads: the very answers, and the very doubts, of ``proved``."""
    network, tokens = sometimes_inexact(0)
    given, heard = asked(tokens[:100].tolist(), tokens[100:].tolist()), []
    for name, value in (("TOKENS", 20), ("SEEN", 1)):
        monkeypatch.setattr(forced, name, value)
    monkeypatch.setattr(torch, "get_num_threads", lambda: threads)
    found = forced_answers(network, *given, compiled=True, report=lambda *steps: heard.append(steps))
    monkeypatch.undo()
    expected = proved_answers(network.module, *given)
    assert np.array_equal(found.labels, expected.labels)
    assert np.array_equal(found.margins, expected.margins, equal_nan=True)
    assert heard == [(done, 300) for done in range(20, 301, 20)]
    with pytest.raises(ValueError, match="out of order"):
        forced_answers(network, *given[:2], given[2][::-1], compiled=True)


@pytest.mark.parametrize(("precision", "small"), [("float32", 2.0**-126), ("float64", 2.0**-500)])
def test_numbers_that_some_machines_take_for_0(precision: str, small: float) -> None:
    """A label that rests on one is not proved, by either code; on twice as much it is."""
    for size, known in ((small, False), (2 * small, True)):
        spec = Spec(1, 2, 1, 1, precision, (0,), (0,), ())  # type: ignore[arg-type]
        tensors = {"embedding.W_E": [[size]], "unembedding.W_U": [[1], [-1]], "unembedding.b_U": [0, 0]}
        network = from_arrays(spec, {name: np.array(tensor, precision) for name, tensor in tensors.items()})
        program = network.program
        assert (program is not None) is known
        assert np.isfinite(proved_answers(network.module, *asked([0])).margins[0]) == known
        assert program is None or program.answers(*asked([0]))[1].tolist() == [2 * size]
