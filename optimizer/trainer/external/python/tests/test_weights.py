import json
import pathlib
import struct
import tempfile
import unittest

from fakenode import describe, write_slab

from atoll.serve import LearnerError
from atoll.weights import digest

# What node and learner say of the tensors a = 1 2 3 4 and b = 5 6: tensor/safetensors/digest_test.go has it too.
KNOWN = "e2771ff3d26e559d5940cd034586414d2fac18f389d3a59f556670b285cdb204"


class Weights(unittest.TestCase):
    def folder(self, **files):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        for name, (tensors, *values) in files.items():
            write_slab(f"{folder.name}/{name}.safetensors", describe(tensors)[0], struct.pack(f"<{len(values)}f", *values))
        return folder.name

    def test_digest(self):
        a, b = ("a", (2, 2)), ("b", (2,))
        self.assertEqual(digest(self.folder(model=([a, b], 1, 2, 3, 4, 5, 6))), KNOWN)
        self.assertEqual(digest(self.folder(model=([b, a], 5, 6, 1, 2, 3, 4))), KNOWN)
        self.assertNotEqual(digest(self.folder(model=([a, b], 1, 2, 3, 4, 5, 7))), KNOWN)
        shards = self.folder(first=([b], 5, 6), second=([a], 1, 2, 3, 4), other=([a], 9, 9, 9, 9))
        index = {"weight_map": {"a": "second.safetensors", "b": "first.safetensors"}}
        pathlib.Path(shards, "model.safetensors.index.json").write_text(json.dumps(index))
        self.assertEqual(digest(shards), KNOWN)

    def test_no_weights(self):
        for folder in (self.folder(), "/no/such/folder"):
            with self.assertRaisesRegex(LearnerError, "cannot read the weights of " + folder):
                digest(folder)
        folder = self.folder()
        pathlib.Path(folder, "model.safetensors").write_bytes(b"\xff" * 16)
        with self.assertRaisesRegex(LearnerError, "no file of tensors"):
            digest(folder)


if __name__ == "__main__":
    unittest.main()
