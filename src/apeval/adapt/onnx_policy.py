"""Policies in ONNX files, run by onnxruntime. It is imported only when used."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from apeval.adapt.batches import SIZE, mixed
from apeval.adapt.policies import Answer, InBatches, Policy
from apeval.adapt.spaces import is_discrete
from apeval.adapt.torch_policy import as_actions
from apeval.errors import ApevalError, ProblemError, blame
from apeval.problem.types import Array, FloatArray

_TYPES = {
    "tensor(float)": np.float32, "tensor(double)": np.float64, "tensor(float16)": np.float16,
    "tensor(uint8)": np.uint8, "tensor(int8)": np.int8, "tensor(int32)": np.int32,
    "tensor(int64)": np.int64, "tensor(bool)": np.bool_,
}  # fmt: skip


class OnnxPolicy(InBatches):
    """A network in an ONNX file: the largest output's number for discrete actions (or the whole
    number that it gives), the output itself for continuous ones.

    Args:
        model: The file's bytes, as an array.
        weights: Those of the files beside it that hold its weights, by name.
        output: Which output is the action; None: the only one.
        where: The file, for errors.
    """

    def __init__(
        self, model: Array, weights: dict[str, Array], output: str | None, where: str
    ) -> None:
        self.model, self.weights, self.where = model, weights, where
        self._session: Any = None
        session = self._running()
        self.inputs = {it.name: (it.type, list(it.shape)) for it in session.get_inputs()}
        self.output = _chosen(where, [it.name for it in session.get_outputs()], output)
        self.space: Any = None

    def __getstate__(self) -> dict[str, Any]:  # another process makes a session of its own
        return {**self.__dict__, "_session": None}

    def _running(self) -> Any:
        if self._session is None:
            self._session = _session(self.model.tobytes(), self.weights, self.where)
        return self._session

    def fitted(self, space: Any, seen: Any) -> Policy:
        """Asks for one observation at a time where the file's inputs have room for one.

        Raises:
            ProblemError: Its inputs are not the observation.
        """
        self.space = space
        parts = getattr(seen, "spaces", None)
        named = list(parts) if isinstance(parts, Mapping) else None
        _require_inputs(self.where, self.inputs, named)
        sizes = {shape[0] if shape else None for _, shape in self.inputs.values()}
        fixed = {size for size in sizes if isinstance(size, int)}
        if fixed - {1, SIZE}:
            raise ProblemError(
                f"{self.where}: its input takes {max(fixed)} observations at once: export it with "
                "a free first axis (torch.onnx.export(…, dynamic_axes={'obs': {0: 'n'}}))"
            )
        self.together = fixed != {1} and mixed(self._outputs, seen) is None
        return super().fitted(space, seen)

    def rows(self, observations: Any, u: FloatArray, memories: Sequence[Any]) -> Answer:
        values = self._outputs(observations)
        if is_discrete(self.space) and values.dtype.kind in "iu":
            return values.reshape(len(values), -1)[:, 0], memories
        return as_actions(values, self.space), memories

    def _outputs(self, observations: Any) -> Array:
        given = observations if isinstance(observations, Mapping) else None
        told: dict[str, Array] = {
            name: np.ascontiguousarray(observations if given is None else given[name], _TYPES[kind])
            for name, (kind, _) in self.inputs.items()
        }
        values: Array = np.asarray(self._running().run([self.output], told)[0])
        return values


def load_onnx(path: str | Path, *, output: str | None = None) -> Policy:
    """The policy in an ONNX file, such as ``torch.onnx.export`` writes.

    It runs on the CPU in one thread, on 16 observations at once where its input's first axis is
    free and its rows do not mix, else on one at a time. A dict observation goes to the inputs of
    the same names. Needs the extra `onnx`.

    Args:
        path: The file. It is read once and travels to workers, with the files beside it that hold
            its weights (``policy.onnx.data``).
        output: The output that is the action (or the scores of discrete actions); needed where the
            file has several.

    Returns:
        A policy for ``from_env(policy=…)`` and its siblings.

    Raises:
        ApevalError: There is no such file, it is no model, or onnxruntime is missing.
        ProblemError: It has several outputs and none was named. (When it meets an environment:
            its inputs are not the observation, as with a recurrent network.)
    """
    path = Path(path)
    if not path.is_file():
        raise ApevalError(f"no policy file '{path}': give the ONNX file that was exported")
    model = path.read_bytes()
    return OnnxPolicy(_numbers(model), _weights_beside(path, model), output, f"'{path.name}'")


def _numbers(data: bytes) -> Array:
    return np.frombuffer(data, np.uint8)


def _weights_beside(path: Path, model: bytes) -> dict[str, Array]:
    """The files in the same folder that the model names: an exporter may put weights there."""
    beside = [file for file in sorted(path.parent.iterdir()) if file != path and file.is_file()]
    named = [file for file in beside if file.name.encode() in model]
    return {file.name: _numbers(file.read_bytes()) for file in named}


def _session(model: bytes, weights: dict[str, Array], where: str) -> Any:
    try:
        import onnxruntime
    except ImportError:
        raise ApevalError(
            "reading an ONNX policy needs the extra: pip install 'apeval[onnx]'"
        ) from None
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.use_deterministic_compute = True
    options.log_severity_level = 3  # errors
    try:
        if weights:
            sizes = [len(data) for data in weights.values()]
            give = options.add_external_initializers_from_files_in_memory
            give(list(weights), list(weights.values()), sizes)
        return onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    except Exception as error:
        raise ApevalError(
            f"{where} is no ONNX model that onnxruntime can run ({blame(error)}): export it again, "
            "with its weights in the same file (torch.onnx.export(…, external_data=False))"
        ) from error


def _chosen(where: str, known: list[str], output: str | None) -> str:
    if output in known:
        return str(output)
    if output is None and len(known) == 1:
        return known[0]
    says = "has no such output" if output is not None else f"has {len(known)} outputs"
    raise ProblemError(
        f"{where} {says}: say which is the action, load_onnx(path, output='{known[0]}') "
        f"({', '.join(known)})"
    )


def _require_inputs(where: str, inputs: dict[str, Any], named: list[str] | None) -> None:
    """The inputs must be the observation, whole or by the names of its parts."""
    odd = [kind for kind, _ in inputs.values() if kind not in _TYPES]
    if odd:
        raise ProblemError(
            f"{where}: an input is of type {odd[0]}: export it with numbers as inputs"
        )
    if named is not None and {*inputs} == {*named}:
        return
    if named is None and len(inputs) == 1:
        return
    told = "the observation" if named is None else f"the observation's parts {', '.join(named)}"
    raise ProblemError(
        f"{where} takes the inputs {', '.join(inputs)}, where only {told} can be given. If one of "
        "them is the state of a recurrent network: the policy has memory, and apeval would "
        "evaluate it without; give an object that runs the session and carries the state from step "
        "to step. Else export a model of the observation alone, with inputs named like its parts"
    )
