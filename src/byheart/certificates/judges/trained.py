"""Trained networks are judged as softmax networks are, which are layered networks, too."""

from byheart.certificates.judges.softmax import LIBRARIES, asked, judge, perturbed

__all__ = ["LIBRARIES", "asked", "judge", "perturbed"]
