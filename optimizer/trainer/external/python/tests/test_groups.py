import importlib.util
import random
import struct
import unittest

from test_torch import CONTEXT, STARTS, learner_of, node_of, small

if importlib.util.find_spec("torch"):
    import torch

    from atoll.torch.steps import share

    torch.set_num_threads(1)
    GROUPS = torch.distributed.is_available() and hasattr(torch, "compile")  # since PyTorch 2
else:
    torch, GROUPS = None, False

try:
    from torch.distributed.fsdp import fully_shard  # noqa: F401
except ImportError:
    WAYS = ((),)
else:
    WAYS = ((), ("--fsdp",))

# Sizes that two processes cannot share evenly.
ODD = {"intermediate": 25, "vocab": 257}


@unittest.skipUnless(torch, "PyTorch is missing")
class Shares(unittest.TestCase):
    def test_every_row_counts_once(self):
        draw = random.Random(1)
        for _ in range(300):
            rows, world, most = draw.randint(1, 20), draw.randint(1, 9), draw.randint(0, 5)
            places = list(range(1, rows + 1))
            parts = [share(places, rank, world, most) for rank in range(world)]
            self.assertEqual(len({len(own) for own in parts}), 1, "ranks meet in every part")
            taken = [row for own in parts for part, weight in own for row in part if weight]
            self.assertEqual(sorted(taken), places)
            self.assertTrue(all(part and (most == 0 or len(part) <= most) for own in parts for part, _ in own))
            # What each part's mean loss adds up to, as DistributedDataParallel takes the mean over ranks.
            mean = sum(weight * sum(part) / len(part) for own in parts for part, weight in own) / world
            self.assertAlmostEqual(mean, sum(places) / rows)


@unittest.skipUnless(GROUPS, "PyTorch 2 is missing")
class Groups(unittest.TestCase):
    def group(self, name, *options, **fields):
        node = node_of(self, small(name, **ODD), **fields)
        ranks = ("--standalone", "--nproc-per-node", 2, "-m", "atoll.torch", "--device", "cpu", "--threads", 1)
        node.start("torch.distributed.run", *ranks, *options)
        node.begin_run()
        return node

    def near(self, node, params):
        node.ask("flush", pieces=node.everything())
        own = torch.tensor(struct.unpack(f"<{node.count}f", node.values()))
        self.assertLess((own - params).abs().max(), 2e-5)

    def test_a_group_steps_as_one_process_does(self):
        """With rows and tensors that cannot be shared evenly, and one process that has no row in some steps."""
        batches = [STARTS, STARTS[:3], STARTS[1:2], STARTS]
        for name, *options in [(name, *way) for name in ("muon", "adamw") for way in WAYS]:
            with self.subTest(name=name, options=options):
                lone = learner_of(node_of(self, small(name, **ODD)))
                want = [lone.step(number, 0.01, starts) for number, starts in enumerate(batches)]
                node = self.group(name, *options, "--micro-batch", 1 if name == "muon" else 0)
                first = node.values()
                node.ask("flush", pieces=[[7, 100], [107, node.count - 107]])
                self.assertEqual(node.values(), first)
                for number, starts in enumerate(batches):
                    answer = node.ask("step", number=number, lr=0.01, starts=starts)
                    self.assertEqual((answer["type"], answer["tokens"]), ("stepped", len(starts) * CONTEXT), answer)
                    self.assertAlmostEqual(answer["loss"], want[number][1], places=5)
                self.near(node, lone.params)
                self.goes_on(name, options, node, lone)
                self.assertEqual(node.ask("stop"), {"type": "stopped"})
                self.assertEqual(node.stderr()[0], 0)

    def goes_on(self, name, options, node, lone):
        """The state of a group is one for a process alone, and the other way round."""
        node.ask("save", path=node.path("state"))
        values = node.values()
        after = lone.step(4, 0.01, STARTS)
        alone = node_of(self, small(name, **ODD), resume=node.path("state"), steps=4)
        alone.overwrite(values)
        learner = learner_of(alone)
        self.assertEqual(learner.taken, 4)
        learner.step(4, 0.01, STARTS)
        self.assertLess((learner.params - lone.params).abs().max(), 2e-5)
        if not options:
            return
        learner.save(alone.path("state"))
        learner.flush(alone.everything())
        other = self.group(name, *options, resume=alone.path("state"), steps=5)
        other.overwrite(alone.values())
        other.ask("load", pieces=other.everything())
        answer = other.ask("step", number=5, lr=0.01, starts=STARTS)
        self.assertAlmostEqual(answer["loss"], lone.step(5, 0.01, STARTS)[1], places=5)
        self.assertLess(answer["loss"], after[1])
        self.near(other, lone.params)

    def test_divergence_is_known_to_all(self):
        node = self.group("muon", *WAYS[-1])
        first = node.values()
        node.overwrite(struct.pack("<f", float("nan")) * node.count)
        node.ask("load", pieces=node.everything())
        self.assertEqual(node.ask("step", number=0, lr=0.1, starts=STARTS)["kind"], "diverged")
        node.overwrite(first)
        node.ask("load", pieces=node.everything())
        self.assertEqual(node.ask("step", number=0, lr=0.01, starts=STARTS)["type"], "stepped")


if __name__ == "__main__":
    unittest.main()
