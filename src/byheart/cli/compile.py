"""``byheart compile FILE… -o DIR``: texts, or a task, into a float Transformer that recites them."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from tyro.conf import Positional, arg

from byheart.cli.output import DONE, NOT_TRUE, Json, console, number, print_json, steps, table
from byheart.errors import BadInput
from byheart.networks.folders import check_destination

if TYPE_CHECKING:
    from byheart.certificates import Certificate
    from byheart.constructions.reciting import Recital
    from byheart.tasks import NextToken
    from byheart.tasks.tokenizers import Tokenizer


@dataclass(frozen=True)
class CompileCommand:
    """Compile texts, or a next-token task, into a float Transformer that says them word for word. No training."""

    out: Annotated[Path, arg(aliases=["-o"])]
    """Network folder to write."""
    files: Positional[tuple[Path, ...]] = ()
    """Texts: any files."""
    task: Path | None = None
    """A next-token task (.npz or .jsonl) instead of texts."""
    layout: Literal["rectangular", "uniform"] = "rectangular"
    """rectangular: every sublayer as large as it needs to be. uniform: a stock Llama (float32, 24-bit words)."""
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

        if bool(self.files) == (self.task is not None):
            raise BadInput("expected either text files or --task FILE")
        if self.layout == "uniform":
            return self._uniform()
        check_destination(self.out, "float")
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
            sizes = f"{len(recital.compiled.spec.sublayers)} sublayers"
            self._print(recital.names, numbers, certificate, sizes, recital.compiled.load)
            self._print_prompts(recital)
        return DONE if certificate.certified else NOT_TRUE

    def _uniform(self) -> int:
        """The same for a stock Llama, which Hugging Face's own code checks."""
        from byheart.certificates import write
        from byheart.certificates.floats import certify_stock
        from byheart.constructions.reciting.texts import beginnings, file_contexts
        from byheart.constructions.reciting.uniform import compile_uniform, save
        from byheart.tasks.contexts import task_contexts

        if self.precision != "float32" or self.words not in (None, 24):
            raise BadInput("--layout uniform is for float32 and 24-bit words; leave --precision and --words away")
        check_destination(self.out, "llama")
        tokenizer: Tokenizer | None = None
        names: tuple[str, ...] = ()
        with steps("solving tables", quiet=self.json) as report:
            if self.task is not None:
                contexts = task_contexts(self._task(), _window(self.window))
            else:
                contexts, tokenizer, names = file_contexts(
                    self.files, tokenizer=self.tokenizer, vocab=self.vocab, window=_window(self.window)
                )
            uniform = compile_uniform(contexts, seed=self.seed, report=report)
        about = {"texts": beginnings(contexts, names), "window": contexts.window, "end": contexts.end, "edits": []}
        save(uniform, self.out, tokenizer, about=about)
        with steps("checking every answer", quiet=self.json) as report:
            certificate = certify_stock(self.out, contexts, report=report)
        write(certificate, self.out / "certificate.json")
        numbers = {
            "examples": len(contexts),
            "window": contexts.window,
            "labels": contexts.labels_in_all,
            "parameters": uniform.parameters,
            "parameters_padded": uniform.parameters,
            "bits": contexts.order0_bits,
            "bits_lzma": _lzma_bits(self.files),
            "bits_per_parameter": contexts.order0_bits / uniform.parameters,
            "bits_per_parameter_padded": contexts.order0_bits / uniform.parameters,
            "errors": certificate.errors,
            "seconds": uniform.seconds,
        }
        if self.json:
            print_json(numbers)
        else:
            sizes = f"{uniform.config['num_hidden_layers']} layers of width {uniform.config['hidden_size']}"
            self._print(names, numbers, certificate, sizes, uniform.load)
        return DONE if certificate.certified else NOT_TRUE

    def _task(self) -> "NextToken":
        from byheart.tasks import NextToken, load

        assert self.task is not None
        task = load(self.task)
        if not isinstance(task, NextToken):
            raise BadInput(f"{self.task}: is a {task.kind} task; expected next-token")
        return task

    def _compile(self) -> "Recital":
        from byheart.constructions.reciting import Settings, compile_files, compile_task

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
            return compile_task(self._task(), window=window, settings=settings, seed=self.seed, report=report)

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

    def _print(
        self, names: tuple[str, ...], numbers: dict[str, Any], certificate: "Certificate", sizes: str, load: float
    ) -> None:
        out = console()
        what = ", ".join(names) or str(self.task)
        title = f"{what}: {number(numbers['examples'])} questions, compiled in {numbers['seconds']:.1f} s"
        rows = table(title, "", ">")
        rows.show_header = False
        rows.add_row("window", f"{numbers['window']} tokens")
        rows.add_row("network", sizes)
        rows.add_row("bits in the answers (order-0 entropy)", number(round(numbers["bits"])))
        if numbers["bits_lzma"] is not None:
            rows.add_row("bits of the files after lzma", number(numbers["bits_lzma"]))
        rows.add_row("parameters", number(numbers["parameters"]))
        rows.add_row("bits a parameter", f"{numbers['bits_per_parameter']:.2f}")
        if numbers["parameters_padded"] != numbers["parameters"]:
            rows.add_row("parameters, padded to one width", number(numbers["parameters_padded"]))
            rows.add_row("bits a parameter, padded", f"{numbers['bits_per_parameter_padded']:.2f}")
        rows.add_row("load of the table", f"{load:.3f}")
        out.print(rows)
        right = f"{number(certificate.checked - certificate.errors)} of {number(certificate.checked)}"
        verdict = "[bold green]certified[/]" if certificate.certified else "[bold red]not certified[/]"
        out.print(f"{verdict}: {right} answers right, {certificate.method}, {certificate.seconds:.1f} s")
        then = f"hear it with:  byheart recite {self.out}"
        if self.task is not None:
            then = f"check it again with:  byheart certify {self.out} --task {self.task}"
        out.print(f"saved in {self.out}; {then}", style="dim", markup=False)

    def _print_prompts(self, recital: "Recital") -> None:
        prompts = recital.compiled.contexts.prompts
        for name, text, prompt in zip(recital.names, self._beginnings(recital), prompts, strict=False):
            if prompt > 1:
                begins = f"shares its beginning with another text: begin with at least {text!r}"
                console().print(f"{name} {begins}", markup=False)

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
