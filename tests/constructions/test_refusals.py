"""Just outside the hypotheses every construction refuses, and says which one failed and where."""

import re

import numpy as np
import pytest

from byheart.certificates import judge
from byheart.constructions import CONSTRUCTIONS, build, interpolate, kajitsuka_sato_2025, vardi_2022
from byheart.constructions.construction import Reading
from byheart.errors import BadInput
from byheart.tasks import NextToken, NextTokenDistribution, QueryLabels, QueryTargets, SeqToSeq

from ..exact import EXACT, SOFTMAX

TRANSFORMERS = ["interpolate", "kajitsuka-sato-2025", "folding"]
TWINS = NextToken(tokens=[[9, 9], [0, 1], [5, 5], [1, 0]], labels=[0, 1, 0, 0])


@pytest.mark.parametrize("name", TRANSFORMERS)
@pytest.mark.parametrize(
    "task",
    [TWINS, NextToken(vectors=np.array([[9, 9], [0, 1], [5, 5], [1, 0]])[:, :, None] / 8, labels=[0, 1, 0, 0])],
    ids=["ids", "vectors"],
)
def test_permuted_twins_are_named_and_positions_help(name: str, task: NextToken) -> None:
    message = (
        f"{name} cannot memorize this task: example 1 and example 3 are equal sequences up to order: "
        "asked for label 1 and label 0; --positions makes order matter"
    )
    with pytest.raises(BadInput, match=f"^{re.escape(message)}$"):
        build(name, task)
    built = build(name, task, settings=CONSTRUCTIONS[name].settings(positions=True))
    assert judge(built.network, task).certified


def test_permuted_twins_are_no_trouble_without_attention() -> None:
    assert judge(build("vardi-2022", TWINS).network, TWINS).certified


@pytest.mark.parametrize("name", TRANSFORMERS)
def test_equal_tokens_of_one_sequence(name: str) -> None:
    task = SeqToSeq(tokens=[[1, 2], [3, 3]], labels=[[0, 0], [0, 1]])
    message = "example 1, position 0 and example 1, position 1 are equal tokens in equal sequences up to order"
    with pytest.raises(BadInput, match=f"{message}: asked for label 0 and label 1; --positions makes order matter$"):
        build(name, task)


@pytest.mark.parametrize("name", EXACT)
@pytest.mark.parametrize("positions", [False, True])
def test_conflicting_duplicates(name: str, positions: bool) -> None:
    """Nothing helps: no hint at positions."""
    task = NextToken(tokens=[[0, 1], [2, 2], [0, 1]], labels=[0, 0, 1])
    settings = CONSTRUCTIONS[name].settings_with(positions=positions)
    with pytest.raises(BadInput, match=r"example 0 and example 2 are equal sequences.*label 0 and label 1$"):
        build(name, task, settings=settings)


@pytest.mark.parametrize("name", EXACT)
def test_zero_and_minus_zero_are_equal(name: str) -> None:
    with pytest.raises(BadInput, match="example 0 and example 1 are equal sequences"):
        build(name, NextToken(vectors=[[[0.0]], [[-0.0]]], labels=[0, 1]))


@pytest.mark.parametrize("name", EXACT)
def test_distributions(name: str) -> None:
    task = NextTokenDistribution(tokens=[[0], [1]], probabilities=[[0.5, 0.5], [1.0, 0.0]])
    with pytest.raises(BadInput, match=f"{name} memorizes labels of sequences; the task is next-token-distribution"):
        build(name, task)


@pytest.mark.parametrize("name", EXACT)
def test_queries(name: str) -> None:
    asked = {"contexts": [[0.0], [1.0]], "queries": [[0.0], [1.0]]}
    for task in (QueryLabels(**asked, labels=[0, 1]), QueryTargets(**asked, targets=[0.5, 1])):
        with pytest.raises(BadInput, match=f"^{name} memorizes labels of sequences; the task is {task.kind}$"):
            build(name, task)


def test_sequences_are_not_for_softmax_networks_of_other_tasks() -> None:
    reads = {
        "mahdavi-2024": "contexts with queries (query-labels, query-targets)",
        "madden-2024": "next-token and next-token-distribution tasks over token ids",
    }
    task = SeqToSeq(tokens=[[0, 1]], labels=[[0, 1]])
    for name, what in reads.items():
        with pytest.raises(BadInput, match=f"^{re.escape(f'{name} memorizes {what}; the task is {task.kind}')}$"):
            build(name, task)
    with pytest.raises(BadInput, match=r"the task is next-token$"):
        build("mahdavi-2024", TWINS)


@pytest.mark.parametrize("name", SOFTMAX)
def test_conflicts_are_named_by_softmax_constructions(name: str) -> None:
    """Equal sequences, or an equal query to an equal context, with two answers: the two examples are named."""
    tokens = [[0, 1], [2, 2], [0, 1]]
    task = {
        "mahdavi-2024": QueryTargets(contexts=np.eye(2, 3), queries=np.eye(3)[[0, 1, 0]], targets=[0, 0, 1]),
        "dana-2025": NextToken(tokens=tokens, labels=[0, 0, 1]),
        "madden-2024": NextTokenDistribution(tokens=tokens, probabilities=[[1, 0, 0], [1, 0, 0], [0, 1, 0]]),
    }[name]
    with pytest.raises(BadInput, match=rf"^{name} cannot memorize this task: example 0 and example 2 "):
        build(name, task)


