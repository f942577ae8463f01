"""python3 -m atoll.jax: trains the built-in family with JAX, where the optimizer is AdamW."""

import sys
from types import SimpleNamespace

from . import arrays
from .serve import log
from .tracking import serve_tracked

try:
    import jax
    import jax.numpy as jnp
    import numpy
except ModuleNotFoundError:
    jax = None


class JaxLearner(arrays.ArrayLearner):
    name = "atoll.jax"

    def __init__(self):
        # JAX rounds products to bfloat16 or TF32 where the device is faster so.
        jax.config.update("jax_default_matmul_precision", "highest")
        self.version = f"JAX {jax.__version__}"

    def devices(self):
        device = jax.devices()[0]
        kind = {"gpu": "cuda"}.get(device.platform, device.platform)
        memory = (device.memory_stats() or {}).get("bytes_limit", 0)
        return [{"kind": kind, "name": device.device_kind, "count": 1, "memory_bytes": memory}]

    def prepare(self):
        xp = SimpleNamespace(**{name: getattr(jnp, name) for name in dir(jnp)})
        xp.logsumexp = jax.nn.logsumexp
        self._gradient = jax.jit(jax.value_and_grad(lambda params, tokens: arrays.loss(xp, self.model, params, tokens)))
        self._update = jax.jit(lambda *given: arrays.step(xp, self.settings, *given))

    def array(self, values, shape):
        return jnp.array(numpy.frombuffer(values, numpy.float32).reshape(shape))

    def tokens(self, rows):
        return jnp.array(rows, dtype=jnp.int32)

    def flat(self, x):
        return memoryview(numpy.ascontiguousarray(x).reshape(-1))

    def gradient(self, tokens):
        value, grads = self._gradient(self.params, tokens)
        return float(value), grads

    def update(self, grads, lr, taken):
        params, m, v, norm = self._update(self.params, self.m, self.v, grads, lr, taken)
        return params, m, v, float(norm)


def main():
    if jax is None:
        log("JAX is missing from this Python: install it with `python3 -m pip install jax`")
        return 2
    return serve_tracked("atoll.jax", JaxLearner)


if __name__ == "__main__":
    sys.exit(main())
