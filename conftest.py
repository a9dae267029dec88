"""What is not collected where something is not installed."""

from importlib.util import find_spec

collect_ignore_glob = [] if find_spec("triton") else ["src/byheart/lab/fused/[!_]*.py"]
