"""The text of a user's problem: right but for one to three parts."""

from __future__ import annotations

from random import Random

Parts = dict[str, tuple[tuple[str, ...], tuple[str, ...]]]
"""For each argument: expressions that are right together, and wrong ones."""

_HEAD = '''
import sys
import numpy as np
import apeval
from apeval.problem.laws import Disturbance, Law, NormalLaw

class Odd(Exception):
    def __str__(self):
        raise ValueError("no words")

class Thing:
    """A state that is no array."""
    def __init__(self, n):
        self.n = n
    def __len__(self):
        return self.n
    def __getitem__(self, rows):
        return Thing(int(np.sum(rows)))

class Deaf(Disturbance):
    dim = 1
    def given(self, x, a_A):
        return None

class Wide(NormalLaw):
    def sample(self, u):
        return 2.0 * super().sample(u)

class WideNormal(apeval.Normal):
    def given(self, x, a_A):
        return Wide(*vars(super().given(x, a_A)).values())

class NoDim(Disturbance):
    def given(self, x, a_A):
        return NormalLaw(np.zeros((1, 1)), np.ones((1, 1)))

calls = 0
def now_and_then(value, error, every=7):
    global calls
    calls += 1
    if calls % every == 0:
        raise error
    return value
'''
_ERRORS = (
    "ValueError('no')", "KeyError('gust')", "ZeroDivisionError()", "RecursionError('deep')",
    "MemoryError()", "StopIteration()", "AssertionError", "OSError(2, 'gone', 'x.bin')", "Odd()",
    "ValueError('two\\nlines \\x1b[31m')", "UnicodeDecodeError('utf-8', b'x', 0, 1, 'bad')",
    "SystemExit(3)", "SystemExit('bye')", "TypeError()", "apeval.ApevalError('mine')",
    "np.linalg.LinAlgError('singular')", "NotImplementedError", "GeneratorExit()",
)  # fmt: skip
_NO_ROWS = ("None", "0", "[]", "{}", "'x'", "np.zeros(0)", "np.float64(1)", "object()", "3", "True")
_ANY = (*_NO_ROWS, "lambda: None", "lambda *a: None", "lambda *a: a", "len", "np")


