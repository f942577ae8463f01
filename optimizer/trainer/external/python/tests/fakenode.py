"""A node for tests: it makes a slab, starts a learner as a process and speaks with it."""

import json
import math
import os
import pathlib
import socket
import struct
import subprocess
import sys
import tempfile

from atoll import frames
from atoll.attach import FILE
from atoll.slab import layout_digest

PACKAGE = pathlib.Path(__file__).resolve().parent.parent
TOKEN = "secret"
WAIT = 180  # seconds, as long as a node waits: a framework may take many to start

# A slab for learners that do not look at its tensors.
TENSORS = [("wide", (3, 5)), ("long", (7,))]


def describe(tensors):
    """Returns tensors as `run` has them, and the number of their values."""
    listed, end = [], 0
    for name, shape in tensors:
        listed.append({"name": name, "shape": list(shape), "offset": end})
        end += math.prod(shape)
    return listed, end


def write_slab(path, tensors, values):
    """Writes a file in the format of safetensors. Returns where its values begin."""
    header, begin = {}, 0
    for tensor in tensors:
        length = math.prod(tensor["shape"])
        header[tensor["name"]] = {"dtype": "F32", "shape": tensor["shape"], "data_offsets": [4 * begin, 4 * (begin + length)]}
        begin += length
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text + values)
    return 8 + len(text)


class FakeNode:
    def __init__(self, test, tensors=TENSORS, values=None, text=b"", **fields):
        self.folder = tempfile.TemporaryDirectory()
        test.addCleanup(self.folder.cleanup)
        self.tensors, self.count = describe(tensors)
        values = values if values is not None else struct.pack(f"<{self.count}f", *range(self.count))
        self.slab = self.path("slab.safetensors")
        begin = write_slab(self.slab, self.tensors, values)
        pathlib.Path(self.path("text")).write_bytes(text)
        self.run = {
            "type": "run", "slab": self.slab, "begin": begin, "values": self.count, "tensors": self.tensors,
            "layout": layout_digest(tensors), "recipe": "{}", "seed": 1, "author": "00" * 32, "rows": 2, "context": 4,
            "text": self.path("text"), "held_out": "", "resume": "", "steps": 0, **fields,
        }  # fmt: skip
        self.begin, self.test = begin, test

    def path(self, name):
        return os.path.join(self.folder.name, name)

    def values(self):
        """The bytes of the slab's values."""
        return pathlib.Path(self.slab).read_bytes()[self.begin :]

    def overwrite(self, values):
        with open(self.slab, "r+b") as file:
            file.seek(self.begin)
            file.write(values)

    def start(self, module, *options):
        """Starts a learner, a module or a file, and returns its hello."""
        with socket.create_server(("127.0.0.1", 0)) as listener:
            listener.settimeout(WAIT)
            self.launch(module, options, listener.getsockname()[1])
            self.connection, _ = listener.accept()
        self.test.addCleanup(self.connection.close)
        self.connection.settimeout(WAIT)
        return frames.read(self.connection)

    def open_door(self):
        """Waits for a script, as a node does. Returns what it listens on."""
        os.makedirs(self.path("learner"), exist_ok=True)
        pathlib.Path(self.path("genesis")).touch()
        listener = socket.create_server(("127.0.0.1", 0))
        self.test.addCleanup(listener.close)
        listener.settimeout(WAIT)
        self.tell(address=f"127.0.0.1:{listener.getsockname()[1]}", token=TOKEN)
        return listener

    def tell(self, **notice):
        pathlib.Path(self.path("notice")).write_text(json.dumps(notice))
        os.replace(self.path("notice"), self.path(FILE))

    def let_in(self, listener):
        """Takes the script that comes, and returns its hello."""
        self.connection, _ = listener.accept()
        self.test.addCleanup(self.connection.close)
        self.connection.settimeout(WAIT)
        listener.close()
        self.tell(attached="a script")
        return frames.read(self.connection)

    def launch(self, module, options, port=0):
        environment = dict(os.environ, PYTHONPATH=str(PACKAGE))
        if port:
            environment |= {"ATOLL_LEARNER": f"127.0.0.1:{port}", "ATOLL_TOKEN": TOKEN}
        program = [module] if module.endswith(".py") else ["-m", module]
        command = [sys.executable, *program, *map(str, options)]
        self.process = subprocess.Popen(command, env=environment, stderr=subprocess.PIPE, text=True)
        self.test.addCleanup(end, self.process)

    def ask(self, message, **fields):
        frames.write(self.connection, {"type": message, **fields} if isinstance(message, str) else message)
        return frames.read(self.connection)

    def everything(self):
        return [[0, self.count]]

    def begin_run(self):
        """Sends run and loads everything. Returns ready."""
        ready = self.ask(self.run)
        self.test.assertEqual(ready["type"], "ready", ready)
        self.test.assertEqual(self.ask("load", pieces=self.everything()), {"type": "loaded"})
        return ready

    def evaluate(self, values, starts):
        """Has values evaluated as a node does, and gives the learner its own back."""
        self.ask("flush", pieces=self.everything())
        own = self.values()
        self.overwrite(values)
        self.ask("load", pieces=self.everything())
        answer = self.ask("evaluate", starts=starts)
        self.overwrite(own)
        self.ask("load", pieces=self.everything())
        return answer

    def stderr(self):
        """Waits for the learner's end and returns its exit code and what it wrote to stderr."""
        _, text = self.process.communicate(timeout=WAIT)
        return self.process.returncode, text


def end(process):
    process.kill()
    process.wait()
    process.stderr.close()
