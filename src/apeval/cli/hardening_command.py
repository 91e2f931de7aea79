"""`apeval harden`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from apeval.cli.options import Json, Method, Problem, Quiet, Settings, folder_option


def harden(
    problem: Problem,
    policy: Annotated[
        Path,
        typer.Option(
            "--policy",
            help="The Stable-Baselines3 zip file that goes on learning.",
            metavar="PATH",
        ),
    ],
    steps: Annotated[int, typer.Option(help="Environment steps of training in each round.")],
    out: Annotated[
        Path,
        typer.Option(
            "--out", help="Folder for runs, policies and harden.json.", **folder_option("out")
        ),
    ],
    normalize: Annotated[
        Path | None,
        typer.Option(
            help="What VecNormalize.save wrote, for a policy trained under it; its statistics go "
            "on with the training.",
            metavar="PATH",
        ),
    ] = None,
    rounds: Annotated[
        int,
        typer.Option(
            help="Rounds of training; after one that is worse the next begins with the best policy."
        ),
    ] = 1,
    episodes: Annotated[int, typer.Option(help="Episodes of each evaluation.")] = 2_000,
    share: Annotated[
        float, typer.Option(help="Part of the training's episodes that the adversary disturbs.")
    ] = 0.5,
    weights: Annotated[
        str, typer.Option(help="How importance weights enter the rewards: none, clipped or full.")
    ] = "none",
    train_on: Annotated[
        str,
        typer.Option(
            help="adversary; or, to compare with: nominal (no more than usual) or widened."
        ),
    ] = "adversary",
    failure_reward: Annotated[
        float, typer.Option(help="Added to the reward of a step that fails, such as -100.")
    ] = 0.0,
    return_episodes: Annotated[
        int,
        typer.Option(
            help="Nominal episodes for the return, and for failures that the adversary may have "
            "missed; at least 3 over the old failure probability, for a verdict of better."
        ),
    ] = 100,
    seed: Annotated[int, typer.Option(help="Same seed, same policies.")] = 0,
    method: Method = None,
    settings: Settings = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Train a policy against the adversary that makes it fail, and say by what factor its failure
    probability fell.

    The problem must be one of `apeval.from_env`; its own policy is replaced. Stopped at any time,
    the same command goes on. Exit code 1 where no round was shown to be better.

    \b
    Examples:
      apeval harden my_problem.py --policy a.zip --steps 100000 --out runs/hard
      apeval harden my_problem.py --policy a.zip --steps 50000 --rounds 3 --out runs/hard3
      apeval harden my_problem.py --policy a.zip --steps 100000 --train-on nominal --out runs/more
    """
    from apeval.adapt.sb3 import load_model
    from apeval.cli.output import print_json, say
    from apeval.cli.running import build_problem
    from apeval.errors import ApevalError
    from apeval.hardening.loop import harden as hardened
    from apeval.hardening.rounds import BETTER
    from apeval.hardening.trainers import read_vecnormalize, with_statistics

    built, others = build_problem(problem, settings or [])
    if others:
        raise ApevalError(f"harden takes problem settings only: write problem.{next(iter(others))}")
    model = load_model(policy)
    if normalize is not None:
        model = with_statistics(model, read_vecnormalize(normalize))
    found: Any = hardened(
        built,
        model,
        out,
        steps=steps,
        listener=None if json or quiet else lambda text: typer.echo(text, err=True),
        method=method,
        rounds=rounds,
        episodes=episodes,
        share=share,
        weights=weights,
        train_on=train_on,
        failure_reward=failure_reward,
        return_episodes=return_episodes,
        seed=seed,
    )
    if json:
        print_json(found.as_json())
    else:
        say(str(found))
    if found.verdict != BETTER:
        raise typer.Exit(1)
