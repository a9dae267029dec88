"""Use the modules argparse and inspect as a network recited them: `python works.py FOLDER` with both sources in it."""

import importlib.util
import sys
from pathlib import Path
from types import ModuleType


def recited(name: str, folder: Path) -> ModuleType:
    """The module in ``folder``, not the interpreter's own."""
    spec = importlib.util.spec_from_file_location(f"recited_{name}", folder / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def main(folder: Path) -> None:
    """Parse a command line with one, look at a signature with the other."""
    argparse, inspect = recited("argparse", folder), recited("inspect", folder)
    parser = argparse.ArgumentParser(prog="recited")
    parser.add_argument("--times", type=int, default=1)
    print("argparse, recited:", parser.parse_args(["--times", "3"]))
    print("inspect, recited: ", inspect.signature(recited))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
