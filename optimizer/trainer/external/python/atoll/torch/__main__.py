"""python3 -m atoll.torch: trains the built-in family with PyTorch."""

import argparse
import sys
import warnings

from ..serve import log, serve


def _options(arguments):
    parser = argparse.ArgumentParser(prog="python3 -m atoll.torch", description="Trains the built-in family with PyTorch.")
    parser.add_argument("--device", choices=["auto", "cpu", "cuda", "mps"], default="auto", help="auto takes cuda, then mps, then cpu")
    parser.add_argument("--precision", choices=["f32", "bf16"], default="f32", help="of the arithmetic; values stay float32")
    parser.add_argument("--compile", action="store_true", help="compile the model first, which takes a while")
    parser.add_argument("--threads", type=int, default=0, metavar="N", help="threads on the CPU; 0 leaves it to PyTorch")
    parser.add_argument("--micro-batch", type=int, default=0, metavar="N", help="rows at once, where all do not fit; 0 takes all")
    options = parser.parse_args(arguments)
    for name in ("threads", "micro_batch"):
        if getattr(options, name) < 0:
            parser.error(f"--{name.replace('_', '-')} is {getattr(options, name)}: use 1 or more, or 0")
    return options


def _learner(options):
    import torch

    from . import devices
    from .learner import TorchLearner

    if options.threads:
        torch.set_num_threads(options.threads)
    torch.set_flush_denormal(True)  # arithmetic on denormal numbers is many times slower
    device = devices.choose(options.device)
    if options.precision == "bf16":
        devices.check_bf16(device)
    if options.compile and not hasattr(torch, "compile"):
        raise devices.DeviceError(f"--compile needs PyTorch 2, this is {torch.__version__}: leave it out")
    return TorchLearner(device, options.precision, options.micro_batch, options.compile)


def main(arguments=None):
    options = _options(arguments)
    # This learner has no use for NumPy, and the node shows the last lines of stderr.
    warnings.filterwarnings("ignore", message="Failed to initialize NumPy")
    try:
        import torch  # noqa: F401
    except ModuleNotFoundError:
        version = ".".join(map(str, sys.version_info[:3]))
        log(f"PyTorch is missing from this Python {version}: install it with `python3 -m pip install torch`")
        return 2
    from .devices import DeviceError

    try:
        learner = _learner(options)
    except DeviceError as failure:
        log(str(failure))
        return 2
    return serve(learner)


if __name__ == "__main__":
    sys.exit(main())
