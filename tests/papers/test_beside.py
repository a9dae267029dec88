"""Networks that are built for a ladder's own labels: the same task, every answer right, counted by the one counter."""

from dataclasses import asdict
from typing import Any

import numpy as np
import pytest

from byheart.errors import BadInput
from byheart.papers.capacity import Rung, _member, beside, experiment
from byheart.papers.capacity.beside import (
    COMPILED,
    NETWORKS,
    Beside,
    Labels,
    beside_in_words,
    build_beside,
    labels_of,
    shipped_beside,
)
from byheart.papers.results import built

FEW = Labels(examples=12, length=3, vocab=5, labels=4)


def rows_of(*rungs: Rung, bits: float = 1.0) -> list[dict[str, Any]]:
    measured = {"bits_per_parameter": bits}
    return [asdict(rung) | measured | {"parameters": rung.most_parameters, "examples": rung.examples} for rung in rungs]


def test_the_labels_are_those_of_the_first_seed() -> None:
    rung = Rung(1000, 0.2, length=3, vocab=9, labels=4)
    [labels] = labels_of(rows_of(rung))
    trained = _member(rung).examples
    assert np.array_equal(trained["tokens"], labels.task.inputs)
    assert np.array_equal(trained["answers"], labels.task.labels)


def test_networks_stand_beside_the_n_at_which_most_was_held() -> None:
    less, more = Rung(1000, 1), Rung(1000, 2)
    assert [labels.examples for labels in labels_of([*rows_of(less), *rows_of(more, bits=1.5)])] == [more.examples]


def test_networks_of_one_kind_are_one_range() -> None:
    networks = [Beside("folding", N, P, 6 * N / P, 340) for N, P in ((4000, 1036), (8000, 1500))]
    assert beside_in_words(networks)[0].endswith(": folding (of up to 340 bits) 23.17 to 32.00.")
    assert beside_in_words([]) == []


def test_one_of_each_kind_holds_every_label() -> None:
    found = build_beside([FEW])
    assert [made.name for made in found] == list(NETWORKS)
    for made in found:
        assert made.bits_per_parameter == 12 * 2 / made.parameters, "C = 4: two bits a label"
    assert [made.weight_bits == 32 for made in found] == [made.name == COMPILED for made in found]


def test_a_network_of_other_labels_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    right = beside._built
    others = FEW.task
    wrong = type(others)(tokens=others.inputs, labels=(others.labels + 1) % 4, label_count=4, vocab=5)
    monkeypatch.setattr(beside, "_built", lambda name, task: right("interpolate", wrong))
    with pytest.raises(BadInput, match="has 12 errors in 12 answers; expected 12 right"):
        beside._checked("interpolate", FEW, beside._built("interpolate", others))


def test_what_comes_with_byheart_is_of_the_largest_ladder() -> None:
    rungs = experiment("paper").configs
    rows = built("capacity")
    assert {(row["network"], row["examples"]) for row in rows} == {(n, r.examples) for n in NETWORKS for r in rungs}
    for row in rows:
        assert (row["length"], row["vocab"], row["labels"]) == (rungs[0].length, rungs[0].vocab, rungs[0].labels)
        assert row["bits_per_parameter"] == pytest.approx(6 * row["examples"] / row["parameters"])
    first = min(rungs, key=lambda rung: rung.examples)
    found = shipped_beside(rows_of(first))
    assert [made.examples for made in found] == [first.examples] * len(NETWORKS)
    assert shipped_beside(rows_of(Rung(1000, 1))) == [], "of other labels there are none"


def test_what_comes_with_byheart_is_what_would_be_built_today() -> None:
    """The smallest of them, the quickest kind: interpolate, 3 parameters a label and a few more."""
    labels = Labels(*(int(min(built("capacity"), key=lambda row: row["examples"])[name]) for name in asdict(FEW)))
    made = beside._built("interpolate", labels.task)
    [row] = [r for r in built("capacity") if (r["network"], r["examples"]) == ("interpolate", labels.examples)]
    assert (made.account.dense, made.account.max_bits) == (row["parameters"], row["weight_bits"])
    assert 3 * labels.examples < made.account.dense < 3 * labels.examples + 100
