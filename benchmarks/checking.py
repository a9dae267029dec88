"""Certification of networks, shared by the benchmarks."""

import time
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from byheart.certificates import Certificate, certify, judge
from byheart.constructions import Built
from byheart.tasks import Questions


def certified(built: Built, task: Questions, **options: Any) -> tuple[Certificate, float]:
    """Save the network and certify it from its folder. Return the certificate and the seconds that it took."""
    with TemporaryDirectory() as folder:
        built.save(Path(folder) / "net")
        start = time.perf_counter()
        certificate = certify(Path(folder) / "net", task, **options)
        return certificate, time.perf_counter() - start


def judged(built: Built, task: Questions) -> str:
    """Return how many answers of a network in memory are right, and the time, as text."""
    verdict = judge(built.network, task)
    return f"{verdict.checked - verdict.errors:,} of {verdict.checked:,}, {verdict.seconds:.1f} s"
