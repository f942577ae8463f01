"""python3 -m atoll.torch: trains the built-in family with PyTorch.

    torchrun --standalone --nproc-per-node 2 -m atoll.torch      one learner on two accelerators
"""

import argparse
import sys

from . import program


def _options(arguments):
    parser = argparse.ArgumentParser(prog="python3 -m atoll.torch", description="Trains the built-in family with PyTorch.")
    program.add_options(parser)
    parser.add_argument("--compile", action="store_true", help="compile the model first, which takes a while")
    return program.parse(parser, arguments)


def _learner(options, device, group):
    import torch

    from .devices import DeviceError
    from .learner import TorchLearner

    if options.compile and not hasattr(torch, "compile"):
        raise DeviceError(f"--compile needs PyTorch 2, this is {torch.__version__}: leave it out")
    return TorchLearner(device, options.precision, options.micro_batch, options.compile, group)


def main(arguments=None):
    options = _options(arguments)
    return program.run(options, [("torch", "PyTorch")], lambda device, group: _learner(options, device, group))


if __name__ == "__main__":
    sys.exit(main())
