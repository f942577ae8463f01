import math
import os
import pathlib
import signal
import socket
import struct
import subprocess
import sys
import threading
import time
import unittest

from fakenode import PACKAGE, TOKEN, FakeNode

from atoll import frames
from atoll.serve import Learner, LearnerError, connect, serve, write_whole

IDLE = "atoll.idle"


class IdleLearner(unittest.TestCase):
    """The loop and the learner that computes nothing, as a process."""

    def test_a_whole_run(self):
        node = FakeNode(self)
        hello = node.start(IDLE)
        self.assertEqual((hello["type"], hello["protocol"], hello["token"], hello["precision"]), ("hello", 1, TOKEN, "f32"))
        ready = node.begin_run()
        self.assertEqual(ready["layout"], node.run["layout"])
        before = node.values()
        self.assertEqual(node.ask("flush", pieces=node.everything()), {"type": "flushed"})
        self.assertEqual(node.values(), before)
        answer = node.ask("step", number=0, lr=1.0, starts=[0, 1, 2])
        self.assertEqual(answer, {"type": "stepped", "tokens": 12, "loss": math.log(256)})
        self.assertEqual(node.values(), before, "a step touched the slab")
        node.ask("flush", pieces=node.everything())
        self.assertNotEqual(node.values(), before)
        self.assertEqual(node.ask("save", path=node.path("state")), {"type": "saved"})
        self.assertEqual(node.ask("stop"), {"type": "stopped"})
        self.assertEqual(node.stderr()[0], 0)

    def test_evaluate(self):
        node = FakeNode(self)
        self.assertTrue(node.start(IDLE)["evaluates"])
        node.begin_run()
        node.ask("step", number=0, lr=1.0, starts=[0])
        answer = node.evaluate(struct.pack("<f", 3) * node.count, [0, 1])
        self.assertEqual(answer, {"type": "evaluated", "tokens": 8, "loss": 9.0, "bytes": 0})
        bad = node.evaluate(struct.pack("<f", math.nan) * node.count, [0])
        self.assertEqual((bad["type"], bad["kind"]), ("error", "diverged"))
        self.assertEqual(node.ask("step", number=1, lr=1.0, starts=[0])["type"], "stepped")

    def test_pieces(self):
        node = FakeNode(self)
        node.start(IDLE)
        node.begin_run()
        # Patterns that no arithmetic keeps: a signalling NaN, a denormal number, -0.
        odd = struct.pack("<3I", 0x7F800001, 0x00000001, 0x80000000)
        values = odd + b"\0" * (4 * node.count - len(odd))
        node.overwrite(values)
        node.ask("load", pieces=[[0, 3]])
        node.overwrite(b"\xff" * len(values))
        node.ask("flush", pieces=[[1, 2]])
        self.assertEqual(node.values(), b"\xff" * 4 + odd[4:] + b"\xff" * (len(values) - len(odd)))

    def test_errors_keep_the_slab_and_the_learner(self):
        node = FakeNode(self)
        node.start(IDLE)
        early = node.ask("step", number=0, lr=1, starts=[])
        self.assertIn("before a run", early["error"])
        node.begin_run()
        before = node.values()
        node.ask("step", number=0, lr=1, starts=[])
        for request, error in (
            ({"type": "flush", "pieces": [[0, 2], [0, node.count + 1]]}, "outside the slab"),
            ({"type": "dance"}, "'dance' is not known"),
            ({"type": "save", "path": node.path("no/such/folder")}, "cannot save"),
            (node.run, "a second run"),
        ):
            answer = node.ask(request)
            self.assertEqual((answer["type"], answer["kind"]), ("error", ""))
            self.assertRegex(answer["error"], error)
            self.assertTrue(answer["remedy"])
        self.assertEqual(node.values(), before)
        self.assertEqual(node.ask("flush", pieces=[])["type"], "flushed")

    def test_failed_load_ends_it(self):
        node = FakeNode(self)
        node.start(IDLE)
        node.begin_run()
        self.assertIn("outside the slab", node.ask("load", pieces=[[0, node.count + 1]])["error"])
        self.assertIsNone(frames.read(node.connection))
        code, text = node.stderr()
        self.assertEqual(code, 1)
        self.assertIn("cannot go on after this load", text)

    def test_bad_runs(self):
        for fields, error in (
            ({"layout": "0" * 64}, "layout is 0000"),
            ({"values": 23}, "22 values together, the slab has 23"),
            ({"rows": "2"}, "rows = '2'"),
            ({"begin": 1 << 40}, "end at"),
            ({"slab": "nowhere"}, "nowhere"),
        ):
            with self.subTest(error):
                node = FakeNode(self)
                node.run.update(fields)
                node.start(IDLE)
                answer = node.ask(node.run)
                self.assertEqual(answer["type"], "error")
                self.assertIn(error, answer["error"])
                self.assertEqual("--learner attach" in answer["remedy"], "slab" in fields)

    def test_resume(self):
        node = FakeNode(self)
        node.start(IDLE)
        node.begin_run()
        for number in range(3):
            node.ask("step", number=number, lr=1, starts=[])
        node.ask("save", path=node.path("state"))
        self.assertFalse(os.path.exists(node.path("state.part")))
        node.ask("stop")
        node.run.update(resume=node.path("state"), steps=3)
        node.start(IDLE)
        node.begin_run()
        node.ask("stop")
        self.assertIn("stopped after 3 steps", node.stderr()[1])
        pathlib.Path(node.path("state")).write_text("{")
        node.start(IDLE)
        self.assertEqual(node.ask(node.run)["remedy"], "start without it")

    def test_refused(self):
        node = FakeNode(self)
        node.start(IDLE)
        frames.write(node.connection, {"type": "refused", "error": "wrong token"})
        code, text = node.stderr()
        self.assertEqual(code, 1)
        self.assertIn("wrong token", text)

    def test_node_speaks_no_frames(self):
        node = FakeNode(self)
        node.start(IDLE)
        node.connection.sendall(b"GET / HTTP/1.1\r\n\r\n")
        code, text = node.stderr()
        self.assertEqual(code, 1)
        self.assertIn("speaks no frames", text)

    def test_ctrl_c_is_the_nodes_business(self):
        node = FakeNode(self)
        node.start(IDLE)
        node.begin_run()
        node.process.send_signal(signal.SIGINT)
        self.assertEqual(node.ask("stop"), {"type": "stopped"})
        self.assertEqual(node.stderr()[0], 0)

    def test_end_of_the_connection(self):
        node = FakeNode(self)
        node.start(IDLE)
        node.begin_run()
        node.connection.close()
        self.assertEqual(node.stderr()[0], 1)

    def test_end_of_the_connection_inside_a_step(self):
        node = FakeNode(self)
        node.start(IDLE, "--hang-at-step", 0)
        node.begin_run()
        frames.write(node.connection, {"type": "step", "number": 0, "lr": 1, "starts": []})
        node.connection.close()
        begin = time.monotonic()
        self.assertEqual(node.stderr()[0], 1)
        self.assertLess(time.monotonic() - begin, 2)


