"""Which head holds which example: by hand, for the proof's own network, and as a picture."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from byheart.constructions import build, dana_2025, mahdavi_2024
from byheart.errors import BadInput
from byheart.networks.softmax import SoftmaxNetwork, attention, embedded
from byheart.report import saturation as module
from byheart.report.saturation import Saturation, caption, draw_saturation, saturation_of
from byheart.tasks import QueryTargets, random_next_token, random_queries


def two_heads() -> SoftmaxNetwork:
    """d = 2. Head 0 scores a token by its first coordinate times the query's, head 1 by the second ones."""
    axes = np.eye(2)[:, :, None]
    return SoftmaxNetwork(W_Q=axes, W_K=axes, W_V=np.ones((2, 2, 1)), W_O=np.ones((2, 1, 1)))


CONTEXT = np.array([[0.0, 1.0], [1.0, 0.0]])
QUERIES = np.array([[np.log(3), 0.0], [-9.0, np.log(3)], [9.0, 9.0]])


def test_by_hand() -> None:
    """Scores are (0, a) in head 0 and (b, 0) in head 1 for the query (a, b)."""
    found = saturation_of(two_heads(), (np.array([CONTEXT] * 3), QUERIES))
    sure = 1 / (1 + np.exp(-9))
    np.testing.assert_allclose(found.largest, [[0.75, sure, sure], [0.5, 0.75, sure]], rtol=1e-14)
    assert found.largest.dtype == np.float64
    assert found.token.tolist() == [[1, 0, 1], [0, 0, 0]]
    assert found.saturated.tolist() == [[False, True, True], [False, False, True]]
    assert found.share == 0.5
    assert found.held.tolist() == [1, 2]
    assert found.holders.tolist() == [2, 1, 0]
    assert found.saturated_heads.tolist() == [1, 1, 1]
    assert found.length == 2
    assert caption(found) == (
        "2 heads, 3 examples of 2 tokens: 3 of the 6 pairs (50 %) are saturated. "
        "A head holds 1 to 2 examples (median 1.5); an example is held by 0 to 2 heads (median 1), 1 by none."
    )


def test_another_threshold() -> None:
    """At the threshold itself a head is not saturated, as in the lab."""
    inputs = (np.array([CONTEXT] * 3), QUERIES)
    at = float(saturation_of(two_heads(), inputs).largest[0, 0])
    assert saturation_of(two_heads(), inputs, threshold=at).saturated[0].tolist() == [False, True, True]
    below = saturation_of(two_heads(), inputs, threshold=float(np.nextafter(at, 0)))
    assert below.saturated[0].tolist() == [True, True, True]


def test_chunks_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    inputs = rng.standard_normal((7, 5, 2)), rng.standard_normal((7, 2))
    whole = saturation_of(two_heads(), inputs)
    monkeypatch.setattr(module, "MAX_ENTRIES", 1)
    one_by_one = saturation_of(two_heads(), inputs)
    np.testing.assert_allclose(one_by_one.largest, whole.largest, rtol=1e-14)
    np.testing.assert_array_equal(one_by_one.token, whole.token)


def saturated_task(length: int, heads: int) -> QueryTargets:
    task = random_queries(
        examples=heads * (length - 1) + 1,
        length=length,
        dim=length + 4,
        labels=None,
        shared=True,
        rng=np.random.default_rng(0),
    )
    assert isinstance(task, QueryTargets)
    return task


def found_in(task: QueryTargets, **settings: Any) -> Saturation:
    built = build("mahdavi-2024", task, settings=mahdavi_2024.MahdaviSettings(**settings)).network
    assert isinstance(built, SoftmaxNetwork)
    assert task.vectors is not None
    return saturation_of(built, (task.vectors, task.queries))


def test_the_proofs_own_network() -> None:
    """Off the diagonal blocks of n − 1 examples all heads are saturated, at the first token or the last."""
    length, heads = 32, 3
    found = found_in(saturated_task(length, heads))
    examples = np.arange(heads * (length - 1) + 1)
    block = (examples - 1) // (length - 1) == np.arange(heads)[:, None]
    np.testing.assert_array_equal(found.saturated, ~block)
    np.testing.assert_array_equal(found.largest[~block], 1.0)
    assert set(found.token[~block].tolist()) == {0, length - 1}
    assert found.held.tolist() == [length - 1] * heads
    assert found.holders.tolist() == [0] + [1] * (len(examples) - 1)
    assert found.saturated_heads.tolist() == [0, 0, len(examples) - 1, 1]


def test_generic_heads_are_not_like_that() -> None:
    found = found_in(saturated_task(32, 3), way="generic")
    assert found.share < 0.1
    assert found.holders.min() >= 2


