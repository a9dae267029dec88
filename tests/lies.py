"""The two controls, one by one: what tests of constructions ask for."""

import numpy as np

from byheart.certificates import Control, controls
from byheart.networks import Network
from byheart.tasks import Questions


def shuffled_answers(network: Network, questions: Questions, rng: np.random.Generator) -> Control:
    return controls(network, questions, rng)[0]


def perturbed_weight(network: Network, questions: Questions, rng: np.random.Generator) -> Control:
    return controls(network, questions, rng)[1]