class Misbehaviour(unittest.TestCase):
    def begin(self, *options):
        node = FakeNode(self)
        node.start(IDLE, *options)
        node.begin_run()
        self.assertEqual(node.ask("step", number=0, lr=1, starts=[])["type"], "stepped")
        return node

    def test_die(self):
        node = self.begin("--die-at-step", 1)
        self.assertIsNone(node.ask("step", number=1, lr=1, starts=[]))
        self.assertEqual(node.stderr()[0], 3)

    def test_hang(self):
        node = self.begin("--hang-at-step", 1)
        node.connection.settimeout(0.3)
        with self.assertRaises(socket.timeout):
            node.ask("step", number=1, lr=1, starts=[])
        self.assertIsNone(node.process.poll())

    def test_garbage(self):
        node = self.begin("--garbage-at-step", 1)
        with self.assertRaises(frames.FrameError):
            node.ask("step", number=1, lr=1, starts=[])

    def test_nan(self):
        node = self.begin("--nan-at-step", 1)
        answer = node.ask("step", number=1, lr=0.5, starts=[])
        self.assertEqual((answer["type"], answer["kind"]), ("error", "diverged"))
        self.assertIn("learning rate of 0.5", answer["remedy"])
        self.assertEqual(node.ask("step", number=2, lr=1, starts=[])["type"], "stepped")

    def test_once(self):
        node = FakeNode(self)
        mark = node.path("mark")
        for kind in ("error", "stepped"):
            node.start(IDLE, "--nan-at-step", 1, "--once", mark)
            node.begin_run()
            self.assertEqual(node.ask("step", number=1, lr=1, starts=[])["type"], kind)

    def test_layout(self):
        node = FakeNode(self)
        node.start(IDLE, "--layout", "wrong")
        ready = node.ask(node.run)
        self.assertEqual(ready["type"], "ready")
        self.assertNotEqual(ready["layout"], node.run["layout"])

    def test_slow(self):
        node = FakeNode(self)
        node.start(IDLE, "--step-seconds", 0.3)
        node.begin_run()
        begin = time.monotonic()
        node.ask("step", number=0, lr=1, starts=[])
        self.assertGreaterEqual(time.monotonic() - begin, 0.3)


