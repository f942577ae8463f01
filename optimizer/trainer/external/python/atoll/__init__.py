"""A learner in a process of its own: it trains values that it shares with a node of atoll.

A script of your own calls join, and save to make a run of its model. Or derive a class from Learner and give it to serve.serve. The package needs
the standard library alone; join and atoll.torch need PyTorch, atoll.hf needs transformers too.
"""

from .run import JoinedRun, join
from .saving import save
from .serve import Learner, LearnerError, Run
from .slab import Slab, SlabError, layout_digest
from .version import __version__

__all__ = ["JoinedRun", "Learner", "LearnerError", "Run", "Slab", "SlabError", "join", "layout_digest", "save", "__version__"]
