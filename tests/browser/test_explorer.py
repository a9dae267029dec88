"""The explorer in a real browser: a prompt is typed, a slider moved, a bit flipped; nothing complains.

Needs Chromium and its driver (Debian: chromium, chromium-driver) and the extra ``browser``; skipped without them.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

from byheart.compiler import compile
from byheart.explore import explorer
from byheart.explore.reciting import TEXTS
from byheart.tasks import Facts

from .reader import Reader

pytestmark = pytest.mark.slow


@pytest.fixture
def reader(chromium: Any, explorer_page: Path) -> Iterator[Reader]:
    reader = Reader(chromium, explorer_page.as_uri())
    yield reader
    assert reader.complaints() == []
    assert reader.requests() <= {explorer_page.as_uri()}


def typed(reader: Reader, prompt: str) -> None:
    box = reader.find("#prompt")
    box.clear()
    box.send_keys(prompt)


def test_a_prompt_is_typed_and_the_text_recited(reader: Reader) -> None:
    typed(reader, "To be, or")
    assert reader.text("#said") == TEXTS["Hamlet"] + "∎"
    assert reader.text("#letter") == "␣"
    typed(reader, "xyz")
    assert "Nothing that it knows ends like this prompt" in reader.text("#strange")
    assert reader.text("#said") != TEXTS["Hamlet"] + "∎"


def test_a_bit_is_flipped_and_the_answer_changes(reader: Reader) -> None:
    typed(reader, "To be")
    assert reader.text("#letter") == ","
    read = reader.run(
        "const net = new Network(data.networks[0]); return reading(net, new Table(net), arguments[0])", [*b"To be"]
    )
    bit = read["code"][0]["bit"]
    lane = next(lane for lane in read["lanes"] if lane["entry"] is not None)
    switch = f'[data-entry="{lane["entry"]}"][data-bit="{bit}"]'
    reader.find(switch).click()
    assert reader.text("#letter") != ","
    assert "One bit of 4,032 is flipped" in reader.text("#damage")
    assert len(reader.driver.find_elements("css selector", "#broken li")) >= 1
    assert reader.run("return document.activeElement.dataset.bit") == str(bit), "the focus stays on the switch"
    reader.find("#reset").click()
    assert reader.text("#letter") == ","
    assert reader.text("#said") == TEXTS["Hamlet"] + "∎"


def test_the_button_breaks_the_text_where_the_page_says(reader: Reader) -> None:
    reader.find("#break").click()
    said = reader.text("#said").removesuffix("∎")
    same = next(place for place, (one, other) in enumerate(zip(said, TEXTS["Hamlet"], strict=False)) if one != other)
    assert reader.find('#spoken [aria-selected="true"]').get_attribute("data-place") == str(same)
    assert f"the text says “{said[same]}”" in reader.text("#damage")
    assert "wrong" in reader.find('#spoken [aria-selected="true"]').get_attribute("class")
    reader.find("#reset").click()
    assert reader.text("#said") == TEXTS["Hamlet"] + "∎"


def test_the_picture_shows_what_the_tables_say(reader: Reader) -> None:
    reader.find('#spoken [data-place="8"]').click()
    assert reader.text("#letter") == reader.text("#picture .answer") == "r"
    strips = reader.run(
        "const strips = [...document.querySelectorAll('#picture g')].map((g) => [...g.querySelectorAll('.on, .off')]);"
        "return strips.filter((bits) => bits.length).map((bits) => bits.map((bit) => +bit.matches('.on')).join(''))"
    )
    words = [bits.get_property("textContent") for bits in reader.driver.find_elements("css selector", "#words .bits")]
    assert strips == words
    code = reader.run("return document.getElementById('answer').querySelector('code').textContent")
    length = len(reader.driver.find_elements("css selector", "#words .sum .code"))
    assert f"{code[:length]} is the code of" in reader.text("#picture")


def test_it_speaks_letter_by_letter_until_it_is_stopped(reader: Reader) -> None:
    from selenium.webdriver.support.ui import WebDriverWait

    reader.find("#play").click()
    later = len(reader.driver.find_elements("css selector", "#spoken .later"))
    assert later == len(reader.driver.find_elements("css selector", "#spoken span")) - 1
    WebDriverWait(reader.driver, 20).until(lambda _: reader.text("#letter") == "o")
    assert 0 < len(reader.driver.find_elements("css selector", "#spoken .later")) < later
    reader.find("#play").click()
    assert reader.driver.find_elements("css selector", "#spoken .later") == []
    assert reader.text("#play") == "▶ Watch it speak"


def test_a_flip_that_breaks_nothing_says_which_would(reader: Reader) -> None:
    unused = reader.run(
        "const net = new Network(data.networks[0]), table = new Table(net), all = memories(net, table);"
        "for (let place = 5; ; place++) {"
        "  const read = reading(net, table, all[place - 1].context);"
        "  for (const { entry } of read.lanes) for (let bit = 0; bit < 24 && entry !== null; bit++) {"
        "    table.flip(entry, bit);"
        "    const broken = all.some(({ stream, answer }) => argmax(net.back(stream)) !== answer);"
        "    table.flip(entry, bit);"
        "    if (!broken) return [place, entry, bit];"
        "  }"
        "}"
    )
    place, entry, bit = unused
    reader.find(f'#spoken [data-place="{place}"]').click()
    reader.find(f'[data-entry="{entry}"][data-bit="{bit}"]').click()
    assert "nothing breaks: no answer hangs on it" in reader.text("#damage")
    reader.find("#words .decides").click()
    assert "answers are wrong" in reader.text("#damage")


def test_a_text_that_is_not_ascii_opens_with_its_letters(chromium: Any, tmp_path: Path) -> None:
    texts = {
        "ru": "Съешь же ещё этих мягких булок.",
        "zh": "道可道，非常道。名可名，非常名。",
        "he": "בראשית ברא אלהים",
    }
    path = tmp_path / "page.html"
    path.write_text(explorer([(name, compile(text).network) for name, text in texts.items()]), encoding="utf-8")
    reader = Reader(chromium, path.as_uri())
    for name, text in texts.items():
        chosen(reader, name)
        assert text.startswith(reader.run("return document.getElementById('prompt').value"))
        assert reader.text("#said") == text + "∎"
        assert reader.text("#strange") == ""
    assert reader.complaints() == []


def test_facts_are_chosen_and_typed(chromium: Any, tmp_path: Path) -> None:
    from selenium.webdriver.support.ui import Select

    facts = Facts([("capital of France: ", "Paris"), ("столица России: ", "Москва"), ("首都：", "北京")])
    network, path = compile(facts).network, tmp_path / "page.html"
    path.write_text(explorer([("listed", network)], facts), encoding="utf-8")
    reader = Reader(chromium, path.as_uri())
    Select(reader.find("#fact")).select_by_visible_text("столица России:")
    assert reader.text("#said") == "столица России: Москва∎"
    path.write_text(explorer([("silent", network)]), encoding="utf-8")
    reader = Reader(chromium, path.as_uri())
    assert not reader.find("#fact").is_displayed()
    typed(reader, "首都：")
    assert reader.text("#said") == "首都：北京∎"
    assert reader.text("#strange") == ""
    reader.find("#break").click()
    assert reader.text("#said") != "首都：北京∎"
    reader.find("#words button[data-bit]:not(.flipped)").click()
    assert "2 bits of 4,032 are flipped. After" in reader.text("#damage"), "what broke before is still broken"
    reader.find("#reset").click()
    assert reader.text("#said") == "首都：北京∎"
    assert reader.complaints() == []


def chosen(reader: Reader, network: str) -> None:
    from selenium.webdriver.support.ui import Select

    Select(reader.find("#network")).select_by_visible_text(network)


@pytest.mark.parametrize(
    "text", ["Съешь же ещё этих мягких булок.\nДа!", "道可道，非常道。", "שלום, עולם", "🥐 and 🍦"]
)
def test_a_text_is_learned_in_the_page(text: str, reader: Reader) -> None:
    reader.find("#recite summary").click()
    reader.run("document.getElementById('own').value = arguments[0]", text)
    reader.find("#learn").click()
    assert "Learned in" in reader.text("#learned")
    assert reader.text("#said") == text + "∎"
    hexes = reader.run(
        "return Object.fromEntries(Object.entries(data.networks.at(-1).tensors).map(([name, { buffer }]) =>"
        "  [name, [...new Uint8Array(buffer)].map((byte) => byte.toString(16).padStart(2, '0')).join('')]))"
    )
    network: Any = compile(text).network
    assert hexes == {name: tensor.astype("<f4").tobytes().hex() for name, tensor in network.tensors()}
    reader.find("#break").click()
    assert reader.text("#said") != text + "∎"
    reader.find("#learn").click()
    assert reader.text("#said") == text + "∎"


def test_a_text_that_cannot_be_learned(reader: Reader) -> None:
    reader.find("#recite summary").click()
    reader.find("#learn").click()
    assert reader.text("#learned") == "Not learned: the text has 0 bytes; expected 1 to 8000."
    assert reader.text("#said") == TEXTS["Hamlet"] + "∎"


def test_a_word_is_chosen_and_its_memories_are_shown(reader: Reader) -> None:
    button = reader.find("#map button.now")
    uses = int(button.text)
    button.click()
    assert f"{uses} of 171 answers use it" in reader.text("#word-says")
    assert len(reader.driver.find_elements("css selector", "#uses li")) == uses


def test_a_prompt_of_two_lines(reader: Reader) -> None:
    prompt = TEXTS["Hamlet"][:50]
    box = reader.find("#prompt")
    reader.run("arguments[0].value = arguments[1]; arguments[0].dispatchEvent(new Event('input'))", box, prompt)
    assert reader.text("#strange") == ""
    assert reader.text("#said") == TEXTS["Hamlet"] + "∎"
    assert reader.text("#given").count("\n") == 1


def test_a_slider_is_moved_and_the_count_follows(reader: Reader) -> None:
    from selenium.webdriver.common.keys import Keys

    count = '#counts [data-name="interpolate"] td'
    assert reader.text(count) == "30,003"
    slider = reader.find("#slider-N")
    for _ in range(4):
        slider.send_keys(Keys.ARROW_LEFT)
    assert reader.text("#at") == "1,000"
    assert reader.text(count) == "3,003"
    address = reader.driver.current_url
    assert "N=1000&" in address
    reader.driver.get("about:blank")
    reader.driver.get(address)
    assert reader.text(count) == "3,003", "a link keeps the sizes"


def test_logits_in_the_browser_are_those_of_pytorch(reader: Reader) -> None:
    prompt = list(b"To be, or not to be?")
    found = reader.run("return new Network(data.networks[0]).forward(arguments[0]).map((row) => [...row])", prompt)
    with torch.no_grad():
        network: Any = compile(TEXTS["Hamlet"]).network
        assert found == network.module(torch.tensor([prompt]))[0].tolist()


def test_exact_networks_are_chosen_and_answer(reader: Reader) -> None:
    from selenium.webdriver.support.ui import Select

    for network, sequence, label in ((0, 1, 0), (1, 2, 1), (2, 4, 2)):
        Select(reader.find("#exact-network")).select_by_index(network)
        Select(reader.find("#exact-sequence")).select_by_index(sequence)
        assert f"it answers {label}; the label is {label}." in reader.text("#exact-facts")
        assert len(reader.driver.find_elements("css selector", "#exact-steps .layer")) > 4


def test_everything_that_can_be_used_has_a_name(reader: Reader) -> None:
    unnamed = reader.run(
        "return [...document.querySelectorAll('button, input, select')].filter((e) => !e.textContent.trim()"
        " && !e.labels?.length && !e.ariaLabel).map((e) => e.outerHTML)"
    )
    assert unnamed == []
