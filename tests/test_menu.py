"""What users see first: the menu, its verbs, one-line reprs, and sentences instead of attribute errors."""

import numpy as np
import pytest

import byheart
from byheart.errors import BadInput
from byheart.tasks import NextToken, NextTokenDistribution, SeqToSeq


def test_the_menu() -> None:
    assert dir(byheart) == sorted([*byheart.__all__, "__version__"])
    assert {"build", "certify", "compile", "load", "networks", "tasks"} <= set(dir(byheart))
    for name in dir(byheart):
        assert getattr(byheart, name) is not None
    with pytest.raises(AttributeError, match="module 'byheart' has no attribute 'biuld'; did you mean 'build'"):
        _ = byheart.biuld


def test_tasks_from_lists_and_arrays() -> None:
    tokens, labels = [[0, 1], [1, 0]], [0, 1]
    vectors = np.array([[[0.5], [1.0]], [[1.0], [0.5]]])
    task = NextToken(tokens, labels)
    assert task == NextToken(np.array(tokens), np.array(labels)) == NextToken(tokens=tokens, labels=labels)
    assert (
        NextToken(vectors, labels) == NextToken(vectors=vectors, labels=labels) == NextToken(vectors.tolist(), labels)
    )
    assert SeqToSeq(tokens, tokens) == SeqToSeq(tokens=tokens, labels=tokens)
    given = [[0.5, 0.5], [1.0, 0.0]]
    assert NextTokenDistribution(tokens, given) == NextTokenDistribution(tokens=tokens, probabilities=given)
    for kind in (NextToken, SeqToSeq):
        with pytest.raises(BadInput, match=rf"labels are missing; expected {kind.__name__}\(tokens, labels\)"):
            kind(tokens)


def test_wrong_types_get_a_sentence() -> None:
    built = byheart.build("interpolate", NextToken([[0], [1]], [0, 1]))
    with pytest.raises(BadInput, match="got int; expected a task, texts"):
        byheart.certify(built, 5)
    with pytest.raises(BadInput, match=r"got list; expected a network, a result of byheart\.build, or a folder"):
        byheart.certify([1, 2], NextToken([[0]], [0]))
    with pytest.raises(BadInput, match=r"nowhere/config.json: no such file; expected a folder with a network"):
        byheart.load("nowhere")
    with pytest.raises(BadInput, match=r"got list that begins with \[1, 2\]; expected a task, texts"):
        byheart.compile([[1, 2]])


def test_reprs_are_one_short_line() -> None:
    task = NextToken([[0, 1], [1, 1], [2, 0]], [1, 0, 1])
    built, compiled = byheart.build("kajitsuka-sato-2025", task), byheart.compile("abracadabra, abracadabra!")
    for thing in (
        task,
        built,
        compiled,
        built.network,
        compiled.network,
        compiled.questions,
        byheart.certify(built, task),
    ):
        assert "\n" not in repr(thing)
        assert len(repr(thing)) < 150
