"""Networks with softmax attention against their labels: right, wrong, or not to be decided with the bits allowed."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from flint import ctx
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from byheart.certificates import Control, certify, controls, judge, read, recheck, write
from byheart.certificates.judges.enclosed import FEWEST_BITS, judge_enclosed
from byheart.constructions import build
from byheart.errors import BadInput
from byheart.networks import save
from byheart.networks.exact import ExactNetwork, Flatten, HardmaxAttention, integers
from byheart.tasks import NextToken, QueryTargets, SeqToSeq, random_next_token

from ...networks.exact.drawn import inputs_of, real_networks
from ...networks.exact.oracle import affine, answers, feed_forward, on_tokens, on_vectors, softmax

ONE = [[1]]
SCALAR = softmax(ONE, ONE, ONE, ONE)
"""One coordinate: token k looks at the tokens with the weights exp(Z_j Z_k)."""
NOTHING = softmax(ONE, ONE, [[0]], ONE)
"""Attention that adds nothing: outputs stay the integers that they were."""
EVERY = on_tokens(SCALAR, length=2, outputs="every")
TASK = SeqToSeq(tokens=[[1, 0], [2, 0], [1, 1]], labels=[[2, 1], [4, 1], [2, 2]])
"""1 + e/(1 + e) = 1.731 and ½ for the first, 2 + 2 e⁴/(1 + e⁴) = 3.964 and 1 for the second, 2 and 2 for the third."""


def shifted(by: int = 1) -> ExactNetwork:
    """The outputs of EVERY with 2^−4 · ``by`` added, so that nothing is exactly ½."""
    return on_tokens(SCALAR, feed_forward(affine([[16]], [by], shift=4, relu=False)), length=2, outputs="every")


def at(numerator: int, shift: int) -> ExactNetwork:
    """A network on single tokens t that says t + ``numerator`` / 2^``shift``."""
    add = feed_forward(affine([[2**shift]], [numerator], shift=shift, relu=False))
    return on_tokens(NOTHING, add)


SINGLE = NextToken(tokens=[[0], [1], [2]], labels=[0, 1, 2])


def lies(network: ExactNetwork, task: NextToken | SeqToSeq, seed: int = 0) -> list[Control]:
    return controls(network, task, np.random.default_rng(seed))


# Right and wrong


def test_right_by_hand() -> None:
    """With 1/16 more: 1.79 for 2, 0.5625 for 1, 4.03 for 4, 1.0625 for 1 and 2.0625 for 2: 0.4375 off at most."""
    found = judge_enclosed(shifted(), TASK)
    assert found.certified
    assert (found.checked, found.errors, found.undecided, found.counterexample) == (6, 0, 0, None)
    assert found.margin == pytest.approx(0.0625, abs=1e-12)
    assert found.method == f"ball arithmetic, exhaustive, {FEWEST_BITS} bits"
    assert found.seconds > 0


def test_wrong_by_hand() -> None:
    """0.5625 is no 0, and 1.0625 no 3: the first of them is named, with its position."""
    labels = TASK.labels.copy()
    labels[0, 1], labels[1, 1] = 0, 3
    found = judge_enclosed(shifted(), TASK.with_labels(labels))
    assert not found.certified
    assert (found.errors, found.undecided, found.checked) == (2, 0, 6)
    assert found.margin == pytest.approx(0.5 - 1.9375)
    assert str(found.counterexample) == "example 0, position 1: expected 0, got 0.5625"


def test_a_real_number_is_told_with_ten_digits() -> None:
    found = judge_enclosed(on_tokens(SCALAR, length=2), NextToken(tokens=[[1, 2], [0, 1]], labels=[4, 0]))
    assert str(found.counterexample) == "example 1: expected 0, got 1.731058579"
    assert found.counterexample is not None
    assert found.counterexample.position is None
    assert found.errors == 1


def test_judge_goes_there_by_itself() -> None:
    """Networks without softmax do not go there; and what is asked of exact evaluation only is refused."""
    assert judge(shifted(), TASK).method == f"ball arithmetic, exhaustive, {FEWEST_BITS} bits"
    with pytest.raises(BadInput, match="evaluator, threads and executor are for exact outputs"):
        judge(shifted(), TASK, evaluator="flint")
    assert judge(build("interpolate", SINGLE).network, SINGLE).method == "exact, exhaustive (limbs)"


def test_tasks_of_vectors() -> None:
    """Means of ½ and 1½ and so on, by W_Q = 0: x + mean, 0.5 + 1 = 1.5 and 2 + 1.25 = 3.25."""
    network = on_vectors(softmax([[0]], [[0]], ONE, ONE), length=2)
    task = NextToken(vectors=[[[1.5], [0.5]], [[0.5], [2.0]]], labels=[2, 3])
    found = judge_enclosed(network, task)
    assert (found.undecided, found.errors, found.certified) == (1, 0, False)
    assert judge_enclosed(network, NextToken(vectors=[[[0.5], [2.0]]], labels=[3])).certified


@pytest.mark.slow
@given(st.data())
@settings(deadline=None, max_examples=35)
def test_the_verdict_is_the_truth(data: st.DataObject) -> None:
    """Labels near the true outputs, some of them wrong: certified if and only if all are right, and counted."""
    network = data.draw(real_networks(most=2))
    inputs = data.draw(inputs_of(network, numbers=st.integers(0, 3), floats=st.sampled_from([0.0, 0.5, -1.0, 2.0])))
    inputs = inputs[np.unique(inputs.reshape(len(inputs), -1), axis=0, return_index=True)[1]]
    truth = np.array(answers(network, inputs), dtype=object)
    assume(all(0 <= value < 2**40 for value in truth.ravel()))
    off = data.draw(st.lists(st.sampled_from([0, 0, 0, 1]), min_size=truth.size, max_size=truth.size))
    labels = np.array([round(value) for value in truth.ravel()]).reshape(truth.shape) + np.reshape(off, truth.shape)
    distances = np.abs(truth - labels).astype(float)
    assume((np.abs(distances - 0.5) > 1e-9).all())
    kind, key = (NextToken if network.outputs == "last" else SeqToSeq), network.inputs
    found = judge(network, kind(labels=labels.astype(np.int64), **{key: inputs}))
    assert found.certified == bool((distances < 0.5).all())
    assert (found.errors, found.undecided) == ((distances > 0.5).sum(), 0)
    # The margin is what the balls are sure of: never more than there is.
    assert found.margin is not None
    assert found.margin <= 0.5 - distances.max() + 1e-9 * (1 + distances.max())
    assert found.certified == (found.margin > 0)
    if not found.certified:
        assert found.counterexample is not None
        place = tuple(np.argwhere(distances > 0.5)[0])
        assert (found.counterexample.example, found.counterexample.expected) == (place[0], labels[place])


# Doubt


@pytest.mark.parametrize("most_bits", [1, 64, 100, 1024, 1 << 17])
def test_half_way_is_not_decided(most_bits: int) -> None:
    """Exactly label + ½, in ever more bits: not right, not wrong, not certified."""
    found = judge_enclosed(at(1, 1), SINGLE, most_bits=most_bits)
    assert not found.certified
    assert (found.undecided, found.errors) == (3, 0)
    assert found.method == f"ball arithmetic, exhaustive, {max(FEWEST_BITS, most_bits)} bits"
    assert str(found.counterexample) == "example 0: expected 0, got 0.5"


def test_half_way_by_softmax() -> None:
    """0 among 0 and 1 is ½ only as a real number: the other outputs are decided, this one is not."""
    found = judge_enclosed(EVERY, TASK, most_bits=256)
    assert (found.certified, found.undecided, found.errors, found.checked) == (False, 1, 0, 6)
    assert found.method == f"ball arithmetic, exhaustive, {256} bits"
    assert found.counterexample is not None
    assert (found.counterexample.example, found.counterexample.position) == (0, 1)


def test_doubt_and_error_are_counted_apart() -> None:
    found = judge_enclosed(at(1, 1), SINGLE.with_labels([0, 0, 2]), most_bits=128)
    assert (found.certified, found.undecided, found.errors) == (False, 2, 1)


@pytest.mark.parametrize("sign", [-1, 1])
@pytest.mark.parametrize("bits", [10, 30, 52])
def test_close_to_half_way_is_decided(bits: int, sign: int) -> None:
    """½ ± 2^−bits, as far as a float64 can tell it from ½."""
    found = judge_enclosed(at(2 ** (bits - 1) + sign, bits), SINGLE)
    assert (found.certified, found.errors, found.undecided) == ((True, 0, 0) if sign < 0 else (False, 3, 0))


@pytest.mark.parametrize("sign", [-1, 1])
@pytest.mark.parametrize("bits", [60, 200])
def test_closer_to_half_way_is_decided_with_more_bits(bits: int, sign: int) -> None:
    """½ ± 2^−60 is no ½; as float64 it is."""
    found = judge_enclosed(at(2 ** (bits - 1) + sign, bits), SINGLE)
    assert (found.certified, found.errors, found.undecided) == ((True, 0, 0) if sign < 0 else (False, 3, 0))


def test_more_bits_are_taken_where_they_are_needed() -> None:
    """Two layers: the second one's scores magnify the first one's outputs 2⁴⁰ times and more."""
    steep = softmax([[2**40]], [[2**40]], ONE, ONE, score_shift=70, name="steep")
    network = on_tokens(SCALAR, steep, length=2)
    task = NextToken(tokens=[[0, 1], [1, 0]], labels=[3, 2])
    found = judge_enclosed(network, task)
    wanted = [round(value) for value in answers(network, task.inputs)]
    assert found.certified == (wanted == [3, 2])
    assert found.undecided == 0


LARGE = NextToken(tokens=[[5**25, 5**25 - 12345], [5**25, 5]], labels=[17, 3])
STEEP = on_tokens(softmax([[3**35]], [[7**20]], ONE, ONE), length=2)
"""The weights have 56 and 57 bits, the scores some 230: the first number of bits is not enough for them."""


def test_what_is_not_known_is_not_certified() -> None:
    """SOUNDNESS. The outputs are about 6 · 10¹⁷ and 3 · 10¹⁷, the labels 17 and 3; the balls at 128 bits are nan."""
    assert all(value > 2**50 for value in answers(STEEP, LARGE.inputs))
    assert not judge_enclosed(STEEP, LARGE).certified


def test_what_is_not_known_is_tried_with_more_bits() -> None:
    found = judge_enclosed(STEEP, LARGE)
    assert (found.errors, found.undecided) == (2, 0)
    right = [round(value) for value in answers(STEEP, LARGE.inputs)]
    found = judge_enclosed(STEEP, NextToken(tokens=LARGE.tokens, labels=right))
    assert found.certified
    assert found.margin is not None


def test_what_is_never_known_is_undecided() -> None:
    """With 128 bits and not more."""
    found = judge_enclosed(STEEP, LARGE, most_bits=128)
    assert (found.certified, found.errors, found.undecided) == (False, 0, 2)
    assert found.counterexample is not None


def test_small_tokens_and_weights_can_do_it_in_two_layers() -> None:
    """Weights of 21 bits and tokens below 8: at 64 bits the second layer's scores are not known to within 1."""
    large = [[2**20]]
    network = on_tokens(
        softmax(ONE, ONE, large, ONE, name="one"), softmax(large, large, ONE, ONE, name="two"), length=2
    )
    assert not judge_enclosed(network, NextToken(tokens=[[3, 5], [7, 5]], labels=[17, 3])).certified


