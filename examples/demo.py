"""A demonstration of Byheart in a minute or two, with a page about it: ``python examples/demo.py [FOLDER] [--tiny]``.

Every step runs commands that anybody can type, and prints what was found. The results are in FOLDER/index.html (FOLDER
is "demo" by default); all numbers on the page are those of this run. ``make demo`` does this.
"""

import argparse
import codecs
import csv
import io
import itertools
import json
import os
import platform
import shlex
import shutil
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass, field, replace
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import byheart
from byheart.bounds.dana_2025 import capacity
from byheart.certificates import read
from byheart.cli.main import main as command
from byheart.exhibits import DataTable, Lead
from byheart.networks import generate, load
from byheart.papers.pages import results_page
from byheart.report.drawing import draw
from byheart.report.figures import PlanPoint, TaskPanel, draw_parameters, parameter_table
from byheart.report.page import Checked, HtmlPage, Picture, Section, html_of, picture_of, write_page
from byheart.report.pictures import draw_parts, parts_of
from byheart.sizes import Size

DOCS = Path(__file__).resolve().parents[1] / "docs"


@dataclass(frozen=True)
class Scale:
    """Sizes of the demonstration."""

    module: str
    """Module of Python's own library to recite; a package stands for all files in it."""
    works: str
    """Expression that shows that the recited module works."""
    asked_twice: int
    """Number of questions for the second opinion."""
    compared: int
    """Number of examples of the task on which constructions are compared."""
    folded: int
    """Number of examples of the task for folding."""
    trained: tuple[str, ...]
    """Arguments of ``byheart lab save`` that choose the network to train."""


FULL = Scale(
    module="json",
    works="""json.dumps(json.loads('{"by": ["heart", 1, 2.5, null]}'))""",
    asked_twice=25,
    compared=500,
    folded=10_000,
    trained=("dana-2025-2", "--scale", "paper", "--where", "head_dim=10", "seed=0"),
)
TINY = Scale(
    module="keyword",
    works="keyword.iskeyword('lambda')",
    asked_twice=5,
    compared=12,
    folded=40,
    trained=("dana-2025-6", "--scale", "smoke", "--where", "heads=21"),
)


SPOKEN = 420
"""Number of bytes that the network says on the terminal."""
MARGIN, WIDTH = 7 * " ", 92


class DemoError(Exception):
    """A command failed, or a result is not as expected."""


@dataclass
class Demo:
    """The state of a demonstration: its folder and sizes, the commands of the current step, and the lies told."""

    folder: Path
    scale: Scale
    commands: list[str] = field(default_factory=list)
    told: int = 0
    """Number of lies told to judges."""
    found: int = 0
    """Number of lies found. No other lie can have changed an answer, or the command would have failed."""

    def run(self, *arguments: str | Path, expected: int = 0, answers: bool = True) -> Any:
        """Run a command in this process. Return its JSON, or None if it ``answers`` none."""
        given = [str(argument) for argument in arguments]
        self.commands.append(shlex.join(["byheart", *given]))
        out, errors, code = io.StringIO(), io.StringIO(), None
        with redirect_stdout(out), redirect_stderr(errors):
            try:
                command([*given, "--json"] if answers else given)
            except SystemExit as stop:
                code = stop.code
        if code != expected:
            raise DemoError(f"{self.commands[-1]}\nended with {code}, expected {expected}\n{errors.getvalue()}")
        return json.loads(out.getvalue()) if answers else None

    def certified(self, network: Path, *asked: str | Path, second: bool = False) -> Checked:
        """Certify a network, tell lies about it, and ask for a second opinion if ``second``."""
        opinion = ("--second-opinion", "--sample", str(self.scale.asked_twice)) if second else ()
        found = self.run("certify", network, *asked, "--controls", *opinion)
        self.told += len(found["controls"])
        self.found += sum(lie["found"] is True for lie in found["controls"])
        certificate = read(network / "certificate.json")
        lies = [f"Lie told, {lie['name']}: {_found(lie['found'])} ({lie['detail']})." for lie in found["controls"]]
        if "second_opinion" in found:
            lies.append(f"Second opinion, verify.py: agrees ({found['second_opinion']['found']}).")
        return Checked(
            says=f"{certificate.what}certified: {certificate.summary}",
            command=found["recheck"],
            link=(network / "certificate.json").relative_to(self.folder).as_posix(),
            tried=[certificate.statement, *lies],
        )


