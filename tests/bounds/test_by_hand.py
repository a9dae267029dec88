"""Every bound once, against a number worked out by hand."""

import math
from dataclasses import replace

import pytest

from byheart.bounds import BOUNDS, STATEMENTS, Letters, counting, dana_2025
from byheart.errors import BadInput
from byheart.sizes import Size

BY_NAME = {bound.name: bound for bound in BOUNDS}


def value(name: str, size: Size, letters: Letters | None = None) -> float:
    answer = BY_NAME[name].answer(size, letters or Letters())
    assert answer.parameters is not None, answer.reason
    return answer.parameters


def test_kim_2023() -> None:
    """N = 25, n = 4, d = 3: 3 + 4 + √100 = 17."""
    assert value("kim-2023-seq-to-seq", Size(examples=25, length=4, labels=2, vocab=9, dim=3)) == 17


def test_mahdavi_2024() -> None:
    """N = 10, n = 4, d_h = 3: r = 3, so H = ⌈9/2⌉ = 5. d = 6: a head has 2·6·3 + 6·1 + 1 = 43. 5·43 = 215."""
    size = Size(examples=10, length=4, labels=2, vocab=9, dim=6)
    assert value("mahdavi-2024-next-token", size, Letters(head_dim=3)) == 215


def test_mahdavi_2024_with_wider_values() -> None:
    """As above with d_v = 2: a head has 36 + 6·2 + 2·2 = 52. 5·52 = 260. With d_v = 7: 36 + 6·6 + 6·7 = 114."""
    size = Size(examples=10, length=4, labels=2, vocab=9, dim=6)
    assert value("mahdavi-2024-next-token", size, Letters(head_dim=3, value_dim=2)) == 260
    assert value("mahdavi-2024-next-token", size, Letters(head_dim=3, value_dim=7)) == 5 * 114


def test_kajitsuka_sato_2024() -> None:
    """N = 5, n = 3, d = 2: 2(2·15 + 2) = 64."""
    assert value("kajitsuka-sato-2024-seq-to-seq", Size(examples=5, length=3, labels=2, vocab=9, dim=2)) == 64


def test_madden_2024() -> None:
    """N = 5, ω = 4, n = 3: needed 5·3 = 15. Sufficient: output 20, hidden 10, tokens 4, positions 3, head 4: 41."""
    size = Size(examples=5, length=3, labels=4, vocab=4)
    assert value("madden-2024-distribution-lower", size) == 15
    assert value("madden-2024-distribution-upper", size) == 41


def test_dana_2025() -> None:
    """N = 11, d = 4, d_h = 3: H = ⌈7/3⌉ = 3. n = 5, ω = 6: 4(5 + 12 + 4·9) = 4·53 = 212."""
    size = Size(examples=11, length=5, labels=6, vocab=6)
    assert value("dana-2025-next-token", size, Letters(model_dim=4, head_dim=3)) == 212


def test_dana_2025_in_the_plane() -> None:
    """Nothing given: d = 2, d_h = 1, so H = 9 for N = 11. n = 5, ω = 6: 2(5 + 12 + 36) = 106."""
    assert value("dana-2025-next-token", Size(examples=11, length=5, labels=6, vocab=6)) == 106


def test_dana_2025_lists_the_rank_of_its_features() -> None:
    """Their Lemma 2 is false, so the count is proved for d_h = 1 (ours), and for features of rank N."""
    size, rank = Size(examples=42, length=2, labels=60, vocab=60), dana_2025.RANK
    bound, narrow = BY_NAME["dana-2025-next-token"], BY_NAME["dana-2025-rank-one"]
    assert bound.verdicts(size)[rank] == bound.verdicts(size, Letters(model_dim=4, head_dim=1))[rank] == "holds"
    assert bound.verdicts(size, Letters(model_dim=4, head_dim=4))[rank] == narrow.verdicts(size)[rank] == "open"
    tiny = replace(size, vocab=3, labels=3)
    assert bound.verdicts(tiny, Letters(model_dim=6, head_dim=6))[rank] == "fails"


def test_dana_2025_rank_one() -> None:
    """As above, H = 3: 4(5 + 12 + 2·4·3) = 164, (2·3 − 2)·3·4 = 48 fewer. In the plane d_h = 2, H = ⌈9/2⌉ = 5: 94."""
    size = Size(examples=11, length=5, labels=6, vocab=6)
    assert value("dana-2025-rank-one", size, Letters(model_dim=4, head_dim=3)) == 164 == 212 - 48
    assert value("dana-2025-rank-one", size) == 94


@pytest.mark.parametrize(("examples", "expected"), [(3, 18), (5, 30), (100, 30)])
def test_dana_2025_bottleneck(examples: int, expected: int) -> None:
    """ω = 6: d ≥ min(N, 5), so 6·3, 6·5, 6·5 entries."""
    assert value("dana-2025-bottleneck", Size(examples=examples, length=2, labels=6, vocab=6)) == expected


