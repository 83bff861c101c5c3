"""One iteration of disaggregated RL training, its phases sized from a model: training, generation, weight sync."""

from workloads.rl_iteration.iteration import iteration_steps
from workloads.rl_iteration.shape import (
    Afd,
    Decoding,
    IterationError,
    Mode,
    RlIteration,
    SyncAlgorithm,
    Training,
    WeightSync,
)

__all__ = [
    "Afd",
    "Decoding",
    "IterationError",
    "Mode",
    "RlIteration",
    "SyncAlgorithm",
    "Training",
    "WeightSync",
    "iteration_steps",
]
