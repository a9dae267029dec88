"""``byheart compile FILE… -o DIR``: texts, facts, or a task, into a float Transformer that knows them."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Annotated, Any, Literal

from byheart.cli.certify import print_facts, print_verdict
from byheart.cli.options import Arg, Columns, ExecutorName, FactFiles, Json, Positional, WorkersNumber
from byheart.cli.output import DONE, NOT_TRUE, given_by, some, steps, typed, visible
from byheart.cli.recite import escaped, tokenizer_of
from byheart.cli.result import console, number, print_json, table
from byheart.errors import BadInput, check_installed
from byheart.executors import Workplace
from byheart.files.memory import format_bytes
from byheart.files.writing import check_apart
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
    """Of texts: bytes (the default), a byte-level BPE trained on them, or a tokenizer.json with its
    tokenizer_config.json, or the folder of both (the last two need the extra hf)."""
    vocab: int | None = None
    """Tokens of the BPE (default: 1024)."""
    window: str = "auto"
    """How many tokens back the network looks: a power of two, or auto: as few as leave no context with two answers."""
    refuse: Annotated[tuple[str, ...] | None, Arg(metavar="BITS|key")] = None
    """Answer what was never memorized by a token of its own, "unknown", which recite tells; wrongly for one context in
    2^BITS. For facts (without BITS: 20, or as many as fit into a word beside a label; more are stored apart, and then
    the rate is proved). key: all of a prompt is stored and compared, so that no other is ever answered."""
    shards: int | None = None
    """Tables behind one front (default: one as long as one will do, beyond two million labels as many as it takes)."""
    seed: int = 0
    """Seed of all random choices; the same seed gives the same network."""
    executor: ExecutorName = "local"
    workers: WorkersNumber = None
    resume: bool = False
    """Go on with a compile that was stopped: shards that are solved lie in OUT.parts, beside the folder to write."""
    json: Json = False

    def run(self) -> int:
        """Compile, save, reload, check every answer, print."""
        from byheart.certificates import write
        from byheart.compiler.rectangular.shelf import Shelf
        from byheart.networks.kinds import describe

        where, shelf = Workplace(self.executor, self.workers), Shelf(Path(f"{self.out}.parts"))
        self._check(where, shelf)
        given = given_by(self.files, self.task, self.facts, self.columns)
        self._hint()
        with replacing(self.out) as new:
            check_apart(self.out, self.task, *self.files, *self.facts)
            built = self._compiled(given, where, shelf)
            built.write(new)
            certificate, others = self._certified(new, built, where)
            write(certificate, new / "certificate.json")
            describe(built.network, new, f"{certificate.statement} {certificate.sentence}")
        shelf.remove()
        numbers = {**_numbers(built), "bits_lzma": _lzma_bits(self.files), "errors": certificate.errors}
        numbers |= {"shards_resumed": shelf.found} if self.resume else {}
        numbers |= {**where.memory, **_of_facts(given, built), **_of_others(others, built)}
        if self.json:
            print_json(numbers)
        else:
            self._print(built, numbers)
            print_verdict(certificate)
            if self.facts:
                print_facts(certificate)
            if others is not None:
                console().print(str(others), markup=False)
            self._print_rest(built, given)
        return DONE if certificate.certified and not (others and others.doubt) else NOT_TRUE

    def _compiled(self, given: "Given", where: Workplace, shelf: "Shelf") -> "Built":
        from byheart.compiler import CompilerSettings, compile

        with steps("compiling", quiet=self.json) as report, _saying_how_to_go_on(shelf):
            return compile(
                given,
                settings=CompilerSettings(self.precision, self.words, self.layout, _refuse(self.refuse), self.shards),
                tokenizer=_tokenizer(self.tokenizer),
                vocab=self.vocab,
                window=_window(self.window),
                seed=self.seed,
                executor=where,
                keep=shelf,
                report=report,
            )

    def _certified(self, folder: Path, built: "Built", where: Workplace) -> "tuple[Certificate, RefusalStatus | None]":
        """What is proved of the network as it was written: of its answers, and of all other contexts."""
        from byheart.certificates import certify
        from byheart.certificates.refusal import judge_refusal
        from byheart.networks import load

        with steps("checking every answer", quiet=self.json) as report:
            saved, executor = load(folder), where if where.name != "local" else None
            certificate = certify(saved, built.questions, executor=executor, report=report)
            return certificate, judge_refusal(saved, built.questions)

    def _check(self, where: Workplace, shelf: "Shelf") -> None:
        """BadInput if options do not go together, a library is missing, or the shelf is another's."""
        self._check_libraries()
        if where.name != "local" and self.layout != "rectangular":
            raise BadInput(f"--executor does not go with layout {self.layout}; expected layout rectangular")
        if shelf.folder.exists() and not self.resume:
            what = "holds shards of a compile that did not end"
            raise BadInput(f"{shelf.folder}: {what}; expected --resume, to go on with it, or no such folder")
        shelf.check()

    def _hint(self) -> None:
        """Say that a table was read as a text, where facts were probably meant."""
        from byheart.tasks.fact_files import FACT_READERS

        for path in [path for path in self.files if path.suffix.lower() in FACT_READERS][:1]:
            facts = f"if its rows are facts:  byheart compile --facts {typed(path)} -o {typed(self.out)}"
            sys.stderr.write(visible(f"{path} is compiled as one text; {facts}\n"))

    def _check_libraries(self) -> None:
        """BadInput if a library is not there that will be needed in the end."""
        if self.layout != "rectangular":
            check_installed("transformers", "a stock model", "hf")
        if self.tokenizer not in (None, "bytes"):
            check_installed("tokenizers", "byte-pair encoding" if self.tokenizer == "bpe" else "a tokenizer", "hf")

    def _print(self, built: "Built", numbers: dict[str, Any]) -> None:
        texts = [text["name"] for text in built.network.about["texts"]]
        what = some([str(path) for path in self.facts]) or some(texts) or str(self.task)
        facts = f"{number(numbers['facts'])} facts, " if self.facts else ""
        title = f"{what}: {facts}{number(numbers['examples'])} questions, compiled in {built.seconds:.1f} s"
        rows = table(title, "", ">")
        rows.show_header = False
        rows.add_row("window", f"{numbers['window']} tokens")
        rows.add_row("network", f"depth {number(built.account.depth)}, width {number(built.account.width)}")
        rows.add_row("bits in the answers (order-0 entropy)", number(round(numbers["bits"])))
        if numbers["bits_lzma"] is not None:
            rows.add_row("bits of the files after lzma", number(numbers["bits_lzma"]))
        if "bits_in_prints" in numbers:
            label = f"bits in the prints ({numbers['refuse']} a question, to refuse others)"
            rows.add_row(label, number(numbers["bits_in_prints"]))
        rows.add_row("parameters", number(numbers["parameters"]))
        if self.facts:
            rows.add_row("parameters per fact", number(numbers["parameters_per_fact"]))
        rows.add_row("bits per parameter", f"{numbers['bits_per_parameter']:.2f}")
        if numbers["parameters_padded"] != numbers["parameters"]:
            rows.add_row("parameters, padded to one width", number(numbers["parameters_padded"]))
            rows.add_row("bits per parameter, padded", f"{numbers['bits_per_parameter_padded']:.2f}")
        rows.add_row("load of the table", f"{numbers['load']:.3f}")
        if "shards_resumed" in numbers:
            rows.add_row("shards that were solved before", number(numbers["shards_resumed"]))
        rows.add_row("memory at most", format_bytes(numbers["peak_memory"]))
        if numbers["peak_memory_worker"] is not None:
            rows.add_row("memory of a worker, at most", format_bytes(numbers["peak_memory_worker"]))
        console().print(rows)

    def _print_rest(self, built: "Built", given: "Given") -> None:
        from byheart.tasks import Facts

        then = f"hear it with:  byheart recite {typed(self.out)}"
        if prompt := _first_prompt(given):
            then = f"ask it with:  byheart recite {typed(self.out)} {prompt}"
        elif self.task is not None:
            then = f"check it again with:  byheart certify {typed(self.out)} --task {typed(self.task)}"
        elif isinstance(given, Facts) and given.are_ids:
            files = "".join(f" --facts {typed(path)}" for path in self.facts)
            files += f" --columns {' '.join(map(quote, self.columns))}" if self.columns else ""
            then = f"check it again with:  byheart certify {typed(self.out)}{files}"
        console().print(f"saved in {self.out}; {then}", style="dim", markup=False)
        shares = [text for text in built.network.about["texts"] if len(text["prompt"]) > 1]
        for text in shares[:1]:
            begins = tokenizer_of(built.network).decode(text["prompt"]).decode(errors="replace")
            one = f"{text['name']} shares its beginning with another text: begin with at least {begins!r}"
            many = f"{len(shares):,} texts share their beginnings: begin {text['name']} with at least {begins!r}, say"
            console().print(one if len(shares) == 1 else f"{many}; recite --text NAME knows them all", markup=False)


