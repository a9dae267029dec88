"""One attention layer: the figures of mahdavi-2024, dana-2025 and madden-2024 in the README. Run by `make bench`.
Names of sections as arguments run only those: `python benchmarks/attention.py mahdavi`.
"""

import sys
import time
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from tables import OUT, table

from byheart.bounds.mahdavi_2024 import capacity
from byheart.certificates import Certificate, certify
from byheart.certificates.features import prove_out_of_reach, prove_rank
from byheart.constructions import Built, build, dana_2025, mahdavi_2024
from byheart.constructions.gadgets.hypotheses import BeyondCapacity
from byheart.errors import BadInput
from byheart.networks import kinds
from byheart.tasks import (
    NextTokenDistribution,
    QueryTargets,
    Task,
    random_distribution,
    random_next_token,
    random_queries,
)
from byheart.tasks.corpus import corpus_distribution, entropy_bound
from byheart.tasks.docstrings import library_docstrings
from byheart.tasks.embeddings import token_vectors


def checked(built: Built, task: Task, tolerance: float = 1e-6) -> tuple[Certificate, float]:
    """The certificate of the network as its folder holds it, and the seconds it took."""
    with TemporaryDirectory() as folder:
        kinds.save(built.network, Path(folder) / "net")
        start = time.perf_counter()
        certificate = certify(Path(folder) / "net", task, tolerance=tolerance)
        return certificate, time.perf_counter() - start


def queries(examples: int, *, shared: bool) -> QueryTargets:
    """Contexts and queries uniform on [0, 1]^64, real targets."""
    rng = np.random.default_rng(0)
    task = random_queries(examples=examples, length=32, dim=64, labels=None, shared=shared, rng=rng)
    assert isinstance(task, QueryTargets)
    return task


def mahdavi() -> None:
    """Real targets, every output enclosed; the rank of the features proved."""
    rows = table(
        "mahdavi-2024: d = 64, n = 32, H = 20, real targets, tolerance 1e-6",
        *("context", "way", "d_h", "promised", "N", "parameters", "3N", "condition", "errors at most", "certified"),
        *("rank", "built in", "certified in"),
    )
    cases: list[tuple[bool, str, int, int]] = [(True, "saturated", 32, 621), (True, "generic", 32, 621)]
    cases += [(True, "saturated", 16, 301), (True, "generic", 16, 621), (True, "generic", 2, 621)]
    cases += [(False, "saturated", 32, 621), (False, "generic", 32, 1280)]
    for shared, way, head_dim, N in cases:
        task = queries(N, shared=shared)
        built = build("mahdavi-2024", task, settings=mahdavi_2024.Settings(20, head_dim, way))  # type: ignore[arg-type]
        certificate, seconds = checked(built, task)
        proof = prove_rank(built.network, task)  # type: ignore[arg-type]
        rows.add_row(
            *("shared" if shared else "own", way, str(head_dim), f"{capacity(20, 32, head_dim)}", f"{N:,}"),
            *(f"{built.account.dense:,}", f"{3 * N:,}", f"{built.chosen['condition']:.1e}"),
            *(certificate.found.removeprefix("errors at most "), "yes" if certificate.certified else "NO"),
            *("not proved" if proof is None else f"{proof.rank:,}", f"{built.seconds:.1f} s", f"{seconds:.1f} s"),
        )
    OUT.print(rows, "")
    beyond()


def beyond() -> None:
    """Where attention ends: d_h = 1, and one example more than the rank allows."""
    task = queries(621, shared=True)
    try:
        build("mahdavi-2024", task, settings=mahdavi_2024.Settings(20, 1, "generic"))
    except BeyondCapacity as refusal:
        found = prove_rank(refusal.network, task)
        OUT.print(f"shared, generic, d_h = 1, N = 621: float64 sees rank {refusal.rank}; but {found}")
    try:
        build("mahdavi-2024", queries(622, shared=True), settings=mahdavi_2024.Settings(20, 32, "generic"))
    except BeyondCapacity as refusal:
        OUT.print(f"N = 622: {prove_out_of_reach(refusal.network, queries(622, shared=True))}", "")


