import importlib.util
import os
import pathlib
import subprocess
import sys
import tempfile
import types
import unittest
from unittest import mock

from fakenode import PACKAGE, FakeNode

from atoll import tracking
from atoll.serve import LearnerError

LAYOUT = [("wide", (3, 5)), ("long", (7,))]
RUN = types.SimpleNamespace(recipe="{}", author="ab" * 32, layout="cd" * 32, seed=1, rows=2, context=8)


class Recorder:
    """Stands for the module wandb: it keeps what it is told."""

    def __init__(self):
        self.told, self.init_with, self.finished, self.broken = [], None, False, False

    def Settings(self, **settings):
        return settings

    def init(self, **how):
        self.init_with = how
        return self

    def log(self, values, step):
        if self.broken:
            raise OSError("no space left on device")
        self.told.append((step, values))

    def finish(self):
        self.finished = True


class Tracking(unittest.TestCase):
    def setUp(self):
        self.wandb = Recorder()
        patch = mock.patch.dict(sys.modules, {"wandb": self.wandb})
        patch.start()
        self.addCleanup(patch.stop)

    def test_steps_reach_wandb(self):
        track = tracking.Tracking(wandb="mine")
        track.began(RUN)
        track.stepped(7, 0.5, 100, 2.25)
        track.stepped(8, 0.25, 50, 2.0)
        track.evaluated(8, 10, 1.5)
        track.close()
        how = self.wandb.init_with
        self.assertEqual((how["project"], how["id"], how["resume"]), ("mine", "abababababababab-cdcdcdcd", "allow"))
        steps = [(n, v["loss"], v["lr"], v["tokens"]) for n, v in self.wandb.told if "loss" in v]
        self.assertEqual(steps, [(7, 2.25, 0.5, 100), (8, 2.0, 0.25, 150)])
        self.assertEqual(self.wandb.told[-1], (8, {"held_out_loss": 1.5}))
        self.assertGreater(self.wandb.told[0][1]["tokens_per_second"], 0)
        self.assertTrue(self.wandb.finished)

    def test_a_tracker_that_fails_costs_no_step(self):
        track = tracking.Tracking(wandb="mine")
        track.began(RUN)
        self.wandb.broken = True
        with mock.patch("atoll.tracking.log") as said:
            track.stepped(0, 0.5, 1, 1.0)
            track.stepped(1, 0.5, 1, 1.0)
        track.close()
        said.assert_called_once_with("wandb is left out from here on: OSError: no space left on device")

    def test_missing_packages_are_named(self):
        for module, options, text in (
            ("wandb", {"wandb": "mine"}, "Weights & Biases is missing from this Python"),
            ("tensorboardX", {"tensorboard": "logs"}, "TensorBoard is missing from this Python"),
        ):
            with mock.patch.dict(sys.modules, {module: None, "torch.utils.tensorboard": None}):
                with self.assertRaises(LearnerError) as caught:
                    tracking.Tracking(**options)
            self.assertEqual(caught.exception.error, text)
            self.assertIn("python3 -m pip install", caught.exception.remedy)

    def test_nothing_is_loaded_where_nothing_is_tracked(self):
        with mock.patch("importlib.import_module", side_effect=AssertionError):
            track = tracking.Tracking()
            track.began(RUN)
            track.stepped(0, 0.5, 1, 1.0)
            track.close()


def steps_of(node, count):
    node.begin_run()
    for number in range(count):
        node.test.assertEqual(node.ask("step", number=number, lr=0.1, starts=[0, 0])["type"], "stepped")
    node.test.assertEqual(node.ask("stop"), {"type": "stopped"})
    code, text = node.stderr()
    node.test.assertEqual(code, 0, text)
    node.test.assertNotIn("left out", text)


class Programs(unittest.TestCase):
    """What is on disk after a program has trained with the real packages."""

    def node(self):
        node = FakeNode(self, LAYOUT, bytes(4 * 22))
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        return node, pathlib.Path(folder.name)

    @unittest.skipUnless(importlib.util.find_spec("wandb"), "wandb is missing")
    def test_wandb_offline(self):
        node, folder = self.node()
        with mock.patch.dict(os.environ, {"WANDB_MODE": "offline", "WANDB_DIR": str(folder)}):
            node.start("atoll.idle", "--wandb", "mine")
            steps_of(node, 5)
        found = list(folder.glob("wandb/offline-run-*/run-*.wandb"))
        self.assertEqual(len(found), 1, list(folder.rglob("*")))
        content = found[0].read_bytes()
        for word in (b"tokens_per_second", b"loss", b"mine"):
            self.assertIn(word, content)

    @unittest.skipUnless(importlib.util.find_spec("tensorboard") and importlib.util.find_spec("torch"), "TensorBoard is missing")
    def test_tensorboard(self):
        node, folder = self.node()
        node.start("atoll.idle", "--tensorboard", folder)
        steps_of(node, 5)
        from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

        events = EventAccumulator(str(folder))
        events.Reload()
        self.assertEqual([e.step for e in events.Scalars("loss")], list(range(5)))
        self.assertAlmostEqual(events.Scalars("lr")[0].value, 0.1, 5)

    def test_the_program_says_what_is_missing(self):
        hidden = "import sys; sys.modules['wandb'] = None; from atoll import idle; sys.exit(idle.main(['--wandb', 'mine']))"
        ended = subprocess.run(
            [sys.executable, "-c", hidden], env=dict(os.environ, PYTHONPATH=str(PACKAGE)), stderr=subprocess.PIPE, text=True, check=False
        )
        self.assertEqual(ended.returncode, 2)
        self.assertIn("Weights & Biases is missing from this Python: install it with", ended.stderr)


if __name__ == "__main__":
    unittest.main()
