"""A folder of texts, compiled from the disk, certified on every byte, and one file of it recited. For docs/large.md.

    python benchmarks/large_text.py compile --folder sources --net net64      # 64 MB: eight minutes of one core
    python benchmarks/large_text.py certify --folder sources --net net64      # every byte, in two processes
    python benchmarks/large_text.py recite --folder sources --net net64 --text argparse.py

Without --folder, the sources of Python's own library are taken, as many as make --megabytes. Each section is the
command that users type, in a process of its own, but for `compile`: that command asks every question in the end, which
is what the section `certify` is about; so `byheart.compile` is called. Memory is what the process had at most.
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
"""Folder, network, and what else was said on the command line."""


def gathered(folder: Path, size: int) -> None:
    """Files of Python's library, each once and none the beginning of another, of so many bytes or a little less."""
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
    """Compile, in this process: what it took, and what came of it."""
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
    """Window, shards, parameters, CPU seconds and memory."""
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
    """What a command prints as JSON."""
    command = [sys.executable, "-m", "byheart", *arguments, "--json"]
    found: dict[str, Any] = json.loads(subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False).stdout)
    return found


def certify() -> None:
    """Every byte, each step proved to be exact."""
    where = () if GIVEN["tiny"] else ("--executor", "processes", "--workers", "2")
    began = time.perf_counter()
    found = said("certify", GIVEN["net"], GIVEN["folder"], *where)
    rows = table("Certified", "questions", "wrong", "certified", "seconds of the wall", "memory", "a worker")
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
    """One file, from its first bytes; compared byte for byte."""
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
    """All sections, or those that are named."""
    options = parser(__doc__, SECTIONS)
    options.add_argument("--folder", help="texts (default: of Python's library)")
    options.add_argument("--net", help="network folder (default: one that is removed in the end)")
    options.add_argument("--text", help="which file to recite (default: the first)")
    options.add_argument("--megabytes", type=float, default=8.0, help="of the library (default: 8)")
    options.add_argument("--one", action="store_true", help="compile in this process, and print JSON")
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
