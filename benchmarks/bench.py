"""The figures that the README names, measured on this machine. Run by `make bench`; takes about six minutes.
Names of sections as arguments run only those: `python benchmarks/bench.py folding`.

Tables of counts, times and ratios. Nothing is asserted about times: they are for reading.
"""

import math
import resource
import sys
import time
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from tables import OUT, table

from byheart.certificates import certify, judge
from byheart.constructions import build, vardi_2022
from byheart.networks.exact import ExactNetwork, reference, store
from byheart.networks.exact.evaluate import evaluate
from byheart.tasks import NextToken, random_next_token, random_seq_to_seq


def timed(work: Callable[[], object]) -> float:
    """Seconds that ``work`` takes."""
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def points(examples: int, labels: int = 2) -> NextToken:
    """Integer keys below N², one label each."""
    rng = np.random.default_rng(0)
    return random_next_token(examples=examples, length=1, vocab=examples**2, labels=labels, rng=rng)


def sequences(examples: int, length: int = 32, vocab: int = 1000) -> NextToken:
    """Random sequences with random bits."""
    rng = np.random.default_rng(0)
    return random_next_token(examples=examples, length=length, vocab=vocab, labels=2, rng=rng)


def label_engine() -> None:
    """Dense parameters of the label engine over √(N log₂N); 70 is the figure to stay below."""
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
    for N in (1000, 3000, 10_000, 100_000):
        task = points(N)
        built = build("vardi-2022", task)
        verdict = judge(built.network, task)
        ratio = built.account.dense / math.sqrt(N * math.log2(N))
        found = f"{verdict.checked - verdict.errors:,} of {verdict.checked:,}, {verdict.seconds:.1f} s"
        account = built.account
        rows.add_row(
            f"{N:,}",
            f"{account.dense:,}",
            f"{ratio:.1f}",
            f"{3 * N:,}",
            str(account.max_bits),
            f"{account.depth:,}",
            found,
        )
    OUT.print(rows, "")


def length_is_free() -> None:
    """Next-token parameters against n at N = 1000."""
    rows = table(
        "Next-token (kajitsuka-sato-2025), N = 1000, C = 2: the length is almost free",
        "n",
        "parameters without embedding",
        "÷ at n = 8",
    )
    counts = {}
    for n in (8, 32, 128, 512):
        account = build("kajitsuka-sato-2025", sequences(1000, n)).account
        counts[n] = account.dense - account.embedding
        rows.add_row(str(n), f"{counts[n]:,}", f"{counts[n] / counts[8]:.4f}")
    OUT.print(rows, "")


def growth() -> None:
    """Build and certificate times against N."""
    rows = table(
        "Times (kajitsuka-sato-2025, n = 32, vocabulary 1000, C = 2, one thread)",
        "N",
        "built in",
        "certified in",
        "µs a sequence",
        "answers",
    )
    seconds: list[tuple[int, float, float]] = []
    for N in (1000, 3000, 10_000, 30_000, 100_000):
        task = sequences(N)
        start = time.perf_counter()
        built = build("kajitsuka-sato-2025", task)
        building = time.perf_counter() - start
        with TemporaryDirectory() as folder:
            store.save(built.network, Path(folder) / "net")
            start = time.perf_counter()
            certificate = certify(Path(folder) / "net", task)
            checking = time.perf_counter() - start
        seconds.append((N, building, checking))
        right = f"{certificate.checked - certificate.errors:,} of {certificate.checked:,}"
        rows.add_row(f"{N:,}", f"{building:.2f} s", f"{checking:.2f} s", f"{1e6 * checking / N:.0f}", right)
    logs = np.log([[N, b, c] for N, b, c in seconds[1:]])
    slopes = [np.polyfit(logs[:, 0], logs[:, column], 1)[0] for column in (1, 2)]
    OUT.print(rows, f"fitted exponents from N = 3,000 on: building N^{slopes[0]:.2f}, certifying N^{slopes[1]:.2f}", "")


