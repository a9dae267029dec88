"""Check Dana, Pydi & Chevaleyre 2025: each theorem's inequality beside its network's values. Two minutes.

    python benchmarks/dana_theory.py guesses

With `--out FILE` it also writes the points that `byheart lab plot` draws under trained networks (`papers/built.py`).
"""

import csv
import math
from collections.abc import Callable
from pathlib import Path

import numpy as np
from checking import certified
from tables import OUT, parser, table

from byheart.bounds.dana_2025 import almost_lookup, capacity, coherence, entropy_matched
from byheart.constructions import Built, build, dana_2025
from byheart.papers.dana_2025 import configs_of, lower_bound
from byheart.tasks import NextToken, NextTokenDistribution

SHAPES = ((16, 2, 4, 2), (36, 2, 6, 3), (36, 2, 6, 5), (30, 3, 5, 3), (30, 2, 8, 2))
"""Sizes N, n, ω, d of the random distributions."""
EPSILONS = (0.01, 0.03, 0.1, 0.3)


def contexts(examples: int, length: int, vocab: int, rng: np.random.Generator) -> np.ndarray:
    """Draw different contexts, in random order."""
    drawn = rng.permutation(vocab**length)[:examples]
    return np.stack([drawn // vocab**place % vocab for place in range(length)], axis=1)


def distributions(examples: int, length: int, vocab: int, seed: int) -> NextTokenDistribution:
    """Draw distributions uniformly from the simplex, and likelihoods as the cubes of uniform numbers."""
    rng = np.random.default_rng(seed)
    p, weights = rng.dirichlet(np.ones(vocab), size=examples), rng.random(examples) ** 3
    tokens = contexts(examples, length, vocab, rng)
    return NextTokenDistribution(tokens=tokens, probabilities=p, weights=weights / weights.sum())


def associations(vocab: int, examples: int | None = None, length: int = 2) -> NextToken:
    """Draw random labels for random contexts, or for all contexts if ``examples`` is None."""
    rng = np.random.default_rng(0)
    tokens = contexts(vocab**length if examples is None else examples, length, vocab, rng)
    return NextToken(tokens=tokens, labels=rng.integers(vocab, size=len(tokens)), label_count=vocab, vocab=vocab)


def numbers(built: Built, *names: str) -> list[float]:
    """Return the chosen numbers of these names."""
    found = [built.chosen[name] for name in names]
    assert all(isinstance(value, int | float) for value in found), found
    return [float(value) for value in found]  # type: ignore[arg-type]


def left_out(tiny: bool) -> None:
    """Compare Theorem 1's divergence, ε > 0, with its right-hand side and with uniform answers, on 50 random tasks."""
    count = 5 if tiny else 50
    for way in ("svd", "near"):
        rows = table(
            f"dana-2025 --epsilon --solve-by {way}: {count} random tasks; the largest of each",
            *("N, n, ω, d", "tasks", "C", "excess ÷ Cε‖WE‖₂", "divergence ÷ right-hand side", "÷ uniform"),
            *("shrunk", "below both, certified"),
        )
        for place, (N, n, vocab, d) in enumerate(SHAPES):
            found = []
            for seed in range(place, count, len(SHAPES)):
                task = distributions(N, n, vocab, seed)
                settings = dana_2025.DanaSettings(model_dim=d, epsilon=EPSILONS[seed % 4], solve_by=way)  # type: ignore[arg-type]
                built = build("dana-2025", task, seed=seed, settings=settings)
                has, encoder, stated, uniform = numbers(built, "divergence", "encoder", "stated", "uniform")
                certificate, _ = certified(built, task, tolerance=min(stated, uniform) + 1e-9)
                [C, factor] = numbers(built, "constant", "shrunk")
                ratios = (has - encoder) / (stated - encoder), has / stated, has / uniform
                found.append((C, *ratios, factor < 1, certificate.certified))
            *most, shrunk, _ = (max(column) for column in zip(*found, strict=True))
            rows.add_row(
                *(f"{N}, {n}, {vocab}, {d}", str(len(found)), *(f"{value:.3g}" for value in most)),
                *("yes" if shrunk else "none", f"{sum(one[-1] for one in found)} of {len(found)}"),
            )
        OUT.print(rows, "")


def points(tiny: bool) -> list[tuple[int, int, int, int]]:
    """Return the distinct ω, d, d_h, H of the paper's experiments 1 to 3."""
    if tiny:
        return [(8, 3, 3, 2), (8, 3, 3, 5)]
    every = (config for name in ("1", "2", "3") for config in configs_of(name))
    fitting = (config for config in every if config.head_dim <= config.model_dim)
    return list(dict.fromkeys((one.vocab, one.model_dim, one.head_dim, one.heads) for one in fitting))


def guesses(tiny: bool, out: Path | None = None) -> None:
    """Certify Corollary 2's accuracy: of all ω² contexts, H·d_h + d are held and the others guessed."""
    rows = table(
        "dana-2025 --hold: all contexts of two tokens, random labels",
        *("ω", "d", "d_h", "H", "parameters", "held", "promised", "at least", "right", "accuracy", "certified"),
        *("built in", "certified in"),
    )
    written = []
    for vocab, d, d_h, H in points(tiny):
        hold, task = capacity(H, d_h, d), associations(vocab)
        built = build("dana-2025", task, settings=dana_2025.DanaSettings(d, d_h, H, hold=hold))
        least = int(numbers(built, "at_least")[0])
        certificate, seconds = certified(built, task, at_least=least)
        right = certificate.checked - certificate.errors - certificate.undecided
        assert certificate.certified, certificate
        accuracy = right / vocab**2
        written.append((vocab, d, d_h, H, hold, right, accuracy, built.account.dense))
        if tiny or (d, H) in ((10, 20), (3, 31), (8, 16), (13, 31)):
            rows.add_row(
                *(str(vocab), str(d), str(d_h), str(H), f"{built.account.dense:,}", str(hold)),
                *(f"{lower_bound(vocab, hold):.4f}", str(least), str(right), f"{accuracy:.4f}", "yes"),
                *(f"{built.seconds:.1f} s", f"{seconds:.1f} s"),
            )
    OUT.print(rows, f"{len(written)} networks, all certified", "")
    if out is not None:
        with out.open("w", newline="", encoding="utf-8") as file:
            writer = csv.writer(file)
            writer.writerow(("vocab", "model_dim", "head_dim", "heads", "held", "right", "accuracy", "parameters"))
            writer.writerows(written)


def rank_one(tiny: bool) -> None:
    """Count Remark 2's savings: queries and keys of width 1 hold the same associations."""
    rows = table(
        "dana-2025 --query-dim 1: N = H·d_h + d associations, every logit enclosed",
        *("ω", "n", "d", "d_h", "H", "N", "parameters, d_h", "width 1", "fewer", "(2d_h − 2)·H·d", "certified"),
    )
    paper = ((50, 2, 10, 10, 20), (50, 2, 10, 5, 20), (50, 3, 8, 8, 10), (200, 2, 2, 2, 100))
    for vocab, n, d, d_h, H in ((10, 2, 3, 2, 3),) if tiny else paper:
        task = associations(vocab, capacity(H, d_h, d), n)
        both = [
            build("dana-2025", task, settings=dana_2025.DanaSettings(d, d_h, H, query_dim=one)) for one in (None, 1)
        ]
        right = [certified(built, task)[0].certified for built in both]
        wide, narrow = (built.account.dense for built in both)
        rows.add_row(
            *map(str, (vocab, n, d, d_h, H, len(task.labels))),
            *(f"{wide:,}", f"{narrow:,}", f"{wide - narrow:,}", f"{(2 * d_h - 2) * H * d:,}"),
            "yes" if all(right) else "NO",
        )
    OUT.print(rows, "")


def codes(vocab: int, dim: int, rng: np.random.Generator) -> tuple[np.ndarray, float]:
    """Return the inner products of random sign codes, one code per token, and their largest distance from a basis's."""
    W = rng.choice([-1.0, 1.0], size=(dim, vocab)) / math.sqrt(dim)
    products = W.T @ W
    return products, float(np.abs(products - np.eye(vocab)).max())


def lookup_tables(tiny: bool) -> None:
    """Compare Theorem 2's bound for almost look-up tables with ours, and with codes of matched entropies."""
    rows = table(
        "Almost look-up tables: 100 contexts, one token of probability 1 − η each, codes of random signs; nats",
        *("ω", "d", "η", "c, drawn", "divergence", "Theorem 2", "c, proved", "Theorem 2 ", "ours", "uniform"),
    )
    rng = np.random.default_rng(0)
    for vocab, d in ((20, 100),) if tiny else ((200, 400), (1000, 900), (2000, 1500)):
        products, c = codes(vocab, d, rng)
        for miss in (0.01, 0.1):
            p = rng.dirichlet(np.ones(vocab), size=100) * miss
            answers = rng.integers(vocab, size=100)
            p[np.arange(100), answers] += 1 - miss
            found = np.mean([_matched(row, int(y), products[y], c, d) for row, y in zip(p, answers, strict=True)], 0)
            entropy = -float((p * np.log(p)).sum(axis=1).mean())
            ours = almost_lookup(vocab, d, float((1 - p.max(axis=1)).mean()), entropy)
            proved = 2 * coherence(vocab, d)
            numbers = (f"{value:.3f}" if value < math.inf else "none" for value in (*found, ours))
            has, drawn, stated, own = numbers
            rows.add_row(
                *(str(vocab), str(d), str(miss), f"{c:.3f}", has, drawn, f"{proved:.3f}", stated, own),
                f"{math.log(vocab) - entropy:.3f}",
            )
    OUT.print(rows, "")


def _matched(p: np.ndarray, answer: int, products: np.ndarray, c: float, d: int) -> tuple[float, float, float]:
    """Return one context's divergence at the proof's λ, and Theorem 2's bound with the drawn c and the proved c."""
    vocab, entropy, miss = len(p), -float((p * np.log(p)).sum()), float(1 - p[answer])
    wrong = np.delete(p, answer) / miss
    uneven = float(np.abs(wrong - 1 / (vocab - 1)).sum() / 2)
    logits = math.log((vocab - 1) / math.expm1(entropy)) / (1 - 2 * c) * products
    has = float(np.log(np.exp(logits - logits.max()).sum()) + logits.max() - p @ logits) - entropy
    bounds = (entropy_matched(vocab, one, miss, entropy, uneven) for one in (c, 2 * coherence(vocab, d)))
    return (has, *bounds)  # type: ignore[return-value]


def zeros(tiny: bool) -> None:
    """Compare Theorem 3's excess over the best encoder with ε log(1/ε): half of all probabilities are 0, δ = ε."""
    vocab = 4 if tiny else 10
    rng, N = np.random.default_rng(0), vocab**2
    p = rng.dirichlet(np.ones(vocab), size=N) * (rng.random((N, vocab)) < 0.5)
    p[:, 0] += p.sum(axis=1) == 0
    weights = 1.0 / np.arange(1, N + 1) ** 2
    tokens = contexts(N, 2, vocab, rng)
    task = NextTokenDistribution(
        tokens=tokens, probabilities=p / p.sum(axis=1, keepdims=True), weights=weights / weights.sum()
    )
    rows = table(
        f"dana-2025 --epsilon ε --smooth ε: all {N} bigrams of ω = {vocab}, likelihoods 1/rank², d = ω − 1; nats",
        *("ε", "held", "H", "left out", "largest logit", "÷ log(1/ε)", "excess", "÷ ε log(1/ε)", "right-hand side"),
        *("uniform", "certified"),
    )
    for epsilon in (0.3, 0.1) if tiny else (0.3, 0.1, 0.03, 0.01, 0.005):
        built = build("dana-2025", task, settings=dana_2025.DanaSettings(epsilon=epsilon, smooth=epsilon))
        has, stated, uniform, outside = numbers(built, "divergence", "stated", "uniform", "left_out")
        certificate, _ = certified(built, task, tolerance=has + 1e-5)
        encoder = np.log((1 - epsilon) * task.probabilities + epsilon / vocab)
        largest = float(np.abs(encoder - encoder.mean(axis=1, keepdims=True)).max())
        rows.add_row(
            *(str(epsilon), str(built.chosen["held"]), str(built.chosen["heads"]), f"{outside:.4f}"),
            *(f"{largest:.2f}", f"{largest / math.log(1 / epsilon):.2f}", f"{has:.4f}"),
            *(f"{has / (epsilon * math.log(1 / epsilon)):.3f}", f"{stated:.3g}", f"{uniform:.3f}"),
            "yes" if certificate.certified else "NO",
        )
    OUT.print(rows, "")


SECTIONS: tuple[Callable[..., None], ...] = (left_out, guesses, rank_one, lookup_tables, zeros)

if __name__ == "__main__":
    options = parser(__doc__, SECTIONS)
    options.add_argument("--out", type=Path, help="CSV file for the points of guesses")
    chosen = options.parse_args()
    for section in SECTIONS:
        if not chosen.sections or section.__name__ in chosen.sections:
            section(chosen.tiny, *([chosen.out] if section is guesses else []))
