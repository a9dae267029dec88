"""The proof of a radius: what is affirmed is true of every point that one can think of, and tight where it can be."""

import json
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from byheart.certificates import certify, recheck, write
from byheart.certificates.judges.radius import provable_radius, unproved
from byheart.constructions import build
from byheart.errors import BadInput
from byheart.networks import load
from byheart.networks.exact import (
    Affine,
    Block,
    ExactNetwork,
    FeedForward,
    Flatten,
    Layer,
    Positions,
    Residual,
    UniformAttention,
    integers,
)
from byheart.networks.exact.evaluate import evaluate
from byheart.tasks import NextToken, random_next_token


def points(*coordinates: list[float]) -> np.ndarray:
    """One vector a sequence."""
    return np.array(coordinates)[:, None, :]


def network(*layers: Layer, length: int = 1, dim: int = 1) -> ExactNetwork:
    return ExactNetwork(layers, inputs="vectors", outputs="last", length=length, dim=dim)


STEP = FeedForward((Affine(integers([[4], [4]]), integers([0, -1])), Affine(integers([[1, -1]]), integers([0]))))
"""0 below 0, 1 from ¼ on, and a ramp between."""


def test_by_hand() -> None:
    """The step is constant on (−∞, 0] and on [¼, ∞): a ball around 1 may have radius ¾, one around −1 radius 1."""
    ramp = network(STEP)
    for centre, largest in ((1.0, 0.75), (-1.0, 1.0)):
        assert not unproved(ramp, points([centre]), largest).any()
        assert unproved(ramp, points([centre]), np.nextafter(largest, 2)).all()


def test_the_largest_radius_is_found() -> None:
    """Whatever the guess: ¾ around 1, none on the ramp, and no end where the network sees nothing."""
    for guess in (0.001, 0.7, 100.0):
        assert provable_radius(network(STEP), points([1.0]), guess) == pytest.approx(0.75, rel=1e-4)
        assert provable_radius(network(STEP), points([0.125]), guess) == 0
        blind = FeedForward((Affine(integers([[0]]), integers([3])),))
        assert provable_radius(network(blind), points([1.0]), guess) == float("inf")


def test_the_norm_is_euclidean() -> None:
    """relu(3x + 4y) is constantly 0 around (−3, −4) up to 5, and no farther; coordinate by coordinate it were 25/7."""
    chain = FeedForward((Affine(integers([[3, 4]]), integers([0])),))
    assert not unproved(network(chain, dim=2), points([-3.0, -4.0]), 5.0).any()
    assert unproved(network(chain, dim=2), points([-3.0, -4.0]), 5.001).all()


def test_flattened_tokens_move_each_on_its_own() -> None:
    """relu(3x + 4y − 21) with x and y in different tokens moves by 3R + 4R: around (0, 0) up to R = 3."""
    chain = FeedForward((Affine(integers([[3, 4]]), integers([-21])),))
    flat = network(Flatten(), chain, length=2)
    assert not unproved(flat, np.zeros((1, 2, 1)), 3.0).any()
    assert unproved(flat, np.zeros((1, 2, 1)), 3.001).tolist() == [[True, True]]


def test_a_doubtful_unit_may_be_harmless() -> None:
    """|x| is in doubt around 0, but min(1, 8 − |x|) is constant there: an interval goes through the second layer."""
    absolute = Affine(integers([[1], [-1]]), integers([0, 0]))
    rest = Affine(integers([[-1, -1]]), integers([8]))
    bend = Affine(integers([[1], [1]]), integers([0, -1]))
    cap = Affine(integers([[1, -1]]), integers([0]))
    chain = network(FeedForward((absolute, rest, bend, cap)))
    assert unproved(chain, points([0.0]), 1.0).all()  # the interval [6, 8] is one in both units of the last but one
    clipped = network(FeedForward((absolute, Affine(integers([[-1, -1]]), integers([0])))))
    assert not unproved(clipped, points([0.0]), 1.0).any()


def test_residual_layers_and_positions() -> None:
    """x + relu(−x) is 0 for x ≤ 0: the same with a residual chain, with a block, and behind positional codes of −2."""
    minus = Affine(integers([[-1]]), integers([0]))
    block = Residual((Block(integers([[-1]]), integers([0]), integers([[1]])),))
    for layer in (FeedForward((minus,), residual=True), block):
        assert not unproved(network(layer), points([-1.0]), 1.0).any()
        assert unproved(network(layer), points([-1.0]), 1.001).all()
        moved_down = network(Positions(integers([[0], [-2]])), layer, length=2)
        found = unproved(moved_down, np.array([[[1.0], [1.0]]]), 0.5)
        assert found.tolist() == [[True, False]]


def test_attention_on_what_still_moves_is_not_proved() -> None:
    attention = UniformAttention(W_V=integers([[1]]), W_O=integers([[1]]))
    rest = FeedForward((Affine(integers([[0]]), integers([1])),))
    assert unproved(network(attention, rest, length=2), np.zeros((1, 2, 1)), 0.1).all()
    before = network(STEP, attention, rest, length=2)
    assert not unproved(before, np.ones((1, 2, 1)), 0.1).any()


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(1, 3), st.sampled_from([0.125, 0.5, 2.0]))
def test_what_is_proved_is_true(seed: int, dim: int, radius: float) -> None:
    """Small random networks: where a ball is proved, 50 points of it have the answer of its centre."""
    rng = np.random.default_rng(seed)
    widths = [dim, *rng.integers(1, 4, size=rng.integers(1, 4)), 1]
    chain = tuple(
        Affine(
            integers(rng.integers(-2, 3, size=(b, a))),
            integers(rng.integers(-3, 3, size=b)),
            shift=int(rng.integers(2)),
        )
        for a, b in pairwise(widths)
    )
    some = network(FeedForward(chain), dim=dim)
    centres = rng.integers(-4, 5, size=(6, 1, dim)).astype(np.float64)
    proved = ~unproved(some, centres, radius)[:, 0]
    at = evaluate(some, centres)
    steps = np.round(rng.standard_normal((50, 1, dim)) * radius * 16) / 16
    for centre, value, sure in zip(centres, at, proved, strict=True):
        near = centre + steps[np.linalg.norm(steps, axis=2)[:, 0] <= radius]
        if sure and len(near):
            assert (evaluate(some, near) == value).all()


