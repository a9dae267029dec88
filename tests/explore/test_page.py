"""The page is one file that loads nothing; networks that it cannot show are refused with the reason."""

import json
import re
from dataclasses import replace
from pathlib import Path

import pytest

from byheart.cli.main import main
from byheart.compiler import compile
from byheart.constructions import build
from byheart.errors import BadInput
from byheart.explore import explorer, reciting
from byheart.networks import Network, save
from byheart.tasks import Facts, NextToken

from ..networks.stock.small import tiny, tiny_moe

TEXT = "A page, a page, and no server."


@pytest.fixture(scope="module")
def own() -> Network:
    return compile(TEXT).network


@pytest.fixture(scope="module")
def page(own: Network) -> str:
    return explorer([("</script><b>mine", own)])


def test_the_page_is_small_and_loads_nothing(page: str) -> None:
    assert len(page.encode()) < 1_500_000
    assert re.findall(r"""(?:src|href|action)=["'](?!#|data:)""", page) == []
    for loads in ("fetch(", "XMLHttpRequest", "import(", "@import", "url(", "WebSocket", "sendBeacon", "eval("):
        assert loads not in page
    assert re.findall(r"https?://[^\"' ]+", page) == ["http://www.w3.org/2000/svg"], "a name space, nothing to load"
    assert "default-src 'none'" in page


def test_names_from_folders_stay_names(page: str) -> None:
    found = re.search(r'<script type="application/json" id="data">(.*?)</script>', page, re.DOTALL)
    assert found is not None
    data = json.loads(found[1])
    assert [network["name"] for network in data["networks"]] == ["</script><b>mine", *reciting.TEXTS]
    assert "<b>mine" not in page


def test_every_element_that_scripts_ask_for_is_there_once(page: str) -> None:
    asked = set(re.findall(r'byId\("([\w-]+)"\)', page)) - {"data"}
    assert len(asked) > 25
    ids = re.findall(r' id="([\w-]+)"', page)
    assert asked <= set(ids)
    assert len(ids) == len(set(ids))


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"precision": "float64"}, "has weights in float64; the explorer computes in float32"),
        ({"words": 31}, "has words that use sign and exponent"),
        ({"tokenizer": "bpe"}, "has tokens other than bytes"),
    ],
    ids=["float64", "packed", "tokens"],
)
def test_what_cannot_be_shown_is_refused(options: dict[str, object], reason: str) -> None:
    with pytest.raises(BadInput, match=re.escape(reason)):
        reciting.shown("mine", compile(TEXT, **options).network)


def test_networks_of_other_kinds_are_refused(own: Network, monkeypatch: pytest.MonkeyPatch) -> None:
    task = NextToken(tokens=[[0, 1], [1, 1]], labels=[0, 1])
    with pytest.raises(BadInput, match="is an exact network; the explorer takes what `byheart compile` made"):
        reciting.shown("mine", build("interpolate", task).network)
    for network in (tiny(), tiny_moe()):
        with pytest.raises(BadInput, match=rf"is {network.title}; .*: compile the same texts without --layout$"):
            reciting.shown("mine", network)
    with pytest.raises(BadInput, match="was compiled from a task; the explorer takes texts and facts"):
        reciting.shown("mine", compile(task).network)
    monkeypatch.setattr(reciting, "MOST_PARAMETERS", 100)
    with pytest.raises(BadInput, match=r"has [\d,]+ parameters; the explorer takes at most 100"):
        reciting.shown("mine", own)


def test_a_folder_that_lies_about_its_recipe_is_refused(own: Network) -> None:
    recipe = dict(own.about["recipe"])
    sizes = {**recipe["sizes"], "columns": recipe["sizes"]["columns"] + 1}
    lie = replace(own, about={**own.about, "recipe": {**recipe, "sizes": sizes}})
    with pytest.raises(BadInput, match="not the recipe of this network"):
        reciting.shown("mine", lie)


def test_a_folder_that_lies_about_its_texts_is_refused(own: Network) -> None:
    for prompt, reason in (([], "the prompt is empty"), ([300], "expected 0 to 256")):
        lie = replace(own, about={**own.about, "texts": [{"name": "a", "tokens": 3, "prompt": prompt}]})
        with pytest.raises(BadInput, match=reason):
            reciting.shown("mine", lie)


def test_facts_are_those_of_a_network(own: Network) -> None:
    facts = Facts([("a = ", "1"), ("b = ", "2")])
    learned = compile(facts).network
    assert reciting.shown("mine", learned)["facts"] == []
    assert reciting.shown("mine", learned, facts)["facts"][1] == {"prompt": [*b"b = "], "completion": [*b"2"]}
    with pytest.raises(BadInput, match="has learned 2 facts; --facts has 1"):
        reciting.shown("mine", learned, Facts([("a = ", "1")]))
    with pytest.raises(BadInput, match="no network that was compiled from facts"):
        explorer([("mine", own)], facts)


def run(*arguments: object) -> int:
    with pytest.raises(SystemExit) as stopped:
        main([str(argument) for argument in arguments])
    assert isinstance(stopped.value.code, int)
    return stopped.value.code


def test_the_command(
    own: Network, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    opened: list[str] = []
    monkeypatch.setattr("webbrowser.open", lambda address: opened.append(address) or True)
    monkeypatch.chdir(tmp_path)
    save(own, "poem")
    assert run("explore", "poem", "--no-open", "--json") == 0
    told = json.loads(capsys.readouterr().out)
    assert told == {"page": "explorer.html", "bytes": Path("explorer.html").stat().st_size, "opened": False}
    assert '"name":"poem"' in Path("explorer.html").read_text(encoding="utf-8")
    assert opened == []
    assert run("explore", "-o", "page.html") == 0
    assert opened == [Path("page.html").resolve().as_uri()]
    assert run("explore", "--no-open", "-o", "page.txt") == 2
    assert run("explore", "nothing", "--no-open") == 2
    assert not Path("page.txt").exists()
    build("interpolate", NextToken(tokens=[[0, 1], [1, 1]], labels=[0, 1])).save("net")
    capsys.readouterr()
    assert run("explore", "net", "--no-open") == 2
    assert capsys.readouterr().err.startswith("byheart: net: is an exact network; the explorer takes")
