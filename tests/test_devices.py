import pytest
import torch

from byheart.devices import PROOF_DEVICES, device_suffix, find_device
from byheart.errors import BadInput


def test_a_device_that_is_not_there_is_refused():
    with pytest.raises(BadInput, match="device is 'abacus', which cannot be used here"):
        find_device("abacus")


def test_a_device_of_another_kind_is_refused():
    with pytest.raises(BadInput, match="device is 'meta'; expected cpu or cuda"):
        find_device("meta", PROOF_DEVICES)


def test_only_what_is_not_the_cpu_is_named(monkeypatch):
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda device: f"NVIDIA H200 {device.index}")
    assert device_suffix(torch.device("cpu")) == ""
    assert device_suffix(torch.device("cuda:1")) == " on NVIDIA H200 1"