# Huge outputs


@pytest.mark.parametrize("sign", [-1, 1])
@pytest.mark.parametrize("where", ["W_Q", "W_V", "W_O", "both"])
def test_huge_weights(where: str, sign: int) -> None:
    """5,000 bits in one weight or two: outputs far beyond all floats are wrong, and said to be."""
    huge = integers([[sign * 2**5000]])
    keys = ("W_Q", "W_V") if where == "both" else (where,)
    network = on_tokens(replace(SCALAR, **dict.fromkeys(keys, huge)), length=2)
    found = judge_enclosed(network, NextToken(tokens=[[0, 1], [3, 3]], labels=[0, 1]))
    assert not found.certified
    assert found.undecided == 0
    assert found.errors == 2
    assert found.counterexample is not None
    json.dumps({"got": found.counterexample.got, "margin": found.margin}, allow_nan=False)
    if where != "W_Q":
        assert found.margin is None


def test_huge_weights_behind_the_attention() -> None:
    behind = feed_forward(affine([[2**5000]], [-(2**4000)], relu=False))
    found = judge_enclosed(on_tokens(SCALAR, behind, length=2), NextToken(tokens=[[0, 1], [1, 0]], labels=[0, 1]))
    assert (found.certified, found.errors, found.undecided, found.margin) == (False, 2, 0, None)


