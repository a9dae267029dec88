"""The stream drawn: a network worked by hand, what is in the picture is what the network computes, refusals."""

from fractions import Fraction
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest

import byheart
from byheart.errors import BadInput
from byheart.networks.exact import Affine, ExactNetwork, FeedForward, TokenSum, integers
from byheart.networks.exact.reference import evaluate, trace
from byheart.report.pictures import draw_stream, picture, trace_floats

TASK = byheart.tasks.NextToken([[0, 1, 2], [1, 1, 0], [2, 0, 0], [2, 2, 1], [0, 0, 1]], [1, 0, 2, 2, 1])
TAGS = byheart.tasks.SeqToSeq([[0, 1, 2], [1, 1, 0], [2, 2, 1]], [[1, 0, 2], [2, 2, 0], [1, 1, 0]])
BY_HAND = ExactNetwork(
    layers=(
        TokenSum("sum"),
        FeedForward((Affine(integers([[1]]), integers([-8]), role="half", shift=1),), name="label"),
    ),
    inputs="tokens",
    outputs="every",
    length=2,
)


def test_by_hand() -> None:
    # tokens 1 and 3: each and twice the sum of all, 9 and 11; less 8, nothing below 0, halved
    assert list(trace(BY_HAND, np.array([1, 3]))) == [
        ("input", [[1], [3]]),
        ("sum", [[9], [11]]),
        ("label.0.half", [[Fraction(1, 2)], [Fraction(3, 2)]]),
    ]


@pytest.mark.parametrize(
    "name", ["interpolate", "kajitsuka-sato-2025", "vardi-2022", "folding", "kim-2023", "yang-2026"]
)
def test_the_last_stage_is_the_answer(name: str) -> None:
    task = TAGS if name == "kim-2023" else TASK
    network = byheart.build(name, task, seed=0).network
    answers = evaluate(network, task.inputs)
    for sequence, answer in zip(task.inputs, answers, strict=True):
        *_, (_, last) = trace(network, sequence)
        assert [value for [value] in last] == list(answer) if network.outputs == "every" else last[-1] == [answer]


def test_a_compiled_network() -> None:
    """By hand, after a: the words' sum modulo 2²⁴, of which the lowest 3 bits are the code of b."""
    built = byheart.compile("abracadabra")
    stages = dict(trace_floats(built.network, b"abr"))
    words = [784_754, -1_085_761, 2_385_547]
    assert stages["input"] == [[97], [98], [114]]
    assert stages["select"][0] == words
    assert stages["centre"][0] == [sum(words)]
    assert stages["scales"][0] == [1, Fraction(1, 8)]
    assert stages["bits_0"][0][1] == sum(words) % 8 == 4
    assert stages["answer"] == [[98], [114], [97]]
    assert stages["reduce_0_4"] != stages["reduce_0_0"], "what was written later is not shown before"
    assert not built.network.module.hash_0._forward_hooks


def test_every_number_is_in_the_picture(tmp_path: Path) -> None:
    network = byheart.build("kajitsuka-sato-2025", TASK, seed=0).network
    draw_stream(network, TASK.inputs[0], tmp_path / "s.svg")
    svg = ElementTree.parse(tmp_path / "s.svg")
    texts = [element.text for element in svg.iter("{http://www.w3.org/2000/svg}text")]
    for name, rows in trace(network, TASK.inputs[0]):
        assert name in texts
        assert all(", ".join(map(str, row)) in texts for row in rows if len(row) <= 4)
    green = [rect for rect in svg.iter("{http://www.w3.org/2000/svg}rect") if rect.get("class") == "answer"]
    assert len(green) == 1


def test_every_answer_is_green() -> None:
    assert picture([("input", [[1], [2]])], every=True).count('class="answer"') == 2
    assert picture([("input", [[1], [2]])], every=False).count('class="answer"') == 1


def test_what_cannot_be_drawn(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="is softmax; expected an exact or a compiled one"):
        draw_stream(byheart.build("madden-2024", TASK).network, [0], tmp_path / "s.svg")
    long = ExactNetwork(layers=(TokenSum("sum"),), inputs="tokens", outputs="every", length=300)
    with pytest.raises(BadInput, match="expected at most 200 boxes"):
        draw_stream(long, [0] * 300, tmp_path / "s.svg")
    assert not list(tmp_path.iterdir())