def test_networks_of_tokens() -> None:
    task = random_next_token(examples=40, length=4, vocab=12, labels=5, rng=np.random.default_rng(0))
    assert task.tokens is not None
    built = build("dana-2025", task, settings=dana_2025.DanaSettings(model_dim=4)).network
    assert isinstance(built, SoftmaxNetwork)
    found = saturation_of(built, (task.tokens, None))
    weights = attention(built, *embedded(built, (task.tokens, None)))
    np.testing.assert_allclose(found.largest, weights.max(axis=2).T, rtol=1e-14)
    assert found.largest.shape == (9, 40)
    assert found.largest.min() >= 1 / 4


def made(H: int, N: int, n: int = 4) -> Saturation:
    """Head h holds the examples h, h + H, …"""
    largest = np.where(np.arange(N) % H == np.arange(H)[:, None], 0.5, 1.0)
    return Saturation(largest, np.zeros((H, N), np.int64), n)


@pytest.mark.parametrize("suffix", [".png", ".svg"])
@pytest.mark.parametrize(("H", "N", "n"), [(2, 3, 2), (20, 621, 32), (1, 1, 1), (60, 30, 8), (3, 2500, 4)])
def test_a_picture(tmp_path: Path, H: int, N: int, n: int, suffix: str) -> None:
    path = tmp_path / f"heads{suffix}"
    draw_saturation(made(H, N, n), "a title", path)
    content = path.read_bytes()
    assert content.startswith(b"\x89PNG" if suffix == ".png" else b"<?xml")
    assert len(content) > 5000


def test_what_the_picture_says(tmp_path: Path) -> None:
    """SVG keeps texts as comments: title, caption, each head's number, the weights of a small map."""
    draw_saturation(made(2, 3), "a title", tmp_path / "heads.svg")
    content = (tmp_path / "heads.svg").read_text(encoding="utf-8")
    for text in ("a title", "2 heads, 3 examples of 4 tokens: 3 of the 6 pairs", "0.500", "1.000", "examples held"):
        assert f"<!-- {text}" in content
    draw_saturation(made(2, 1200), "", tmp_path / "heads.svg")
    content = (tmp_path / "heads.svg").read_text(encoding="utf-8")
    assert content.count("<!-- 600 -->") >= 2
    assert "<!-- example (many per column, colours averaged) -->" in content
    assert "0.500" not in content


def test_colours() -> None:
    """A column an example: pale where saturated, from dark to light where not; averages if there are many."""
    from matplotlib.cm import ScalarMappable
    from matplotlib.colors import ListedColormap, Normalize

    palette = ListedColormap([(1.0, 0.0, 0.0), (0.0, 1.0, 0.0)]).with_extremes(over=(0.0, 0.0, 1.0))
    scale = ScalarMappable(Normalize(0.25, 0.99), palette)
    few = Saturation(np.array([[0.3, 0.98, 0.991, 1.0]]), np.zeros((1, 4), np.int64), 4)
    assert module._coloured(few, scale)[0, :, :3].tolist() == [[1, 0, 0], [0, 1, 0], [0, 0, 1], [0, 0, 1]]
    many = module._coloured(made(2, 2 * module.FINE), scale)
    assert many.shape == (2, module.FINE, 4)
    np.testing.assert_allclose(many, np.broadcast_to([0.5, 0.0, 0.5, 1.0], many.shape))


@pytest.mark.parametrize("name", ["heads.gif", "heads", "heads.txt"])
def test_other_pictures_are_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(BadInput, match=r"expected a picture's name, \.png, \.svg or \.pdf"):
        draw_saturation(made(2, 3), "", tmp_path / name)
    assert not (tmp_path / name).exists()


def test_a_folder_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="its folder does not exist"):
        draw_saturation(made(2, 3), "", tmp_path / "nowhere" / "heads.png")


def test_refusals() -> None:
    contexts = np.array([CONTEXT] * 3)
    with pytest.raises(BadInput, match="the network reads contexts and queries; the task has token ids"):
        saturation_of(two_heads(), (np.zeros((3, 2), np.int64), None))
    with pytest.raises(BadInput, match=r"\[3, 2, 1\].* dimension 2"):
        saturation_of(two_heads(), (contexts[:, :, :1], QUERIES))
    with pytest.raises(BadInput, match="there are no examples; expected at least one"):
        saturation_of(two_heads(), (contexts[:0], QUERIES[:0]))
    for threshold in (0.0, -1.0, 1.0, 1.5, float("nan")):
        with pytest.raises(BadInput, match="expected 0 < threshold < 1"):
            saturation_of(two_heads(), (contexts, QUERIES), threshold=threshold)
