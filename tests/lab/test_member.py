from dataclasses import replace

import pytest

from byheart.errors import BadInput
from byheart.lab.member import Training

TRAINING = Training(batch=8, steps=40, learning_rate=0.02, last_learning_rate=0.001)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"batch": 0}, "batch is 0; expected at least 1"),
        ({"schedule": "cosine"}, "schedule is 'cosine'; expected one of linear-by-epoch, warm-up-cosine, constant"),
        ({"loss": "hinge"}, "loss is 'hinge'; expected one of"),
        ({"learning_rate": 0.0}, "learning_rate is 0.0 and last_learning_rate 0.001; expected more than 0"),
        ({"stop_at": 1.0}, "stop_at is 1.0 and evaluate_every is None"),
        ({"last_batches": 41}, "last_batches is 41; expected 0 to 40"),
        ({"betas": (0.9, 1.0)}, r"betas are \(0.9, 1.0\) and warm_up 0.05; expected 0 or more, and less than 1"),
        ({"largest_norm": 0.0}, "largest_norm is 0.0; expected more than 0, or None"),
    ],
)
def test_training_refuses(changes, message):
    with pytest.raises(BadInput, match=message):
        replace(TRAINING, **changes)
