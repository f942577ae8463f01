"""python3 -m atoll.hf: trains models of Hugging Face's transformers, and adapters of PEFT, that a recipe describes.

    torchrun --standalone --nproc-per-node 2 -m atoll.hf      one learner on two accelerators

The recipe comes from a stranger. Nothing is downloaded, no code of others is run, no pickle is read.
"""

import argparse
import os
import sys

from .torch import program


def _options(arguments):
    parser = argparse.ArgumentParser(prog="python3 -m atoll.hf", description="Trains models of Hugging Face's transformers.")
    parser.add_argument("--tokenizer", default="", metavar="DIR", help="the model's tokenizer; default: the one that the run's model brings, otherwise bytes")
    parser.add_argument("--base", default="", metavar="DIR", help="the model that adapters belong to")
    parser.add_argument("--gradient-checkpointing", action="store_true", help="compute more and keep less in memory")
    program.add_options(parser)
    return program.parse(parser, arguments)


def _quiet():
    """No word to any server, and no progress bars: the node shows the last lines of stderr."""
    for name in ("HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE", "HF_HUB_DISABLE_TELEMETRY", "HF_HUB_DISABLE_PROGRESS_BARS"):
        os.environ[name] = "1"
    os.environ.setdefault("TRANSFORMERS_VERBOSITY", "error")
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")


def main(arguments=None):
    options = _options(arguments)
    _quiet()
    packages = [("torch", "PyTorch"), ("transformers", "Hugging Face's transformers")]
    if options.base:
        packages.append(("peft", "PEFT"))
    return program.run(options, packages, lambda device, group: _learner(options, device, group))


def _learner(options, device, group):
    from .hflearner import HFLearner

    return HFLearner(options, device, group)


if __name__ == "__main__":
    sys.exit(main())
