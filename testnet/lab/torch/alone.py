"""Times training steps of the package's PyTorch learner without a node: what a learner's tokens per second are without atoll.

PYTHONPATH=optimizer/trainer/external/python python3 testnet/lab/torch/alone.py --model testnet/lab/headline/124m.json --data TEXT --device cuda --precision bf16
"""

import argparse
import json
import random
import statistics
import tempfile
import time
import types

import torch
from atoll import groups, recipe
from atoll.slab import BYTES, Slab
from atoll.text import Bytes
from atoll.torch import devices, llama
from atoll.torch.learner import TorchLearner

RATE = 1e-3


class Alone(TorchLearner):
    """A learner that begins with random values, and has no run."""

    def begin(self, sizes, settings, rows, data, folder):
        self.settings, self.text = settings, Bytes(data, sizes.context)
        model = llama.Llama(sizes, self.device)
        layout = llama.layout(model)
        count = sum(p.numel() for p in model.parameters())
        path = folder + "/slab"
        with open(path, "wb") as file:
            file.truncate(BYTES * count)
        self.run = types.SimpleNamespace(slab=Slab(path, 0, count), rows=rows, context=sizes.context)
        self._build(model, layout)
        torch.nn.init.normal_(self.params, std=0.02)
        return count

    def timed(self, seconds):
        """Returns the seconds of each step, without the first three, which compile and warm up."""
        last = len(self.text.tokens) - self.run.context - 1
        places = random.Random(1)
        times, end = [], None
        while end is None or time.perf_counter() < end:
            begin = time.perf_counter()
            self.step(len(times), RATE, [places.randrange(last) for _ in range(self.run.rows)])
            devices.synchronize(self.device)
            times.append(time.perf_counter() - begin)
            if len(times) == 3:
                end = time.perf_counter() + seconds
        return times[3:]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", required=True, help="JSON file of sizes, as for atoll new")
    parser.add_argument("--data", required=True, help="text whose bytes are the tokens")
    parser.add_argument("--device", default="auto")
    parser.add_argument("--precision", choices=["f32", "bf16"], default="f32")
    parser.add_argument("--optimizer", choices=["adamw", "muon"], default="muon")
    parser.add_argument("--compile", action="store_true")
    parser.add_argument("--rows", type=int, default=16)
    parser.add_argument("--seconds", type=float, default=20)
    options = parser.parse_args()
    with open(options.model, encoding="utf-8") as file:
        given = json.load(file)
    sizes = recipe.Model(
        given["vocab"], given["hidden"], given["layers"], given["heads"], given["kvheads"], given["intermediate"], given["context"], 10000.0, 1e-5, True
    )
    settings = recipe.Optimizer(options.optimizer, 0.9, 0.95, 1e-8, 0.1, 1.0, 0.95)
    learner = Alone(devices.choose(options.device), options.precision, compile=options.compile, group=groups.Alone())
    with tempfile.TemporaryDirectory() as folder:
        params = learner.begin(sizes, settings, options.rows, options.data, folder)
        times = learner.timed(options.seconds)
    tokens = options.rows * sizes.context
    print(
        json.dumps(
            {
                "params": params,
                "steps": len(times),
                "tokens_per_s": tokens * len(times) / sum(times),
                "median_ms": 1e3 * statistics.median(times),
                "device": devices.describe(learner.device)["name"],
                "memory_bytes": devices.memory_bytes(learner.device),
            }
        )
    )


if __name__ == "__main__":
    main()
