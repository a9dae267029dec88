import pytest

from byheart.errors import BadInput
from byheart.lab.devices import device_called


def test_a_device_that_is_not_there_is_refused():
    with pytest.raises(BadInput, match="device is 'abacus', which cannot be used here"):
        device_called("abacus")
