"""Measure the figures of exact networks in docs/numbers.md on this machine. Run by `make bench`: six minutes.

    python benchmarks/bench.py folding

Prints tables of counts, times and ratios. Nothing is asserted about times.
"""

import math
import resource
import time
from collections import Counter
from collections.abc import Callable
from unittest import mock

import numpy as np
from checking import certified, judged
from tables import OUT, parser, table

from byheart.constructions import CONSTRUCTIONS, build, vardi_2022
from byheart.constructions import folding as folding_room
from byheart.networks.exact import ExactNetwork, reference
from byheart.networks.exact.evaluate import evaluate
from byheart.sizes import Size
from byheart.tasks import NextToken, random_next_token, random_seq_to_seq

FOLDING = CONSTRUCTIONS["folding"]


def timed(work: Callable[[], object]) -> float:
    """Return the number of seconds that ``work`` takes."""
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def points(examples: int, labels: int = 2) -> NextToken:
    """Draw integer keys below N² with one label each."""
    rng = np.random.default_rng(0)
    return random_next_token(examples=examples, length=1, vocab=examples**2, labels=labels, rng=rng)


def sequences(examples: int, length: int = 32, vocab: int = 1000) -> NextToken:
    """Draw random sequences with one random bit each."""
    rng = np.random.default_rng(0)
    return random_next_token(examples=examples, length=length, vocab=vocab, labels=2, rng=rng)


def label_engine(tiny: bool) -> None:
    """Divide the label engine's dense parameters by √(N log₂N); the ratio should stay below 70."""
    rows = table(
        "Label engine (vardi-2022), C = 2, keys below N²",
        "N",
        "parameters",
        "÷ √(N log₂N)",
        "3N",
        "most bits",
        "depth",
        "certified",
    )
    for N in (30, 100) if tiny else (1000, 3000, 10_000, 100_000):
        task = points(N)
        built = build("vardi-2022", task)
        ratio = built.account.dense / math.sqrt(N * math.log2(N))
        account = built.account
        rows.add_row(
            f"{N:,}",
            f"{account.dense:,}",
            f"{ratio:.1f}",
            f"{3 * N:,}",
            str(account.max_bits),
            f"{account.depth:,}",
            judged(built, task),
        )
    OUT.print(rows, "")


def length_is_free(tiny: bool) -> None:
    """Count next-token parameters against n at N = 1000."""
    N = 30 if tiny else 1000
    rows = table(
        f"Next-token (kajitsuka-sato-2025), N = {N}, C = 2: the length is almost free",
        "n",
        "parameters without embedding",
        "÷ at n = 8",
    )
    counts = {}
    for n in (8, 16) if tiny else (8, 32, 128, 512):
        account = build("kajitsuka-sato-2025", sequences(N, n)).account
        counts[n] = account.dense - account.embedding
        rows.add_row(str(n), f"{counts[n]:,}", f"{counts[n] / counts[8]:.4f}")
    OUT.print(rows, "")


def growth(tiny: bool) -> None:
    """Measure the times of building and certifying against N."""
    rows = table(
        "Times (kajitsuka-sato-2025, n = 32, vocabulary 1000, C = 2, one thread)",
        "N",
        "built in",
        "certified in",
        "µs per sequence",
        "answers",
    )
    seconds: list[tuple[int, float, float]] = []
    for N in (20, 40, 80) if tiny else (1000, 3000, 10_000, 30_000, 100_000):
        task = sequences(N)
        start = time.perf_counter()
        built = build("kajitsuka-sato-2025", task)
        building = time.perf_counter() - start
        certificate, checking = certified(built, task)
        seconds.append((N, building, checking))
        right = f"{certificate.checked - certificate.errors:,} of {certificate.checked:,}"
        rows.add_row(f"{N:,}", f"{building:.2f} s", f"{checking:.2f} s", f"{1e6 * checking / N:.0f}", right)
    logs = np.log([[N, b, c] for N, b, c in seconds[1:]])
    slopes = [np.polyfit(logs[:, 0], logs[:, column], 1)[0] for column in (1, 2)]
    exponents = f"building N^{slopes[0]:.2f}, certifying N^{slopes[1]:.2f}"
    OUT.print(rows, f"fitted exponents from N = {seconds[1][0]:,} on: {exponents}", "")


