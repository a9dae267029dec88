"""Your own construction, complete: it reads a sequence as one number, and climbs a staircase of labels along it.

    byheart task random --examples 100 --length 4 --vocab 30 --labels 5 -o t.npz
    byheart build staircase --construction examples/own_construction.py --task t.npz -o net
    byheart certify net --task t.npz
    byheart compare --construction examples/own_construction.py --task t.npz

**The network.** No attention: the n token ids are laid side by side. One unit holds the sequence as a number in base ω,
z = t_1·ω^(n−1) + … + t_n: different sequences, different numbers. Sort the N numbers, z_1 < … < z_N, with labels
y_1, …, y_N. For an integer z, relu(z − z_i + 1) − relu(z − z_i) is 1 if z ≥ z_i and 0 otherwise, so

    y_1 + Σ_{i ≥ 2} (y_i − y_{i−1}) · (relu(z − z_i + 1) − relu(z − z_i))

is y_i at z = z_i. **Parameters**, if N ≥ 2: n + 1 for the number, 4 for every step, 2 more to weigh it, and 1, together
6(N − 1) + n + 2. All weights are integers, the largest of about n·log₂ω bits: exact, and larger than it need be.
"""

from itertools import pairwise

import numpy as np

from byheart.constructions import Construction, Made, Plan
from byheart.constructions.gadgets.hypotheses import consistent
from byheart.constructions.plan import TokenwiseShape, network_for, plan_of
from byheart.errors import BadInput
from byheart.networks.exact import Affine, FeedForward, Flatten, integers
from byheart.progress import Report
from byheart.sizes import Size
from byheart.tasks import NextToken, Task
from byheart.tasks.theorems import Hypothesis, one_answer

NAME = "staircase"


def plan(examples: int, length: int) -> Plan:
    """Return every tensor's shape, from the number of different sequences and their length."""
    steps = 2 * (examples - 1) if examples > 1 else 1
    layers = TokenwiseShape((("number", 1, length), ("steps", steps, 1), ("answer", 1, steps)))
    return plan_of([("label", layers)], input_width=length, extra_depth=0)


def build(task: Task, settings: object, rng: np.random.Generator, report: Report | None = None) -> Made:
    """Build a network that has memorized ``task``, with the plan that it follows. Nothing is random here."""
    checked = consistent(NAME, task, positions=True)  # refuses one sequence with two labels, and names the examples
    if not isinstance(checked, NextToken) or checked.tokens is None:
        raise BadInput(f"{NAME} reads token ids and gives one label per sequence; the task is {task.kind}")
    place = [checked.vocab**k for k in reversed(range(checked.size.length))]
    numbers = [sum(t * p for t, p in zip(row, place, strict=True)) for row in checked.tokens.tolist()]
    label = dict(zip(numbers, checked.labels.tolist(), strict=True))
    ordered = sorted(label)
    biases, weights = [], []
    for before, here in pairwise(ordered):
        biases += [1 - here, -here]
        weights += [label[here] - label[before], label[before] - label[here]]
    biases, weights = biases or [0], weights or [0]  # one sequence: a layer has at least one unit
    layers = (
        Affine(integers([place]), integers([0]), role="number"),
        Affine(integers([[1]] * len(biases)), integers(biases), role="steps"),
        Affine(integers([weights]), integers([label[ordered[0]]]), role="answer", relu=False),
    )
    network = network_for(checked, (Flatten(), FeedForward(layers, name="label")))
    return Made(network, plan(len(ordered), checked.size.length), {"sequences": len(ordered)})


def plan_for(size: Size, setting: str, settings: object) -> Plan:
    """Return the plan for the hardest task of a size, in which all sequences differ."""
    if size.dim is not None:
        raise BadInput(f"{NAME} reads token ids; the tokens are vectors of dimension {size.dim}")
    return plan(size.examples, size.length)


def hypotheses(task: Task, settings: object) -> list[Hypothesis]:
    """Check the only hypothesis: a sequence has one label."""
    return [one_answer(task, positions=True, what="sequence")]


CONSTRUCTION = Construction(
    name=NAME,
    summary="reads a sequence as a number and climbs a staircase of labels: 6 parameters per sequence",
    build=build,
    covers=("next-token",),
    plan=plan_for,
    orders={"next-token": "6 per label"},
    hypotheses=hypotheses,
    colour="#0b6e4f",
    dash=(0, (6, 3)),
)
