import math
import os
import pathlib
import random
import struct
import unittest
from unittest import mock

from fakenode import FakeNode
from scripts import BATCHES, PERCEPTRON

import atoll
from atoll import pieces

try:
    import torch
except ImportError:
    torch = None
else:
    from atoll import values

    torch.set_num_threads(1)

# Given to a script: what it says of the run's held-out text.
QUALITY = """atoll.join(model, evaluate=lambda run: (
    sum(model(**b).item() * len(b["labels"]) for b in run.held_out()) / max(1, sum(len(b["labels"]) for b in run.held_out())),
    *[sum(b["labels"][:, 1:].numel() for b in run.held_out())] * 2))"""

LAYOUT = [("2.bias", (2,)), ("0.weight", (5, 3)), ("0.bias", (5,)), ("2.weight", (2, 5))]
COUNT = 32
NORMAL = random.Random(4)
VALUES = struct.pack(f"<{COUNT}f", *([-0.0, 1e-30] + [NORMAL.gauss(0, 0.5) for _ in range(COUNT - 2)]))


def script(node, text):
    path = node.path("train.py")
    pathlib.Path(path).write_text(text)
    return path


def floats(data):
    return torch.tensor(struct.unpack(f"<{len(data) // 4}f", data))


@unittest.skipUnless(torch, "PyTorch is missing")
class Scripts(unittest.TestCase):
    def begin(self, *options, layout=LAYOUT, first=VALUES, **fields):
        node = FakeNode(self, layout, first, **fields)
        node.hello = node.start(script(node, PERCEPTRON), *options)
        return node

    def step(self, node, number, lr=0.01):
        answer = node.ask("step", number=number, lr=lr, starts=[0, 0])
        self.assertEqual(answer["type"], "stepped", answer)
        return answer

    def test_loop(self):
        node = self.begin("float32", recipe='{"family": "mine"}')
        self.assertEqual((node.hello["name"], node.hello["precision"]), ("train.py", "f32"))
        self.assertEqual(node.begin_run()["layout"], node.run["layout"])
        losses = [self.step(node, number, 0.05)["loss"] for number in range(30)]
        self.assertLess(losses[-1], losses[0] - 0.1)
        self.assertEqual(node.values(), VALUES)  # untouched before flush
        node.ask("flush", pieces=[[2, 15]])
        self.assertEqual(node.values()[:8] + node.values()[68:], VALUES[:8] + VALUES[68:])
        self.assertNotEqual(node.values()[8:68], VALUES[8:68])
        self.assertEqual(node.ask("stop"), {"type": "stopped"})
        code, text = node.stderr()
        self.assertEqual(code, 0, text)
        self.assertIn("end {'family': 'mine'}", text)

    def test_the_learning_rate_is_the_nodes(self):
        node = self.begin("float32")
        node.begin_run()
        self.step(node, 0, lr=0.0)
        node.ask("flush", pieces=node.everything())
        self.assertTrue(torch.equal(floats(node.values()), floats(VALUES)))  # -0 may have become 0

    def test_load_and_flush_are_exact(self):
        """Load and then flush change no bit, whatever the type; a piece of zeros shows that flush does write."""
        for kind, precision in (("float32", "f32"), ("bfloat16", "bf16"), ("float16", "f16"), ("float64", "f32")):
            with self.subTest(kind):
                node = self.begin(kind)
                self.assertEqual(node.hello["precision"], precision)
                node.begin_run()
                self.assertEqual(node.ask("flush", pieces=node.everything()), {"type": "flushed"})
                self.assertEqual(node.values(), VALUES)

    def test_narrow_values_keep_what_rounding_took(self):
        node = self.begin("bfloat16")
        node.begin_run()
        self.step(node, 0, lr=0.1)
        node.ask("flush", pieces=node.everything())
        first, after = floats(VALUES), floats(node.values())
        changes = after - first
        moved = changes != 0
        self.assertGreater(moved.sum(), COUNT // 2)
        # The change is one between bfloat16 numbers, and what the first value had beyond them is still there.
        want = (first.bfloat16().float() + changes).bfloat16().float() - first.bfloat16().float()
        self.assertLess((want - changes)[moved].abs().max(), 1e-6)
        node.ask("flush", pieces=node.everything())
        self.assertTrue(torch.equal(floats(node.values()), after))  # a second flush adds nothing

    def test_evaluate(self):
        node = self.begin("float32")
        self.assertFalse(node.hello["evaluates"])
        text = bytes(random.Random(2).choices(range(97, 123), k=100))
        layout = [("table.weight", (256, 256))]
        node = FakeNode(self, layout, bytes(4 << 16), text, context=6, rows=2)
        node.run["held_out"] = node.run["text"]
        self.assertTrue(node.start(script(node, BATCHES.replace("atoll.join(model)", QUALITY)))["evaluates"])
        node.begin_run()
        for starts in ([0, 7, 93], []):
            answer = node.evaluate(bytes(4 << 16), starts)
            self.assertEqual((answer["type"], answer["tokens"], answer["bytes"]), ("evaluated", 5 * len(starts), 5 * len(starts)))
            if starts:
                self.assertAlmostEqual(answer["loss"], math.log(256), places=5)
        self.assertEqual(node.ask("step", number=0, lr=0.5, starts=[0, 1])["type"], "stepped")

    def test_state(self):
        node = self.begin("float32")
        node.begin_run()
        for number in range(3):
            self.step(node, number)
        node.ask("flush", pieces=node.everything())
        middle = node.values()
        self.assertEqual(node.ask("save", path=node.path("state")), {"type": "saved"})
        self.step(node, 3)
        node.ask("flush", pieces=node.everything())
        resumed = self.begin("float32", first=middle, resume=node.path("state"), steps=3)
        resumed.begin_run()
        self.step(resumed, 3)
        resumed.ask("flush", pieces=node.everything())
        self.assertEqual(resumed.values(), node.values())

    def test_broken_state(self):
        node = self.begin("float32", resume=__file__)
        answer = node.ask(node.run)
        self.assertIn("cannot resume from " + __file__, answer["error"])

    def test_diverged(self):
        node = self.begin("float32", "diverge")
        node.begin_run()
        answer = node.ask("step", number=0, lr=0.5, starts=[])
        self.assertEqual((answer["type"], answer["kind"]), ("error", "diverged"))
        self.assertIn("0.5", answer["remedy"])

    def test_other_tensors(self):
        def but(at, *pairs):
            return LAYOUT[:at] + list(pairs) + LAYOUT[at + 1 :]

        for layout, words in (
            (but(1, ("0.weight", (3, 5))), "tensor 0.weight [3, 5], the model 0.weight [5, 3]"),
            (but(1, ("0.kernel", (5, 3))), "tensor 0.kernel [5, 3], which the model does not have"),
            (but(0), "the model trains 2.bias [2], which the run does not have"),
            (LAYOUT + [("seen", (1,))], "tensor seen [1], which is a buffer"),
        ):
            with self.subTest(words):
                node = self.begin("float32", layout=layout, first=None)
                answer = node.ask(node.run)
                self.assertEqual(answer["type"], "error")
                self.assertIn(words, answer["error"])
                node.connection.close()
                self.assertEqual(node.stderr()[0], 1)

    def test_a_node_that_leaves_ends_the_script(self):
        node = self.begin("float32")
        node.begin_run()
        node.connection.close()
        code, text = node.stderr()
        self.assertEqual(code, 1)
        self.assertIn("the node has closed the connection", text)

    def test_a_node_that_closes_at_once_is_told_of(self):
        node = self.begin("float32")
        node.connection.close()
        code, text = node.stderr()
        self.assertEqual(code, 1)
        self.assertIn("closed the connection before it told of its run", text)

    def test_batches(self):
        text = bytes(random.Random(1).choices(range(97, 123), k=100))
        layout = [("table.weight", (256, 256))]
        node = FakeNode(self, layout, bytes(4 << 16), text, context=6)
        node.start(script(node, BATCHES))
        node.begin_run()
        for number, starts in enumerate(([0, 93], [7, 8])):
            answer = node.ask("step", number=number, lr=0.5, starts=starts)
            self.assertEqual(answer["tokens"], 10)
        self.assertEqual(node.ask("stop"), {"type": "stopped"})
        code, said = node.stderr()
        self.assertEqual(code, 0, said)
        for starts in ([0, 93], [7, 8]):
            self.assertIn("batch " + b"".join(text[s : s + 6] for s in starts).decode(), said)

    def test_without_a_node(self):
        with mock.patch.dict(os.environ):
            os.environ.pop("ATOLL_LEARNER", None)
            with self.assertRaisesRegex(atoll.LearnerError, "--learner CMD"):
                atoll.join(torch.nn.Linear(2, 2))

    def test_import_needs_nothing(self):
        import subprocess
        import sys

        from fakenode import PACKAGE

        code = "import sys, atoll; sys.exit('torch' in sys.modules)"
        self.assertEqual(subprocess.run([sys.executable, "-c", code], env={**os.environ, "PYTHONPATH": str(PACKAGE)}).returncode, 0)


@unittest.skipUnless(torch, "PyTorch is missing")
class Values(unittest.TestCase):
    def test_tied_weights_count_once(self):
        model = torch.nn.ModuleDict({"a": torch.nn.Linear(3, 3, bias=False), "b": torch.nn.Linear(3, 3, bias=False)})
        model["b"].weight = model["a"].weight
        for name in ("a.weight", "b.weight"):
            self.assertEqual(values.match(model, [(name, (3, 3))]), [model["a"].weight])
        with self.assertRaisesRegex(atoll.LearnerError, "both a.weight and b.weight, which the model ties"):
            values.match(model, [("a.weight", (3, 3)), ("b.weight", (3, 3))])

    def test_frozen(self):
        model = torch.nn.Linear(3, 2)
        model.bias.requires_grad_(False)
        self.assertEqual(len(values.match(model, [("weight", (2, 3))])), 1)
        with self.assertRaisesRegex(atoll.LearnerError, "bias .2., which the model does not train"):
            values.match(model, [("weight", (2, 3)), ("bias", (2,))])

    def test_parts(self):
        places = pieces.begins([("a", (2, 3)), ("empty", (0,)), ("b", ()), ("c", (4,))])
        self.assertEqual(places, [0, 6, 6, 7, 11])
        cut = list(pieces.parts(places, [(4, 9), (6, 7), (3, 3), (0, 11)]))
        self.assertEqual(cut[:3], [(0, 4, 6, 4), (2, 0, 1, 6), (3, 0, 2, 7)])
        self.assertEqual(cut[3:], [(2, 0, 1, 6), (0, 0, 6, 0), (2, 0, 1, 6), (3, 0, 4, 7)])

    def test_parameters_that_are_not_contiguous(self):
        p = torch.nn.Parameter(torch.arange(6.0).view(2, 3).t())
        values.write(p, 1, 3, torch.tensor([-1.0, -2.0]))
        self.assertEqual(values.read(p, 0, 6).tolist(), [0, -1, -2, 4, 2, 5])


if __name__ == "__main__":
    unittest.main()