def _found(found: bool | None) -> str:
    """Say whether a lie was found. The exit code has shown that no lie that changes an answer went unnoticed."""
    return "found" if found else "not found, but no answer could change"


def compiled(demo: Demo, title: str) -> Section:
    """Compile the module's files into one network, and draw where its parameters are."""
    texts, network = _texts(demo), demo.folder / "reciting"
    found = demo.run("compile", *texts, "-o", network)
    size, parameters = sum(path.stat().st_size for path in texts), found["parameters"]
    name = f"{demo.scale.module}, {len(texts)} file{'s' * (len(texts) > 1)}, {size:,} bytes"
    finding = (
        f"Python {platform.python_version()}'s {name}, is in a Transformer of {parameters:,} parameters: "
        f"{found['bits_per_parameter']:.1f} bits per parameter. No training."
    )
    facts = {
        "questions": found["examples"],
        "tokens back": found["window"],
        "bits in the answers": round(found["bits"]),
        "parameters": parameters,
        "padded to one width": found["parameters_padded"],
        "seconds to compile": found["seconds"],
    }
    draw = picture_of(
        lambda path: draw_parts(parts_of(load(network)), f"{parameters:,} parameters", path),
        "Where the parameters are: words of a table, and what finds and reads them.",
    )
    more = "Bits are the order-0 entropy of the answers. Padded is what a stock Transformer of one width would have."
    return Section(
        title,
        finding,
        text=[more],
        pictures=[draw],
        tables=[
            DataTable("The network", [{"of the network": name, "how many": value} for name, value in facts.items()])
        ],
    )


def recited(demo: Demo, title: str) -> Section:
    """Recite all files, compare them byte for byte, and use the recited module."""
    texts, module = _texts(demo), demo.scale.module
    place = demo.folder / "recited" / (module if len(texts) > 1 else "")
    shutil.rmtree(demo.folder / "recited", ignore_errors=True)
    speak(demo.folder / "reciting")
    began = time.perf_counter()
    demo.run("recite", demo.folder / "reciting", "--all-to", place, answers=False)
    seconds = time.perf_counter() - began
    for path in texts:
        if path.read_bytes() != (place / path.name).read_bytes():
            raise DemoError(f"{place / path.name} is not what {path} says")
    finding = (
        f"It says all of it, greedily, from the first byte to the last, in {seconds:.0f} s: byte for byte the same. "
        f"And what it said runs: {demo.scale.works} is {_used(demo, demo.folder / 'recited')}."
    )
    lines = (place / texts[0].name).read_text(encoding="utf-8").splitlines()[:12]
    text = f"This is how {texts[0].name} begins, as the network says it:"
    return Section(title, finding, text=[text], quote="\n".join(lines))


def speak(folder: Path) -> None:
    """Let the network say how its first text begins, one byte after the other, as fast as it can."""
    network = load(folder)
    beginning = network.about["texts"][0]["prompt"]
    spoken = itertools.chain(beginning, generate(network, beginning, tokens=SPOKEN))
    characters = codecs.iterdecode((bytes([token]) for token in spoken if token < 256), "utf-8", errors="replace")
    print(f"{MARGIN}│ ", end="")
    for character in characters:
        print(character.replace("\n", f"\n{MARGIN}│ "), end="", flush=True)
    print("…", flush=True)


def _texts(demo: Demo) -> list[Path]:
    """Copy the module's files from the running Python, and return the copies."""
    spec = find_spec(demo.scale.module)
    if spec is None or spec.origin is None:
        raise DemoError(f"Python has no file of {demo.scale.module}")
    origin = Path(spec.origin)
    files = sorted(origin.parent.glob("*.py")) if spec.submodule_search_locations else [origin]
    folder = demo.folder / "texts"
    folder.mkdir(exist_ok=True)
    return [Path(shutil.copyfile(path, folder / path.name)) for path in files]