def test_kajitsuka_sato_2025() -> None:
    """N = 100, n = 9: √100 = 10 on both sides; √900 = 30; log 900 = 6.8024, 900/6.8024 = 132.306, root 11.5024."""
    size = Size(examples=100, length=9, labels=2, vocab=50)
    assert value("kajitsuka-sato-2025-next-token-upper", size) == 10
    assert value("kajitsuka-sato-2025-next-token-lower", size) == 10
    assert value("kajitsuka-sato-2025-seq-to-seq-upper", size) == 30
    assert value("kajitsuka-sato-2025-seq-to-seq-lower", size) == pytest.approx(11.5024, rel=1e-4)


def test_vardi_2022() -> None:
    """N = 100, d = 4, r = 1, δ = 0.1.

    R = 10·1·10⁴·10·√(4π) = 10⁶·3.54491, log R = 13.81551 + 1.26551 = 15.08102, log N = 4.60517.
    √460.517 = 21.45966; √(100/4.60517) = 4.65992; 21.45966 + 4.65992·15.08102 = 21.45966 + 70.27634 = 91.73600.
    """
    size = Size(examples=100, length=1, labels=10, vocab=100, dim=4)
    assert value("vardi-2022-points-upper", size, Letters(radius=1, separation=0.1)) == pytest.approx(91.736, rel=1e-4)
    assert value("vardi-2022-points-lower", size) == 10


def test_vardi_2022_with_more_labels_than_cells() -> None:
    """R = 10·2·√π/1·4 = 141.8 < C = 1000: log N is taken as 1, so √2 + √2·6.90776 = 11.18334."""
    size = Size(examples=2, length=1, labels=1000, vocab=2, dim=1)
    assert value("vardi-2022-points-upper", size, Letters(radius=2, separation=1)) == pytest.approx(11.18334, rel=1e-5)


def test_yang_2026() -> None:
    """N = 100, r/δ = e² (δ = 0.1353353), L = 5: w² = 200/25 = 8, so w²L = 40; w² = 50/25 = 2, so w²L = 10."""
    size, letters = (
        Size(examples=100, length=1, labels=2, vocab=100),
        Letters(radius=1, separation=0.1353352832, depth=5),
    )
    assert value("yang-2026-points-upper", size, letters) == pytest.approx(40)
    assert value("yang-2026-points-lower", size, letters) == pytest.approx(10)


def test_yang_2026_has_at_least_one_unit_a_layer() -> None:
    """As above with L = 50: 200/2500 < 1, so w = 1 and w²L = 50."""
    size, letters = (
        Size(examples=100, length=1, labels=2, vocab=100),
        Letters(radius=1, separation=0.1353352832, depth=50),
    )
    assert value("yang-2026-points-upper", size, letters) == 50


@pytest.mark.parametrize(("robustness", "expected"), [(1e-6, 10), (0.04, 40), (0.5, 1600)])
def test_kim_moon_yun_2025_upper(robustness: float, expected: float) -> None:
    """N = 100, d = 16: √N = 10; 100·2·√0.04 = 40 (100·256·0.04⁴ = 0.07); 100·256/16 = 1600 (100·2·√0.5 = 141)."""
    size = Size(examples=100, length=1, labels=2, vocab=100, dim=16)
    assert value("kim-moon-yun-2025-points-upper", size, Letters(robustness=robustness)) == pytest.approx(expected)


def test_kim_moon_yun_2025_lower() -> None:
    """N = 100, d = 16, ρ = 0.6: (0.36·16 + 1)16 = 108.16; 1/√0.64 = 1.25 < 4; 108.16 + 12.5 = 120.66."""
    size = Size(examples=100, length=1, labels=2, vocab=100, dim=16)
    assert value("kim-moon-yun-2025-points-lower", size, Letters(robustness=0.6)) == pytest.approx(120.66)


def test_counting() -> None:
    """N = 10, C = 8, b = 4: 30 bits, ⌈7.5⌉ = 8 parameters. n = 3: 90 bits, ⌈22.5⌉ = 23."""
    size = Size(examples=10, length=3, labels=8, vocab=50)
    assert value("counting", size, Letters(bits=4)) == 8
    assert value("counting-seq-to-seq", size, Letters(bits=4)) == 23


def test_counting_the_other_way_round() -> None:
    """8 parameters of 4 bits have 32 bits: 10 labels among 8 take 30 of them, 11 would take 33. 3²⁰ ≤ 2³² < 3²¹."""
    assert counting.most(parameters=8, labels=8, bits=4) == 10
    assert counting.most(parameters=8, labels=3, bits=4) == 20
    assert counting.most(parameters=1, labels=3, bits=1) == 0
    with pytest.raises(BadInput, match="labels is 1; expected at least 2"):
        counting.most(parameters=8, labels=1, bits=4)


