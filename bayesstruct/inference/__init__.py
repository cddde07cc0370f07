"""Inference: posterior modes, and sampling that survives interruptions."""

from bayesstruct.inference.checkpoint import load_checkpoint
from bayesstruct.inference.find_map import find_MAP
from bayesstruct.inference.neighbourhoods import sample_neighbourhoods
from bayesstruct.inference.sample import sample
from bayesstruct.inference.sandwich import sandwich

__all__ = ["find_MAP", "load_checkpoint", "sample", "sample_neighbourhoods", "sandwich"]
