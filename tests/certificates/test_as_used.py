"""Folders as transformers uses them: it says the same; and what another program would say otherwise is found."""

import shutil
from pathlib import Path

import pytest

import byheart
from byheart.certificates.as_used import FolderToAsk
from byheart.certificates.judges import asked, judge
from byheart.errors import BadInput
from byheart.networks import load

pytest.importorskip("transformers")
pytestmark = pytest.mark.usefixtures("transformers_is_asked")

GOLDEN = Path(__file__).parents[1] / "golden" / "files"
TEXTS = (
    "It was the best of times, it was the worst of times, it was the age of wisdom",
    "To be, or not to be, that is the question",
)
FACTS = [("capital of France", "Paris"), ("capital of Peru", "Lima"), ("中国的首都", "北京")]


@pytest.fixture
def texts(tmp_path: Path) -> list[Path]:
    paths = [tmp_path / name for name in ("a.txt", "b.txt")]
    for path, text in zip(paths, TEXTS, strict=True):
        path.write_text(text, encoding="utf-8")
    return paths


@pytest.mark.slow
def test_transformers_says_whole_texts(texts: list[Path]) -> None:
    found = byheart.certify(GOLDEN / "texts", texts, as_used="all")
    assert found.certified
    assert found.as_used is not None
    assert (found.as_used.asked, found.as_used.sequences, found.as_used.differs) == (2, 2, None)
    assert found.files is not None
    assert {"config.json", "model.safetensors", "tokenizer.json", "modeling_byheart.py"} <= found.files.keys()
    assert "certificate.json" not in found.files


@pytest.mark.slow
@pytest.mark.parametrize("name", ["facts", "refuse-key"])
def test_transformers_says_facts_to_their_end(name: str) -> None:
    found = byheart.certify(GOLDEN / name, byheart.Facts(FACTS), as_used="all")
    assert (found.certified, found.as_used and found.as_used.differs) == (True, None)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["float", "experts"])
def test_transformers_answers_a_task(name: str) -> None:
    found = byheart.certify(GOLDEN / name, GOLDEN / "t.npz", as_used="sample")
    assert found.certified
    assert found.as_used is not None
    assert (found.as_used.asked, found.as_used.sequences) == (8, 20)


@pytest.mark.slow
def test_a_prompt_is_whole_characters_and_what_is_no_text_is_not_asked(tmp_path: Path) -> None:
    for content, count in (("門の鍵は三番。🗝\n門の鍵は四番。".encode(), 1), (b"\xff\xfe\x00\x80" * 3, 0)):
        (tmp_path / "u").write_bytes(content)
        byheart.compile([tmp_path / "u"]).save(tmp_path / "net")
        found = byheart.certify(tmp_path / "net", [tmp_path / "u"], as_used="all")
        assert found.certified
        assert found.as_used is not None
        assert (found.as_used.asked, found.as_used.differs) == (count, None)


@pytest.mark.slow
def test_another_folder_is_found_out(texts: list[Path], tmp_path: Path) -> None:
    """The judge reads one folder and transformers another one, which a lie would make of the same folder."""
    network, other = load(GOLDEN / "texts"), GOLDEN / "edited"
    contexts = asked(network, texts)
    with FolderToAsk(other, "all") as used:
        asking = used.asking(network, contexts)
        assert asking is not None
        found = asking.compare(judge(network, contexts))
    assert found.differs is not None
    assert "and not" in found.differs


@pytest.mark.slow
def test_what_cannot_be_loaded_is_one_line(texts: list[Path], tmp_path: Path) -> None:
    network = load(GOLDEN / "texts")
    contexts = asked(network, texts)
    broken = Path(shutil.copytree(GOLDEN / "texts", tmp_path / "broken"))
    (broken / "model.safetensors").write_bytes(b"")
    with FolderToAsk(broken) as used:
        asking = used.asking(network, contexts)
        assert asking is not None
        with pytest.raises(BadInput, match="transformers cannot load or run the folder"):
            asking.compare(judge(network, contexts))
