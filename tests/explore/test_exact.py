"""Exact networks in JavaScript: the numbers of every layer."""

from byheart.constructions import build
from byheart.explore.exact import CONSTRUCTIONS, TASK, shown
from byheart.networks.exact import ExactNetwork
from byheart.networks.exact.evaluate import evaluate

from .javascript import evaluated

STREAMS = """given.networks.map((network) => given.sequences.map((sequence) =>
  script.steps(network, sequence).map(({ name, tokens }) => ({ name, tokens: tokens.map((t) => t.map(String)) }))))"""


def test_every_network_answers_as_byheart_says() -> None:
    found = evaluated("exact.js", STREAMS, shown())
    assert len(found) == len(CONSTRUCTIONS)
    for name, sequences in zip(CONSTRUCTIONS, found, strict=True):
        network = build(name, TASK).network
        assert isinstance(network, ExactNetwork)
        answers = [int(steps[-1]["tokens"][-1][0]) for steps in sequences]
        assert answers == TASK.labels.tolist() == evaluate(network, TASK.tokens).tolist()


def test_interpolation_by_hand() -> None:
    """Codes 3, 5, 4; their sum, 12, twice, is added to the last: 28. Then relu(28 − 26) + relu(28 − 30) = 2."""
    layers = [
        {"kind": "embedding", "name": "embedding", "W_E": [["3"], ["5"], ["4"]]},
        {"kind": "attention", "name": "attention", "W_V": [["3"]], "W_O": [["2"]]},
        {
            "kind": "feed-forward",
            "name": "label",
            "residual": False,
            "layers": [
                {"role": "turns", "W": [["1"], ["1"]], "b": ["-26", "-30"], "shift": 0, "relu": True},
                {"role": "answer", "W": [["1", "1"]], "b": ["0"], "shift": 0, "relu": False},
            ],
        },
    ]
    found = evaluated("exact.js", STREAMS, {"networks": [{"layers": layers}], "sequences": [[0, 1, 2]]})[0][0]
    assert [step["tokens"] for step in found] == [
        [["3"], ["5"], ["4"]],
        [["27"], ["29"], ["28"]],
        [["2", "0"]],
        [["2"]],
    ]