def trade_offs(tiny: bool) -> None:
    """Limit the layers or the bits, which costs parameters: Õ(N/L) and Õ(N/b)."""
    N = 100 if tiny else 10_000
    task = points(N)
    rows = table(
        f"Trade-offs of the label engine at N = {N:,} (vardi-2022)",
        "limit",
        "parameters",
        "depth",
        "most bits",
        "parameters · limit / N",
    )
    for name in ("depth", "bits"):
        for limit in (40, 60) if tiny else (40, 60, 90, 130, 190, 270):
            account = build("vardi-2022", task, settings=vardi_2022.VardiSettings(**{name: limit})).account
            product = account.dense * limit / N
            rows.add_row(
                f"{name} ≤ {limit}", f"{account.dense:,}", str(account.depth), str(account.max_bits), f"{product:.1f}"
            )
    OUT.print(rows, "")


def evaluators(tiny: bool) -> None:
    """Compare compiled evaluation in batches with python-flint's, sequence by sequence."""
    rows = table("Exact evaluation, one thread, keys per second", "network", "limbs", "flint", "limbs ÷ flint")
    few_examples, many = (20, 40) if tiny else (1000, 10_000)
    for construction, N in (
        ("kajitsuka-sato-2025", few_examples),
        ("kajitsuka-sato-2025", many),
        ("folding", many),
    ):
        name, task = f"{construction}, N = {N:,}", sequences(N)
        network: ExactNetwork = build(construction, task).network
        fast = len(task.inputs) / timed(lambda n=network, t=task: evaluate(n, t.inputs))
        few = task.inputs[:50]
        slow = len(few) / timed(lambda n=network, f=few: reference.evaluate(n, f))
        rows.add_row(name, f"{fast:,.0f}", f"{slow:,.0f}", f"{fast / slow:,.0f}")
    OUT.print(rows, "")


def folding_plans(tiny: bool) -> None:
    """Plan folding's parameters for N questions and C labels without building anything, and count them by role."""
    labels, sizes = (2, 3, 5, 10, 100, 256, 1000, 10_000), (100, 1000) if tiny else (10**2, 10**3, 10**4, 10**5, 10**6)
    title = "Folding, planned, n = 16, vocabulary 64: parameters without embedding, zeros counted"
    rows = table(title, "N", *(f"C = {C:,}" for C in labels))
    for N in sizes:
        plans = [FOLDING.plan(Size(N, 16, C, 64), "next-token", folding_room.FoldingSettings()) for C in labels]
        rows.add_row(f"{N:,}", *(f"{plan.dense - plan.embedding:,}" for plan in plans))
    OUT.print(rows, "")
    names = ("attention", "words", "sum", "level", "shift", "fold", "label")
    rows = table("The same, C = 2, by role", "N", *names, "in all, fewest in all")
    for N in sizes:
        size = Size(N, 16, 2, 64)
        dense: Counter[str] = Counter()
        for name, shape in FOLDING.plan(size, "next-token", folding_room.FoldingSettings()).tensors:
            part = "sum" if ".sum." in name else "shift" if name.startswith(("first_shift", "drop")) else name
            dense[part.split(".")[0]] += math.prod(shape)
        narrow = FOLDING.plan(size, "next-token", folding_room.FoldingSettings(fewest="in-all"))
        rows.add_row(f"{N:,}", *(f"{dense[name]:,}" for name in names), f"{narrow.dense:,}")
    OUT.print(rows, "")


