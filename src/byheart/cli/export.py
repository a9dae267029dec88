"""``byheart export DIR --gguf FILE | --onnx FILE``: a compiled network in the file that another program loads."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from byheart.cli.options import Json, Positional
from byheart.cli.output import DONE, steps
from byheart.cli.result import console, print_json
from byheart.errors import BadInput
from byheart.files.writing import check_apart, check_file

if TYPE_CHECKING:
    from byheart.networks import Network


@dataclass(frozen=True)
class ExportCommand:
    """Write a compiled network into a file that llama.cpp (GGUF) or ONNX Runtime loads, and read it back."""

    network: Positional[Path]
    """Network folder."""
    gguf: Path | None = None
    """GGUF file to write, of a stock model (compile --layout uniform or experts). Needs the extra gguf."""
    onnx: Path | None = None
    """ONNX file to write, of a compiled network in any layout. Needs the extra onnx."""
    json: Json = False

    def run(self) -> int:
        """Check all that is needed, write, read back, say what was found."""
        from byheart.networks import load

        if (self.gguf is None) == (self.onnx is None):
            got = "neither is given" if self.gguf is None else "both are given"
            raise BadInput(f"{got}; expected either --gguf FILE or --onnx FILE")
        out = self.gguf or self.onnx
        assert out is not None
        check_file(out)
        check_apart(out, self.network)
        network = load(self.network)
        try:
            tensors, then = self._write(network)
        except BadInput as error:
            raise BadInput(f"{self.network}: {error}") from error
        if self.json:
            print_json({"file": str(out), "tensors": tensors, "bytes": out.stat().st_size})
        else:
            console().print(f"{out}: {tensors:,} tensors, read back and equal bit for bit; {then}", markup=False)
        return DONE

    def _write(self, network: "Network") -> tuple[int, str]:
        """How many tensors were written, and what to do with the file."""
        if self.gguf is not None:
            from byheart.export.gguf import CACHE, to_gguf

            with steps("writing GGUF", quiet=self.json):
                return to_gguf(network, self.gguf), f"llama.cpp wants {CACHE}"
        from byheart.export.onnx import to_onnx

        assert self.onnx is not None
        with steps("tracing, writing and running ONNX", quiet=self.json):
            return to_onnx(network, self.onnx), "ONNX Runtime gives PyTorch's logits"
