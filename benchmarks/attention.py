"""One attention layer: the figures of mahdavi-2024, dana-2025 and madden-2024 in docs/numbers.md. Run by `make bench`.

    python benchmarks/attention.py mahdavi

runs one section alone.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from itertools import islice
from typing import Literal, get_args

import numpy as np
from checking import certified
from tables import OUT, parser, table

from byheart.bounds.mahdavi_2024 import capacity
from byheart.certificates.features import prove_out_of_reach, prove_rank
from byheart.constructions import Built, build, dana_2025, mahdavi_2024
from byheart.constructions.gadgets.linear_system import BeyondCapacity
from byheart.errors import BadInput
from byheart.tasks import (
    NextTokenDistribution,
    QueryTargets,
    random_distribution,
    random_next_token,
    random_queries,
)
from byheart.tasks.arrays import Floats
from byheart.tasks.corpus import corpus_distribution, entropy_bound
from byheart.tasks.embeddings import Layer, token_vectors
from byheart.tasks.kruskal import KruskalBounds, kruskal
from byheart.tasks.ranks import context_ranks
from byheart.tasks.shipped import library_docstrings


@dataclass(frozen=True)
class Queries:
    """Sizes of mahdavi's networks and tasks: H heads, contexts of n tokens of d dimensions."""

    heads: int
    length: int
    dim: int

    def task(self, examples: int, *, shared: bool) -> QueryTargets:
        """Draw contexts and queries uniformly from [0, 1]^d, with real targets."""
        rng = np.random.default_rng(0)
        task = random_queries(examples=examples, length=self.length, dim=self.dim, labels=None, shared=shared, rng=rng)
        assert isinstance(task, QueryTargets)
        return task

    def settings(self, head_dim: int, way: Literal["saturated", "generic"]) -> mahdavi_2024.MahdaviSettings:
        """Return the construction's settings."""
        return mahdavi_2024.MahdaviSettings(self.heads, head_dim, way)


