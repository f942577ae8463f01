"""The slab: all trained values in one file, which the node and the learner both map into memory."""

import hashlib
import math
import mmap
import os
import sys

BYTES = 4  # of a float32


class SlabError(Exception):
    """The slab, its tensors or a piece of it are not what they must be."""


class Slab:
    """Maps the file. `values` is a writable memoryview of float32."""

    def __init__(self, path, begin, count):
        if sys.byteorder != "little":
            raise SlabError("the slab is little-endian and this processor is not: use another machine")
        if begin < 0 or begin % BYTES != 0 or count < 1:
            raise SlabError(f"slab {path}: {count} values from byte {begin}: need 1 or more, from a multiple of {BYTES}")
        with open(path, "r+b") as file:
            size, end = os.fstat(file.fileno()).st_size, begin + BYTES * count
            if size < end:
                raise SlabError(f"slab {path} has {size} bytes, but {count} values from byte {begin} end at {end}")
            self._map = mmap.mmap(file.fileno(), end)
        self.path = path
        self.values = memoryview(self._map)[begin:end].cast("f")

    def __len__(self):
        return len(self.values)

    def pieces(self, pieces):
        """Checks all pieces, [offset, length] in values, and returns them as a list of (begin, end)."""
        return [self._piece(piece) for piece in pieces]

    def _piece(self, piece):
        if not (isinstance(piece, (list, tuple)) and len(piece) == 2 and all(type(n) is int for n in piece)):
            raise SlabError(f"piece {piece!r} is not [offset, length] in whole numbers")
        offset, length = piece
        if offset < 0 or length < 0 or offset + length > len(self):
            raise SlabError(f"piece {piece!r} is outside the slab of {len(self)} values")
        return offset, offset + length


def layout_digest(tensors):
    """Returns the layout digest of (name, shape) pairs in their order."""
    digest = hashlib.sha256()
    for name, shape in tensors:
        digest.update((" ".join([name, *map(str, shape)]) + "\n").encode())
    return digest.hexdigest()


def layout_of(tensors, count):
    """Returns (name, shape) pairs of a message's tensors, which must fill count values without gaps."""
    layout, end = [], 0
    for tensor in tensors:
        name, shape = tensor["name"], tuple(tensor["shape"])
        if tensor["offset"] != end:
            raise SlabError(f"tensor {name} begins at value {tensor['offset']}, the one before it ends at {end}")
        end += math.prod(shape)
        layout.append((name, shape))
    if end != count:
        raise SlabError(f"the tensors have {end} values together, the slab has {count}")
    return layout
