"""Compare compiled code with PyTorch in one run: generating token by token, compiling, and certifying.

    python benchmarks/speed_of_reciting.py recite front prove

Times are CPU seconds on one thread, so other work on the machine counts little. Generated tokens, networks and proofs
are compared, too.
"""

import importlib.util
import time
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import islice
from pathlib import Path

import numpy as np
import torch
from tables import OUT, parser, table

from byheart.compiler import CompilerSettings, compile
from byheart.compiler.planes import Equations
from byheart.compiler.rectangular.address import TableAddresses
from byheart.compiler.rectangular.draft import Draft
from byheart.compiler.rectangular.solve import sort_questions
from byheart.constructions import Built
from byheart.networks.transformer import generate as speaking
from byheart.networks.transformer.answers import answers, local_work, streams
from byheart.networks.transformer.forced import forced_answers
from byheart.networks.transformer.program import CompiledProgram
from byheart.networks.transformer.proved import proved_answers
from byheart.networks.transformer.transformer_network import from_arrays
from byheart.tasks import NextToken, random_next_token
from byheart.tasks.contexts import Contexts


def task_of(N: int) -> NextToken:
    """Draw random contexts of 8 tokens out of 256, with random labels."""
    return random_next_token(examples=N, length=8, vocab=256, labels=256, rng=np.random.default_rng(0))


@contextmanager
def patched(owner: object, name: str, value: object) -> Iterator[None]:
    """Replace an attribute while the context is open."""
    before = getattr(owner, name)
    setattr(owner, name, value)
    try:
        yield
    finally:
        setattr(owner, name, before)


def timed(speech: Iterator[int], tokens: int) -> tuple[list[int], float]:
    """Return the generated tokens, and their number per CPU second."""
    start = time.process_time()
    said = list(islice(speech, tokens))
    return said, len(said) / (time.process_time() - start)


def sources(tiny: bool) -> tuple[list[str], list[Path]]:
    """Return the names of Python modules, and their files."""
    names = ["this"] if tiny else ["argparse", "inspect"]
    return names, [Path(str(importlib.util.find_spec(name).origin)) for name in names]  # type: ignore[union-attr]


def recite(tiny: bool) -> None:
    """Generate with PyTorch, one by one and guessing ahead, and with compiled code, which proves each token."""
    N, few, many = (300, 20, 1000) if tiny else (100_000, 2000, 100_000)
    names, files = sources(tiny)
    columns = ("network", "module", "guessing 16", "compiled", "ratio", "logits equal", "errors")
    rows = table("Generating token by token, tokens per second of one thread", *columns)
    tasks = [
        (f"{p}, {words}-bit words, N = {N:,}", task_of(N), CompilerSettings(p, words))  # type: ignore[arg-type]
        for p, words in (("float32", 24), ("float32", 31), ("float64", 53))
    ]
    for name, given, settings in [*tasks, (" and ".join(names) + ", bytes", files, CompilerSettings())]:
        built = compile(given, settings=settings)
        module, contexts = built.network.module, built.questions
        assert isinstance(contexts, Contexts)
        prompt = contexts.tokens[: contexts.prompts[0] if contexts.names else 8].tolist()
        heard = contexts.tokens[:200].tolist()
        program = CompiledProgram.of(module)
        assert program is not None
        logits = np.empty((len(heard), module.spec.labels))
        begins, places = np.array([0, len(heard)]), np.arange(len(heard))
        program.answers(heard, begins, places, logits)  # compiles code, too
        with torch.no_grad():
            same = np.array_equal(logits, module(torch.tensor([heard]))[0].numpy())
        speech = speaking._speech
        plain, guessed = (timed(speech(module, prompt, guess, compiled=False), few) for guess in (0, 16))
        with patched(speaking, "_by_module", None):
            quick = timed(speech(module, prompt, 0, compiled=True), many)
        wrong = sum(a != b for a, b in zip(plain[0], quick[0], strict=False)) + (plain[0] != guessed[0])
        speeds = [f"{speed:,.0f}" for _, speed in (plain, guessed, quick)]
        rows.add_row(name, *speeds, f"{quick[1] / plain[1]:.0f}", "yes" if same else "NO", str(wrong))
    OUT.print(rows, "")


