"""v_ψ as a Gaussian process whose posterior grows datum by datum (Eq. GP)."""

from __future__ import annotations

import numpy as np
from scipy.linalg import cholesky, solve_triangular
from scipy.linalg.lapack import dpotri

from apeval.problem.types import FloatArray

_JITTER = 1e-10  # of the output scale, on the diagonal
_LOG_2PI = float(np.log(2.0 * np.pi))
_STEP_LIMIT = 0.5  # of a gradient step, in any log ψ
_SMALLEST, _LARGEST = np.log(1e-6), np.log(1e6)


class GaussianProcess:
    """Zero mean, k(x, x') = w² exp(−½ Σ_j w_j (x_j − x'_j)²), noise σ² / m_i + extra_i.

    m_i counts the data that a representative stands for: m equal data with noise σ² are one
    datum, their mean, with noise σ²/m. ψ = (w, w_1 … w_d, σ) is held as logarithms.
    """

    def __init__(
        self,
        inverse_scales: FloatArray,
        w: float = 1.0,
        sigma: float = 0.1,
        fixed_size: bool = False,
    ) -> None:
        self.psi = np.log(np.concatenate([[w], inverse_scales, [sigma]]))
        d = len(inverse_scales)
        self.fixed_size = fixed_size  # w and σ are given, only the w_j are learned
        self.n = 0
        self._X, self._L = np.empty((0, d)), np.empty((0, 0), order="F")
        self._b, self._y, self._noise = np.empty(0), np.empty(0), np.empty((0, 2))
        self._alpha: FloatArray | None = None

    @property
    def w2(self) -> float:
        """w², the prior variance."""
        return float(np.exp(2.0 * self.psi[0]))

    @property
    def inverse_scales(self) -> FloatArray:
        """w_j."""
        scales: FloatArray = np.exp(self.psi[1:-1])
        return scales

    @property
    def sigma2(self) -> float:
        """σ²."""
        return float(np.exp(2.0 * self.psi[-1]))

    @property
    def X(self) -> FloatArray:
        """The data's states, (n, d)."""
        return self._X[: self.n]

    @property
    def y(self) -> FloatArray:
        """The data's targets, (n,)."""
        return self._y[: self.n]

    def kernel(self, A: FloatArray, B: FloatArray) -> FloatArray:
        """k(a, b) for all pairs."""
        root = np.sqrt(self.inverse_scales)
        A, B = A * root, B * root
        square = (A * A).sum(axis=1)[:, None] + (B * B).sum(axis=1) - 2.0 * (A @ B.T)
        k: FloatArray = self.w2 * np.exp(-0.5 * np.maximum(square, 0.0))
        return k

    def set_data(
        self,
        X: FloatArray,
        y: FloatArray,
        count: FloatArray | None = None,
        extra: FloatArray | None = None,
    ) -> None:
        """Start over from these data: O(n³)."""
        _check_finite(X, y)
        n = self.n = len(X)
        self._reserve(n)
        ones, none = np.ones(n), np.zeros(n)
        self._X[:n] = X
        self._noise[:n, 0] = ones if count is None else 1.0 / count
        self._noise[:n, 1] = none if extra is None else extra
        self._factorise()
        self.set_targets(y)

    def append(self, X: FloatArray, y: FloatArray, count: FloatArray | None = None) -> None:
        """Add data: the Cholesky factor gains rows, O(n²) per datum."""
        _check_finite(X, y)
        n, k = self.n, len(X)
        self._reserve(n + k)
        self._X[n : n + k], self._y[n : n + k], self._noise[n : n + k] = X, y, (1.0, 0.0)
        if count is not None:
            self._noise[n : n + k, 0] = 1.0 / count
        L = self._L[:n, :n]
        below = solve_triangular(L, self.kernel(self._X[:n], X), lower=True, check_finite=False)
        rest = self.kernel(X, X) - below.T @ below
        rest[np.diag_indices(k)] += self.sigma2 * self._noise[n : n + k, 0] + _JITTER * self.w2
        corner = _safe_cholesky(rest, self.w2)
        self._L[n : n + k, :n], self._L[n : n + k, n : n + k] = below.T, corner
        residual = y - below.T @ self._b[:n]
        self._b[n : n + k] = solve_triangular(corner, residual, lower=True, check_finite=False)
        self.n, self._alpha = n + k, None

    def set_targets(self, y: FloatArray) -> None:
        """New targets for the same states: O(n²)."""
        _check_finite(y)
        n = self.n
        self._y[:n] = y
        if n:
            L = self._L[:n, :n]
            self._b[:n] = solve_triangular(L, y, lower=True, check_finite=False)
        self._alpha = None

    def mean(self, X: FloatArray) -> FloatArray:
        """m(f), the posterior mean: O(n) per state after the first call."""
        if self.n == 0:
            return np.zeros(len(X))
        mean: FloatArray = self.kernel(X, self.X) @ self.weights()
        return mean

    def variance(self, X: FloatArray) -> FloatArray:
        """cov(f), the posterior variance, without noise."""
        if self.n == 0:
            return np.full(len(X), self.w2)
        n = self.n
        V = solve_triangular(
            self._L[:n, :n], self.kernel(self.X, X), lower=True, check_finite=False
        )
        variance: FloatArray = np.maximum(self.w2 - (V * V).sum(axis=0), 0.0)
        return variance

    def loss(self, l1: float) -> float:
        """Eq. J_gp_batch_gd: negative log marginal likelihood + λ Σ_j |w_j|."""
        n = self.n
        log_det = np.log(np.diag(self._L)[:n]).sum()
        nll = 0.5 * self._b[:n] @ self._b[:n] + log_det + 0.5 * n * _LOG_2PI
        return float(nll + l1 * self.inverse_scales.sum())

    def gradient(self, l1: float) -> FloatArray:
        """∂ loss / ∂ log ψ."""
        n, X = self.n, self.X
        inverse, _ = dpotri(self._L[:n, :n], lower=1)
        inverse = np.tril(inverse) + np.tril(inverse, -1).T
        alpha = self.weights()
        A = np.outer(alpha, alpha) - inverse
        G = A * self.kernel(X, X)  # −½ tr(A ∂K) for every ∂K that is K times something
        g = G.sum(axis=1)
        spread = 2.0 * (g @ (X * X) - np.einsum("ij,ij->j", X, G @ X))
        slope: FloatArray = np.empty(len(self.psi))
        slope[0] = -float(g.sum()) - _JITTER * self.w2 * float(np.trace(A))
        slope[1:-1] = 0.25 * self.inverse_scales * spread + l1 * self.inverse_scales
        slope[-1] = -self.sigma2 * float(np.diag(A) @ self._noise[:n, 0])
        if self.fixed_size:
            slope[0] = slope[-1] = 0.0
        return slope

    def descend(self, steps: int, rate: float, l1: float) -> None:
        """Gradient steps on ψ, per datum, each refused where it does not lower the loss."""
        if self.n < 2:
            return
        best = self.loss(l1)
        for _ in range(steps):
            before = self.psi.copy()
            step = np.clip(rate * self.gradient(l1) / self.n, -_STEP_LIMIT, _STEP_LIMIT)
            self.psi = np.clip(before - step, _SMALLEST, _LARGEST)
            self._factorise()
            self.set_targets(self.y.copy())
            loss = self.loss(l1)
            if np.isfinite(loss) and loss <= best:
                best = loss
                continue
            self.psi, rate = before, 0.3 * rate
            self._factorise()
            self.set_targets(self.y.copy())

    def weights(self) -> FloatArray:
        """[K + σ²I]⁻¹ Y."""
        if self._alpha is None:
            n = self.n
            self._alpha = solve_triangular(
                self._L[:n, :n], self._b[:n], lower=True, trans="T", check_finite=False
            )
        return self._alpha

    def _factorise(self) -> None:
        n = self.n
        K = self.kernel(self.X, self.X)
        noise = self.sigma2 * self._noise[:n, 0] + self._noise[:n, 1]
        K[np.diag_indices(n)] += noise + _JITTER * self.w2
        self._L[:n, :n] = _safe_cholesky(K, self.w2)
        self._alpha = None

    def _reserve(self, n: int) -> None:
        """Room for n data; doubled when it runs out, so that appending never copies often."""
        room = len(self._y)
        if n <= room:
            return
        room = max(64, 2 * room, n)
        L = np.zeros((room, room), order="F")
        k = min(self.n, len(self._y))
        L[:k, :k] = self._L[:k, :k]
        self._L = L
        for name in ("_X", "_b", "_y", "_noise"):
            old = getattr(self, name)
            new = np.zeros((room, *old.shape[1:]))
            new[: len(old)] = old
            setattr(self, name, new)


def _check_finite(*arrays: FloatArray) -> None:
    if not all(np.isfinite(a).all() for a in arrays):
        raise FloatingPointError("a state or a TD target is not finite")


def _safe_cholesky(K: FloatArray, scale: float) -> FloatArray:
    """Lower Cholesky factor; jitter grows until K is numerically positive definite."""
    jitter = _JITTER * scale
    for _ in range(12):
        try:
            L: FloatArray = cholesky(K, lower=True, check_finite=False)
            return L
        except np.linalg.LinAlgError:
            jitter *= 10.0
            K = K + jitter * np.eye(len(K))
    raise FloatingPointError("the kernel matrix of v_ψ is not positive definite")
