"""How often the distribution that learners start from on Int-v1 fails by itself."""

from __future__ import annotations

from typing import Any

from apeval.environments import make
from apeval.problem.draws import make_key
from apeval.problem.settings import build
from apeval.simulate.adversary import Adversary, only
from apeval.simulate.simulation import Budget, Simulation
from apeval_bench.study import ENTRIES, settings
from apeval_paper.methods.ape_discrete.config import ApeDiscreteConfig
from apeval_paper.methods.cem_discrete.config import CemDiscreteConfig
from apeval_paper.methods.slots.config import SlotConfig
from apeval_paper.methods.slots.cut import Cutter
from apeval_paper.methods.slots.policy import SlotAdversary

EPISODES = 100_000
PROBLEM = "int-v1"


def start_rates(seed: int, episodes: int = EPISODES) -> dict[str, Any]:
    """Failure rate of each learner's start; slots are wider than the density they stand for, so
    the starts are equal only as far as slots allow."""
    rates = {}
    for label, start in starts().items():
        problem = make(PROBLEM).seen_as(ENTRIES[label].view).blind()
        simulation = Simulation(problem, make_key(seed), Budget(episodes=episodes))
        batch = simulation.run(only(start), episodes, 0)
        rates[label] = float(batch.failed.mean())
    return {"episodes": episodes, "rates": rates}


def starts() -> dict[str, Adversary]:
    """π̂_E as each learner has it before its first update; one that finds its own has none."""
    from apeval_paper.methods.ape_scalable.adversaries import WarmStart
    from apeval_paper.methods.ape_scalable.config import ApeScalableConfig

    found: dict[str, Adversary] = {}
    for label, entry in ENTRIES.items():
        chosen = settings(PROBLEM, entry)
        if entry.method == "ape-scalable":
            config = build(ApeScalableConfig, chosen)
            if config.open_start:
                continue
            found[label] = WarmStart(*config.warm(make(PROBLEM).nominal.dim))
        elif entry.method != "mc":
            kind = ApeDiscreteConfig if entry.method == "ape-discrete" else CemDiscreteConfig
            slots: SlotConfig = build(kind, chosen)
            found[label] = SlotAdversary({}, Cutter(slots), slots.state_slots, False)
    return found
