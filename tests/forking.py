"""Run scripts in forks of one process that has imported what they need, because importing it takes seconds."""

import json
import os
import subprocess
import sys
from pathlib import Path

SERVER = """
import gc, importlib, json, os, runpy, sys, traceback

for name in sys.argv[1:]:
    importlib.import_module(name)
gc.freeze()  # so that children copy no memory to collect garbage

for line in sys.stdin:
    script, arguments, folder = json.loads(line)
    child = os.fork()
    if child == 0:
        os.chdir(folder)
        for descriptor, name in ((1, "stdout"), (2, "stderr")):
            os.dup2(os.open(name, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), descriptor)
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        sys.argv = [script, *arguments]
        sys.path.insert(0, os.path.dirname(script))
        code = 0
        try:
            runpy.run_path(script, run_name="__main__")
        except SystemExit as end:
            code = end.code if isinstance(end.code, int) else int(end.code is not None)
            if isinstance(end.code, str):
                print(end.code, file=sys.stderr)
        except BaseException:
            code = 1
            traceback.print_exc()
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)  # the interpreter takes a second to end: it would give back what was imported, piece by piece
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
"""
"""A program that reads a script, its arguments and a folder per line, and prints the exit code of each run."""
OTHERS = ("matplotlib.figure", "numba", "torch", "flint", "transformers.models.llama.modeling_llama")
"""Packages of others that are slow to import."""
OURS = ("byheart.certificates", "byheart.cli.main", "byheart.compiler", "byheart.constructions", "byheart.lab")


class ForkingServer:
    """A process that runs each script in a fork of itself, with these modules imported."""

    def __init__(self, *modules: str) -> None:
        single = os.environ | {"OMP_NUM_THREADS": "1"}  # threads do not survive a fork
        command = [sys.executable, "-c", SERVER, *modules]
        self.process = subprocess.Popen(command, env=single, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def run(self, script: Path, *arguments: str, folder: Path) -> subprocess.CompletedProcess[str]:
        """Run a script in ``folder``, which receives its files ``stdout`` and ``stderr``."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(json.dumps([str(script), arguments, str(folder)]) + "\n")
        self.process.stdin.flush()
        code = int(self.process.stdout.readline())
        out, errors = ((folder / name).read_text(encoding="utf-8") for name in ("stdout", "stderr"))
        return subprocess.CompletedProcess([str(script), *arguments], code, out, errors)

    def close(self) -> None:
        """End the process."""
        assert self.process.stdin is not None
        self.process.stdin.close()
        assert self.process.wait() == 0
        assert self.process.stdout is not None
        self.process.stdout.close()
