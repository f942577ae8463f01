import os
import pathlib
import struct
import tempfile
import unittest
from unittest import mock

from fakenode import TOKEN, FakeNode
from scripts import ATTACHES

from atoll import LearnerError, attach

try:
    import torch
except ImportError:
    torch = None


class Folders(unittest.TestCase):
    """What a script is told whose node is not there."""

    def fails(self, folder, *words):
        with mock.patch.object(attach, "_SETTLE", 0), self.assertRaises(LearnerError) as caught:
            attach.find(str(folder))
        text = f"{caught.exception.error}: {caught.exception.remedy}"
        for word in words:
            self.assertIn(word, text)

    def folder(self, *files, learner=None):
        place = tempfile.TemporaryDirectory()
        self.addCleanup(place.cleanup)
        for name in files:
            pathlib.Path(place.name, name).touch()
        if learner is not None:
            pathlib.Path(place.name, "learner.cmd").write_text(learner)
        return place.name

    def test_no_node(self):
        self.fails("/no/such/folder", "there is no folder /no/such/folder", "the folder of a node")
        self.fails(self.folder(), "is no node's folder")

    def test_another_learner(self):
        self.fails(self.folder("genesis", learner="torch --device cuda"), "trains with 'torch --device cuda'", "--learner attach")
        self.fails(self.folder("genesis"), "trains by itself", "--learner attach")

    def test_a_node_that_does_not_run(self):
        folder = self.folder("genesis", learner="attach")
        self.fails(folder, "does not run", f"atoll join {folder} --learner attach")

    def test_a_stale_file(self):
        node = FakeNode(self)
        node.open_door().close()
        self.fails(node.folder.name, "nobody listens at 127.0.0.1:", "it has ended", "--learner attach")

    def test_a_damaged_file(self):
        node = FakeNode(self)
        node.open_door()
        for text in ("", "[]"):
            pathlib.Path(node.path(attach.FILE)).write_text(text)
            self.fails(node.folder.name, attach.FILE)

    def test_another_machine(self):
        node = FakeNode(self)
        node.open_door()
        node.tell(address="192.0.2.1:80", token=TOKEN)
        self.fails(node.folder.name, "'192.0.2.1:80'", "not on this machine")

    @unittest.skipUnless(hasattr(os, "getuid"), "files have no owner here")
    def test_another_owner(self):
        node = FakeNode(self)
        node.open_door()
        with mock.patch.object(os, "getuid", return_value=os.getuid() + 1):
            self.fails(node.folder.name, f"is of user {os.geteuid()}, and this script is user {os.geteuid() + 1}'s", "same user")

    def test_a_second_script(self):
        node = FakeNode(self)
        node.open_door()
        node.tell(attached="train.py 0.1")
        self.fails(node.folder.name, "another script is attached", "train.py 0.1", "end that one first")

    def test_a_file_that_is_replaced(self):
        """The file of an earlier wait is read just before the node replaces it."""
        node = FakeNode(self)
        node.open_door().close()
        read, listeners = attach._read, []

        def replaced(folder):
            notice = read(folder)
            if not listeners:
                listeners.append(node.open_door())
            return notice

        with mock.patch.object(attach, "_read", replaced):
            connection, token = attach.find(node.folder.name)
        connection.close()
        self.assertEqual(token, TOKEN)


@unittest.skipUnless(torch, "PyTorch is missing")
class Scripts(unittest.TestCase):
    LAYOUT = [("weight", (2, 3)), ("bias", (2,))]

    def begin(self, layout=LAYOUT):
        node = FakeNode(self, layout)
        node.listener = node.open_door()
        path = node.path("train.py")
        pathlib.Path(path).write_text(ATTACHES)
        node.launch(path, [node.folder.name])
        return node

    def test_a_script_outlives_its_node(self):
        node = self.begin()
        self.assertEqual(node.let_in(node.listener)["token"], TOKEN)
        node.begin_run()
        self.assertEqual(node.ask("step", number=0, lr=0.5, starts=[])["tokens"], 4)
        node.connection.close()
        listener = node.open_door()
        node.let_in(listener)
        node.begin_run()
        node.ask("step", number=1, lr=0.5, starts=[])
        node.ask("flush", pieces=node.everything())
        self.assertEqual(struct.unpack("<8f", node.values()), tuple(k - 0.5 for k in range(8)))  # not the step of before
        self.assertEqual(node.ask("stop"), {"type": "stopped"})
        code, text = node.stderr()
        self.assertEqual((code, text.count("failed:"), text.count("over")), (0, 1, 1), text)
        self.assertIn(f"the node of {node.folder.name} has ended, or has let go of this script", text)

    def test_a_script_leaves(self):
        """It leaves before its fourth step, and what it has stepped is flushed."""
        node = self.begin()
        node.let_in(node.listener)
        node.begin_run()
        for number in range(3):
            node.ask("step", number=number, lr=0.5, starts=[])
        self.assertEqual(node.ask("step", number=3, lr=0.5, starts=[])["kind"], "leaving")
        self.assertEqual(node.ask("flush", pieces=node.everything()), {"type": "flushed"})
        self.assertEqual(struct.unpack("<8f", node.values()), tuple(k - 1.5 for k in range(8)))
        node.tell(attached="another")
        node.connection.close()
        code, text = node.stderr()
        self.assertEqual((code, text.count("over")), (0, 1), text)

    def test_a_script_of_another_model(self):
        node = self.begin([("weight", (3, 2)), ("bias", (2,))])
        node.let_in(node.listener)
        answer = node.ask(node.run)
        self.assertIn("tensor weight [3, 2]", answer["error"])
        node.tell(attached="another")
        code, text = node.stderr()
        self.assertEqual(code, 0, text)
        self.assertIn("failed: the run has tensor weight [3, 2], the model weight [2, 3]: use the model", text)
        self.assertIn("failed: another script is attached", text)

    def test_a_script_that_comes_second(self):
        """It has read the file, and the node takes another at that moment."""
        node = self.begin()
        connection, _ = node.listener.accept()
        node.listener.close()
        node.tell(attached="another")
        connection.close()
        code, text = node.stderr()
        self.assertEqual((code, text.count("another script is attached")), (0, 2), text)


if __name__ == "__main__":
    unittest.main()
