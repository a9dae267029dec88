import numpy as np
import pytest

from byheart.lab.adam import learning_rates
from byheart.lab.member import Training


def test_warm_up_and_cosine():
    training = Training(batch=1, steps=1000, learning_rate=2.0, schedule="warm-up-cosine")
    rates = learning_rates(training, 10, np.arange(1001.0))
    assert rates[0] == pytest.approx(0.02)
    assert rates.argmax() == 50
    assert rates[50] == pytest.approx(2)
    assert rates[525] == pytest.approx(1)
    assert rates[-1] == 0