def trade_offs() -> None:
    """Fewer layers or fewer bits cost parameters: Õ(N/L) and Õ(N/b)."""
    task = points(10_000)
    rows = table(
        "Trade-offs of the label engine at N = 10,000 (vardi-2022)",
        "limit",
        "parameters",
        "depth",
        "most bits",
        "parameters · limit / N",
    )
    for name, limits in (("depth", (40, 60, 90, 130, 190, 270)), ("bits", (40, 60, 90, 130, 190, 270))):
        for limit in limits:
            account = build("vardi-2022", task, settings=vardi_2022.Settings(**{name: limit})).account
            product = account.dense * limit / 10_000
            rows.add_row(
                f"{name} ≤ {limit}", f"{account.dense:,}", str(account.depth), str(account.max_bits), f"{product:.1f}"
            )
    OUT.print(rows, "")


def evaluators() -> None:
    """The compiled evaluation by the batch against python-flint, sequence by sequence."""
    rows = table("Exact evaluation, one thread, keys a second", "network", "limbs", "flint", "limbs ÷ flint")
    for construction, N in (("kajitsuka-sato-2025", 1000), ("kajitsuka-sato-2025", 10_000), ("folding", 10_000)):
        name, task = f"{construction}, N = {N:,}", sequences(N)
        network: ExactNetwork = build(construction, task).network
        fast = len(task.inputs) / timed(lambda n=network, t=task: evaluate(n, t.inputs))
        few = task.inputs[:50]
        slow = len(few) / timed(lambda n=network, f=few: reference.evaluate(n, f))
        rows.add_row(name, f"{fast:,.0f}", f"{slow:,.0f}", f"{fast / slow:,.0f}")
    OUT.print(rows, "")


def folding() -> None:
    """Folding at the sizes that its figures are named for; the last row takes two minutes."""
    title = "Folding, n = 16, vocabulary 64 (parameters without embedding, zeros counted)"
    columns = (
        "C",
        "N",
        "parameters",
        "÷ √(N log₂C)",
        "3N",
        "load",
        "most bits",
        "built in",
        "certified",
        "peak memory",
    )
    rows = table(title, *columns)
    for labels, sizes in ((2, (1000, 10_000, 100_000, 1_000_000)), (256, (1000, 10_000, 100_000))):
        for N in sizes:
            rng = np.random.default_rng(0)
            task = random_next_token(examples=N, length=16, vocab=64, labels=labels, rng=rng)
            built = build("folding", task)
            verdict = judge(built.network, task)
            count = built.account.dense - built.account.embedding
            ratio = count / math.sqrt(N * math.log2(labels))
            found = f"{verdict.checked - verdict.errors:,} of {verdict.checked:,}, {verdict.seconds:.1f} s"
            memory = f"{resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20:.1f} GiB"
            numbers = (
                f"{count:,}",
                f"{ratio:.2f}",
                f"{3 * N:,}",
                f"{built.chosen['load']}",
                str(built.account.max_bits),
            )
            rows.add_row(str(labels), f"{N:,}", *numbers, f"{built.seconds:.1f} s", found, memory)
    OUT.print(rows, "")


def seq_to_seq() -> None:
    """Seq-to-seq with token ids and with vectors."""
    rows = table(
        "Seq-to-seq (kajitsuka-sato-2025), n = 32, C = 10, vocabulary 200",
        "N",
        "tokens",
        "parameters",
        "3 · questions",
        "certified",
    )
    for N, dim in ((100, None), (1000, None), (1000, 8)):
        task = random_seq_to_seq(examples=N, length=32, vocab=200, labels=10, dim=dim, rng=np.random.default_rng(0))
        built = build("kajitsuka-sato-2025", task)
        verdict = judge(built.network, task)
        plain = build("interpolate", task).account
        found = f"{verdict.checked - verdict.errors:,} of {verdict.checked:,}, {verdict.seconds:.1f} s"
        count = f"{built.account.dense - built.account.embedding:,}"
        rows.add_row(
            f"{N:,}", "ids" if dim is None else f"d = {dim}", count, f"{plain.dense - plain.embedding:,}", found
        )
    OUT.print(rows, "")


if __name__ == "__main__":
    evaluate(build("interpolate", points(10)).network, points(10).inputs)  # compile before anything is timed
    sections = (label_engine, length_is_free, seq_to_seq, growth, trade_offs, evaluators, folding)
    for section in sections:
        if len(sys.argv) == 1 or section.__name__ in sys.argv[1:]:
            section()
