"""The best learning rate of a grid."""

from dataclasses import dataclass
from typing import Any

import pytest

from byheart.errors import BadInput
from byheart.lab.experiment import Experiment
from byheart.lab.rows import ResultRow
from byheart.lab.search import Search, search, tried
from byheart.lab.sources import load
from byheart.papers.experiments import EXPERIMENTS, Named


def row(rate: float, accuracy: float | None, seed: int = 0, heads: int = 1, **more: Any) -> ResultRow:
    config = {"heads": heads, "learning_rate": rate, "last_learning_rate": rate / 20, "seed": seed}
    return ResultRow("own", f"{rate} {seed} {heads}", config, "done", {"accuracy": accuracy, **more}, 0.0, None)


def test_a_search_varies_the_rate_and_nothing_else() -> None:
    whole = EXPERIMENTS["mahdavi-2024-saturation"]("short")
    found = search(whole, [1e-3, 1e-2])
    assert (found.name, found.scale, len(found.configs)) == ("mahdavi-2024-saturation-search", "short", 8)
    assert {config.learning_rate for config in found.configs} == {1e-3, 1e-2}
    assert {config for config in found.configs if config.learning_rate == 1e-3} == {*whole.configs}


def test_a_source_tells_other_processes_what_to_search() -> None:
    origin = Search(Named("dana-2025-2", "smoke"), (0.1, 0.2), (("head_dim", "1"), ("seed", "0")))
    assert origin.text is None
    found = [(c.head_dim, c.learning_rate, c.last_learning_rate) for c in load(origin).configs]
    assert found == [(1, 0.1, pytest.approx(0.005)), (1, 0.2, pytest.approx(0.01))]


@dataclass(frozen=True)
class Other:
    """A config without a rate."""

    seed: int


@pytest.mark.parametrize(
    ("rates", "where", "told"),
    [
        ([0.1], {}, "learning rates are 0.1; expected two or more, all different"),
        ([0.1, 0.1], {}, "expected two or more, all different"),
        ([0.1, -0.1], {}, "expected two or more"),
        ([0.1, 0.2], {"head": "1"}, "dana-2025-6: configs have no head; expected experiment, vocab, "),
        ([0.1, 0.2], {"heads": "3"}, "no config matches; heads is 1 or 21"),
    ],
)
def test_a_search_that_cannot_be_is_refused(rates: list[float], where: dict[str, str], told: str) -> None:
    with pytest.raises(BadInput, match=told):
        search(EXPERIMENTS["dana-2025-6"]("smoke"), rates, where)


def test_configs_without_a_rate_are_refused() -> None:
    other = Experiment("other", "smoke", (Other(0),), lambda configs: [[*configs]], lambda *_: [])
    with pytest.raises(BadInput, match="other: configs have no learning_rate"):
        search(other, [0.1, 0.2])


def test_the_best_mean_over_seeds_is_the_best() -> None:
    rows = [row(0.1, 0.5), row(0.1, 0.7, seed=1), row(0.01, 0.9), row(0.01, 0.1, seed=1), row(0.001, 0.4)]
    found = tried(rows, "accuracy")
    assert [(one.learning_rate, one.best, one.edge) for one in found] == [
        (0.001, False, False),
        (0.01, False, False),
        (0.1, True, True),
    ]
    assert found[2].measured is not None
    assert found[2].measured.mean == pytest.approx(0.6)
    assert found[2].settings == {}


def test_every_choice_of_the_other_settings_has_its_own_best() -> None:
    rows = [row(rate, -((rate - heads / 10) ** 2), heads=heads) for heads in (1, 2, 3) for rate in (0.1, 0.2, 0.3)]
    best = [one for one in tried(rows, "accuracy") if one.best]
    assert [(one.settings, one.learning_rate, one.edge) for one in best] == [
        ({"heads": 1}, 0.1, True),
        ({"heads": 2}, 0.2, False),
        ({"heads": 3}, 0.3, True),
    ]


def test_a_loss_is_best_when_it_is_lowest() -> None:
    rows = [row(rate, 0.0, loss=loss) for rate, loss in ((0.1, 3.0), (0.2, 1.0), (0.3, 2.0))]
    assert [one.learning_rate for one in tried(rows, "loss", lowest=True) if one.best] == [0.2]


def test_a_rate_at_which_a_model_diverged_is_not_the_best() -> None:
    rows = [row(0.1, 0.5), row(0.1, 0.5, seed=1), row(0.2, 0.9), row(0.2, None, seed=1)]
    found = tried(rows, "accuracy")
    assert [(one.learning_rate, one.best) for one in found] == [(0.1, True), (0.2, False)]
    assert found[1].measured is None


def test_a_metric_that_is_not_there_is_refused() -> None:
    with pytest.raises(BadInput, match="'speed'; expected one of accuracy"):
        tried([row(0.1, 0.5)], "speed")