def folding(tiny: bool) -> None:
    """Build folding at the sizes that its published figures are for; the last row takes two minutes."""
    title = "Folding, n = 16, vocabulary 64 (zeros counted)"
    columns = (
        "C",
        "N",
        "without embedding",
        "÷ √(N log₂C)",
        "3N",
        "in all",
        "fewest in all",
        "load",
        "most bits",
        "built in",
        "certified",
        "peak memory",
    )
    rows = table(title, *columns)
    largest = {2: 10**6, 3: 10**4, 10: 10**4, 256: 10**5}
    for labels in (2, 3, 10, 256):
        for N in (100,) if tiny else (N for N in (10**3, 10**4, 10**5, 10**6) if largest[labels] >= N):
            rng = np.random.default_rng(0)
            task = random_next_token(examples=N, length=16, vocab=64, labels=labels, rng=rng)
            built = build("folding", task)
            found = judged(built, task)
            account = built.account
            count = account.dense - account.embedding
            narrow = (
                FOLDING.plan(task.size, "next-token", folding_room.FoldingSettings(fewest="in-all"))
                if N > 10**4
                else None
            )
            least = narrow.dense if narrow else build("folding", task, fewest="in-all").account.dense
            memory = f"{resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20:.1f} GiB"
            numbers = (
                f"{count:,}",
                f"{count / math.sqrt(N * math.log2(labels)):.2f}",
                f"{3 * N:,}",
                f"{account.dense:,}",
                f"{least:,}{' planned' if narrow else ''}",
                f"{built.chosen['load']}",
                str(account.max_bits),
            )
            rows.add_row(str(labels), f"{N:,}", *numbers, f"{built.seconds:.1f} s", found, memory)
    OUT.print(rows, "")


def waves(tiny: bool) -> None:
    """Evaluate folding with and without its shortcuts: chains of folds as one wave, words as float64 products."""
    columns = ("N", "built in", "certified in", "fold by fold", "ratio", "µs per sequence")
    rows = table("Folding, C = 2, n = 16, vocabulary 64, certified; fold by fold on a tenth of the sequences", *columns)
    for N in (100, 300) if tiny else (10**4, 10**5, 10**6):
        task = random_next_token(examples=N, length=16, vocab=64, labels=2, rng=np.random.default_rng(0))
        built = build("folding", task)
        certificate, seconds = certified(built, task)
        assert certificate.certified
        some = task.inputs[: N // 10]
        with mock.patch.multiple(
            "byheart.networks.exact.evaluate", parts=lambda chain: [chain], pays=lambda layer: False
        ):
            slow = 10 * timed(lambda net=built.network, asked=some: evaluate(net, asked))
        cells = (f"{built.seconds:.2f} s", f"{seconds:.2f} s", f"{slow:.2f} s", f"{slow / seconds:.1f}")
        rows.add_row(f"{N:,}", *cells, f"{1e6 * seconds / N:.1f}")
    OUT.print(rows, "")


def seq_to_seq(tiny: bool) -> None:
    """Build for seq-to-seq tasks, with token ids and with vectors."""
    rows = table(
        "Seq-to-seq (kajitsuka-sato-2025), n = 32, C = 10, vocabulary 200",
        "N",
        "tokens",
        "parameters",
        "3 · questions",
        "certified",
    )
    for N, dim in ((3, None), (3, 8)) if tiny else ((100, None), (1000, None), (1000, 8)):
        task = random_seq_to_seq(examples=N, length=32, vocab=200, labels=10, dim=dim, rng=np.random.default_rng(0))
        built = build("kajitsuka-sato-2025", task)
        plain = build("interpolate", task).account
        counts = (f"{account.dense - account.embedding:,}" for account in (built.account, plain))
        rows.add_row(f"{N:,}", "ids" if dim is None else f"d = {dim}", *counts, judged(built, task))
    OUT.print(rows, "")


SECTIONS: tuple[Callable[[bool], None], ...] = (
    label_engine,
    length_is_free,
    seq_to_seq,
    growth,
    trade_offs,
    evaluators,
    folding_plans,
    folding,
    waves,
)

if __name__ == "__main__":
    chosen = parser(__doc__, SECTIONS).parse_args()
    evaluate(build("interpolate", points(10)).network, points(10).inputs)  # compiles code before anything is timed
    for section in SECTIONS:
        if not chosen.sections or section.__name__ in chosen.sections:
            section(chosen.tiny)
