import importlib.util
import json
import math
import struct
import unittest

from test_torch import CONTEXT, llama_layout, node_of, small

from atoll import arrays
from atoll.recipe import parse


class Layout(unittest.TestCase):
    def test_layout(self):
        for tied in (True, False):
            recipe = small("adamw", tied=tied)
            self.assertEqual(arrays.layout(parse(json.dumps(recipe))[0]), llama_layout(recipe["model"]))


class Frameworks:
    """What every framework has to do. Its loss is compared with a likelihood that is known: that of equal logits."""

    def begin(self, **fields):
        node = node_of(self, small("adamw"), **fields)
        node.hello = node.start(self.module)
        node.begin_run()
        return node

    def after(self, node):
        node.ask("flush", pieces=node.everything())
        return node.values()

    def test_run(self):
        node = self.begin()
        self.assertEqual(node.hello["name"], self.module)
        first = node.values()
        self.assertEqual(self.after(node), first)
        losses = [node.ask("step", number=number, lr=0.02, starts=[0, 7])["loss"] for number in range(5)]
        self.assertLess(losses[-1], losses[0])
        piece = [node.count // 3, node.count // 4]
        node.ask("flush", pieces=[piece])
        begin, end = 4 * piece[0], 4 * sum(piece)
        self.assertEqual(node.values()[:begin] + node.values()[end:], first[:begin] + first[end:])
        self.assertNotEqual(node.values()[begin:end], first[begin:end])
        node.overwrite(first)
        node.ask("load", pieces=[piece])
        self.assertEqual(self.after(node)[begin:end], first[begin:end])
        self.assertEqual(node.ask("stop"), {"type": "stopped"})
        self.assertEqual(node.stderr()[0], 0)

    def test_equal_logits(self):
        node = self.begin()
        node.overwrite(bytes(4 * node.count))
        node.ask("load", pieces=node.everything())
        answer = node.ask("step", number=0, lr=0.0, starts=[0, 7])
        self.assertEqual(answer["tokens"], 2 * CONTEXT)
        self.assertAlmostEqual(answer["loss"], math.log(256), places=5)

    def test_evaluate(self):
        node = self.begin()
        self.assertIn("no held-out text", node.ask("evaluate", starts=[0])["error"])
        node = node_of(self, small("adamw"))
        node.run["held_out"] = node.run["text"]
        self.assertTrue(node.start(self.module)["evaluates"])
        node.begin_run()
        answer = node.ask("evaluate", starts=[])
        self.assertEqual(answer["type"], "error")
        self.assertIn("names no row", answer["error"])
        first = node.values()
        loss = node.ask("step", number=0, lr=0.02, starts=[0, 7])["loss"]
        answer = node.evaluate(first, [0, 7])
        self.assertEqual((answer["tokens"], answer["bytes"]), (2 * CONTEXT, 2 * CONTEXT))
        self.assertAlmostEqual(answer["loss"], loss, places=5)
        now = node.evaluate(self.after(node), [0, 7] * 3)
        self.assertAlmostEqual(now["loss"], node.ask("step", number=1, lr=0.02, starts=[0, 7])["loss"], places=5)

    def test_state(self):
        node = self.begin()
        node.ask("step", number=0, lr=0.01, starts=[0, 7])
        middle = self.after(node)
        node.ask("save", path=node.path("state"))
        node.ask("step", number=1, lr=0.01, starts=[3, 9])
        want = self.after(node)
        other = node_of(self, small("adamw"), resume=node.path("state"), steps=1)
        other.overwrite(middle)
        other.start(self.module)
        other.begin_run()
        other.ask("step", number=1, lr=0.01, starts=[3, 9])
        self.assertEqual(self.after(other), want)

    def test_diverged(self):
        node = self.begin()
        node.overwrite(struct.pack("<f", math.nan) * node.count)
        node.ask("load", pieces=node.everything())
        self.assertEqual(node.ask("step", number=0, lr=0.1, starts=[0])["kind"], "diverged")

    def test_refuses_muon(self):
        node = node_of(self, small("muon"))
        node.start(self.module)
        self.assertIn('"muon"', node.ask(node.run)["error"])


@unittest.skipUnless(importlib.util.find_spec("jax"), "JAX is missing")
class Jax(Frameworks, unittest.TestCase):
    module = "atoll.jax"


@unittest.skipUnless(importlib.util.find_spec("mlx"), "MLX is missing")
class MLX(Frameworks, unittest.TestCase):
    module = "atoll.mlx"


if __name__ == "__main__":
    unittest.main()