@contextmanager
def _saying_how_to_go_on(shelf: "Shelf") -> Iterator[None]:
    """If it is stopped, or a task is lost, with shards on the shelf: that they are there. Without any, it goes."""
    try:
        yield
    except (KeyboardInterrupt, BadInput, OSError):
        shelf.tidy()
        if kept := len([*shelf.folder.glob("shard-*")]):
            what = f"stopped with {kept:,} shards kept in {shelf.folder}; go on with the same command and --resume\n"
            sys.stderr.write(visible(what))
        raise


def _first_prompt(given: "Given") -> str | None:
    """``--prompt`` and the first prompt of facts, for a shell; None if there is none."""
    from byheart.tasks import Facts

    prompts = (fact.prompt for fact in given) if isinstance(given, Facts) else iter(())
    first = next((prompt for prompt in prompts if isinstance(prompt, bytes)), None)
    if first is None:
        return None
    text = escaped(first)
    return f"--prompt={quote(text)}" if text.startswith("-") else f"--prompt {quote(text)}"


def _numbers(built: "Built") -> dict[str, Any]:
    size, parameters, padded = built.questions.size, built.account.dense, built.network.padded
    bits = built.bits
    assert bits is not None
    return {
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
    }


def _of_facts(given: "Given", built: "Built") -> dict[str, Any]:
    """What there is to say of facts, if they are what is compiled."""
    from byheart.tasks import Facts

    if not isinstance(given, Facts):
        return {}
    return {"facts": len(given), "parameters_per_fact": built.account.dense / len(given)}


