import dataclasses
import math
import subprocess
import sys

import numpy as np
import pytest
import torch

from byheart.errors import BadInput
from byheart.lab.baseline import Trained, _Run, schedule, train
from byheart.lab.gpt import GPT, Shape, gpt_with
from byheart.tasks import random_next_token

TASK = random_next_token(examples=60, length=4, vocab=16, labels=16, rng=np.random.default_rng(0))
SETTINGS = {"labels_in_all": 16, "parameters": 3000, "learning_rate": 3e-2}


def trained(**changes) -> Trained:
    return train(TASK.tokens, TASK.labels, **SETTINGS | changes)


@pytest.fixture(autouse=True)
def _one_thread():
    """Steps this small are slowed down by threads, the more so when tests run side by side."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


def without_time(run):
    return dataclasses.replace(run, seconds=0)


def test_a_small_task_is_memorized():
    run = trained(steps=300)
    assert run.accuracy == 1
    assert run.memorized_bits == pytest.approx(60 * 4, rel=0.01)
    assert run.bits_per_parameter == pytest.approx(run.memorized_bits / run.parameters)
    assert run.parameters == run.shape.parameters <= 3000
    assert run.memorized_bits == pytest.approx(60 * (4 - run.loss_bits))
    assert (run.steps, run.epochs, run.device) == (300, 300, "cpu")


def test_too_large_a_task_is_not_memorized():
    task = random_next_token(examples=3000, length=4, vocab=16, labels=16, rng=np.random.default_rng(0))
    run = train(task.tokens, task.labels, labels_in_all=16, parameters=1000, steps=100)
    assert 0 < run.memorized_bits < 8 * run.parameters < 3000 * 4
    assert run.accuracy < 0.5


def test_hardly_trained_is_hardly_memorized():
    run = trained(steps=1, learning_rate=1e-9)
    assert run.loss_bits == pytest.approx(4, abs=0.1)
    assert run.memorized_bits == pytest.approx(0, abs=6)


def test_labels_that_are_not_uniform():
    """Labels that are all equal hold no bits, though telling one of 16 would cost 4."""
    equal = np.zeros(60, dtype=np.int64)
    runs = [train(TASK.tokens, equal, **SETTINGS, steps=60, prior_bits=prior) for prior in (None, 0.0)]
    assert runs[0].memorized_bits == pytest.approx(240, abs=3)
    assert runs[1].memorized_bits == pytest.approx(0, abs=3)


def test_equal_seeds_equal_results():
    run = trained(steps=20, batch=25, seed=3)
    assert without_time(trained(steps=20, batch=25, seed=3)) == without_time(run)
    assert trained(steps=20, batch=25, seed=4).loss_bits != run.loss_bits


def test_practice_steps_leave_no_trace():
    """What is done before a CUDA graph is recorded: steps at rate zero, which the optimizer then forgets."""
    losses = []
    for practised in (False, True):
        torch.manual_seed(0)
        tokens, labels = torch.from_numpy(TASK.tokens.copy()), torch.from_numpy(TASK.labels.copy())
        run = _Run(GPT(gpt_with(3000, 16, 16, 4)), tokens, labels, size=60, seed=0, precision="float32")
        if practised:
            for _ in range(3):
                run._work()
            run._forget()
        for _ in range(5):
            run.step(0.01)
        losses.append(run.loss.item())
    assert losses[0] == losses[1] < 4


def test_batches_are_of_equal_size():
    run = trained(steps=6, batch=25)  # 60 examples: three batches of 20
    assert run.epochs == pytest.approx(2)


def test_a_budget_in_seconds():
    lines = []
    run = trained(seconds=0.3, report=lines.append)
    assert 0.3 <= run.seconds < 3
    assert run.steps > 5
    assert lines == []  # reports come every ten seconds only


def test_reports(monkeypatch):
    monkeypatch.setattr(sys.modules["byheart.lab.baseline"], "SECONDS_A_REPORT", 0.0)
    lines = []
    trained(steps=3, report=lines.append)
    assert [line.split(",")[0] for line in lines] == ["step 1", "step 2", "step 3"]
    assert all(line.endswith(" bits a label") for line in lines)


def test_half_precision_is_measured_in_full():
    run = trained(steps=300, precision="bfloat16")
    assert run.accuracy == 1
    assert run.memorized_bits == pytest.approx(240, rel=0.02)


def test_the_rate_rises_and_falls():
    rates = [schedule(used / 1000) for used in range(1001)]
    top = rates.index(max(rates))
    assert rates[:top] == sorted(rates[:top])
    assert rates[top:] == sorted(rates[top:], reverse=True)
    assert (max(rates), rates[-1]) == (1, 0)
    assert min(rates[:-1]) > 0


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({}, "neither of seconds and steps given; expected one of them"),
        ({"seconds": 1, "steps": 1}, "both of seconds and steps given; expected one of them"),
        ({"seconds": 0}, "seconds is 0; expected more than 0"),
        ({"seconds": math.inf}, "seconds is inf; expected more than 0"),
        ({"steps": 0}, "steps is 0; expected at least 1"),
        ({"steps": 1, "batch": 0}, "batch is 0; expected at least 1"),
        ({"steps": 1, "learning_rate": 0}, "learning_rate is 0; expected more than 0"),
        ({"steps": 1, "vocab": 3}, "expected 0 to 2 (vocab = 3)"),
        ({"steps": 1, "labels_in_all": 5}, "expected 0 to 4 (labels_in_all = 5)"),
        ({"steps": 1, "parameters": 10}, "parameters is 10; expected at least"),
        ({"steps": 1, "device": "abacus"}, "device is 'abacus', which cannot be used here"),
        (
            {"steps": 1, "shape": Shape(16, 16, 4, 1, 32, 4, 99, True)},
            "shape has 11395 parameters; expected at most 3000",
        ),
        ({"steps": 1, "shape": Shape(16, 16, 9, 1, 8, 1, 9, True)}, "expected vocab 16, labels 16 and length 4"),
    ],
)
def test_refusals(changes, message):
    with pytest.raises(BadInput) as caught:
        trained(**changes)
    assert message in str(caught.value)


def test_shapes_of_arrays():
    with pytest.raises(BadInput, match=r"labels has shape \(59,\); expected \[60\]"):
        train(TASK.tokens, TASK.labels[:59], **SETTINGS, steps=1)
    with pytest.raises(BadInput, match=r"inputs has shape \(60,\); expected \[N, n\]"):
        train(TASK.tokens[:, 0], TASK.labels, **SETTINGS, steps=1)


def test_torch_and_numpy_are_enough():
    """It is to run on machines with a GPU where little is installed."""
    script = (
        "import sys; sys.modules.update(dict.fromkeys(['numba', 'flint', 'rich', 'tyro', 'matplotlib']));"
        "import byheart.lab, byheart.tasks"
    )
    subprocess.run([sys.executable, "-c", script], check=True)