def test_vc() -> None:
    """N = 10, C = 2: log₂(40e) = 6.7646. W = 1 allows 1 + 6.76 = 7.8 < 10, W = 2 allows 1 + 2·7.76 = 16.5 ≥ 10."""
    assert value("vc-points", Size(examples=10, length=1, labels=2, vocab=10)) == 2
    assert value("vc-next-token", Size(examples=10, length=3, labels=2, vocab=10)) == 2
    assert value("vc-seq-to-seq", Size(examples=5, length=2, labels=2, vocab=10)) == 2


def test_vc_with_more_labels() -> None:
    """N = 10, C = 8: 30 bits; log₂(160e) = 8.7646. W = 2 allows 1 + 2·9.76 = 20.5, W = 3 allows 1 + 3·9.76 = 30.3."""
    assert value("vc-points", Size(examples=10, length=1, labels=8, vocab=10)) == 3


def test_vc_at_depth() -> None:
    """N = 100, C = 2.

    L = 1: 1 + W log₂(400e/W) is 1 + 16·6.0866 = 98.4 at W = 16 and 1 + 17·5.9991 = 103.0 at W = 17.
    L = 2: h = 1, log₂(100e) = 8.0866, log₂(2·1) = 1; at W = 6 it is 2 + 6·(7.5016 + 8.0866 + 1) = 101.5, at W = 5
    2 + 5·(7.7646 + 9.0866) = 86.3. But whatever the depth, 8 are needed: 1 + 7·(3 + 9.0866) = 85.6.
    """
    size = Size(examples=100, length=1, labels=2, vocab=100)
    assert value("vc-points-depth", size, Letters(depth=1)) == 17
    assert value("vc-points-depth", size, Letters(depth=2)) == 8
    assert value("vc-points", size) == 8


def test_facts() -> None:
    """N = 100 facts, C = 8: linear orders are 100; 100·3/3.6 bits; R = 4: dimension 4 log 25, times 25 subjects."""
    size = Size(examples=100, length=2, labels=8, vocab=30, dim=6)
    names = ("nichani-2024-facts", "dugan-2025-facts", "yu-gao-zhang-2025-upper", "yu-gao-zhang-2025-lower")
    assert [value(name, size, Letters()) for name in names] == [100] * 4
    assert value("morris-2025-trained", size, Letters()) == pytest.approx(300 / 3.6)
    assert value("allen-zhu-li-2024-trained", size, Letters()) == 150
    assert value("ravfogel-2026-facts", size, Letters(relations=4)) == pytest.approx(100 * math.log(25))
    for side in ("upper", "lower"):
        assert value(f"giorlandino-2026-{side}", size, Letters()) == pytest.approx(200 * math.log(100))


def test_statements() -> None:
    """log 100 = 4.6 units wide, no more than d; 4 log 25 dimensions; a hundred tokens of a prompt; and no number."""
    size = Size(examples=100, length=2, labels=8, vocab=30, dim=6)
    found = {entry.name: entry.answer(size, Letters(relations=4)).parameters for entry in STATEMENTS}
    assert found == {
        "egosi-2025-width": pytest.approx(math.log(100)),
        "meyer-2025-prompt": 100,
        "park-2026-floats": None,
        "ravfogel-2026-dimension": pytest.approx(4 * math.log(25)),
        "xu-2026-adapters": None,
    }
    assert STATEMENTS[0].answer(replace(size, dim=3)).parameters == 3
    assert STATEMENTS[3].answer(size).reason == "needs: relations"


def test_every_bound_has_been_worked_out_by_hand() -> None:
    """The list of the tests above; whoever adds a bound adds its test."""
    assert set(BY_NAME) == {
        "kim-2023-seq-to-seq",
        "mahdavi-2024-next-token",
        "kajitsuka-sato-2024-seq-to-seq",
        "madden-2024-distribution-upper",
        "madden-2024-distribution-lower",
        "dana-2025-next-token",
        "dana-2025-rank-one",
        "dana-2025-bottleneck",
        "kajitsuka-sato-2025-next-token-upper",
        "kajitsuka-sato-2025-next-token-lower",
        "kajitsuka-sato-2025-seq-to-seq-upper",
        "kajitsuka-sato-2025-seq-to-seq-lower",
        "vardi-2022-points-upper",
        "vardi-2022-points-lower",
        "yang-2026-points-upper",
        "yang-2026-points-lower",
        "kim-moon-yun-2025-points-upper",
        "kim-moon-yun-2025-points-lower",
        "counting",
        "counting-seq-to-seq",
        "vc-points",
        "vc-points-depth",
        "vc-next-token",
        "vc-seq-to-seq",
        "nichani-2024-facts",
        "dugan-2025-facts",
        "yu-gao-zhang-2025-upper",
        "yu-gao-zhang-2025-lower",
        "ravfogel-2026-facts",
        "giorlandino-2026-upper",
        "giorlandino-2026-lower",
        "allen-zhu-li-2024-trained",
        "morris-2025-trained",
    }
