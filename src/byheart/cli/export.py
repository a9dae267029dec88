"""``byheart export DIR --gguf FILE | --onnx FILE``: a compiled network in the format of another program."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from byheart.cli.options import Json, Positional
from byheart.cli.output import steps
from byheart.cli.result import Block, Result
from byheart.errors import BadInput
from byheart.files.writing import check_apart, check_file

if TYPE_CHECKING:
    from byheart.networks import Network


@dataclass(frozen=True)
class ExportCommand:
    """Write a compiled network into a file for llama.cpp (GGUF) or ONNX Runtime, and read it back."""

    network: Positional[Path]
    """Network folder."""
    gguf: Path | None = None
    """GGUF file to write. The network must be a stock model (compile --layout uniform or experts). Needs the extra
    gguf."""
    onnx: Path | None = None
    """ONNX file to write, of a compiled network in any layout. Needs the extra onnx."""
    json: Json = False

    @property
    def out(self) -> Path:
        """The file to write; BadInput unless exactly one is given."""
        if (self.gguf is None) == (self.onnx is None):
            reason = "neither is given" if self.gguf is None else "both are given"
            raise BadInput(f"{reason}; expected either --gguf FILE or --onnx FILE")
        return self.gguf or self.onnx or Path()

    def run(self) -> "ExportResult":
        """Check all that is needed, write the file, and read it back."""
        from byheart.networks import load

        out = self.out
        check_file(out)
        check_apart(out, self.network)
        network = load(self.network)
        try:
            tensors, advice = self._write(network)
        except BadInput as error:
            raise BadInput(f"{self.network}: {error}") from error
        return ExportResult(out, tensors, out.stat().st_size, advice)

    def _write(self, network: "Network") -> tuple[int, str]:
        """Return the number of tensors written, and advice on the use of the file."""
        if self.gguf is not None:
            from byheart.exporting.gguf import CACHE, to_gguf

            with steps("writing GGUF", quiet=self.json):
                return to_gguf(network, self.gguf), f"llama.cpp needs {CACHE}"
        from byheart.exporting.onnx import to_onnx

        with steps("tracing, writing and running ONNX", quiet=self.json):
            return to_onnx(network, self.out), "ONNX Runtime gives PyTorch's logits"


@dataclass(frozen=True)
class ExportResult(Result):
    """The file that was written."""

    file: Path
    tensors: int
    bytes: int
    advice: str

    def as_json(self) -> dict[str, object]:
        """Return the file, its number of tensors and its size."""
        return {"file": self.file, "tensors": self.tensors, "bytes": self.bytes}

    def rows(self) -> Iterator[Block]:
        """Yield one line."""
        yield f"{self.file}: {self.tensors:,} tensors, read back and equal bit for bit; {self.advice}"