def test_seq_to_seq_is_not_for_points() -> None:
    for name in ("vardi-2022", "yang-2026"):
        with pytest.raises(BadInput, match=rf"^{name} memorizes points, .* one per token \(seq-to-seq\)"):
            build(name, SeqToSeq(tokens=[[0, 1]], labels=[[0, 1]]))
        assert CONSTRUCTIONS[name].covers == ("next-token",)


def test_unknown_construction() -> None:
    with pytest.raises(BadInput, match=f"^no construction is called 'fermat'; there are {', '.join(CONSTRUCTIONS)}$"):
        build("fermat", TWINS)
    with pytest.raises(BadInput, match=r"^no construction is called 'kim-2024'; did you mean 'kim-2023'\?$"):
        build("kim-2024", TWINS)


def test_what_is_no_task() -> None:
    for value, kind in (([[1, 2]], "list"), (np.eye(2), "ndarray"), ("t.npz", "str")):
        message = f"expected a task such as byheart.tasks.NextToken(…); got {kind}"
        with pytest.raises(BadInput, match=f"^{re.escape(message)}$"):
            build("folding", value)


def test_settings_by_name() -> None:
    """Unknown ones are refused with all that there are; so are words that a setting cannot be."""
    built = build("vardi-2022", TWINS, depth=40, bits=30)
    assert built.settings == vardi_2022.VardiSettings(depth=40, bits=30)
    names = "read, radius, depth, bits, width"
    with pytest.raises(BadInput, match=rf"^vardi-2022 has no setting called 'heads'; it has {names}$"):
        build("vardi-2022", TWINS, heads=3)
    with pytest.raises(BadInput, match=r"^settings are given twice: as a whole, and bits; expected one of the two$"):
        build("vardi-2022", TWINS, settings=vardi_2022.VardiSettings(), bits=30)
    with pytest.raises(
        BadInput, match=r"^vardi-2022: expected settings of type .*vardi_2022.VardiSettings; got Reading$"
    ):
        build("vardi-2022", TWINS, settings=Reading())
    with pytest.raises(BadInput, match=r"^ids is 'digit'; expected one of digits, hashed$"):
        build("kim-2023", TWINS, ids="digit")


@pytest.mark.parametrize("name", TRANSFORMERS)
def test_tables_have_an_end(name: str) -> None:
    with pytest.raises(BadInput, match="vocab is 100000001; an embedding table can have 100000000 rows at most"):
        build(name, NextToken(tokens=[[0]], labels=[0], vocab=10**8 + 1))


@pytest.mark.parametrize("name", TRANSFORMERS)
def test_tables_have_an_end_with_positions(name: str) -> None:
    with pytest.raises(BadInput, match="vocab is 1000000000001; an embedding table can have 100000000 rows at most"):
        build(name, NextToken(tokens=[[0]], labels=[0], vocab=10**12 + 1), settings=CONSTRUCTIONS[name].settings(True))


SEQUENCES = NextToken(tokens=[[0, 1], [1, 1], [2, 0], [2, 2]], labels=[1, 0, 1, 0])


@pytest.mark.parametrize(
    ("name", "settings", "message"),
    [
        # Keys up to 144 // 2 = 72 under 2 labels: bit_length(2·74) + 2 = 10 bits; hashing 2·2²·144·2 = 2304: 13 bits.
        (
            "vardi-2022",
            vardi_2022.VardiSettings(bits=12),
            r"hashing these points needs 13 bits per weight; got bits=12",
        ),
        # A hash, four folds, the key and a lookup of four layers.
        ("vardi-2022", vardi_2022.VardiSettings(depth=9), r"needs at least 10 layers .* got depth=9, bits=None"),
        # s ≤ 5Q takes four folds and the key; with embedding and attention, and a lookup of four layers, 11.
        (
            "kajitsuka-sato-2025",
            kajitsuka_sato_2025.KajitsukaSatoSettings(depth=10),
            r"needs at least 11 layers; got depth=10$",
        ),
    ],
    ids=["bits", "depth", "depth of a Transformer"],
)
def test_limits_that_are_too_tight_by_one(name: str, settings: object, message: str) -> None:
    with pytest.raises(BadInput, match=message):
        build(name, SEQUENCES, settings=settings)
    by_one = {key: value + 1 for key, value in vars(settings).items() if type(value) is int}
    built = build(name, SEQUENCES, settings=type(settings)(**by_one))
    assert judge(built.network, SEQUENCES).certified


@pytest.mark.parametrize("limit", [{"bits": 0}, {"bits": -1}, {"depth": 0}, {"depth": -7}], ids=str)
def test_senseless_limits(limit: dict[str, int]) -> None:
    for task in (SEQUENCES, NextToken(tokens=[[0], [1]], labels=[0, 1])):
        with pytest.raises(BadInput, match="needs"):
            build("vardi-2022", task, settings=vardi_2022.VardiSettings(**limit))


def test_settings_are_frozen() -> None:
    for module in (interpolate, vardi_2022, kajitsuka_sato_2025):
        with pytest.raises(AttributeError):
            module.Settings().positions = True