def dana() -> None:
    """Associations: as many as the theorem says, and not one head more."""
    rows = table(
        "dana-2025: associations, every logit enclosed",
        *("ω", "n", "d", "d_h", "H", "N = H·d_h + d", "parameters", "3N", "condition", "smallest margin", "certified"),
        *("built in", "certified in"),
    )
    for vocab, length, d, H in ((50, 2, 10, 20), (50, 2, 2, 100), (50, 300, 8, 10), (200, 16, 8, 124)):
        N = H * d + d
        rng = np.random.default_rng(0)
        task = random_next_token(examples=N, length=length, vocab=vocab, labels=vocab, rng=rng)
        built = build("dana-2025", task, settings=dana_2025.Settings(model_dim=d, heads=H))
        certificate, seconds = checked(built, task)
        rows.add_row(
            *(str(vocab), str(length), str(d), str(d), str(H), f"{N:,}", f"{built.account.dense:,}", f"{3 * N:,}"),
            *(f"{built.chosen['condition']:.1e}", f"{certificate.smallest_margin:.2g}"),
            *("yes" if certificate.certified else "NO", f"{built.seconds:.1f} s", f"{seconds:.1f} s"),
        )
    OUT.print(rows, "")


def bottleneck() -> None:
    """Distributions: the divergence that rank d leaves, and every term of the bound with a tenth left out."""
    rng = np.random.default_rng(0)
    task = random_distribution(examples=400, length=2, vocab=20, shape="every", rng=rng)
    rows = table(
        "dana-2025: all 400 bigrams of ω = 20, uniform, p uniform on the simplex; nats",
        *("d", "best encoder", "gap, encodings", "‖WE‖₂", "ε = 0: H", "parameters", "divergence", "certified below"),
        *("ε = 0.1: H", "held", "divergence", "excess", "C = excess/(ε‖WE‖₂)"),
    )
    for d in range(2, 20):
        whole = build("dana-2025", task, settings=dana_2025.Settings(model_dim=d))
        part = build("dana-2025", task, settings=dana_2025.Settings(model_dim=d, epsilon=0.1))
        told = whole.chosen["divergence"]
        assert isinstance(told, float)
        certificate, _ = checked(whole, task, tolerance=told + 1e-6)
        assert certificate.certified, certificate
        rows.add_row(
            *(str(d), _short(whole, "encoder"), _short(whole, "encoder_gap"), _short(whole, "norm")),
            *(str(whole.chosen["heads"]), f"{whole.account.dense:,}", _short(whole, "divergence")),
            *(certificate.found.removeprefix("divergence at most ").removesuffix(" nats"),),
            *(str(part.chosen["heads"]), str(part.chosen["held"])),
            *(_short(part, "divergence"), _short(part, "excess"), _short(part, "constant")),
        )
    OUT.print(rows, "")


def _short(built: Built, name: str) -> str:
    value = built.chosen[name]
    assert isinstance(value, float)
    return "0" if abs(value) < 1e-12 else f"{value:.4g}"


def docstrings() -> list[str]:
    """The documentation strings of the interpreter's own modules, a text each."""
    return ["\n\n".join(found).replace("\f", " ") for found in library_docstrings()]


def madden() -> None:
    """The distributions of a real text, to the entropy of the data."""
    task: NextTokenDistribution = corpus_distribution(docstrings(), length=8, vocab=500, examples=1000).task()
    built = build("madden-2024", task)
    certificate, seconds = checked(built, task)
    rows = table(
        "madden-2024: 1,000 contexts of 8 words, ω = 500, of the interpreter's documentation strings",
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


def real_vectors() -> None:
    """Mahdavi et al.'s assumptions on token vectors of real language; needs the extra "embeddings"."""
    rows = table(
        "Token vectors of a sentence model (d = 384), N = 200 contexts of documentation strings",
        *("vectors", "n", "n < d", "every context of rank n", "every n queries independent", "general position"),
    )
    rng, texts = np.random.default_rng(0), docstrings()
    for layer in ("static", "positioned", "contextual"):
        for length in (16, 32):
            try:
                found = token_vectors(texts, length=length, layer=layer, examples=200)  # type: ignore[arg-type]
            except BadInput as missing:
                OUT.print(f"skipped: {missing}", "")
                return
            task = QueryTargets(contexts=found.vectors, queries=found.queries, targets=rng.random(len(found)))
            told = mahdavi_2024.CONSTRUCTION.check(task)
            rows.add_row(layer, str(length), *(f"{h.verdict}: {h.found.split(';')[0]}" for h in told[1:]))
    OUT.print(rows, "")


if __name__ == "__main__":
    sections: tuple[Callable[[], None], ...] = (mahdavi, dana, bottleneck, madden, real_vectors)
    for section in sections:
        if len(sys.argv) == 1 or section.__name__ in sys.argv[1:]:
            section()
