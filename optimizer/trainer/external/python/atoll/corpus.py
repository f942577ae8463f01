"""A corpus in shards, as `atoll data build` makes it, and the batches that a run draws from it.

The rules are those of the node, in optimizer/trainer/corpus/shards/window.go: hashes of SHA-256 and whole numbers. So the same
seed, author and step give the same tokens in every language. Needs the standard library alone.
"""

import array
import bisect
import hashlib
import itertools
import json
import mmap
import os
import struct
import sys


class Corpus:
    """The corpus in a folder. Its shards are mapped when they are read first, so that many learners share their memory.

    It does not compare shards with their digests: `atoll data show` does, and so does a node before it trains.
    """

    def __init__(self, folder):
        self.folder = folder
        with open(os.path.join(folder, "manifest.json"), encoding="utf-8") as file:
            self.manifest = json.load(file)
        if self.manifest.get("atoll_corpus") != 1:
            raise ValueError(f"{folder} has no corpus of format 1: build it with this version of atoll")
        self.width = self.manifest["width"]
        self._maps = {}

    def tokens(self, shard, start, count):
        """Returns tokens of a shard: an entry of the manifest's "shards" or "held_out"."""
        if not 0 <= start <= shard["tokens"] - count:
            raise ValueError(f"{count} tokens from {start} on, of {shard['tokens']} in shard {shard['digest']}")
        part = array.array("H" if self.width == 2 else "I")
        part.frombytes(self._map(shard)[start * self.width : (start + count) * self.width])
        if sys.byteorder == "big":
            part.byteswap()
        return part.tolist()

    def _map(self, shard):
        digest = shard["digest"]
        if digest not in self._maps:
            with open(os.path.join(self.folder, "shards", digest + ".bin"), "rb") as file:
                mapped = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
            if len(mapped) != shard["tokens"] * self.width:
                raise ValueError(f"shard {digest} has {len(mapped)} bytes, the manifest wants {shard['tokens'] * self.width}")
            self._maps[digest] = mapped
        return self._maps[digest]

    def text(self, part):
        """Returns the tokens of all "shards" or "held_out" one after the other, as the node counts places in a step."""
        return Text(self, self.manifest[part])

    def batch(self, draw, step, rows):
        """Returns rows of a step, lists of context + 1 tokens. More rows begin with the rows of fewer."""
        windows = draw.windows(step)
        return [self.tokens(*draw.row(windows, step, row), draw.context + 1) for row in range(rows)]


class Text:
    """The tokens of shards, one after the other. A slice of it has to lie in one shard, which has to be there."""

    def __init__(self, corpus, shards):
        self.corpus, self.shards = corpus, shards
        self.ends = list(itertools.accumulate(s["tokens"] for s in shards))

    def __len__(self):
        return self.ends[-1]

    def __getitem__(self, places):
        start, stop, _ = places.indices(len(self))
        at = bisect.bisect_right(self.ends, start)
        return self.corpus.tokens(self.shards[at], start - self.ends[at] + self.shards[at]["tokens"], stop - start)


class Component:
    """A corpus of a mixture, or one that is not mixed: its shards that have a row, and how its window moves."""

    def __init__(self, shards, context, weight, salt):
        self.usable, self.weight, self.salt = [s for s in shards if s["tokens"] > context], weight, salt
        if not self.usable:
            raise ValueError(f"no shard has a row of {context} tokens and the one that follows")


class Draw:
    """What an author reads: seed is the run's, author 32 bytes, shards and steps are the run's window."""

    def __init__(self, corpus, seed, author, context, shards, steps):
        self.seed, self.author, self.context, self.shards, self.steps = seed, author, context, shards, steps
        left = iter(corpus.manifest["shards"])
        if "mixture" in corpus.manifest:
            mixture = enumerate(corpus.manifest["mixture"])
            self.components = [Component(itertools.islice(left, c["shards"]), context, c["weight"], (i,)) for i, c in mixture]
        else:
            self.components = [Component(left, context, 1, ())]
        self.total = sum(c.weight for c in self.components)

    def windows(self, step):
        """Returns the shards that are read from at a step, a list for each component of the corpus."""
        return [self._window(c, step) for c in self.components]

    def row(self, windows, step, row):
        """Returns the shard that a row is in, and the token that it begins with."""
        window = windows[self._component(step, row)]
        places = [s["tokens"] - self.context for s in window]
        place = self._hash("atoll row 1", step, row) * sum(places) >> 64
        for shard, count in zip(window, places):
            if place < count:
                return shard, place
            place -= count
        raise AssertionError("a place beyond the window")

    def _component(self, step, row):
        if len(self.components) == 1:
            return 0
        place = self._hash("atoll component 1", step, row) * self.total >> 64
        for number, c in enumerate(self.components):
            if place < c.weight:
                return number
            place -= c.weight
        raise AssertionError("a place beyond the weights")

    def _window(self, component, step):
        size = max(1, self.shards * component.weight // self.total)
        if len(component.usable) <= size:
            return component.usable
        position = step * component.weight // (self.steps * self.total)
        return [component.usable[self._order(component, position + i)] for i in range(size)]

    def _order(self, component, position):
        count = len(component.usable)
        cycle, x = divmod(position, count)
        half = ((count - 1).bit_length() + 1) // 2
        while True:
            x = self._feistel(component, cycle, x, half)
            if x < count:
                return x

    def _feistel(self, component, cycle, x, half):
        mask = (1 << half) - 1
        left, right = x >> half, x & mask
        for number in range(4):
            left, right = right, left ^ (self._hash("atoll order 1", cycle, number, right, *component.salt) & mask)
        return left << half | right

    def _hash(self, domain, *numbers):
        text = domain.encode() + struct.pack(">Q", self.seed) + self.author + struct.pack(f">{len(numbers)}Q", *numbers)
        return int.from_bytes(hashlib.sha256(text).digest()[:8], "big")
