"""Compare runs with plenty of memory and with little: the memory that a process takes, and equal outcomes.

    python benchmarks/scarce.py --text sources --memory 300M                  # the questions of a folder
    python benchmarks/scarce.py --task t.npz --memory 700M --steps compile    # and compiled, byte for byte the same
    python benchmarks/scarce.py --task t.npz --net net --memory 500M --steps certify --seconds 120

Every step runs twice, each time in a new process; BYHEART_MEMORY limits the second. Memory is what the system cannot
reclaim (Linux's RssAnon), read every 20 ms. With --seconds, a process that takes longer is ended, because certifying
reaches its peak in the first minutes. For docs/large.md.
"""

import argparse
import hashlib
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from tables import OUT, table

from byheart.certificates import certify
from byheart.compiler import compile as compiled
from byheart.compiler.rectangular.shelf import Shelf
from byheart.files.memory import format_bytes
from byheart.tasks.questions import as_contexts
from byheart.tasks.tokenizers import Bytes

STEPS = ("ask", "compile", "certify")


def done(step: str, given: Path, net: Path | None) -> str:
    """Run a step in this process and return the SHA-256 of its outcome."""
    questions = [given] if given.is_dir() else given
    if step == "ask":
        return as_contexts(questions, tokenizer=Bytes() if given.is_dir() else None).fingerprint
    if step == "certify":
        assert net is not None, "--steps certify needs --net"
        found = certify(net, questions).as_json() | {"seconds": None}
        return hashlib.sha256(json.dumps(found).encode()).hexdigest()
    with tempfile.TemporaryDirectory() as folder:
        written, digest = Path(folder, "net"), hashlib.sha256()
        compiled(questions, keep=Shelf(Path(folder, "parts"))).save(written)
        for path in sorted(written.iterdir()):
            digest.update(path.read_bytes())
        return digest.hexdigest()


def anonymous(process: int) -> int:
    """Return the bytes of a process that the system cannot reclaim, or 0 if the system does not report them."""
    try:
        lines = Path(f"/proc/{process}/status").read_text(encoding="ascii", errors="replace").splitlines()
    except OSError:
        return 0
    return next((1024 * int(line.split()[1]) for line in lines if line.startswith("RssAnon:")), 0)


def measured(command: list[str], memory: str, seconds: float) -> tuple[dict[str, object], int]:
    """Run a step in a copy of this script. Return its JSON and its peak memory in bytes."""
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env={**os.environ, "BYHEART_MEMORY": memory})
    most, began = 0, time.perf_counter()
    while process.poll() is None:
        most = max(most, anonymous(process.pid))
        if time.perf_counter() - began > seconds:
            process.terminate()
            process.wait()
            break
        time.sleep(0.02)
    said = process.stdout.read() if process.stdout else ""
    return json.loads(said) if said else {}, most


def main() -> None:
    """Run every step twice and print the table."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--text", type=Path, help="folder of texts")
    options.add_argument("--task", type=Path, help="next-token task")
    options.add_argument("--net", type=Path, help="network folder to certify")
    options.add_argument("--memory", default="500M", help="memory limit of the second process (default: 500M)")
    options.add_argument("--steps", nargs="+", choices=STEPS, default=["ask"])
    options.add_argument("--seconds", type=float, default=float("inf"), help="time limit of a process")
    options.add_argument("--one", choices=STEPS, help="run this step in this process, and print JSON")
    options.add_argument("--tiny", action="store_true", help="use a text of a few kilobytes, to see that it runs")
    given = options.parse_args()
    if (source := given.text or given.task) is None:
        source = Path(__file__).parent / "results" if given.tiny else options.error("expected --text or --task")
    if given.one:
        began = time.process_time()
        digest = done(given.one, source, given.net)
        print(json.dumps({"digest": digest, "seconds": time.process_time() - began}))
        return
    rows = table(f"{source}", "step", "memory", "CPU", f"memory, limit {given.memory}", "CPU ", "the same")
    for step in given.steps:
        flag = "--task" if source.is_file() else "--text"
        command = [sys.executable, __file__, "--one", step, flag, str(source)]
        command += ["--net", str(given.net)] if given.net else []
        (plenty, most), (scarce, less) = (measured(command, memory, given.seconds) for memory in ("", given.memory))
        times = [f"{found['seconds']:.1f} s" if found else "ended" for found in (plenty, scarce)]
        same = "" if not plenty or not scarce else "yes" if plenty["digest"] == scarce["digest"] else "NO"
        rows.add_row(step, format_bytes(most), times[0], format_bytes(less), times[1], same)
    OUT.print(rows)


if __name__ == "__main__":
    main()