def _of_others(others: "RefusalStatus | None", built: "Built") -> dict[str, Any]:
    """How contexts that were never memorized are refused, if they are."""
    if others is None:
        return {}
    refuse = others.refusal
    prints = {"bits_in_prints": refuse.bits * built.questions.size.examples} if refuse.bits else {}
    return {"refuse": refuse.bits or refuse.by, "others": others.as_json(), **prints}


def _tokenizer(given: str | None) -> Literal["bytes", "bpe"] | Path | None:
    return given if given in (None, "bytes", "bpe") else Path(given)  # type: ignore[return-value]  # one of the two


def _refuse(given: tuple[str, ...] | None) -> int | Literal["auto", "key"] | None:
    if given is None or not given:
        return None if given is None else "auto"
    if given == ("key",):
        return "key"
    if len(given) > 1 or not given[0].isascii() or not given[0].removeprefix("-").isdigit():
        raise BadInput(f"--refuse is {' '.join(given)}; expected one number of bits, key, or nothing")
    return int(given[0][:20])


def _window(given: str) -> int | None:
    if given == "auto":
        return None
    if not given.isascii() or not given.isdigit() or int(given) < 1:
        raise BadInput(f"--window is {given!r}; expected auto or a number of tokens")
    return int(given)


def _lzma_bits(files: tuple[Path, ...]) -> int | None:
    """What a good general compressor makes of the files, one after the other."""
    import lzma

    from byheart.tasks.texts import read_files

    if not files:
        return None
    packing, texts = lzma.LZMACompressor(), read_files(files)
    packed = sum(len(packing.compress(portion)) for name in texts for portion in texts.portions(name))
    return 8 * (packed + len(packing.flush()))
