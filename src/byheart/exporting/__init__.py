"""Compiled networks in the files of other programs: GGUF for llama.cpp, and ONNX.

Every file is read back before it takes its place. The packages that write them are extras, imported when needed.
"""

from pathlib import Path

from byheart.errors import BadInput
from byheart.networks import Network, load


def export(network: Network | Path | str, file: Path | str) -> int:
    """Write a compiled network, or that in a folder, into a ``.gguf`` or ``.onnx`` file, and read it back.

    Return the number of tensors written. GGUF is for stock models (``layout="uniform"`` or ``"experts"``).
    """
    network, suffix = load(network) if isinstance(network, Path | str) else network, Path(file).suffix
    if suffix == ".gguf":
        from byheart.exporting.gguf import to_gguf

        return to_gguf(network, file)
    if suffix == ".onnx":
        from byheart.exporting.onnx import to_onnx

        return to_onnx(network, file)
    raise BadInput(f"{file}: its name ends with {suffix!r}; expected .gguf or .onnx")