def test_huge_outputs_are_told_by_their_size() -> None:
    """As by exact networks: about 2^5000."""
    network = on_tokens(replace(SCALAR, W_V=integers([[2**5000]])))
    found = judge_enclosed(network, NextToken(tokens=[[0], [1]], labels=[0, 1]))
    assert found.counterexample is not None
    assert "inf" not in found.counterexample.got


def test_huge_shifts_and_outputs_next_to_nothing() -> None:
    """2^5000 / 2^5000 = 1 is added; and without the weight 2^−5000, which is 0 for all labels."""
    task = NextToken(tokens=[[1], [2]], labels=[2, 4])
    huge = replace(SCALAR, W_V=integers([[2**5000]]), shift=5000)
    assert judge_enclosed(on_tokens(huge), task).certified
    found = judge_enclosed(on_tokens(replace(SCALAR, shift=5000)), task.with_labels([1, 2]))
    assert (found.certified, found.margin) == (True, np.nextafter(0.5, 0)), "not above the true one"


# What is refused, and what is left behind


def test_tasks_and_networks_that_do_not_go_together() -> None:
    with pytest.raises(BadInput, match="the network answers seq-to-seq tasks; the task is next-token"):
        judge(EVERY, NextToken(tokens=[[0, 1]], labels=[0]))
    with pytest.raises(BadInput, match="the network answers next-token tasks; the task is seq-to-seq"):
        judge(on_tokens(SCALAR, length=2), TASK)
    with pytest.raises(BadInput, match="sequences of 2 tokens"):
        judge(EVERY, SeqToSeq(tokens=[[0, 1, 2]], labels=[[0, 1, 2]]))
    with pytest.raises(BadInput, match="an exact network answers"):
        judge(EVERY, QueryTargets(contexts=[[0.0], [1.0]], queries=[[0.0]], targets=[0.5]))
    flat = on_tokens(SCALAR, Flatten(), feed_forward(affine([[1, 1]], [0])), length=2)
    with pytest.raises(BadInput, match="flatten: Flatten cannot be enclosed; expected feed-forward"):
        judge(flat, NextToken(tokens=[[0, 1]], labels=[0]))