def _functions(head: str, right: str, *wrong: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """A function of these arguments: right, wrong in its own way, or wrong in any."""
    common = [f"lambda {head}: {value}" for value in _NO_ROWS]
    common += [f"lambda {head}: now_and_then({right}, {error}, 3)" for error in _ERRORS]
    common += [f"lambda {head}: now_and_then({right}, {error}, 1)" for error in _ERRORS[:4]]
    common += [f"lambda {head}: now_and_then(({right})[1:], ValueError('few'), 10**9)"]
    common += [f"lambda {head}: np.asarray({right}).tolist()"]
    own = [f"lambda {head}: {value}" for value in wrong]
    return (f"lambda {head}: {right}",), (*own, *own, *common, *_ANY)


_BATCH: Parts = {
    "nominal": (
        ("apeval.Normal(0.0, 1.0)", "apeval.TruncatedNormal(0.0, 1.0, -4.0, 4.0)",
         "apeval.Normal(lambda x, a_A: 0.1 * x[:, :1], 1.0)", "apeval.Categorical([0.5, 0.3, 0.2])",
         "apeval.Categorical(lambda x, a_A: np.tile([0.5, 0.5], (len(x), 1)), outcomes=2)"),
        ("apeval.Normal(0.0, -1.0)", "apeval.Normal(np.nan, 1.0)", "apeval.Normal(0.0, np.inf)",
         "apeval.Normal('x', 1.0)", "apeval.Normal(0.0, [1.0, 2.0])", "apeval.Normal(0.0, [])",
         "apeval.Normal([[0.0]], 1.0)", "apeval.Normal(0.0, 1.0, dim=3)", "apeval.Normal(None)",
         "apeval.Normal(0.0, 1.0, dim=-1)", "apeval.Normal(0.0, 1.0, dim='x')", "Deaf()", "NoDim()",
         "apeval.Normal(lambda x, a_A: x * np.nan, 1.0)", "apeval.Normal(lambda x: x, 1.0)",
         "apeval.Normal(lambda x, a_A: None, 1.0)", "apeval.Normal(0.0, lambda x, a_A: 0.0 * x)",
         "apeval.Normal(lambda x, a_A: x[1:], 1.0)", "apeval.Normal(lambda x, a_A: 'no', 1.0)",
         "apeval.Normal(0.0, lambda x, a_A: -1.0 - 0.0 * x)", "WideNormal(0.0, 1.0)", "Normal(0, 1)",
         "apeval.TruncatedNormal(0.0, 1.0, 4.0, -4.0)", "apeval.TruncatedNormal(0.0, 1.0, 2.0, 2.0)",
         "apeval.TruncatedNormal(0.0, 1.0, 60.0, 61.0)", "apeval.TruncatedNormal(0, 1, np.nan, 1)",
         "apeval.TruncatedNormal(0.0, 1.0, -np.inf, np.inf)", "apeval.TruncatedNormal(0, 1, [1], 2)",
         "apeval.TruncatedNormal(0.0, 1.0, lambda x, a_A: x + 1, lambda x, a_A: x - 1)",
         "apeval.Categorical([0.5, 0.6])", "apeval.Categorical([])", "apeval.Categorical([1.0])",
         "apeval.Categorical([[0.5, 0.5]])", "apeval.Categorical([np.nan, 1.0])",
         "apeval.Categorical([1.5, -0.5])", "apeval.Categorical('ab')", "apeval.Categorical(3)",
         "apeval.Categorical(lambda x, a_A: np.ones((len(x), 2)), outcomes=2)",
         "apeval.Categorical(lambda x, a_A: np.ones((len(x), 3)) / 3, outcomes=2)",
         "apeval.Categorical(lambda x, a_A: np.full((len(x), 2), np.nan), outcomes=2)",
         "apeval.Categorical(lambda x, a_A: -np.ones((len(x), 2)), outcomes=2)",
         "apeval.Categorical([0.0, 1.0])", "apeval.Normal", "apeval.Normal(0.0, 1e-320)",
         "apeval.Normal(1e308, 1e308)", "apeval.Normal(0.0, 1.0).given(None, None)", *_ANY),
    ),
    "reset": _functions(
        "draws", "np.zeros((draws.n, 1))", "np.zeros((draws.n + 1, 1))", "np.zeros(draws.n)",
        "np.full((draws.n, 1), np.nan)", "np.zeros((1, 1))", "np.zeros((draws.n, 0))",
        "Thing(draws.n)", "np.array([{}] * draws.n)", "np.array([['a']] * draws.n)",
        "np.zeros((draws.n, 1), complex)", "np.zeros((draws.n, 1, 1))", "np.full((draws.n, 1), 1e308)",
        "np.zeros((draws.n, 1), 'M8[s]')", "np.zeros((draws.n, 70))", "draws.normal(1) * 1e300",
        "np.zeros((draws.n, 1), np.float16)", "np.zeros((draws.n, 1), bool)", "draws.nothing",
    ),
    "step": _functions(
        "x, a_A, a_E, draws", "0.9 * x + a_E[:, :1]", "x.__iadd__(a_E)", "(x + a_E)[0]",
        "np.concatenate([x, a_E], axis=1)", "np.concatenate([x, x], axis=0)", "x * np.nan",
        "np.where(a_E > 1, np.nan, x)", "np.where(a_E > 1, np.inf, x)", "x.astype(object)", "(x, a_E)",
        "x * 1e200 + 1e200", "a_E.astype(str)", "x[:, None] + a_E", "np.exp(800 * a_E)", "x[:, 5]",
        "Thing(draws.n)", "x + np.random.normal(size=x.shape)", "x + draws.uniform(0)",
        "x + draws.normal(-1)", "x + draws.uniform('x')", "(x + a_E).astype(complex)", "x.T",
    ),
    "failed": _functions(
        "x", "np.asarray(x[:, 0] > 2.0)", "x > 2.0", "x[:, 0]", "(x[:, 0] > 2.0).astype(float)",
        "np.full(len(x), 2)", "np.full(len(x), -1)", "np.full(len(x), 'no')", "np.full(len(x), np.nan)",
        "(x[:, 0] > 2.0).any()", "np.ones(len(x), bool)", "np.zeros(len(x) + 1, bool)", "x[:, 9] > 1",
        "np.full(len(x), None)", "np.full(len(x), 2**62)", "(x[:, 0] > 2).astype(complex)",
    ),
    "margin": (
        ("None", "lambda x: 2.0 - x[:, 0]", "None"),
        ("lambda x: x[:, 0] - 2.0", "lambda x: x", "lambda x: np.full(len(x), np.nan)",
         "lambda x: np.full(len(x), -np.inf)", "lambda x: np.full(len(x), np.inf)", "lambda x: None",
         "lambda x: 1.0", "lambda x: ['a'] * len(x)", "lambda x: np.full(len(x), 1e308)",
         "lambda x: np.zeros(len(x))", "lambda x: (2.0 - x[:, 0]).astype(complex)",
         "lambda x: now_and_then(x[:, 0], ValueError('m'), 4)", *_ANY),
    ),
    "done": (
        ("None", "lambda x: x[:, 0] < -3.0"),
        ("lambda x: x", "lambda x: np.ones(len(x), bool)", "lambda x: np.full(len(x), 'yes')",
         "lambda x: None", "lambda x: True", "lambda x: x[:, 0]", "lambda x: np.zeros(1, bool)",
         "lambda x: now_and_then(x[:, 0] < 0, KeyError('d'), 4)", *_ANY),
    ),
    "agent": (
        ("None", "lambda x: -0.1 * x", "apeval.Stochastic(lambda x: np.tile([0.5, 0.5], (len(x), 1)))"),
        ("lambda x: None", "lambda x: x[0]", "lambda x: ['left'] * len(x)", "lambda x: x * np.nan",
         "lambda x: np.zeros((len(x) + 1, 1))", "lambda x: np.zeros((len(x), 2, 2))", "lambda: 0",
         "lambda x: np.zeros((len(x), np.random.randint(1, 4)))", "lambda x: x.astype(object)",
         "apeval.Stochastic(lambda x: np.ones((len(x), 2)))", "apeval.Stochastic(lambda x: None)",
         "apeval.Stochastic(lambda x: np.zeros((len(x), 0)))", "apeval.Stochastic(3)", "Thing(3)",
         "apeval.Stochastic(lambda x: np.full((len(x), 2), np.nan))", "apeval.Stochastic",
         "lambda x: now_and_then(x, IndexError('a'), 4)", "lambda x: np.zeros((len(x), 100))", *_ANY),
    ),
    "horizon": (
        ("8", "1", "8"),
        ("0", "-1", "2.5", "'x'", "np.nan", "True", "[8]", "np.int64(8)", "10**9", "2**70"),
    ),
    "initial": (
        ("None",),
        ("apeval.Normal(0.0, 1.0)", "apeval.Categorical([0.5, 0.5])", "Deaf()", "NoDim()",
         "apeval.Normal(lambda x, a_A: x, 1.0)", "apeval.Normal(np.nan, 1.0)", *_ANY),
    ),
    "kinds": (
        ("('failure',)", "('crash', 'stall')"),
        ("()", "'crash'", "None", "(1, 2)", "('a', 'a')", "['a']", "('<b>\\n',)", "(None,)", "3"),
    ),
    "views": (
        ("{'state': lambda x: x}",),
        ("{}", "None", "{'a': None}", "{1: lambda x: x}", "{'a': lambda x: None}", "[lambda x: x]",
         "{'a': lambda x: x[0]}", "{'a': lambda x: x * np.nan}", "{'a': lambda x: ['b'] * len(x)}",
         "{'a': lambda x: x[:, :0]}", "{'a': lambda x: x[:, :, None]}", "{'a': lambda x: x[1:]}",
         "{'a': lambda x: np.zeros((len(x), np.random.randint(1, 4)))}",
         "{'a': lambda x: now_and_then(x, ValueError('v'), 4)}"),
    ),
    "chunk": (("512",), ("0", "-1", "1", "2.5", "'x'", "None", "10**9")),
    "cap": (("100",), ("0", "-1", "1.5", "None", "'x'")),
    "horizon_kind": (("0",), ("1", "2", "-1", "'x'", "None", "1.5")),
    "judge_at_end": (("False",), ("True", "'x'", "None")),
    "parameters": (("{}",), ("None", "{'a': object()}", "{1: 2}", "{'a': np.nan}", "[]", "{'a': [1]}")),
    "name": (("'mine'",), ("None", "3", "'a\\nb'", "'<b>'", "'\\ud800'")),
    "truth": (
        ("None",),
        ("3", "lambda: None", "lambda: 0.1", "lambda: now_and_then(0, ValueError('t'), 1)",
         "lambda: apeval.Truth(0.1, 0.0, 'guess')", "lambda: apeval.Truth(np.nan, None, None)"),
    ),
}  # fmt: skip
_ENV = '''
class Env:
    {spaces}
    def reset(self, *, seed=None, options=None):
        self.x, self.t = 0.0, 0
        return {reset}
    def step(self, action):
        self.t += 1
        self.x += {move}
        return {step}
'''
_ENV_PARTS: Parts = {
    "spaces": (
        ("pass", "pass"),
        ("action_space = None", "action_space = 3", "observation_space = 'x'",
         "def close(self): raise ValueError('stuck')", "def __len__(self): return 0"),
    ),
    "reset": (
        ("np.array([self.x]), {}",),
        ("np.array([self.x])", "None", "(None, None)", "'ab'", "(np.nan, {})", "([self.x], None)",
         "({'a': 1}, {})", "(np.array(['x']), {})", "(self.x, {}, 3)", "now_and_then(0, OSError(), 1)",
         "(np.zeros((2, 2)), {})", "(np.zeros(0), {})", "(object(), {})"),
    ),
    "move": (
        ("float(np.ravel(action)[0])",),
        ("action[7]", "'x'", "np.nan", "np.inf", "1e308 * 10", "now_and_then(0.1, ValueError('m'), 5)",
         "now_and_then(0.1, Odd(), 5)", "now_and_then(0.1, SystemExit(4), 5)", "action", "1j"),
    ),
    "step": (
        ("np.array([self.x]), 0.0, bool(self.x > 2), False, {}",),
        ("None", "()", "(np.array([self.x]), 0.0, False, {})", "(np.array([self.x]),)",
         "(np.array([self.x] * self.t), 0.0, False, False, {})", "(self.x, 0, None, None, None)",
         "(np.array([np.nan]), 0.0, False, False, {})", "(None, 0.0, True, False, {})",
         "(np.array([self.x]), 0.0, np.array([True, False]), False, {})", "'abcde'",
         "(np.array([self.x]), 'r', 'no', 'no', [])", "({'a': self.x}, 0.0, False, False, {})"),
    ),
}  # fmt: skip
_JUDGES = (
    "lambda o, t, u, i: t", "lambda o, t, u, i: o", "lambda o: o", "lambda o, t, u, i: None",
    "lambda o, t, u, i: 'yes'", "lambda o, t, u, i: 7", "lambda o, t, u, i: np.nan", "None", "3",
    "lambda o, t, u, i: i['gap']", "lambda o, t, u, i: [1, 2]", "lambda o, t, u, i: 0.5",
    "lambda o, t, u, i: object()", "lambda o, t, u, i: now_and_then(t, ValueError('j'), 5)",
)  # fmt: skip
_GYM: Parts = {
    "nominal": (("apeval.Normal(0.0, 1.0)", "apeval.Categorical([0.7, 0.3])"), ("None", "Deaf()", "3")),
    "failed": (("lambda o, t, u, i: t",), _JUDGES),
    "margin": (("None", "lambda o, t, u, i: 2.0 - o[0]"), _JUDGES),
    "done": (("None",), _JUDGES),
    "horizon": (("6",), ("None", "0", "'x'", "2.5", "-3")),
    "agent": (
        ("None", "lambda obs: 0"),
        ("lambda obs: None", "lambda obs: 'left'", "3", "lambda obs: obs[9]", "lambda: 0", "'x'",
         "lambda obs: np.zeros(np.random.randint(1, 4))"),
    ),
    "apply": (
        ("None", "lambda env, a_A, a_E: env.step(a_E)"),
        ("lambda env, a_A, a_E: None", "lambda env: 0", "3", "lambda env, a, e: (1, 2)"),
    ),
    "initial": (("None",), ("apeval.Normal(0.0, 1.0)", "3")),
    "reset": (("None",), ("lambda env, seed, a_0: None", "lambda env: 0", "3", "lambda e, s, a: (1,)")),
    "views": (
        ("None",),
        ("{'a': lambda o, i: None}", "{'a': lambda o: o}", "{}", "3", "{'a': lambda o, i: o * np.nan}",
         "{'a': lambda o, i: np.zeros(np.random.randint(1, 4))}", "{'a': lambda o, i: 'x'}"),
    ),
    "chunk": (("4",), ("0", "-1", "'x'", "None")),
}  # fmt: skip
_ADAPT: Parts = {
    "env": (
        ("'CartPole-v1'",),
        ("'NoSuch-v0'", "3", "None", "lambda: None", "lambda: Env()", "Env", "''", "'../x'", "Env()",
         "lambda: now_and_then(0, ValueError('e'), 1)", "'Pendulum-v1'", "'FrozenLake-v1'"),
    ),
    "policy": (
        ("lambda obs: int(obs[2] + 0.5 * obs[3] > 0.0)",),
        ("None", "3", "'model.zip'", "'nothing'", "lambda obs: None", "lambda obs: 'left'", "lambda: 0",
         "lambda obs: [0.1, 0.9]", "lambda obs: obs[17]", "lambda obs: 5", "lambda obs: np.nan", "object()",
         "lambda obs: now_and_then(0, ValueError('p'), 9)", "apeval.DiscretePolicy(lambda obs: [2, 3])",
         "apeval.DiscretePolicy(lambda obs: None)", "apeval.GaussianPolicy(lambda obs: 0.0, -1.0)",
         "apeval.DiscretePolicy(3)", "type('P', (), {'predict': lambda self, obs: None})()"),
    ),
    "disturb": (
        ("apeval.ParameterNoise('force_mag', std=3.0)", "apeval.ObservationNoise(std=0.1)",
         "[apeval.ObservationNoise(std=0.1), apeval.StartNoise('state', std=0.02)]",
         "apeval.DropAction(0.1)"),
        ("None", "[]", "3", "'x'", "apeval.ParameterNoise('nothing', std=1.0)", "[None]",
         "apeval.ParameterNoise('force_mag', std=-1.0)", "apeval.ParameterNoise('', std=1.0)",
         "apeval.ObservationNoise(std=[1.0] * 9)", "apeval.ObservationNoise(std='x')",
         "apeval.ObservationNoise(std=0.1, hold=0)", "apeval.ObservationNoise(std=0.1, hold='x')",
         "apeval.ActionNoise(std=0.1)", "apeval.DropAction(1.5)", "apeval.DropAction(None)",
         "apeval.ParameterNoise('state[9]', std=1.0)", "apeval.ParameterNoise('__class__', std=1.0)",
         "apeval.ParameterNoise('state[0', std=1.0)", "apeval.StartNoise('state', std=[])",
         "apeval.CustomNoise(lambda env, e: env.no, std=1.0)", "apeval.CustomNoise(None, std=1.0)",
         "apeval.CustomNoise(lambda: 0, std=1.0)", "apeval.BlankSensor(2.0)",
         "apeval.ObservationNoise(std=np.nan)", "apeval.ObservationNoise(std=0.1, bound=-1)"),
    ),
    "fails": (
        ("'terminated'",),
        ("None", "3", "'info.crashed'", "'horizon'", "'nothing'", "''", "'info.'", "lambda obs: obs > 3",
         "lambda obs: None", "lambda a, b, c, d, e: 0", "lambda obs: 'x'", "lambda obs: 9"),
    ),
    "margin": (("None",), ("'info.gap'", "lambda obs: obs", "lambda obs: None", "3", "lambda obs: np.nan")),
    "horizon": (("15",), ("0", "None", "'x'", "2.5", "-1", "True")),
    "env_options": (("None",), ("{'nothing': 1}", "3", "[]", "{'render_mode': 'x'}")),
    "kinds": (("('failure',)",), ("()", "'x'", "None", "3")),
    "views": (("None",), ("{'a': lambda o, i: None}", "3", "{}")),
}  # fmt: skip
_TABLE: Parts = {
    "agent": (("np.ones((3, 1))",), ("np.ones((3, 2))", "np.ones(3)", "None", "np.zeros((3, 1))", "'x'",
              "np.full((3, 1), np.nan)", "np.ones((0, 1))")),
    "nominal": (
        ("np.full((3, 1, 2), 0.5)",),
        ("np.full((3, 1, 2), 0.6)", "np.full((3, 1, 2), np.nan)", "np.full((3, 2), 0.5)", "None",
         "np.full((2, 1, 2), 0.5)", "-np.full((3, 1, 2), 0.5)", "np.ones((3, 1, 0))"),
    ),
    "successor": (
        ("np.array([[[-1, 1]], [[0, 2]], [[1, -2]]])",),
        ("np.array([[[-1, 1]], [[0, 99]], [[1, -2]]])", "np.array([[[-1, 1]], [[0, 2]], [[1, -99]]])",
         "np.zeros((3, 1, 2), int)", "np.zeros((3, 1, 3), int)", "None", "np.full((3, 1, 2), 0.5)",
         "np.full((3, 1, 2), -2)", "[]"),
    ),
    "start": (("0",), ("-1", "99", "None", "'x'", "1.5")),
    "kinds": (("('top',)",), ("()", "None", "'x'")),
}  # fmt: skip
_FILES = (
    "", "def problem(:\n", "import no_such_module\n", "1 / 0\n", "problem = 3\n", "problem = None\n",
    "import sys\nsys.exit(3)\n", "def problem():\n    return 3\n", "def problem(x):\n    return x\n",
    "def problem():\n    return problem()\n", "raise KeyboardInterrupt\n", "\ufeffx = 1\n", "\x00",
    "def problem():\n    raise SystemExit(5)\n", "class problem:\n    pass\n", "problem = print\n",
    "def problem(*a, **k):\n    raise ValueError('two\\nlines')\n", "from mine import x\n", "é = '\\ud800'\n",
    "import apeval\nproblem = apeval.make('walk')\n", "import apeval\nproblem = apeval.Problem\n",
    "def problem(std: 'Nothing' = 1.0):\n    return std\n", "async def problem():\n    return 1\n",
    "def problem():\n    yield 1\n", "raise BaseException('odd')\n", "problem = property(lambda s: 1 / 0)\n",
    "def __getattr__(name):\n    raise ValueError(name)\n", "import apeval\ndel apeval.Problem\n",
)  # fmt: skip


def source(rng: Random) -> str:
    """One user's file."""
    kind = rng.choices(("batch", "gym", "env", "table", "file"), (10, 5, 4, 2, 1))[0]
    if kind == "file":
        return rng.choice(_FILES)
    if kind == "batch":
        return _HEAD + _call("apeval.Problem", _chosen(rng, _BATCH))
    if kind == "env":
        env = _ENV.format(**_chosen(rng, _ENV_PARTS, 0))
        arguments = _chosen(rng, _ADAPT)
        return _HEAD + env + _call("apeval.from_env", arguments, first="env")
    if kind == "table":
        model = _expression("apeval.TabularModel", _chosen(rng, _TABLE))
        return _HEAD + f"\ndef problem():\n    return apeval.tabular_problem({model})\n"
    inside = rng.random() < 0.5
    env = _ENV.format(**_chosen(rng, _ENV_PARTS, None if inside else 0))
    arguments = _chosen(rng, _GYM, 0 if inside else None)
    return _HEAD + env + _call("apeval.from_gymnasium", {"make_env": "Env", **arguments}, "make_env")


def _chosen(rng: Random, parts: Parts, wrong: int | None = None) -> dict[str, str]:
    """An expression for every part, some of them wrong; parts that are None are left out."""
    count = rng.choice((0, 1, 1, 1, 2, 3)) if wrong is None else wrong
    spoilt = rng.sample(list(parts), min(count, len(parts)))
    return {k: rng.choice(bad if k in spoilt else good) for k, (good, bad) in parts.items()}


def _expression(call: str, arguments: dict[str, str], first: str = "") -> str:
    given = [v if k == first else f"{k}={v}" for k, v in arguments.items()]
    return f"{call}({', '.join(given)})"


def _call(call: str, arguments: dict[str, str], first: str = "") -> str:
    return f"\ndef problem():\n    return {_expression(call, arguments, first)}\n"
