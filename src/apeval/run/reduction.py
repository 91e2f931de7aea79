"""A batch of episodes, reduced to what an estimate needs."""

from __future__ import annotations

import numpy as np

from apeval.errors import ProblemError
from apeval.estimate.sample import Sample
from apeval.simulate.adversary import Mixture, Nominal
from apeval.simulate.episodes import Episodes


def reduce(batch: Episodes, proposal: Mixture) -> Sample:
    """What the estimate needs of a batch: densities and outcomes."""
    log_p = batch.log_density(Nominal())
    if np.isnan(log_p).any():
        raise ProblemError(
            "the nominal disturbance has no density where it was drawn: a std must be > 0, low "
            "must be below high, and probabilities must be ≥ 0 and sum to 1 in every state"
        )
    return Sample(
        component=batch.component,
        log_p=log_p,
        log_q=np.stack([batch.log_density(q) for q in proposal.components], axis=1),
        kind=batch.kind,
        unresolved=batch.unresolved,
        length=batch.length,
        margin=batch.margin,
    )