def test_the_precision_is_put_back() -> None:
    before = ctx.prec
    judge_enclosed(at(1, 1), SINGLE, most_bits=1024)
    assert ctx.prec == before


def test_progress_is_told() -> None:
    counted: list[tuple[int, int]] = []
    judge(shifted(), TASK, report=lambda *step: counted.append(step))
    assert counted
    assert all(0 < done <= total for done, total in counted)


# Certificates


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    save(shifted(), tmp_path / "net")
    return tmp_path / "net"


def test_a_certificate_from_a_folder(folder: Path) -> None:
    found = certify(folder, TASK)
    assert found.certified
    assert (
        found.statement
        == "The network's output lies within ½ of the label for every position of the task, as real numbers."
    )
    assert found.method == "ball arithmetic, exhaustive, 64 bits"
    assert (found.checked, found.examples, found.errors, found.undecided) == (6, 3, 0, 0)
    assert (found.weights, found.task) == (shifted().fingerprint, TASK.fingerprint)
    assert replace(certify(str(folder), TASK), seconds=0) == replace(found, seconds=0)


def test_next_token_certificates_speak_of_sequences() -> None:
    found = certify(at(0, 0), SINGLE)
    assert "every sequence" in found.statement
    assert (found.certified, found.smallest_margin) == (True, 0.5)


@pytest.mark.parametrize("network", [shifted(), EVERY, shifted(200)], ids=["certified", "undecided", "wrong"])
def test_round_trip_and_recheck(tmp_path: Path, network: ExactNetwork) -> None:
    save(network, tmp_path / "net")
    written = certify(tmp_path / "net", TASK)
    write(written, tmp_path / "c.json")
    assert read(tmp_path / "c.json") == written
    again = recheck(tmp_path / "c.json", tmp_path / "net", TASK)
    assert replace(again, seconds=0) == replace(written, seconds=0)
    json.loads((tmp_path / "c.json").read_text(), parse_constant=lambda name: pytest.fail(f"{name} is not JSON"))


def test_undecided_answers_are_in_the_certificate() -> None:
    found = certify(EVERY, TASK)
    assert (found.certified, found.undecided, found.errors) == (False, 1, 0)


def test_recheck_refuses_other_weights_options_and_tasks(tmp_path: Path, folder: Path) -> None:
    """A changed option is another network, though no weight is another."""
    write(certify(folder, TASK), tmp_path / "c.json")
    layers = shifted().layers
    for other in (shifted(2), replace(shifted(), layers=(replace(SCALAR, score_shift=1), *layers[1:]))):
        with pytest.raises(BadInput, match=r"c\.json: is about weights"):
            recheck(tmp_path / "c.json", other, TASK)
    with pytest.raises(BadInput, match=r"c\.json: is about task"):
        recheck(tmp_path / "c.json", folder, TASK.with_labels([[2, 1], [4, 1], [2, 1]]))


