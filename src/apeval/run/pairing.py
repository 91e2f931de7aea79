"""What a comparison of policies in pairs rests on."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from apeval.errors import number_of
from apeval.run.result_text import line


@dataclass(frozen=True)
class ControlArm:
    """Episodes without disturbances, on the random numbers of the first pairs."""

    episodes: int
    """Of each policy; two where nothing else is random: then all would be the same."""
    failures_a: int
    """Episodes in which A fails without any disturbance."""
    failures_b: int
    """Episodes in which B does."""

    def in_words(self) -> str:
        """What it found.

        Returns:
            One sentence.
        """
        if not self.failures_a and not self.failures_b:
            return (
                f"neither fails without disturbances ({number_of(self.episodes, 'episode')} each)"
            )
        n = self.episodes
        return f"without disturbances A fails in {self.failures_a} of {n:,}, B in {self.failures_b}"


@dataclass(frozen=True)
class Pairing:
    """Pairs of episodes under one frozen proposal, with the same random numbers."""

    pairs: int
    """How many."""
    failures_a: int
    """Pairs in which A failed, unweighted."""
    failures_b: int
    """Pairs in which B failed."""
    failures_both: int
    """Pairs in which both failed."""
    correlation: float | None
    """Of the two estimates; None with too few failures."""
    worth: float | None
    """Unpaired episodes would have to be so many times as many for a ratio of the same standard
    error; None where no two episodes of a pair differ, or with too few failures."""
    anytime: bool
    """Whether the intervals hold at all looks at once, instead of at one."""
    control: ControlArm
    """What happens without disturbances."""
    steps: int
    """Decisions of both policies, learning and control arm included."""
    episodes: int
    """Episodes of both policies."""
    seed: int
    """Of all random numbers."""

    def lines(self) -> Iterator[str]:
        """For `str` of a comparison.

        Returns:
            Its last lines.
        """
        fails = f"both fail in {self.failures_both:,}, A in {self.failures_a:,}, "
        yield line("pairs", f"{self.pairs:,}: {fails}B in {self.failures_b:,}")
        if self.worth is not None:
            text = f"worth {self.worth:.2g} times as many episodes that are not in pairs"
            yield line("pairing", text)
        yield line("control arm", self.control.in_words())
        if self.anytime:
            yield line("valid", "at every look (asymptotically): stop whenever you like")
        yield line(
            "simulated",
            f"{number_of(self.steps, 'decision')} in {number_of(self.episodes, 'episode')}",
        )
