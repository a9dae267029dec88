"""The picture of the precision that softmax attention needs."""

from pathlib import Path

from byheart.report.precision import Needed, draw_precision, guaranteed


def needed(scale: str, sequences: str, length: int, vocab: int) -> Needed:
    return Needed(scale, sequences, length, vocab, 20 if scale == "gentle" else 40 * length)  # type: ignore[arg-type]


def test_both_panels_and_all_names(tmp_path: Path) -> None:
    kinds = [(scale, sequences) for scale in ("gentle", "paper") for sequences in ("random", "hard")]
    sizes = [(2, 128), (6, 128), (32, 128), (6, 64), (6, 256)]
    draw_precision([needed(*kind, *size) for size in sizes for kind in kinds], tmp_path / "p.svg")
    text = (tmp_path / "p.svg").read_text()
    for name in ("paper's scale, hard sequences", "gentle (ours), random ones", "float32", "(n = 6)", "(ω = 128)"):
        assert name in text


def test_what_the_paper_guarantees_grows_with_both() -> None:
    assert guaranteed(2, 64) < guaranteed(4, 64) < guaranteed(4, 128)
    assert 1.9 < guaranteed(6, 257) / guaranteed(6, 129) < 2.1