def _used(demo: Demo, folder: Path) -> str:
    """Return the expression's value in a new Python that must import the recited module."""
    module = demo.scale.module
    program = f"import {module}; print({module}.__file__, {demo.scale.works}, sep='\\n')"
    clean = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    found = subprocess.run(
        [sys.executable, "-c", program],
        env=clean | {"PYTHONPATH": str(folder.resolve())},
        capture_output=True,
        text=True,
        check=True,
    )
    where, value = found.stdout.splitlines()
    if folder.resolve() not in Path(where).parents:
        raise DemoError(f"{module} came from {where}, expected the recited one, in {folder}")
    return value


def is_it_true(demo: Demo, title: str) -> Section:
    """Prove every answer of the reciting network."""
    checked = demo.certified(demo.folder / "reciting", *_texts(demo), second=True)
    text = (
        "Every question of the files was asked again, from the saved weights, with a proof that no step rounds: any "
        "machine that follows IEEE 754 gives the same logits. Two lies were told to the judge, and a program that "
        "shares no line with it was asked some of the questions."
    )
    return Section(title, checked.says[0].upper() + checked.says[1:], text=[text], certificates=[checked])


def knows_facts(demo: Demo, title: str) -> Section:
    """Compile five facts in four scripts, ask for each from its own prompt, and show that another prompt is refused."""
    table = Path(os.path.relpath(Path(__file__).with_name("facts.csv")))  # as a reader would type it
    network = demo.folder / "facts"
    found = demo.run("compile", "--facts", table, "--refuse", "-o", network)
    with table.open(encoding="utf-8", newline="") as file:
        pairs = [(row["prompt"], row["completion"]) for row in csv.DictReader(file)]
    said = {prompt: demo.run("recite", network, "--prompt", prompt)["text"] for prompt, _ in pairs}
    if said != dict(pairs):
        raise DemoError(f"{network} says {said}, expected {dict(pairs)}")
    other = "capital of Atlantis"
    refused = demo.run("recite", network, "--prompt", other, expected=1)
    asked = {**said, other: refused["text"] or "unknown"}
    rows = [{"asked": prompt, "said": answer} for prompt, answer in asked.items()]
    finding = (
        f"{len(pairs)} facts in four scripts, compiled into {found['parameters']:,} parameters, are each said from "
        f"their own prompt. Of other prompts all but about one in {2 ** found['refuse']:,} are refused."
    )
    checked = demo.certified(network, "--facts", table)
    return Section(title, finding, tables=[DataTable("Asked and said", rows)], certificates=[checked])


def compared(demo: Demo, title: str) -> Section:
    """Compare every construction on one task with the published and the proved bounds."""
    N, task = demo.scale.compared, demo.folder / "labels.npz"
    demo.run("task", "random", *_sizes(N, length=8, labels=10), "-o", task)
    found = demo.run("compare", "--task", task)["tasks"][0]
    rows, size = found["rows"], Size(**found["size"])
    built = [row for row in rows if row["certified"]]
    points = [PlanPoint(row["construction"], N, row["parameters"] - row["embedding"]) for row in built]
    panel = TaskPanel(parameter_table(size, "next-token"), size, "next-token", points)
    caption = "Parameters against N: every construction, the lower bounds, and what was built and certified just now."
    refused = [{"construction": row["construction"], "why": row["note"]} for row in rows if row["note"]]
    least, needed = built[0]["parameters"], built[0]["lower"]["needed"]
    finding = (
        f"{len(built)} constructions on the same {N:,} random sequences, all certified: from {least:,} parameters "
        f"({built[0]['construction']}) to {max(row['parameters'] for row in built):,}; with fewer than "
        f"{needed:,}, it is proved, no such network holds every labelling."
    )
    return Section(
        title,
        finding,
        text=[
            "Proved to be needed: no ReLU network of that depth with fewer parameters memorizes every labelling of "
            "this number of inputs. A single labelling may be easy. In empty cells nothing is proved."
        ],
        pictures=[picture_of(lambda path: draw_parameters([panel], path), caption)],
        tables=[
            DataTable("Built, saved, loaded, certified on every example", [_compared_cells(row) for row in built]),
            *([DataTable("Refused: not their kind of task", refused)] if refused else []),
        ],
    )


def _compared_cells(row: dict[str, Any]) -> dict[str, Any]:
    return {
        "construction": row["construction"],
        "published": row["published"],
        "parameters": row["parameters"],
        "without embedding": row["parameters"] - row["embedding"],
        "most bits": row["max_bits"],
        "depth": row["depth"],
        "proved to be needed": row["lower"]["needed"] if row["lower"] else None,
        "certified": "yes",
    }


