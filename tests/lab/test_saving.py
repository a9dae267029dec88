"""One network of an experiment, trained and kept: which one, what is measured, and that it is what was trained."""

from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pytest
import torch

from byheart.certificates import certify
from byheart.errors import BadInput
from byheart.lab.experiment import Experiment
from byheart.lab.saving import kept, the_one, to_ask_for
from byheart.networks import load
from byheart.networks.trained.evaluate import evaluate
from byheart.papers import dana_2025, madden_2024
from byheart.papers.experiments import EXPERIMENTS, source
from byheart.tasks import NextToken, QueryLabels
from byheart.tasks import load as load_task

ONE_OF_EACH = {
    "dana-2025-6": {"heads": "21"},
    "dana-2025-5-deeper": {"model_dim": "7"},
    "mahdavi-2024-regression-heads-random": {"heads": "1"},
    "mahdavi-2024-saturation": {},
    "madden-2024-frozen": {"hidden": "4"},
    "capacity": {"most_parameters": "800", "demand": "1", "seed": "0"},
}


@pytest.mark.parametrize("name", ONE_OF_EACH)
def test_what_is_kept_is_certified(name: str, tmp_path: Path) -> None:
    """Every architecture, from its experiment to a certificate of what float64 said would be true, and of no more."""
    experiment = EXPERIMENTS[name]("smoke")
    made = kept(experiment, ONE_OF_EACH[name])
    folder = tmp_path / "net"
    folder.mkdir()
    made.write(folder)
    network, task = load(folder), load_task(folder / "task.npz")
    assert network.fingerprint == made.network.fingerprint
    assert task == made.task
    about = network.about
    assert (about["experiment"], about["scale"], about["metrics"]) == (name, "smoke", made.metrics)
    assert network.account.dense == made.metrics["parameters"]
    if isinstance(task, NextToken):  # 4,900 contexts take a while
        task = NextToken(task.inputs[:50], task.answers[:50], label_count=task.label_count, vocab=task.vocab)
    asked = to_ask_for(made.network, task)
    found = certify(network, task, **asked)
    assert found.certified
    if "count" in asked:
        queries = task.queries if isinstance(task, QueryLabels) else None
        right = evaluate(made.network, (task.inputs, queries)).argmax(axis=1) == task.answers
        assert (found.right, found.undecided) == (right.sum(), 0)
        assert not certify(network, task, at_least=found.right + 1).certified
    else:
        assert not certify(network, task, tolerance=0.99 * asked["tolerance"]).certified


@pytest.mark.slow
def test_measured_is_what_the_network_says() -> None:
    """Enough steps that something is learned; float32 and float64 may part at a tie, which is not to be had here."""
    one = the_one(EXPERIMENTS["dana-2025-6"]("smoke"), {"heads": "21"})
    experiment = dana_2025.experiment("smoke", name="6")
    longer = replace(experiment, configs=(replace(one, epochs=40),))
    made = kept(longer)
    right = (evaluate(made.network, (made.task.inputs, None)).argmax(axis=1) == made.task.answers).sum()
    assert made.metrics["accuracy"] == pytest.approx(right / 100, abs=0.011)
    assert right > 30
    assert to_ask_for(made.network, made.task) == {"count": True}
    assert certify(made.network, made.task, count=True).right == right


def test_the_same_config_gives_the_same_network() -> None:
    experiment = EXPERIMENTS["dana-2025-6"]("smoke")
    first, again, other = (kept(experiment, {"heads": heads}).network.fingerprint for heads in ("1", "1", "21"))
    assert first == again != other


def test_which_one_is_told() -> None:
    six = EXPERIMENTS["dana-2025-6"]("paper")
    assert (the_one(six, {"heads": "5", "seed": "3"}).heads, the_one(six, {"heads": "5", "seed": "3"}).seed) == (5, 3)
    with pytest.raises(BadInput, match=r"20 configs match; .* seed \(0, 1, 2, 3, …\)"):
        the_one(six, {"heads": "5"})
    with pytest.raises(BadInput, match=r"120 configs match; .* heads \(1, 5, 9, 13, …\), seed"):
        the_one(six, {})
    with pytest.raises(BadInput, match="heads is 1 or 5 or"):
        the_one(six, {"heads": "2"})
    with pytest.raises(BadInput, match="configs have no head; expected experiment, vocab"):
        the_one(six, {"head": "2"})


@dataclass(frozen=True)
class Own:
    seed: int


def test_experiments_that_do_not_say_what_they_train_are_refused() -> None:
    own = Experiment("own", "smoke", (Own(0),), lambda configs: [[*configs]], lambda *_: [])
    with pytest.raises(BadInput, match=r"own: .* prepare\(config\)"):
        kept(own)


def test_configs_of_ours_in_a_file_of_the_users_are_kept(tmp_path: Path) -> None:
    """What is beside their class says how: as for work and groups."""
    lines = ["from byheart.papers.dana_2025 import DanaConfig"]
    lines += ['CONFIGS = [DanaConfig("own", vocab=4, model_dim=2, head_dim=2, heads=1, batch=8, batches=2, epochs=1)]']
    (tmp_path / "mine.py").write_text("\n".join(lines))
    made = kept(source(str(tmp_path / "mine.py"), "smoke").load())
    assert (made.network.about["experiment"], made.task.size.examples) == ("mine", 16)


def test_contexts_of_every_length() -> None:
    """Beginnings of 1 to 9 tokens, filled up; every probability is one of the counts'."""
    data = madden_2024.contexts([list("abcdefghij"), list("abcdefghjj")])
    task = madden_2024.task_of(data)
    assert task.tokens is not None
    assert (task.tokens == 10).sum(axis=1).tolist() == (9 - data.lengths).tolist()
    assert np.array_equal(task.probabilities[:, :-1] > 0, data.counts > 0)
    assert not task.probabilities[:, -1].any()
    assert task.likelihoods.tolist() == pytest.approx((data.counts.sum(axis=1) / 18).tolist())


def test_a_network_that_diverged_is_not_kept() -> None:
    experiment = EXPERIMENTS["dana-2025-6"]("smoke")
    wild = replace(experiment, configs=(replace(experiment.configs[0], learning_rate=1e38, last_learning_rate=1e38),))
    with pytest.raises(BadInput, match="has entries that are not finite"):
        kept(wild)
    assert torch.get_default_dtype() == torch.float32
