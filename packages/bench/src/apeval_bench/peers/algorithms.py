"""The peers by name, and what they answer."""

from __future__ import annotations

from dataclasses import dataclass

PEERS = {
    "ot-subset": "OpenTURNS SubsetSampling, default range, blocks of 1,000",
    "ot-nais": "OpenTURNS NAIS",
    "ot-ce": "OpenTURNS StandardSpaceCrossEntropyImportanceSampling",
}


@dataclass(frozen=True)
class PeerResult:
    """What a peer answers."""

    estimate: float
    interval: tuple[float, float]
    episodes: int
    """Episodes that the reported run simulated."""
    failure_rate: float
    steps: int = 0
    """Decisions that the reported run simulated."""
    error: str = ""
    """Why there is no estimate, where the peer raised an error."""
