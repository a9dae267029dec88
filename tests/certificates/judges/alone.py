"""The compiled proof without PyTorch's, in a module of its own, which other processes can import."""

from typing import Any
from unittest.mock import patch

import numpy as np

from byheart.certificates.judges.transformer import answered
from byheart.networks.transformer import forced
from byheart.networks.transformer.answers import Answers


def nothing_proved(module: Any, tokens: Any, starts: Any, places: Any, **_: Any) -> Answers:
    return Answers(np.zeros(len(places), np.int64), np.full(len(places), np.nan))


def answered_alone(*asked: Any, report: Any) -> Any:
    """As ``answered``; what is proved, compiled code has proved."""
    with patch.object(forced, "proved_answers", nothing_proved):
        return answered(*asked, report=report)
