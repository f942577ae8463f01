"""python3 -m atoll.mlx: trains the built-in family with MLX, where the optimizer is AdamW."""

import platform
import sys
from types import SimpleNamespace

from . import arrays
from .serve import log
from .tracking import serve_tracked

try:
    import mlx.core as mx
except ModuleNotFoundError:
    mx = None


class MLXLearner(arrays.ArrayLearner):
    name = "atoll.mlx"

    def __init__(self):
        self.version = f"MLX {mx.__version__}"

    def devices(self):
        metal = mx.default_device() == mx.Device(mx.gpu)
        return [{"kind": "mps" if metal else "cpu", "name": platform.processor() or platform.machine(), "count": 1, "memory_bytes": 0}]

    def prepare(self):
        xp = SimpleNamespace(**{name: getattr(mx, name) for name in dir(mx)})
        self._gradient = mx.value_and_grad(lambda params, tokens: arrays.loss(xp, self.model, params, tokens))
        self.xp = xp

    def array(self, values, shape):
        return mx.array(values).reshape(shape)

    def tokens(self, rows):
        return mx.array(rows, dtype=mx.int32)

    def flat(self, x):
        return memoryview(mx.contiguous(x.reshape(-1)))

    def gradient(self, tokens):
        value, grads = self._gradient(self.params, tokens)
        mx.eval(value, grads)
        return value.item(), grads

    def update(self, grads, lr, taken):
        params, m, v, norm = arrays.step(self.xp, self.settings, self.params, self.m, self.v, grads, lr, taken)
        mx.eval(params, m, v, norm)
        return params, m, v, norm.item()


def main():
    if mx is None:
        log("MLX is missing from this Python: install it with `python3 -m pip install mlx`, or `mlx[cpu]` on Linux")
        return 2
    return serve_tracked("atoll.mlx", MLXLearner)


if __name__ == "__main__":
    sys.exit(main())
