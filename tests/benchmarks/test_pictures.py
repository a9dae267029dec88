"""The figures of the benchmarks."""

from pathlib import Path

import pytest
from pictures import GrowthCurve, NeededBits, Robust, draw_growth, draw_precision, draw_robustness, guaranteed

from byheart.errors import BadInput

LINE = GrowthCurve("a line", (10, 1000), (2.0, 200.0), (0.1, 0.1))


def test_exponents_by_hand() -> None:
    """From 10 to 1,000 questions, 100 times as many: 100 times the seconds are N^1, 10 times are N^½."""
    assert LINE.exponent == pytest.approx(1)
    assert GrowthCurve("a root", (10, 1000), (2.0, 20.0), (1, 1)).exponent == pytest.approx(0.5)
    with pytest.raises(BadInput, match="a point"):
        _ = GrowthCurve("a point", (10,), (1.0,), (1.0,)).exponent


def test_growth_names_the_exponent(tmp_path: Path) -> None:
    draw_growth([LINE], tmp_path / "growth.svg")
    assert "N^1.00" in (tmp_path / "growth.svg").read_text()
    for curves in ([], [LINE] * 4):
        with pytest.raises(BadInput, match="expected 1 to 3"):
            draw_growth(curves, tmp_path / "none.svg")
    assert not (tmp_path / "none.svg").exists()


def needed(scale: str, sequences: str, length: int, vocab: int) -> NeededBits:
    return NeededBits(scale, sequences, length, vocab, 20 if scale == "gentle" else 40 * length)  # type: ignore[arg-type]


def test_precision_has_both_panels_and_all_names(tmp_path: Path) -> None:
    kinds = [(scale, sequences) for scale in ("gentle", "paper") for sequences in ("random", "hard")]
    sizes = [(2, 128), (6, 128), (32, 128), (6, 64), (6, 256)]
    draw_precision([needed(*kind, *size) for size in sizes for kind in kinds], tmp_path / "p.svg")
    text = (tmp_path / "p.svg").read_text()
    for name in ("paper's scale, hard sequences", "gentle (ours), random ones", "float32", "(n = 6)", "(ω = 128)"):
        assert name in text


def test_guaranteed_bits_grow_with_both_sizes() -> None:
    assert guaranteed(2, 64) < guaranteed(4, 64) < guaranteed(4, 128)
    assert 1.9 < guaranteed(6, 257) / guaranteed(6, 129) < 2.1


def test_robustness_names_networks_and_bounds(tmp_path: Path) -> None:
    networks = [Robust(0.9, 9000, "balls"), Robust(1e-5, 700, "cells"), Robust(0.1, 4000, "balls")]
    draw_robustness(networks, 30, 4, tmp_path / "p.svg")
    text = (tmp_path / "p.svg").read_text()
    for name in ("vardi-2022, read=cells", "Õ(Nd²)", "order only", "one indicator per point", "N = 30 points, d = 4"):
        assert name in text