def _sizes(examples: int, *, length: int, labels: int) -> list[str]:
    wanted = {"examples": examples, "length": length, "vocab": 64, "labels": labels}
    return [word for name, value in wanted.items() for word in (f"--{name}", str(value))]


def folded(demo: Demo, title: str) -> Section:
    """Build folding, our own construction, on more examples than the comparison has."""
    N, task, network = demo.scale.folded, demo.folder / "bits.npz", demo.folder / "folded"
    demo.run("task", "random", *_sizes(N, length=16, labels=2), "-o", task)
    built = demo.run("build", "folding", "--task", task, "-o", network)
    account, needed = built["account"], built["lower"]["needed"]
    checked = demo.certified(network, "--task", task, second=True)
    finding = (
        f"{N:,} random sequences of 16 tokens with a random bit each, in {account['dense']:,} parameters, embedding "
        f"table included. Its weights are integers of up to {account['max_bits']} bits. With fewer than {needed:,}, it "
        "is proved, no such network holds every labelling."
    )
    draw = picture_of(
        lambda path: draw_parts(parts_of(load(network)), f"{account['dense']:,} parameters", path),
        "Where folding's parameters are: the words hold the labels, the folds take the bits out of them.",
    )
    return Section(title, finding, pictures=[draw], certificates=[checked])


def trained(demo: Demo, title: str) -> Section:
    """Compare a network trained by gradient descent with the theorem's, of the same sizes and on the same task."""
    descent, theorem = demo.folder / "trained", demo.folder / "theorem"
    made = demo.run("lab", "save", *demo.scale.trained, "-o", descent)
    config, task = made["config"], descent / "task.npz"
    heads, d_h, d = (config[name] for name in ("heads", "head_dim", "model_dim"))
    held = capacity(heads, d_h, d)
    sizes = ("--heads", heads, "--head-dim", d_h, "--model-dim", d, "--hold", held)
    built = demo.run("build", "dana-2025", "--task", task, *map(str, sizes), "-o", theorem)
    checks = [demo.certified(network, "--task", task, "--count") for network in (theorem, descent)]
    rights = [read(network / "certificate.json").right for network in (theorem, descent)]
    finding = (
        f"{heads} heads of dimension {d_h}, {config['vocab'] ** 2:,} associations. The theorem holds {held:,} of them, "
        f"and its network answers {rights[0]:,} rightly; after {made['metrics']['steps']:,} steps of Adam it is "
        f"{rights[1]:,}. Both counts are proved."
    )
    rows = [
        {"network": "as the theorem builds it", "parameters": built["account"]["dense"], "right, proved": rights[0]},
        {"network": "as training left it", "parameters": made["parameters"], "right, proved": rights[1]},
    ]
    text = (
        f"Of the theorem's network {built['chosen']['at_least']:,} right answers are promised, {held:,} held and the "
        "others guessed (Dana et al. 2025, Corollary 2). Training measured an accuracy of "
        f"{made['metrics']['accuracy']:.4f} in floats; the count has no rounding in it."
    )
    tables = [DataTable(f"Right answers of {config['vocab'] ** 2:,}", rows)]
    return Section(title, finding, text=[text], tables=tables, certificates=checks)


def from_the_lab(demo: Demo, title: str) -> Section:
    """Draw a figure of results that come with Byheart."""
    name, out = "dana-2025-2", demo.folder / "lab"
    found = demo.run("lab", "plot", "--shipped", name, "-o", out)
    page = results_page(name)
    trained_before = f"{found['rows']:,} models, trained earlier on a GPU as the paper trained its own"
    finding = f"{trained_before}, beside what it published and what is proved."
    figure = page.figures[0]
    pictures: list[Picture] = [picture_of(partial(draw, figure.make()), figure.caption)]
    links = [("All figures and tables of this experiment", "lab/index.html")]
    return Section(title, finding, text=[page.lead.paper, *page.lead.findings], pictures=pictures, links=links)