class Parents(unittest.TestCase):
    def test_death_of_the_parent(self):
        """The connection stays up: its other end is here, not in the parent."""
        with socket.create_server(("127.0.0.1", 0)) as listener:
            listener.settimeout(20)
            start = f"import subprocess, sys; subprocess.Popen([sys.executable, '-m', '{IDLE}']).wait()"
            environment = dict(os.environ, ATOLL_LEARNER=f"127.0.0.1:{listener.getsockname()[1]}", PYTHONPATH=str(PACKAGE))
            parent = subprocess.Popen([sys.executable, "-c", start], env=environment, stderr=subprocess.DEVNULL)
            connection, _ = listener.accept()
        self.addCleanup(connection.close)
        self.assertEqual(frames.read(connection)["type"], "hello")
        parent.kill()
        parent.wait()
        connection.settimeout(2)
        self.assertIsNone(frames.read(connection))


class Plain(Learner):
    """Fails as its test wants."""

    failure = None

    def hello(self):
        return {"name": "plain", "version": "1", "devices": [], "precision": "f32"}

    def start(self, run):
        return {"layout": run.layout, "tokens_per_second": 0, "memory_bytes": 0}

    def step(self, number, lr, starts):
        if isinstance(self.failure, BaseException):
            raise self.failure
        return 1, self.failure


class Readme(unittest.TestCase):
    def test_example(self):
        node = FakeNode(self)
        text = (PACKAGE / "README.md").read_text(encoding="utf-8")
        pathlib.Path(node.path("mine.py")).write_text(text.split("```python\n")[1].split("```")[0])
        node.start(node.path("mine.py"))
        node.begin_run()
        before = node.values()
        node.ask("flush", pieces=node.everything())
        self.assertEqual(node.values(), before)
        losses = [node.ask("step", number=i, lr=0.5, starts=[0, 1])["loss"] for i in range(2)]
        self.assertLess(losses[1], losses[0])
        node.ask("flush", pieces=[[0, 1]])
        self.assertEqual(node.values()[4:], before[4:])
        self.assertEqual(node.ask("save", path=node.path("state")), {"type": "saved"})
        self.assertEqual(node.ask("stop"), {"type": "stopped"})
        self.assertEqual(node.stderr()[0], 0)


class OutOfMemoryError(RuntimeError):
    """As frameworks have it."""


class Loop(unittest.TestCase):
    """The loop in a thread of this process."""

    def stepped(self, failure):
        node = FakeNode(self)
        near, far = socket.socketpair()
        self.addCleanup(near.close)
        learner = Plain()
        learner.failure = failure
        codes = []
        stderr, sys.stderr = sys.stderr, open(os.devnull, "w")
        thread = threading.Thread(target=lambda: codes.append(serve(learner, far, watch=False)))
        thread.start()
        node.connection = near
        frames.read(near)
        node.ask(node.run)
        answer = node.ask("step", number=0, lr=1, starts=[])
        near.close()
        thread.join()
        sys.stderr.close()
        sys.stderr = stderr
        self.assertEqual(codes, [1])
        return answer

    def test_exceptions_become_errors(self):
        for failure, error, remedy, kind in (
            (LearnerError("e", "r", "k"), "e", "r", "k"),
            (MemoryError(), "MemoryError", "smaller --batch", ""),
            (OutOfMemoryError("no"), "OutOfMemoryError: no", "smaller --batch", ""),
            (RuntimeError("CUDA out of memory. Tried"), "CUDA out of memory", "smaller --batch", ""),
            (ZeroDivisionError("x" * 5000), "ZeroDivisionError: xxx", "log", ""),
            (math.nan, "loss nan", "learning rate", "diverged"),
            (math.inf, "loss inf", "learning rate", "diverged"),
        ):
            with self.subTest(error):
                answer = self.stepped(failure)
                self.assertEqual((answer["type"], answer["kind"]), ("error", kind))
                self.assertIn(error, answer["error"])
                self.assertLess(len(answer["error"]), 4100)
                self.assertIn(remedy, answer["remedy"])

    def test_no_node(self):
        for address in ("", "localhost", "127.0.0.1:x"):
            with self.subTest(address), self.assertRaisesRegex(LearnerError, f"ATOLL_LEARNER is '{address}'"):
                connect({"ATOLL_LEARNER": address})
        with socket.create_server(("127.0.0.1", 0)) as listener:
            port = listener.getsockname()[1]
        with self.assertRaisesRegex(LearnerError, f"cannot reach the node at ATOLL_LEARNER=127.0.0.1:{port}"):
            connect({"ATOLL_LEARNER": f"127.0.0.1:{port}"})

    def test_write_whole(self):
        node = FakeNode(self)
        path = node.path("state")
        write_whole(path, lambda file: file.write(b"old"))
        with self.assertRaises(OSError):
            write_whole(path, self.fail_to_write)
        self.assertEqual(pathlib.Path(path).read_bytes(), b"old")
        self.assertFalse(os.path.exists(path + ".part"))

    @staticmethod
    def fail_to_write(file):
        file.write(b"ne")
        raise OSError("no space left")


if __name__ == "__main__":
    unittest.main()
