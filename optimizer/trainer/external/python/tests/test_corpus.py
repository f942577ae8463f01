"""Tests of the tokens of a corpus in shards as places in a step count them."""

import array
import hashlib
import json
import os
import tempfile
import unittest

from atoll.corpus import Corpus

try:
    import torch
except ImportError:
    torch = None


def build(folder, width=2):
    """Writes a corpus of three shards and one that is held out, and returns the tokens of each part."""
    os.mkdir(os.path.join(folder, "shards"))
    parts, at = {}, 0
    for part, lengths in (("held_out", [7]), ("shards", [10, 5, 9])):
        parts[part] = []
        for length in lengths:
            parts[part].append(list(range(at, at + length)))
            at += length
    manifest = {"atoll_corpus": 1, "width": width, "tokenizer": {"size": 256}}
    for part, shards in parts.items():
        manifest[part] = []
        for tokens in shards:
            data = array.array("H" if width == 2 else "I", tokens).tobytes()
            digest = hashlib.sha256(data).hexdigest()
            with open(os.path.join(folder, "shards", digest + ".bin"), "wb") as file:
                file.write(data)
            manifest[part].append({"digest": digest, "tokens": len(tokens)})
    with open(os.path.join(folder, "manifest.json"), "w", encoding="utf-8") as file:
        json.dump(manifest, file)
    return {part: sum(shards, []) for part, shards in parts.items()}


class TextTest(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp()

    def test_counts_over_all_shards(self):
        for width in (2, 4):
            folder = tempfile.mkdtemp()
            for part, want in build(folder, width).items():
                text = Corpus(folder).text(part)
                self.assertEqual(len(text), len(want))
                for start in range(len(want) - 1):
                    at = 0
                    for shard in text.shards:
                        if at <= start and start + 2 <= at + shard["tokens"]:
                            self.assertEqual(text[start : start + 2], want[start : start + 2])
                        at += shard["tokens"]

    def test_refuses_a_row_over_an_end(self):
        build(self.folder)
        text = Corpus(self.folder).text("shards")
        with self.assertRaises(ValueError):
            text[9:11]

    def test_names_a_shard_that_is_not_there(self):
        build(self.folder)
        corpus = Corpus(self.folder)
        digest = corpus.manifest["shards"][1]["digest"]
        os.remove(os.path.join(self.folder, "shards", digest + ".bin"))
        text = corpus.text("shards")
        self.assertEqual(text[0:3], [7, 8, 9])
        with self.assertRaisesRegex(OSError, digest):
            text[10:12]

    @unittest.skipUnless(torch, "needs PyTorch")
    def test_rows(self):
        from atoll.serve import LearnerError
        from atoll.text import opened

        want = build(self.folder)["shards"]
        text = opened(self.folder, 3)
        self.assertEqual(text.rows([0, 11, None], 4).tolist(), [want[:4], want[11:15], [0, 0, 0, 0]])
        self.assertEqual(text.batch([0, 11], 1, 3)["input_ids"].tolist(), [want[:3]])
        for start in (-1, 21, "0"):
            with self.assertRaisesRegex(LearnerError, "the corpus allows 0 to 20"):
                text.rows([start], 4)
        self.assertEqual(opened(self.folder, 3, "held_out").rows([0], 4).tolist(), [[0, 1, 2, 3]])


if __name__ == "__main__":
    unittest.main()