def test_recheck_believes_nothing(tmp_path: Path) -> None:
    forged = replace(certify(EVERY, TASK), certified=True, undecided=0, counterexample=None)
    write(forged, tmp_path / "c.json")
    assert not recheck(tmp_path / "c.json", EVERY, TASK).certified


def test_a_causal_network_from_a_folder(tmp_path: Path) -> None:
    """The option decides: 1, 2 becomes 2, 4 if the first position sees itself only, else 3, 4."""
    layer = HardmaxAttention(*(integers(ONE) for _ in range(4)), causal=True)
    save(on_tokens(layer, length=2, outputs="every"), tmp_path / "net")
    task = SeqToSeq(tokens=[[1, 2]], labels=[[2, 4]])
    for evaluator in ("limbs", "flint"):
        assert certify(tmp_path / "net", task, evaluator=evaluator).certified
        assert not certify(tmp_path / "net", task.with_labels([[3, 4]]), evaluator=evaluator).certified
    save(on_tokens(replace(layer, causal=False), length=2, outputs="every"), tmp_path / "net")
    assert certify(tmp_path / "net", task.with_labels([[3, 4]])).certified


# Controls


def tripled(weight: int = 3) -> ExactNetwork:
    """A network on single tokens that says three times the token."""
    return on_tokens(NOTHING, feed_forward(affine([[weight]], [0], relu=False)))


@pytest.mark.parametrize("seed", range(5))
def test_shuffled_labels_are_found_out(seed: int) -> None:
    lie = lies(shifted(), TASK, seed)[0]
    assert lie.found
    assert lie.verdict.method.startswith("ball arithmetic")


@pytest.mark.parametrize("seed", range(12))
def test_flipped_bits_are_found_out(seed: int) -> None:
    """3 becomes 1 or 2; flips of W_Q, W_K and W_O are not felt, and others are tried."""
    lie = lies(tripled(), NextToken(tokens=[[0], [1], [2]], labels=[0, 3, 6]), seed)[1]
    assert lie.found
    assert lie.verdict.errors == 2


def test_a_flipped_bit_that_leaves_no_weight() -> None:
    """1 becomes 0, and the layer has no weight left: a lie like all others."""
    assert lies(tripled(1), SINGLE, 0)[1].found


def test_scores_that_are_not_known_in_front_of_a_layer() -> None:
    """More bits would do; what comes is a traceback."""
    behind = feed_forward(affine(ONE, [0], relu=False))
    found = judge_enclosed(replace(STEEP, layers=(*STEEP.layers, behind)), LARGE)
    assert (found.certified, found.errors, found.undecided) == (False, 2, 0)


CONSTRUCTED = random_next_token(examples=6, length=2, vocab=6, labels=3, rng=np.random.default_rng(0))


@pytest.fixture(scope="module")
def constructed() -> ExactNetwork:
    return build("kajitsuka-sato-2024", CONSTRUCTED).network


def test_a_construction_is_certified_and_lies_are_found_out(constructed: ExactNetwork, tmp_path: Path) -> None:
    """One paper's network, from a folder: certified with a margin, which a ball that knows nothing has not."""
    assert not constructed.rational
    save(constructed, tmp_path / "net")
    found = certify(tmp_path / "net", CONSTRUCTED)
    assert found.certified
    assert found.smallest_margin is not None
    assert 0 < found.smallest_margin <= 0.5
    assert lies(constructed, CONSTRUCTED, 0)[0].found


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(6))
def test_flipped_bits_of_a_construction_are_found_out(constructed: ExactNetwork, seed: int) -> None:
    lie = lies(constructed, CONSTRUCTED, seed)[1]
    assert lie.found
    assert lie.verdict.counterexample is not None


def test_one_layer_object_used_twice_is_two_layers() -> None:
    """The same attention object at two places, and two equal ones, give the same outputs."""
    twice = on_tokens(SCALAR, SCALAR, length=2)
    equal = on_tokens(SCALAR, replace(SCALAR), length=2)
    task = NextToken(tokens=[[3, 1]], labels=[10])
    assert judge(twice, task).margin == judge(equal, task).margin
    assert judge(twice, task).certified
