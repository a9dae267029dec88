"""The judge of trained networks: that of softmax networks, since both are layered networks."""

from byheart.certificates.judges.softmax import LIBRARIES, asked, judge, perturbed

__all__ = ["LIBRARIES", "asked", "judge", "perturbed"]
