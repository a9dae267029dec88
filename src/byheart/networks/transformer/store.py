"""draft"""
from typing import Any
import numpy as np
import torch
from byheart.networks.transformer.module import Transformer
from byheart.networks.transformer.spec import Spec

def as_module(spec: Spec, tensors: dict[str, Any]) -> Transformer:
    kept = {n: torch.from_numpy(np.ascontiguousarray(t)).to(torch.bfloat16) if n in spec.bfloat16 else torch.from_numpy(np.ascontiguousarray(t)) for n, t in tensors.items()}
    return Transformer(spec).load(kept).eval()
