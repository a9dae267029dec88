"""Compile a folder of texts from the disk, certify it on every byte, and recite one of its files. For docs/large.md.

    python benchmarks/large_text.py compile --folder sources --net net64      # 64 MB: eight minutes of one core
    python benchmarks/large_text.py certify --folder sources --net net64      # every byte, in two processes
    python benchmarks/large_text.py recite --folder sources --net net64 --text argparse.py

Without --folder, the texts are --megabytes of the sources of Python's own library. The sections `certify` and `recite`
run the command that users type, each in its own process. The section `compile` calls `byheart.compile` instead, because
the command also asks every question, which `certify` measures. Memory is the peak of the process.
"""

import json
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import time
from pathlib import Path
from typing import Any

from tables import OUT, parser, table

from byheart.compiler import compile as compiled
from byheart.compiler.rectangular.shelf import Shelf
from byheart.files.memory import format_bytes, peak_memory
from byheart.tasks.texts import list_files

GIVEN: dict[str, Any] = {}
"""Arguments of the command line, by name."""


def gathered(folder: Path, size: int) -> None:
    """Copy at most ``size`` bytes of Python's library. Skip copies of files, and files that begin another file."""
    library, contents = Path(sysconfig.get_paths()["stdlib"]), dict[bytes, Path]()
    for path in sorted(library.glob("*.py")) if size < 10**6 else sorted(library.rglob("*.py")):
        content = path.read_bytes()
        if content and len(content) <= size:
            size -= len(contents.setdefault(content, path) and content)
    order = sorted(contents)
    for content, following in zip(order, [*order[1:], b""], strict=True):
        if not following.startswith(content):
            target = folder / contents[content].relative_to(library)
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(content)


def one() -> dict[str, Any]:
    """Compile in this process. Return the sizes of the network, the time and the memory."""
    net, began = Path(GIVEN["net"]), time.process_time()
    shelf = Shelf(net.with_name(f"{net.name}.parts"))
    built = compiled([Path(GIVEN["folder"])], keep=shelf, shards=GIVEN["shards"])
    net.mkdir(exist_ok=True)
    built.write(net)
    shelf.remove()
    assert built.bits is not None
    return {
        "bytes": built.questions.stands_for,
        "questions": built.questions.size.examples,
        "window": built.chosen["window"],
        "shards": built.chosen.get("shards", 1),
        "attempts": built.chosen["attempts"],
        "load": built.chosen["load"],
        "parameters": built.account.dense,
        "bits": built.bits / built.account.dense,
        "seconds": time.process_time() - began,
        "peak": peak_memory(),
    }


def compile() -> None:
    """Compile the texts, and print window, shards, parameters, CPU seconds and memory."""
    if GIVEN["tiny"]:
        found = one()
    else:
        command = [sys.executable, __file__, "--one", "--folder", GIVEN["folder"], "--net", GIVEN["net"]]
        found = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout)
    files = len(list_files([Path(GIVEN["folder"])]))
    columns = ("files", "bytes", "window", "shards", "draws", "parameters", "bits/parameter", "load", "CPU", "memory")
    rows = table("Compiled", *columns)
    numbers = [f"{found[name]:,}" for name in ("bytes", "window", "shards", "attempts", "parameters")]
    shares = (f"{found['bits']:.2f}", f"{found['load']:.3f}", f"{found['seconds']:.0f} s")
    rows.add_row(f"{files:,}", *numbers, *shares, format_bytes(found["peak"]))
    OUT.print(rows)


def said(*arguments: str) -> dict[str, Any]:
    """Run a command and return the JSON that it prints."""
    command = [sys.executable, "-m", "byheart", *arguments, "--json"]
    found: dict[str, Any] = json.loads(subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False).stdout)
    return found


def certify() -> None:
    """Certify every byte, with a proof that each step is exact."""
    where = () if GIVEN["tiny"] else ("--executor", "processes", "--workers", "2")
    began = time.perf_counter()
    found = said("certify", GIVEN["net"], GIVEN["folder"], *where)
    rows = table("Certified", "questions", "wrong", "certified", "wall seconds", "memory", "memory per worker")
    worker = found.get("peak_memory_worker")
    rows.add_row(
        f"{found['checked']:,}",
        f"{found['errors']:,}",
        "yes" if found["certified"] else "NO",
        f"{time.perf_counter() - began:.0f}",
        format_bytes(found["peak_memory"]),
        "" if worker is None else format_bytes(worker),
    )
    OUT.print(rows)


def recite() -> None:
    """Recite one file from its first bytes, and compare it byte for byte."""
    files = {path.name: path for path in list_files([Path(GIVEN["folder"])])}
    name = GIVEN["text"] or next(iter(files))
    with tempfile.TemporaryDirectory() as folder:
        target = Path(folder, "said")
        found = said("recite", GIVEN["net"], "--text", name, "-o", str(target))
        same = target.read_bytes() == files[name].read_bytes()
    rows = table("Recited", "file", "bytes", "the same", "seconds")
    rows.add_row(name, f"{files[name].stat().st_size:,}", "yes" if same else "NO", f"{found['seconds']:.1f}")
    OUT.print(rows)


SECTIONS = (compile, certify, recite)


def main() -> None:
    """Run all sections, or the named ones."""
    options = parser(__doc__, SECTIONS)
    options.add_argument("--folder", help="folder of texts (default: of Python's library)")
    options.add_argument("--net", help="network folder (default: a temporary one)")
    options.add_argument("--text", help="file to recite (default: the first)")
    options.add_argument(
        "--megabytes", type=float, default=8.0, help="size of the texts taken from the library (default: 8)"
    )
    options.add_argument("--one", action="store_true", help="compile in this process, and print the results as JSON")
    given = vars(options.parse_args())
    scratch = Path(tempfile.mkdtemp())
    try:
        if given["folder"] is None:
            given["folder"] = str(scratch / "sources")
            gathered(scratch / "sources", 6_000 if given["tiny"] else round(1e6 * given["megabytes"]))
        given["net"] = given["net"] or str(scratch / "net")
        GIVEN.update(given, shards=2 if given["tiny"] else None)
        if given["one"]:
            print(json.dumps(one()))
            return
        for section in SECTIONS:
            if not given["sections"] or section.__name__ in given["sections"]:
                section()
    finally:
        shutil.rmtree(scratch)


if __name__ == "__main__":
    main()
