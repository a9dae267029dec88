"""How much memory there is: within what the system says, and what the process was allowed."""

import subprocess
import sys
from pathlib import Path

import pytest

from byheart.errors import BadInput
from byheart.files import memory


def test_what_is_available_is_less_than_the_machine_has() -> None:
    assert 0 < memory.available() <= memory._installed()


def test_the_share_is_stated(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "available", lambda: 10 << 30)
    memory.check_memory(8 << 30, "a network")
    with pytest.raises(BadInput) as caught:
        memory.check_memory(9 << 30, "a network")
    expected = "expected at most 8.0 GiB, 80 % of what is available"
    assert str(caught.value) == f"a network would take 9.0 GiB of memory; {expected}"
    with pytest.raises(BadInput, match=r"of what is available: take half of it$"):
        memory.check_memory(9 << 30, "a network", "take half of it")


def test_somebody_says_how_much_to_take(monkeypatch: pytest.MonkeyPatch) -> None:
    before = memory.available()
    monkeypatch.setenv("BYHEART_MEMORY", "1000T")
    assert memory.available() <= memory._installed(), "no more than there is"
    monkeypatch.setenv("BYHEART_MEMORY", "1M")
    assert memory.available() == memory.MIN_GRANTED_BYTES, "it has more already, and small files are read all the same"
    monkeypatch.setattr(memory, "_kibibytes", lambda file, name: 100 << 20 if name == "RssAnon" else None)
    for given, left in (("300M", 200 << 20), ("1G", 924 << 20), (str(165 << 20), 65 << 20), ("110 ", 64 << 20)):
        monkeypatch.setenv("BYHEART_MEMORY", given)
        assert memory.available() == min(before, left) or left > before
    for given in ("much", "1.5G", "-1", "3X", "G"):
        monkeypatch.setenv("BYHEART_MEMORY", given)
        with pytest.raises(BadInput, match=rf"BYHEART_MEMORY is '{given}'; expected a number of bytes, such as 800M"):
            memory.available()


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="no /proc")
def test_limits_of_the_process_count() -> None:
    script = (
        "import resource; from byheart.files import memory; resource.setrlimit(resource.RLIMIT_DATA, (1 << 31,) * 2);"
        "assert 0 < memory.available() < (1 << 31)"
    )
    subprocess.run([sys.executable, "-c", script], check=True)
