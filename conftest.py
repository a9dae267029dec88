"""Settings that come before all tests: modules that are not collected, and how Triton's kernels run without a GPU."""

import os
from importlib.util import find_spec
from pathlib import Path

collect_ignore_glob = [] if find_spec("triton") else ["src/byheart/lab/fused/[!_]*.py"]
if not Path("/dev/nvidiactl").exists():
    os.environ.setdefault("TRITON_INTERPRET", "1")  # read where a kernel is defined, so before anything is imported
