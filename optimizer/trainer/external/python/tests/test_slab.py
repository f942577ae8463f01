import hashlib
import os
import pathlib
import struct
import tempfile
import unittest

from atoll.slab import Slab, SlabError, layout_digest, layout_of


class Slabs(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.path = os.path.join(folder.name, "slab")
        pathlib.Path(self.path).write_bytes(b"headhead" + struct.pack("<4f", 1, 2, 3, 4))

    def test_values_are_shared(self):
        one, other = Slab(self.path, 8, 4), Slab(self.path, 8, 4)
        self.assertEqual(list(one.values), [1, 2, 3, 4])
        one.values[2] = 5
        self.assertEqual(list(other.values), [1, 2, 5, 4])
        self.assertEqual(pathlib.Path(self.path).read_bytes(), b"headhead" + struct.pack("<4f", 1, 2, 5, 4))

    def test_sizes(self):
        for begin, count, error in ((8, 5, "has 24 bytes, but 5 values from byte 8 end at 28"), (6, 4, "multiple of 4"), (8, 0, "1 or more")):
            with self.subTest(error), self.assertRaisesRegex(SlabError, error):
                Slab(self.path, begin, count)

    def test_pieces(self):
        slab = Slab(self.path, 8, 4)
        self.assertEqual(slab.pieces([[0, 4], [1, 2], [4, 0]]), [(0, 4), (1, 3), (4, 4)])
        for piece in ([0, 5], [-1, 1], [3, -1], [5, 0]):
            with self.subTest(piece), self.assertRaisesRegex(SlabError, "outside the slab of 4 values"):
                slab.pieces([[0, 1], piece])
        for piece in ([0], [0, 1, 2], "01", [0, 1.0], [True, 1], None):
            with self.subTest(piece), self.assertRaisesRegex(SlabError, "whole numbers"):
                slab.pieces([piece])


class Layouts(unittest.TestCase):
    def test_digest(self):
        text = b"model.embed_tokens.weight 256 128\nmodel.norm.weight 128\nscalar\n"
        layout = [("model.embed_tokens.weight", (256, 128)), ("model.norm.weight", (128,)), ("scalar", ())]
        self.assertEqual(layout_digest(layout), hashlib.sha256(text).hexdigest())

    def test_tensors(self):
        tensors = [{"name": "a", "shape": [2, 3], "offset": 0}, {"name": "b", "shape": [4], "offset": 6}]
        self.assertEqual(layout_of(tensors, 10), [("a", (2, 3)), ("b", (4,))])
        with self.assertRaisesRegex(SlabError, "10 values together, the slab has 11"):
            layout_of(tensors, 11)
        tensors[1]["offset"] = 7
        with self.assertRaisesRegex(SlabError, "tensor b begins at value 7, the one before it ends at 6"):
            layout_of(tensors, 11)


if __name__ == "__main__":
    unittest.main()