def by_the_network(draft: Draft, contexts: Contexts) -> Equations:
    """Return the equations of every question, computed by the network's own front of at least 23 sublayers."""
    front = draft.front
    module = from_arrays(draft.spec, draft.wiring.tensors).module
    wanted = [*front.rows[::2], *front.columns[::2], *front.scale, *front.kind]
    found = np.empty((len(contexts), len(wanted)))
    portions = streams(module, contexts.tokens, contexts.starts, contexts.places)
    for index, values in local_work(
        module.device, portions, lambda stream: (module.local(stream, until="table")[:, wanted].numpy(),)
    ):
        found[index] = values
    whole, offset = found.astype(np.int64), -np.log2(found[:, 8]).astype(np.int64)
    kind = whole[:, 9] if front.kind else None
    address = TableAddresses(whole[:, :2], whole[:, 2:8], offset, kind)
    return sort_questions(draft.sizes, draft.code, address, contexts.labels)


def front(tiny: bool) -> None:
    """Compile with addresses from the network's own front in PyTorch, and with addresses from a compiled loop."""
    compile(task_of(1000), window=8)
    columns = ("N", "by the network's front", "by the loop", "ratio", "same network")
    rows = table("Compiling random labels, CPU seconds", *columns)
    for N in (300, 600) if tiny else (100_000, 300_000, 1_000_000):
        task = task_of(N)

        def compiled(task: NextToken = task) -> tuple[Built, float]:
            start = time.process_time()
            return compile(task, window=8), time.process_time() - start

        with patched(Draft, "questions", by_the_network):
            before, slow = compiled()
        after, quick = compiled()
        same = "yes" if before.network.fingerprint == after.network.fingerprint else "NO"
        rows.add_row(f"{N:,}", f"{slow:.2f} s", f"{quick:.2f} s", f"{slow / quick:.1f}", same)
    OUT.print(rows, "")


def prove(tiny: bool) -> None:
    """Ask every question in PyTorch, prove it by compiled code, and prove the first questions in PyTorch."""
    N, few = (300, 100) if tiny else (1_000_000, 4096)
    names, files = sources(tiny)
    columns = ("network", "questions", "PyTorch", "compiled proof", "PyTorch proof", "ratio", "same", "not proved")
    rows = table("Certifying, µs per question on one thread", *columns)
    for name, given in ((f"N = {N:,}", task_of(N)), (" and ".join(names) + ", bytes", files)):
        built = compile(given)
        network, contexts = built.network, built.questions
        assert isinstance(contexts, Contexts)
        asked = contexts.tokens, contexts.starts, contexts.places
        end = int(contexts.places[few])
        begins = np.append(contexts.starts[contexts.starts < end], end)
        forced_answers(network, contexts.tokens[:end], begins, contexts.places[:few], compiled=True)  # compiles code
        laps = [time.process_time()]
        once = answers(network.module, *asked)
        laps.append(time.process_time())
        proved = forced_answers(network, *asked, compiled=True)
        laps.append(time.process_time())
        slow = proved_answers(network.module, contexts.tokens[:end], begins, contexts.places[:few])
        laps.append(time.process_time())
        each = 1e6 * np.diff(laps) / (len(contexts), len(contexts), few)
        same = np.array_equal(slow.margins, proved.margins[:few]) and np.array_equal(slow.labels, proved.labels[:few])
        doubtful = (proved.labels != once.labels) | (proved.margins != once.margins)
        told = [*(f"{one:.1f}" for one in each), f"{each[2] / each[1]:.0f}", "yes" if same else "NO"]
        rows.add_row(name, f"{len(contexts):,}", *told, str(doubtful.sum()))
    OUT.print(rows, "")


SECTIONS = (recite, front, prove)


def main() -> None:
    """Run all sections, or the named ones."""
    chosen = parser(__doc__, SECTIONS).parse_args()
    torch.set_num_threads(1)
    for section in SECTIONS:
        if not chosen.sections or section.__name__ in chosen.sections:
            section(chosen.tiny)


if __name__ == "__main__":
    main()
