"""``byheart compile FILE… -o DIR``: texts, or a task, into a float Transformer that recites them."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from tyro.conf import Positional, arg

from byheart.cli.output import DONE, NOT_TRUE, Json, console, number, print_json, steps, table
from byheart.errors import BadInput

if TYPE_CHECKING:
    from byheart.certificates import Certificate
    from byheart.constructions.reciting import Recital


@dataclass(frozen=True)
class CompileCommand:
    """Compile texts, or a next-token task, into a float Transformer that says them word for word. No training."""

    out: Annotated[Path, arg(aliases=["-o"])]
    """Network folder to write."""
    files: Positional[tuple[Path, ...]] = ()
    """Texts: any files."""
    task: Path | None = None
    """A next-token task (.npz or .jsonl) instead of texts."""
    precision: Literal["float32", "float64", "bfloat16"] = "float32"
    """Format of the weights. bfloat16 is for the table; the rest of such a network is float32."""
    words: int | None = None
    """Bits a word of the table: 24 or 31 (float32), 53 or 60 (float64), 8 or 15 (bfloat16); default: the smaller."""
    tokenizer: Literal["bytes", "bpe"] = "bytes"
    """bytes, or a byte-level BPE trained on the texts (needs the extra hf)."""
    vocab: int = 1024
    """Tokens of the BPE."""
    window: str = "auto"
    """How many tokens back the network looks: a power of two, or auto: as few as leave no context with two answers."""
    seed: int = 0
    """Seed of all random choices; the same seed gives the same network."""
    json: Json = False

    def run(self) -> int:
        """Compile, save, reload, check every answer, print."""
        from byheart.certificates import write
        from byheart.certificates.floats import certify_transformer
        from byheart.networks.transformer import store

        recital = self._compile()
        recital.save(self.out)
        loaded = store.load(self.out)
        with steps("checking every answer", quiet=self.json) as report:
            certificate = certify_transformer(loaded.module, recital.compiled.contexts, twice=False, report=report)
        write(certificate, self.out / "certificate.json")
        numbers = self._numbers(recital, certificate)
        if self.json:
            print_json(numbers)
        else:
            self._print(recital, numbers, certificate)
        return DONE if certificate.certified else NOT_TRUE

    def _compile(self) -> "Recital":
        from byheart.constructions.reciting import Settings, compile_files, compile_task
        from byheart.tasks import NextToken, load

        if bool(self.files) == (self.task is not None):
            raise BadInput("expected either text files or --task FILE")
        settings, window = Settings(self.precision, self.words), _window(self.window)
        with steps("solving bit planes", quiet=self.json) as report:
            if self.task is None:
                return compile_files(
                    self.files,
                    tokenizer=self.tokenizer,
                    vocab=self.vocab,
                    window=window,
                    settings=settings,
                    seed=self.seed,
                    report=report,
                )
            task = load(self.task)
            if not isinstance(task, NextToken):
                raise BadInput(f"{self.task}: is a {task.kind} task; expected next-token")
            return compile_task(task, window=window, settings=settings, seed=self.seed, report=report)

    def _numbers(self, recital: "Recital", certificate: "Certificate") -> dict[str, Any]:
        compiled = recital.compiled
        bits, parameters, padded = compiled.bits, compiled.account.dense, compiled.spec.padded
        return {
            "examples": len(compiled.contexts),
            "window": compiled.contexts.window,
            "labels": compiled.contexts.labels_in_all,
            "parameters": parameters,
            "parameters_padded": padded,
            "bits": bits,
            "bits_lzma": _lzma_bits(self.files),
            "bits_per_parameter": bits / parameters,
            "bits_per_parameter_padded": bits / padded,
            "errors": certificate.errors,
            "seconds": compiled.seconds,
        }

    def _print(self, recital: "Recital", numbers: dict[str, Any], certificate: "Certificate") -> None:
        compiled, out = recital.compiled, console()
        what = ", ".join(recital.names) or str(self.task)
        rows = table(f"{what}: {number(numbers['examples'])} questions, compiled in {compiled.seconds:.1f} s", "", ">")
        rows.show_header = False
        rows.add_row("window", f"{numbers['window']} tokens")
        rows.add_row("sublayers", number(len(compiled.spec.sublayers)))
        rows.add_row("bits in the answers (order-0 entropy)", number(round(numbers["bits"])))
        if numbers["bits_lzma"] is not None:
            rows.add_row("bits of the files after lzma", number(numbers["bits_lzma"]))
        rows.add_row("parameters", number(numbers["parameters"]))
        rows.add_row("bits a parameter", f"{numbers['bits_per_parameter']:.2f}")
        rows.add_row("parameters, padded to one width", number(numbers["parameters_padded"]))
        rows.add_row("bits a parameter, padded", f"{numbers['bits_per_parameter_padded']:.2f}")
        rows.add_row("load of the table", f"{compiled.load:.3f}")
        out.print(rows)
        right = f"{number(certificate.checked - certificate.errors)} of {number(certificate.checked)}"
        verdict = "[bold green]certified[/]" if certificate.certified else "[bold red]not certified[/]"
        out.print(f"{verdict}: {right} answers right, {certificate.method}, {certificate.seconds:.1f} s")
        for name, text, prompt in zip(
            recital.names, self._beginnings(recital), compiled.contexts.prompts, strict=False
        ):
            if prompt > 1:
                begins = f"shares its beginning with another text: begin with at least {text!r}"
                out.print(f"{name} {begins}", markup=False)
        out.print(f"saved in {self.out}; hear it with:  byheart recite {self.out}", style="dim", markup=False)

    @staticmethod
    def _beginnings(recital: "Recital") -> list[str]:
        tokenizer = recital.tokenizer
        texts = recital.about()["texts"] if tokenizer is not None else []
        return [tokenizer.decode(text["prompt"]).decode(errors="replace") for text in texts if tokenizer is not None]


def _window(given: str) -> int | None:
    if given == "auto":
        return None
    if not given.isascii() or not given.isdigit() or int(given) < 1:
        raise BadInput(f"--window is {given!r}; expected auto or a number of tokens")
    return int(given)


def _lzma_bits(files: tuple[Path, ...]) -> int | None:
    """What a good general compressor makes of the files, one after the other."""
    import lzma

    return 8 * len(lzma.compress(b"".join(path.read_bytes() for path in files))) if files else None
