"""Nominal disturbances π_E,gt with exact sampling and exact density: one file for each law.

`base` says what a law offers. What others import has its home here: a run folder names
`apeval.problem.laws:NormalLaw`, wherever in the package that class is written.
"""

from __future__ import annotations

from apeval.problem.laws.base import Disturbance, Law
from apeval.problem.laws.categorical import Categorical, CategoricalLaw, pick
from apeval.problem.laws.law_parameters import Parameter
from apeval.problem.laws.normal import Normal, NormalLaw
from apeval.problem.laws.truncated_normal import TruncatedNormal, TruncatedNormalLaw

__all__ = [
    "Categorical",
    "CategoricalLaw",
    "Disturbance",
    "Law",
    "Normal",
    "NormalLaw",
    "Parameter",
    "TruncatedNormal",
    "TruncatedNormalLaw",
    "pick",
]

for _kind in (CategoricalLaw, Law, NormalLaw, TruncatedNormalLaw):
    _kind.__module__ = __name__
