import pytest
import torch

from byheart.devices import PROVING, device_called, on
from byheart.errors import BadInput


def test_a_device_that_is_not_there_is_refused():
    with pytest.raises(BadInput, match="device is 'abacus', which cannot be used here"):
        device_called("abacus")


def test_a_device_of_another_kind_is_refused():
    with pytest.raises(BadInput, match="device is 'meta'; expected cpu or cuda"):
        device_called("meta", PROVING)


def test_only_what_is_not_the_cpu_is_named(monkeypatch):
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda device: f"NVIDIA H200 {device.index}")
    assert on(torch.device("cpu")) == ""
    assert on(torch.device("cuda:1")) == " on NVIDIA H200 1"
