"""What only the reference does; what it answers is held against the rest in test_evaluate."""

import ast
import inspect
from fractions import Fraction

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from byheart.networks.exact import reference

from .drawn import inputs_of, networks, tries
from .oracle import affine, answers, feed_forward, on_tokens, on_vectors


def test_no_arithmetic_is_shared_with_the_fast_evaluation():
    tree = ast.parse(inspect.getsource(reference))
    imported = {node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    assert not imported & {f"byheart.networks.{room}" for room in ("limbs", "kernels", "attention")}


def test_every_sequence_is_reported():
    counted = []
    network = on_tokens(feed_forward(affine([[1]], [0])))
    ids = np.array([[1], [2], [3]])
    found = reference.evaluate(network, ids, threads=2, report=lambda *step: counted.append(step))
    assert found.tolist() == [1, 2, 3]
    assert counted == [(1, 3), (2, 3), (3, 3)]


def test_floats_are_the_fractions_that_they_are():
    """0.1 is 3602879701896397 / 2⁵⁵, and 2⁵⁵ times that is an integer."""
    exact = on_vectors(feed_forward(affine([[1]], [0], relu=False)))
    scaled = on_vectors(feed_forward(affine([[2**55]], [0], relu=False)))
    inputs = np.array([[[0.1]], [[-5e-324]]])
    assert reference.evaluate(exact, inputs).tolist() == [Fraction(3602879701896397, 2**55), Fraction(-1, 2**1074)]
    assert reference.evaluate(scaled, inputs).tolist() == [3602879701896397, Fraction(-1, 2**1019)]


@tries(60)
@given(st.data())
def test_the_reference_is_what_fractions_say(data):
    network = data.draw(networks())
    inputs = data.draw(inputs_of(network))
    assert reference.evaluate(network, inputs).tolist() == answers(network, inputs)