def refused(demo: Demo, title: str) -> Section:
    """Ask a hardmax layer for what it cannot do, and show two sequences that it confuses."""
    task, N = demo.folder / "tags.npz", 200
    demo.run("task", "random", "--seq-to-seq", *_sizes(N, length=8, labels=10), "-o", task)
    hardmax = ("--attention", "hardmax", "-o", demo.folder / "hardmax")
    said = demo.run("build", "kajitsuka-sato-2024", "--task", task, *hardmax, expected=2)["error"]
    finding = "One layer of hardmax attention is asked for what it cannot do, and says for which two sequences."
    return Section(title, finding, text=[said])


def explored(demo: Demo, title: str) -> Section:
    """Write the explorer beside the page."""
    demo.run("explore", "-o", demo.folder / "explorer.html", "--no-open")
    finding = "Networks that recite in the browser, bounds with sliders, and an exact network layer by layer."
    return Section(title, finding, links=[("Open the explorer", "explorer.html")])


Step = Callable[[Demo, str], Section]
STEPS: dict[str, Step] = {
    "Python's own source into a Transformer": compiled,
    "It recites, and what it recites runs": recited,
    "Is it true? Certified; lies found": is_it_true,
    "Facts, and what is not a fact": knows_facts,
    "Every construction on one task": compared,
    "Folding, on a larger task": folded,
    "Trained beside built, both counted": trained,
    "From the lab: results that come with it": from_the_lab,
    "The impossible is refused": refused,
    "The explorer": explored,
}


def walk(demo: Demo) -> list[Section]:
    """Run every step; print its title, what was found, and its seconds."""
    sections = []
    for number, (title, step) in enumerate(STEPS.items(), start=1):
        print(f"{number}/{len(STEPS)}  {title}", flush=True)
        demo.commands.clear()
        began = time.perf_counter()
        section = step(demo, title)
        seconds = time.perf_counter() - began
        sections.append(replace(section, seconds=seconds, commands=list(demo.commands)))
        print(
            textwrap.indent(textwrap.fill(f"{section.finding} ({seconds:.1f} s)", 92), MARGIN), end="\n\n", flush=True
        )
    return sections


def page_of(demo: Demo, sections: list[Section]) -> HtmlPage:
    """Return the page: its first findings, the sections, links for further reading, and the machine."""
    certificates = sum(len(section.certificates) for section in sections)
    seconds = sum(section.seconds or 0 for section in sections)
    findings = [
        f"{len(sections)} steps in {seconds:.0f} s. {certificates} certificates, and a command for each that "
        "checks it again.",
        f"{demo.told} lies were told to the judges, and {demo.found} of them were found.",
    ]
    about = {
        "byheart": byheart.__version__,
        "Python": platform.python_version(),
        "machine": f"{platform.machine()}, {os.cpu_count()} cores",
        "seconds": round(seconds, 1),
    }
    question = "Theorems about what Transformers can memorize, as programs: does each network do what is said of it?"
    lead = Lead(question=question, findings=findings)
    return HtmlPage("Byheart: a demonstration", lead, about=about, sections=[*sections, *_onwards(demo)])


def _onwards(demo: Demo) -> list[Section]:
    """Return a section of links to the documentation, if it is beside this program."""
    wanted = {
        "trust.md": "What a certificate states, and what it rests on",
        "theorems.md": "Every theorem: as stated, and ours",
        "folding.md": "How folding works, and what is proved of it",
        "clusters.md": "The lab on many machines",
    }
    there = {DOCS / name: words for name, words in wanted.items() if (DOCS / name).exists()}
    links = [(words, Path(os.path.relpath(path, demo.folder.resolve())).as_posix()) for path, words in there.items()]
    return [Section("Where to go from here", "The documentation, page by page.", links=links)] if links else []


def main() -> int:
    """Run the demonstration and write the page. Return 1 if a step fails."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0] if __doc__ else None)
    parser.add_argument("folder", nargs="?", type=Path, default=Path("demo"), metavar="FOLDER")
    parser.add_argument("--tiny", action="store_true", help="use small tasks and texts, to see that everything runs")
    given = parser.parse_args()
    given.folder.mkdir(parents=True, exist_ok=True)
    demo, page = Demo(given.folder, TINY if given.tiny else FULL), given.folder / "index.html"
    try:
        sections = walk(demo)
    except DemoError as failure:
        print(f"\n{failure}", file=sys.stderr)
        return 1
    write_page(page, html_of(page_of(demo, sections)))
    print(f"{sum(section.seconds or 0 for section in sections):.0f} s in all. See {page}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
