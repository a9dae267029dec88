"""``byheart compile FILE… -o DIR``: texts, facts, or a task, into a float Transformer that knows them."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Annotated, Any, Literal

from byheart.cli.certify import FACTS_FOLLOW
from byheart.cli.options import Arg, Columns, ExecutorName, FactFiles, Json, Positional, WorkersNumber
from byheart.cli.output import escaped, given_by, hint_at_facts, some, steps, typed, visible
from byheart.cli.recite import tokenizer_of
from byheart.cli.result import Block, Cell, Result, Table, amount, dim, number, verdict_rows
from byheart.errors import BadInput, check_installed
from byheart.executors import Workplace
from byheart.files.memory import format_bytes
from byheart.files.writing import check_apart
from byheart.networks.about import needed_prompt
from byheart.networks.folders import replacing

if TYPE_CHECKING:
    from byheart.certificates import Certificate
    from byheart.certificates.refusal import RefusalStatus
    from byheart.cli.output import Given
    from byheart.compiler.rectangular.shelf import Shelf
    from byheart.constructions.built import Built


@dataclass(frozen=True)
class CompileCommand:
    """Compile texts, facts or a next-token task into a float Transformer that says them word for word. No training."""

    out: Annotated[Path, Arg(aliases=("-o",))]
    """Network folder to write."""
    files: Positional[tuple[Path, ...]] = ()
    """Texts: any files, or folders of them."""
    task: Path | None = None
    """A next-token task (.npz or .jsonl) instead of texts."""
    facts: FactFiles = ()
    columns: Columns = None
    layout: Literal["rectangular", "uniform", "experts"] = "rectangular"
    """rectangular: every sublayer as large as it needs to be. uniform: a stock Llama. experts: a stock
    Qwen2-MoE, which takes fewer parameters. Both are float32, with words of 16 and 22 bits."""
    precision: Literal["float32", "float64", "bfloat16"] = "float32"
    """Format of the weights. bfloat16 is for the table; the rest of such a network is float32."""
    words: int | None = None
    """Bits per word of the table: 24 or 31 (float32), 53 or 60 (float64), 8 or 15 (bfloat16); default: the smaller."""
    tokenizer: Annotated[str | None, Arg(metavar="{bytes,bpe}|PATH")] = None
    """Tokenizer of texts: bytes (the default), a byte-level BPE trained on them, or a tokenizer.json with its
    tokenizer_config.json, or the folder of both (the last two need the extra hf)."""
    vocab: int | None = None
    """Tokens of the BPE (default: 1024)."""
    window: Annotated[str, Arg(metavar="INT|auto")] = "auto"
    """Number of tokens that the network looks back: a power of two, or auto: the fewest with which no context has two
    answers."""
    refuse: Annotated[tuple[str, ...] | None, Arg(metavar="BITS|key")] = None
    """Answer prompts outside the data with a special "unknown" token, which recite reports. A text is known from its
    beginning, or by its last WINDOW tokens. With BITS, one other prompt in 2^BITS is answered wrongly (default: 20, or
    as many bits as fit beside a label). For facts, more bits are stored apart, and then the rate is proved; with key,
    whole prompts are stored and compared, so that no other prompt is ever answered."""
    shards: int | None = None
    """Number of tables behind one front (default: one if one is enough, otherwise as many as needed)."""
    seed: int = 0
    """Seed of all random choices; the same seed gives the same network."""
    executor: ExecutorName = "local"
    workers: WorkersNumber = None
    resume: bool = False
    """Continue a compile that was stopped: solved shards lie in OUT.parts, next to the folder to write."""
    json: Json = False

    def run(self) -> "CompileResult":
        """Compile, save, reload, check every answer."""
        from byheart.certificates import write
        from byheart.compiler import CompilerSettings, compile
        from byheart.compiler.rectangular.shelf import Shelf
        from byheart.networks.kinds import describe

        where, shelf = Workplace(self.executor, self.workers), Shelf(Path(f"{self.out}.parts"))
        self._check(where, shelf)
        data = given_by(self.files, self.task, self.facts, self.columns)
        hint_at_facts(self.files, "compiled", "compile", f" -o {typed(self.out)}")
        with replacing(self.out) as new:
            check_apart(self.out, self.task, *self.files, *self.facts)
            settings = CompilerSettings(self.precision, self.words, self.layout, _refuse(self.refuse), self.shards)
            with steps("compiling", quiet=self.json) as report, _hint_at_resuming(shelf):
                built = compile(
                    data,
                    settings=settings,
                    tokenizer=_tokenizer(self.tokenizer),
                    vocab=self.vocab,
                    window=_window(self.window),
                    seed=self.seed,
                    executor=where,
                    keep=shelf,
                    report=report,
                )
            built.write(new)
            certificate, others = self._certified(new, built, where)
            write(certificate, new / "certificate.json")
            describe(built.network, new, f"{certificate.statement} {certificate.sentence}")
        shelf.remove()
        return CompileResult(self, data, built, certificate, others, shelf.found, where.memory)

    def _certified(self, folder: Path, built: "Built", where: Workplace) -> "tuple[Certificate, RefusalStatus | None]":
        """Certify the answers of the network as it was written, and what it promises about all other contexts."""
        from byheart.certificates import certify
        from byheart.certificates.certifying import load_closed
        from byheart.certificates.refusal import judge_refusal
        from byheart.tasks.loaded_tokenizer import LoadedTokenizer
        from byheart.tasks.tokenizers import from_files

        with steps("checking every answer", quiet=self.json) as report:
            tokenizer = from_files(built.network.files)
            saved = load_closed(folder, tokenizer if isinstance(tokenizer, LoadedTokenizer) else None)
            executor = where if where.name != "local" else None
            certificate = certify(saved, built.questions, executor=executor, report=report)
            return certificate, judge_refusal(saved, built.questions)

    def _check(self, where: Workplace, shelf: "Shelf") -> None:
        """Raise BadInput if options do not go together, a library is missing, or the shelf holds unknown files."""
        self._check_libraries()
        if where.name != "local" and self.layout != "rectangular":
            raise BadInput(f"--executor does not go with layout {self.layout}; expected layout rectangular")
        if shelf.folder.exists() and not self.resume:
            problem = "holds shards of a compile that did not end"
            raise BadInput(f"{shelf.folder}: {problem}; expected --resume, to go on with it, or no such folder")
        shelf.check()

    def _check_libraries(self) -> None:
        """Raise BadInput if a library is missing that will be needed in the end."""
        if self.layout != "rectangular":
            check_installed("transformers", "a stock model", "hf")
        if self.tokenizer not in (None, "bytes"):
            check_installed("tokenizers", "byte-pair encoding" if self.tokenizer == "bpe" else "a tokenizer", "hf")


@dataclass(frozen=True)
class CompileResult(Result):
    """A compiled network, and what is certified about it."""

    command: CompileCommand
    data: "Given"
    built: "Built"
    certificate: "Certificate"
    others: "RefusalStatus | None"
    """How contexts that were never memorized are refused, if they are."""
    shards_resumed: int
    memory: dict[str, int | None]

    @property
    def is_true(self) -> bool:
        """True if every answer is certified, and the refusal of other contexts is not in doubt."""
        return self.certificate.certified and not (self.others and self.others.doubt)

    def as_json(self) -> dict[str, Any]:
        """Return sizes, bits, memory, errors, and what holds for facts and for other contexts."""
        built, command = self.built, self.command
        size, parameters, padded, bits = built.questions.size, built.account.dense, built.network.padded, built.bits
        assert bits is not None
        numbers = {
            "examples": size.examples,
            "window": size.length,
            "labels": size.labels,
            "parameters": parameters,
            "parameters_padded": padded,
            "bits": bits,
            "bits_per_parameter": bits / parameters,
            "bits_per_parameter_padded": bits / padded,
            "load": built.chosen["load"],
            "seconds": built.seconds,
            "bits_lzma": _lzma_bits(command.files),
            "errors": self.certificate.errors,
        }
        resumed = {"shards_resumed": self.shards_resumed} if command.resume else {}
        return {**numbers, **resumed, **self.memory, **self._about_facts(), **self._about_others()}

    def _about_facts(self) -> dict[str, Any]:
        from byheart.tasks import Facts

        if not isinstance(self.data, Facts):
            return {}
        return {"facts": len(self.data), "parameters_per_fact": self.built.account.dense / len(self.data)}

    def _about_others(self) -> dict[str, Any]:
        if self.others is None:
            return {}
        refusal = self.others.refusal
        prints = {"bits_in_prints": refusal.bits * self.built.questions.size.examples} if refusal.bits else {}
        return {"refuse": refusal.bits or refusal.by, "others": self.others.as_json(), **prints}

    def rows(self) -> Iterator[Block]:
        """Yield the sizes, the verdict, and what to type next."""
        yield self._sizes()
        yield from verdict_rows(self.certificate)
        if self.command.facts and self.certificate.certified:
            yield dim(FACTS_FOLLOW)
        if self.others is not None:
            yield str(self.others)
        yield dim(f"saved in {self.command.out}; {self._next_step()}")
        yield from self._shared_beginnings()

    def _sizes(self) -> Table:
        command, built, numbers = self.command, self.built, self.as_json()
        texts = [text["name"] for text in built.network.about["texts"]]
        data = some([str(path) for path in command.facts]) or some(texts) or str(command.task)
        facts = f"{amount(numbers['facts'], 'fact')}, " if command.facts else ""
        title = f"{data}: {facts}{amount(numbers['examples'], 'question')}, compiled in {built.seconds:.1f} s"
        rows: list[tuple[str, Cell]] = [
            ("window", amount(numbers["window"], "token")),
            *([("a prompt needs", needed)] if (needed := needed_prompt(built.network)) else []),
            ("network", f"depth {number(built.account.depth)}, width {number(built.account.width)}"),
            ("bits in the answers (order-0 entropy)", round(numbers["bits"])),
        ]
        if numbers["bits_lzma"] is not None:
            rows.append(("bits of the files after lzma", numbers["bits_lzma"]))
        if "bits_in_prints" in numbers:
            label = f"bits in the prints ({numbers['refuse']} per question, to refuse others)"
            rows.append((label, numbers["bits_in_prints"]))
        rows.append(("parameters", numbers["parameters"]))
        if command.facts:
            rows.append(("parameters per fact", numbers["parameters_per_fact"]))
        rows.append(("bits per parameter", f"{numbers['bits_per_parameter']:.2f}"))
        if numbers["parameters_padded"] != numbers["parameters"]:
            rows.append(("parameters, padded to one width", numbers["parameters_padded"]))
            rows.append(("bits per parameter, padded", f"{numbers['bits_per_parameter_padded']:.2f}"))
        rows.append(("load of the table", f"{numbers['load']:.3f}"))
        if "shards_resumed" in numbers:
            rows.append(("shards that were solved before", numbers["shards_resumed"]))
        rows.append(("peak memory", format_bytes(numbers["peak_memory"])))
        if numbers["peak_memory_worker"] is not None:
            rows.append(("peak memory of a worker", format_bytes(numbers["peak_memory_worker"])))
        return Table(title, ("", ">"), rows)

    def _next_step(self) -> str:
        """Return a sentence with the command that asks the network, or checks it again."""
        from byheart.tasks import Facts

        command = self.command
        if prompt := _first_prompt(self.data):
            return f"ask it with:  byheart recite {typed(command.out)} {prompt}"
        if command.task is not None:
            return f"check it again with:  byheart certify {typed(command.out)} --task {typed(command.task)}"
        if isinstance(self.data, Facts) and self.data.are_ids:
            files = "".join(f" --facts {typed(path)}" for path in command.facts)
            files += f" --columns {' '.join(map(quote, command.columns))}" if command.columns else ""
            return f"check it again with:  byheart certify {typed(command.out)}{files}"
        return f"hear it with:  byheart recite {typed(command.out)}"

    def _shared_beginnings(self) -> Iterator[Block]:
        """Yield how to begin a text that shares its beginning with another one."""
        texts = [text for text in self.built.network.about["texts"] if len(text["prompt"]) > 1]
        for text in texts[:1]:
            beginning = tokenizer_of(self.built.network).decode(text["prompt"]).decode(errors="replace")
            if len(texts) == 1:
                yield f"{text['name']} shares its beginning with another text: begin with at least {beginning!r}"
                return
            example = f"begin {text['name']} with at least {beginning!r}, for example"
            yield f"{len(texts):,} texts share their beginnings: {example}; recite --text NAME knows them all"


@contextmanager
def _hint_at_resuming(shelf: "Shelf") -> Iterator[None]:
    """Tell the user where finished shards are kept if compiling is interrupted. Remove the folder if there are none."""
    try:
        yield
    except (KeyboardInterrupt, BadInput, OSError):
        shelf.tidy()
        if kept := len([*shelf.folder.glob("shard-*")]):
            hint = f"stopped with {kept:,} shards kept in {shelf.folder}; go on with the same command and --resume\n"
            sys.stderr.write(visible(hint))
        raise


def _first_prompt(data: "Given") -> str | None:
    """Return ``--prompt`` with the first prompt of facts, quoted for a shell; None if the data have no prompts."""
    from byheart.tasks import Facts

    prompts = (fact.prompt for fact in data) if isinstance(data, Facts) else iter(())
    first = next((prompt for prompt in prompts if isinstance(prompt, bytes)), None)
    if first is None:
        return None
    text = escaped(first)
    return f"--prompt={quote(text)}" if text.startswith("-") else f"--prompt {quote(text)}"


def _tokenizer(name: str | None) -> Literal["bytes", "bpe"] | Path | None:
    return name if name in (None, "bytes", "bpe") else Path(name)  # type: ignore[return-value]  # one of the two


def _refuse(words: tuple[str, ...] | None) -> int | Literal["auto", "key"] | None:
    if not words:
        return None if words is None else "auto"
    if words == ("key",):
        return "key"
    if len(words) > 1 or not words[0].isascii() or not words[0].removeprefix("-").isdigit():
        raise BadInput(f"--refuse is {' '.join(words)}; expected one number of bits, key, or nothing")
    return int(words[0][:20])


def _window(text: str) -> int | None:
    if text == "auto":
        return None
    if not text.isascii() or not text.isdigit() or int(text) < 1:
        raise BadInput(f"--window is {text!r}; expected auto or a number of tokens")
    return int(text)


def _lzma_bits(files: tuple[Path, ...]) -> int | None:
    """Return the bits of all files after lzma, a good general compressor."""
    import lzma

    from byheart.tasks.texts import read_files

    if not files:
        return None
    packing, texts = lzma.LZMACompressor(), read_files(files)
    packed = sum(len(packing.compress(portion)) for name in texts for portion in texts.portions(name))
    return 8 * (packed + len(packing.flush()))