def mahdavi(tiny: bool) -> None:
    """Enclose every output for real targets, and prove the rank of the features."""
    sizes = Queries(heads=4, length=6, dim=8) if tiny else Queries(heads=20, length=32, dim=64)
    H, n = sizes.heads, sizes.length
    rows = table(
        f"mahdavi-2024: d = {sizes.dim}, n = {n}, H = {H}, real targets, tolerance 1e-6",
        *("context", "way", "d_h", "promised", "N", "parameters", "3N", "condition", "errors at most", "certified"),
        *("rank", "built in", "certified in"),
    )
    most = capacity(H, n, n)
    cases: list[tuple[bool, Literal["saturated", "generic"], int, int]] = [
        (True, "saturated", n, most),
        (True, "generic", n, most),
        (True, "saturated", n // 2, capacity(H, n, n // 2)),
        (True, "generic", n // 2, most),
        (True, "generic", 2, most),
        (False, "saturated", n, most),
        (False, "generic", n, H * sizes.dim),
    ]
    for shared, way, head_dim, N in cases:
        task = sizes.task(N, shared=shared)
        built = build("mahdavi-2024", task, settings=sizes.settings(head_dim, way))
        certificate, seconds = certified(built, task, tolerance=1e-6)
        proof = prove_rank(built.network, task)  # type: ignore[arg-type]
        rows.add_row(
            *("shared" if shared else "own", way, str(head_dim), f"{capacity(H, n, head_dim)}", f"{N:,}"),
            *(f"{built.account.dense:,}", f"{3 * N:,}", f"{built.chosen['condition']:.1e}"),
            *(certificate.found.removeprefix("errors at most "), "yes" if certificate.certified else "NO"),
            *("not proved" if proof is None else f"{proof.rank:,}", f"{built.seconds:.1f} s", f"{seconds:.1f} s"),
        )
    OUT.print(rows, "")
    beyond(sizes, most)


def beyond(sizes: Queries, most: int) -> None:
    """Show where attention fails: at d_h = 1, and with one example more than the rank allows."""
    task, more = sizes.task(most, shared=True), sizes.task(most + 1, shared=True)
    try:
        build("mahdavi-2024", task, settings=sizes.settings(1, "generic"))
    except BeyondCapacity as refusal:
        proved = prove_rank(refusal.network, task)
        OUT.print(f"shared, generic, d_h = 1, N = {most}: float64 sees rank {refusal.rank}; but {proved}")
    try:
        build("mahdavi-2024", more, settings=sizes.settings(sizes.length, "generic"))
    except BeyondCapacity as refusal:
        OUT.print(f"N = {most + 1}: {prove_out_of_reach(refusal.network, more)}", "")


def vectors(tiny: bool) -> None:
    """Enclose every coordinate of targets of d_v numbers, also for queries whose Kruskal rank is less than n."""
    H, n, d = (2, 3, 5) if tiny else (10, 16, 32)
    rows = table(
        f"mahdavi-2024, saturated: d = {d}, n = d_h = {n}, contexts of their own, tolerance 1e-6",
        *("d_v", "Kruskal rank of the queries", "r", "N = H(r − 1) + 1", "H", "parameters", "H·d·(d_h + d_v)"),
        *("coordinates", "errors at most", "certified", "built in", "certified in"),
    )
    for target_dim, rank in ((1, d), (4, d), (2 * d, d), (4, n // 2 + 1), (4, 2)):
        N, rng = H * (min(n, rank) - 1) + 1, np.random.default_rng(0)
        queries = rng.standard_normal((N, rank)) if rank == d else low_rank(N, rank, d, rng)
        contexts, targets = rng.random((N, n, d)), rng.random((N, target_dim))
        task = QueryTargets(contexts=contexts, queries=queries, targets=targets)
        built = build("mahdavi-2024", task)
        certificate, seconds = certified(built, task, tolerance=1e-6)
        heads = built.chosen["heads"]
        assert isinstance(heads, int)
        rows.add_row(
            *(str(target_dim), str(rank), str(built.chosen["r"]), str(N), str(heads), f"{built.account.dense:,}"),
            *(f"{heads * d * (n + target_dim):,}", f"{certificate.checked:,}"),
            *(certificate.found.removeprefix("errors at most "), "yes" if certificate.certified else "NO"),
            *(f"{built.seconds:.1f} s", f"{seconds:.1f} s"),
        )
    OUT.print(rows, "")


def low_rank(examples: int, rank: int, dim: int, rng: np.random.Generator) -> Floats:
    """Return integer vectors that span exactly ``rank`` dimensions, any ``rank`` of them almost surely independent."""
    left, right = rng.integers(-999, 1000, (examples, rank)), rng.integers(-999, 1000, (rank, dim))
    return (left @ right).astype(np.float64)


def dana(tiny: bool) -> None:
    """Store as many associations as the theorem promises for the number of heads."""
    rows = table(
        "dana-2025: associations, every logit enclosed",
        *("ω", "n", "d", "d_h", "H", "N = H·d_h + d", "parameters", "3N", "condition", "smallest margin", "certified"),
        *("built in", "certified in"),
    )
    paper = ((50, 2, 10, 20), (50, 2, 2, 100), (50, 300, 8, 10), (200, 16, 8, 124))
    for vocab, length, d, H in ((10, 2, 2, 3), (10, 4, 3, 2)) if tiny else paper:
        N = H * d + d
        rng = np.random.default_rng(0)
        task = random_next_token(examples=N, length=length, vocab=vocab, labels=vocab, rng=rng)
        built = build("dana-2025", task, settings=dana_2025.DanaSettings(model_dim=d, heads=H))
        certificate, seconds = certified(built, task)
        rows.add_row(
            *(str(vocab), str(length), str(d), str(d), str(H), f"{N:,}", f"{built.account.dense:,}", f"{3 * N:,}"),
            *(f"{built.chosen['condition']:.1e}", f"{certificate.smallest_margin:.2g}"),
            *("yes" if certificate.certified else "NO", f"{built.seconds:.1f} s", f"{seconds:.1f} s"),
        )
    OUT.print(rows, "")


def bottleneck(tiny: bool) -> None:
    """Print the divergence that rank d leaves, and every term of the bound if a tenth is left out."""
    rng, vocab = np.random.default_rng(0), 4 if tiny else 20
    task = random_distribution(examples=vocab**2, length=2, vocab=vocab, shape="every", rng=rng)
    rows = table(
        f"dana-2025: all {vocab**2} bigrams of ω = {vocab}, uniform, p uniform on the simplex; nats",
        *("d", "best encoder", "gap, encodings", "‖WE‖₂", "ε = 0: H", "parameters", "divergence", "certified below"),
        *("ε = 0.1: H", "held", "divergence", "excess", "C", "right-hand side", "uniform"),
    )
    for d in range(2, vocab):
        whole = build("dana-2025", task, settings=dana_2025.DanaSettings(model_dim=d))
        part = build("dana-2025", task, settings=dana_2025.DanaSettings(model_dim=d, epsilon=0.1))
        told = whole.chosen["divergence"]
        assert isinstance(told, float)
        certificate, _ = certified(whole, task, tolerance=told + 1e-6)
        assert certificate.certified, certificate
        rows.add_row(
            *(str(d), _short(whole, "encoder"), _short(whole, "encoder_gap"), _short(whole, "norm")),
            *(str(whole.chosen["heads"]), f"{whole.account.dense:,}", _short(whole, "divergence")),
            *(certificate.found.removeprefix("divergence at most ").removesuffix(" nats"),),
            *(str(part.chosen["heads"]), str(part.chosen["held"])),
            *(_short(part, name) for name in ("divergence", "excess", "constant", "stated", "uniform")),
        )
    OUT.print(rows, "")


def _short(built: Built, name: str) -> str:
    value = built.chosen[name]
    assert isinstance(value, float)
    return "0" if abs(value) < 1e-12 else f"{value:.4g}"


@cache
def docstrings(tiny: bool) -> list[str]:
    """Return the docstrings of the interpreter's own modules, one text per module; only of 20 modules if ``tiny``."""
    return ["\n\n".join(found).replace("\f", " ") for found in islice(library_docstrings(), 20 if tiny else None)]


def madden(tiny: bool) -> None:
    """Fit the next-token distributions of a real text, down to the entropy of the data."""
    N, vocab = (10, 50) if tiny else (1000, 500)
    task: NextTokenDistribution = corpus_distribution(docstrings(tiny), length=8, vocab=vocab, examples=N).task()
    built = build("madden-2024", task)
    certificate, seconds = certified(built, task, tolerance=1e-6)
    rows = table(
        f"madden-2024: {N:,} contexts of 8 words, ω = {vocab}, of the interpreter's documentation strings",
        *("parameters", "needed by any model", "entropy of the data", "loss above it, at most", "certified"),
        *("built in", "certified in"),
    )
    rows.add_row(
        *(f"{built.account.dense:,}", f"{built.chosen['needed_by_any_model']:,}"),
        *(f"{entropy_bound(task.probabilities, task.likelihoods):.4f} nats",),
        *(certificate.found.removeprefix("divergence at most "), "yes" if certificate.certified else "NO"),
        *(f"{built.seconds:.1f} s", f"{seconds:.1f} s"),
    )
    OUT.print(rows, "")


def real_vectors(tiny: bool) -> None:
    """Check Mahdavi et al.'s assumptions on token vectors of real language; needs the extra "embeddings"."""
    N, lengths = (3, (4,)) if tiny else (200, (16, 32))
    rows = table(
        f"Token vectors of a sentence model (d = 384), N = {N} contexts of documentation strings",
        *("vectors", "n", "n < d", "every context of rank n", "every n queries independent", "general position"),
    )
    rng, texts = np.random.default_rng(0), docstrings(tiny)
    for layer in ("static", "positioned", "contextual"):
        for length in lengths:
            try:
                found = token_vectors(texts, length=length, layer=layer, examples=N)  # type: ignore[arg-type]
            except BadInput as missing:
                OUT.print(f"skipped: {missing}", "")
                return
            task = QueryTargets(contexts=found.vectors, queries=found.queries, targets=rng.random(len(found)))
            told = mahdavi_2024.CONSTRUCTION.check(task)
            rows.add_row(layer, str(length), *(f"{h.verdict}: {h.found.split(';')[0]}" for h in told[1:]))
    OUT.print(rows, "")


def layers(tiny: bool) -> None:
    """Check the assumptions after every layer of a sentence encoder, and bound the ranks; needs "embeddings"."""
    N, length = (3, 4) if tiny else (100, 16)
    rows = table(
        f"Every layer of a sentence model (d = 384), N = {N} contexts of n = {length} tokens of documentation strings",
        *("vectors", "contexts of rank n", "Kruskal rank of the queries", "of all tokens and queries", "all tokens"),
        *("general position", "in"),
    )
    texts = docstrings(tiny)
    for layer in get_args(Layer):
        began = time.perf_counter()
        try:
            found = token_vectors(texts, length=length, layer=layer, examples=N)
        except BadInput as missing:
            OUT.print(f"skipped: {missing}", "")
            return
        ranks, dim = context_ranks(found.vectors).ranks, found.queries.shape[1]
        every = np.unique(np.vstack([found.vectors.reshape(-1, dim), found.queries]), axis=0)
        queries, tokens = kruskal(found.queries), kruskal(every, wanted=min(dim, len(every)))
        rows.add_row(
            *(layer, f"{(ranks == length).sum()} of {N}", _between(queries), _between(tokens), f"{len(every):,}"),
            *(tokens.verdict(min(dim, len(every))).answer, f"{time.perf_counter() - began:.0f} s"),
        )
    OUT.print(rows, "")


def _between(known: KruskalBounds) -> str:
    return f"{known.lower}" if known.exact else f"{known.lower} to {known.upper}"


SECTIONS: tuple[Callable[[bool], None], ...] = (mahdavi, vectors, dana, bottleneck, madden, real_vectors, layers)

if __name__ == "__main__":
    chosen = parser(__doc__, SECTIONS).parse_args()
    for section in SECTIONS:
        if not chosen.sections or section.__name__ in chosen.sections:
            section(chosen.tiny)