RNG = np.random.default_rng(0)
NEXT = random_next_token(examples=30, length=4, vocab=20, labels=3, dim=4, rng=RNG)
POINTS = random_next_token(examples=30, length=1, vocab=None, labels=3, dim=4, rng=RNG)


# certificates


def test_the_certificate_states_the_radius(tmp_path: Path) -> None:
    built = build("kajitsuka-sato-2025", NEXT, read="cells")
    built.save(tmp_path / "net")
    assert load(tmp_path / "net").about["radius"] == built.chosen["radius"]
    certificate = certify(tmp_path / "net", NEXT)
    assert certificate.certified
    assert certificate.radius == built.chosen["radius"]
    assert "(proved, every ball)" in certificate.summary
    assert f"moved by at most {certificate.radius!r}" in certificate.statement
    assert certify(tmp_path / "net", NEXT, radius=certificate.radius / 2).certified


def test_without_a_radius_nothing_is_said_of_one() -> None:
    certificate = certify(build("kajitsuka-sato-2025", NEXT), NEXT)
    assert certificate.certified
    assert certificate.radius is None
    assert "within" not in certificate.summary


def test_a_stated_radius_that_cannot_be_proved_is_not_affirmed(tmp_path: Path) -> None:
    """Nothing is believed: a folder that states more than is true is not certified; the answer in doubt is named."""
    built = build("kajitsuka-sato-2025", NEXT, read="cells")
    built.save(tmp_path / "net")
    config = json.loads((tmp_path / "net/config.json").read_text())
    config["about"]["radius"] *= 1.01
    (tmp_path / "net/config.json").write_text(json.dumps(config))
    certificate = certify(tmp_path / "net", NEXT)
    assert not certificate.certified
    assert certificate.errors == 0
    assert 0 < certificate.undecided <= 30
    assert "at the tokens, not proved within" in str(certificate.counterexample)


@pytest.mark.parametrize("stated", [0.0, -1.0, "1.0", 1, True, [1.0]])
def test_a_stated_radius_that_is_none_is_refused(stated: object) -> None:
    net = replace(build("kajitsuka-sato-2025", NEXT, read="cells").network, about={"radius": stated})
    with pytest.raises(BadInput, match=r"^config.json: about.radius is .*; expected a positive number, or null$"):
        certify(net, NEXT)


def test_a_flipped_weight_in_front_is_found() -> None:
    """The control: every weight of the first layer matters to the radius, if not to the answers."""
    net = build("kajitsuka-sato-2025", NEXT, read="cells").network
    name, W = next(net.tensors())
    changed = W.copy()
    changed[0, 0] ^= 1 << (abs(int(changed[0, 0])).bit_length() - 4)
    assert not certify(net.with_tensor(name, integers(changed)), NEXT).certified


def test_recheck_compares_the_radius(tmp_path: Path) -> None:
    built = build("vardi-2022", POINTS, read="cells")
    certificate = certify(built, POINTS)
    write(replace(certificate, radius=certificate.radius / 2), tmp_path / "less.json")
    assert recheck(tmp_path / "less.json", built, POINTS).certified
    write(replace(certificate, radius=certificate.radius * 2), tmp_path / "more.json")
    with pytest.raises(BadInput, match=r"more\.json: claims a radius of .* was asked for: give --radius"):
        recheck(tmp_path / "more.json", built, POINTS)
    plain = build("vardi-2022", POINTS)
    write(replace(certify(plain, POINTS), radius=0.5), tmp_path / "none.json")
    with pytest.raises(BadInput, match=r"claims a radius of 0\.5; none was asked for"):
        recheck(tmp_path / "none.json", plain, POINTS)


@pytest.mark.parametrize("radius", [0, -1.0, float("nan"), float("inf"), "1"])
def test_what_is_no_radius_is_refused(radius: object) -> None:
    with pytest.raises(BadInput, match=r"^radius is .*; expected a positive number$"):
        certify(build("vardi-2022", POINTS), POINTS, radius=radius)


def test_token_ids_do_not_move() -> None:
    task = random_next_token(examples=5, length=3, vocab=6, labels=2, rng=np.random.default_rng(0))
    with pytest.raises(BadInput, match="about vectors that may move; the network reads token ids"):
        certify(build("kajitsuka-sato-2025", task), task, radius=0.1)


def test_a_radius_is_never_rounded_up() -> None:
    """A step at 0 and a token at 0.5: proved within 0.49999 of it, which is not 0.5."""
    ramp = Affine(integers([[1 << 20], [1 << 20]]), integers([0, -1]))
    step = network(FeedForward((ramp, Affine(integers([[1, -1]]), integers([0]), relu=False))))
    task = NextToken(vectors=[[[0.5]], [[-1.0]]], labels=[1, 0])
    found = certify(step, task, radius=0.49999)
    assert found.certified
    assert "within 0.499 of a token (proved, every ball)" in found.found
    beyond = certify(step, task, radius=0.5)
    assert not beyond.certified
    assert "1 of 2 sequences not proved within 0.5 of their tokens" in beyond.found
