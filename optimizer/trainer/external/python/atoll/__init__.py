"""A learner in a process of its own: it trains values that it shares with a node of atoll.

Derive a class from Learner and give it to serve.serve. The package needs the standard library alone;
atoll.torch needs PyTorch.
"""

from .serve import Learner, LearnerError, Run
from .slab import Slab, SlabError, layout_digest
from .version import __version__

__all__ = ["Learner", "LearnerError", "Run", "Slab", "SlabError", "layout_digest", "__version__"]
