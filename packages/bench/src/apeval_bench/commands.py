"""Commands that repeat the paper and measure this machine."""

from __future__ import annotations

from typing import Annotated

import typer

from apeval.cli.options import Json, Out, Quiet, Seeds, Tuning


def reproduce(
    what: Annotated[
        str,
        typer.Argument(
            help="table1, table2, curves, evolution, multimodal, modes, convergence, environments, "
            "or all of them."
        ),
    ],
    seeds: Seeds = None,
    tuning: Tuning = False,
    out: Out = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Reproduce a table or figure of the paper, published beside ours.

    \b
    Examples:
      apeval reproduce table1 --seeds 30 --out runs/table1
      apeval reproduce all --out runs/all
    """
    from apeval_bench.running import run_experiment

    run_experiment("reproduce", what, seeds, tuning, out, json)


def bench(
    what: Annotated[
        str, typer.Argument(help="accuracy, coverage, public, speed, tabular, floor, twin, …")
    ],
    seeds: Seeds = None,
    rows: Annotated[
        str,
        typer.Option(
            help="accuracy, coverage: only these, such as int-v1,pendulum-5000. public: rows, "
            "problems or classes, such as brp,reliability. ablation: knock-outs and tuning "
            "problems of ape, such as averaging,product."
        ),
    ] = "",
    methods: Annotated[
        str,
        typer.Option(
            help="accuracy, coverage, public: only these, such as ape,mc,ot-subset. ablation: ape "
            "or ape-scalable."
        ),
    ] = "",
    held_out: Annotated[
        bool, typer.Option("--held-out", help="accuracy: ten geometries that no one tuned on.")
    ] = False,
    first_seed: Annotated[
        int | None, typer.Option(help="Begin at this seed instead of 10000.", show_default=False)
    ] = None,
    tuning: Tuning = False,
    out: Out = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Measure speed and accuracy on this machine.

    \b
    Examples:
      apeval bench accuracy --rows int-v1 --seeds 20
      apeval bench coverage
      apeval bench public --rows reliability --seeds 5 --out runs/public
      apeval bench speed
      apeval bench tabular --seeds 100
      apeval bench twin
      apeval bench ablation --methods ape --tuning --seeds 12
    """
    from apeval_bench.running import Selection, run_experiment

    selection = Selection(rows, methods, held_out)
    run_experiment("bench", what, seeds, tuning, out, json, selection, first_seed)
