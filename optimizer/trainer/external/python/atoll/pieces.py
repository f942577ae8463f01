"""Cuts pieces of the slab at the bounds of its tensors."""

import bisect
import math


def begins(tensors):
    """Returns where each tensor begins in the slab, and the end of the last."""
    places = [0]
    for _, shape in tensors:
        places.append(places[-1] + math.prod(shape))
    return places


def parts(places, spans):
    """Yields (tensor, low, high within it, begin in the slab) for spans of the slab."""
    for begin, end in spans:
        at = bisect.bisect_right(places, begin) - 1
        while begin < end:
            stop = min(end, places[at + 1])
            if stop > begin:
                yield at, begin - places[at], stop - places[at], begin
            begin, at = stop, at + 1
