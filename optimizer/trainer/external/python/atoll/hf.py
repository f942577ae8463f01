"""python3 -m atoll.hf: trains models of Hugging Face's transformers, and adapters of PEFT, that a recipe describes.

    torchrun --standalone --nproc-per-node 2 -m atoll.hf      one learner on two accelerators

The recipe comes from a stranger. Nothing is downloaded, no code of others is run, no pickle is read.
"""

import argparse
import contextlib
import importlib.util
import os
import sys
import warnings

from .serve import log, serve


def _options(arguments):
    parser = argparse.ArgumentParser(prog="python3 -m atoll.hf", description="Trains models of Hugging Face's transformers.")
    parser.add_argument("--data", default="", metavar="PATH", help="a text file to train on; default: the run's text, as bytes")
    parser.add_argument("--tokenizer", default="", metavar="DIR", help="the model's tokenizer; without it, tokens are bytes")
    parser.add_argument("--base", default="", metavar="DIR", help="the model that adapters belong to")
    parser.add_argument("--device", choices=["auto", "cpu", "cuda", "mps"], default="auto", help="auto takes cuda, then mps, then cpu")
    parser.add_argument("--precision", choices=["f32", "bf16"], default="f32", help="of the arithmetic; values stay float32")
    parser.add_argument("--micro-batch", type=int, default=0, metavar="N", help="rows at once, where all do not fit; 0 takes all")
    parser.add_argument("--gradient-checkpointing", action="store_true", help="compute more and keep less in memory")
    parser.add_argument("--threads", type=int, default=0, metavar="N", help="threads on the CPU; 0 leaves it to PyTorch")
    parser.add_argument("--fsdp", action="store_true", help="under torchrun: cut the model over all processes")
    options = parser.parse_args(arguments)
    for name in ("threads", "micro_batch"):
        if getattr(options, name) < 0:
            parser.error(f"--{name.replace('_', '-')} is {getattr(options, name)}: use 1 or more, or 0")
    if options.tokenizer and not options.data:
        parser.error(f"--tokenizer {options.tokenizer} needs --data PATH: a text file")
    return options


def _missing(options):
    """Says which package this Python lacks."""
    needed = [("torch", "PyTorch"), ("transformers", "Hugging Face's transformers")]
    if options.base:
        needed.append(("peft", "PEFT"))
    for module, name in needed:
        if importlib.util.find_spec(module) is None:
            version = ".".join(map(str, sys.version_info[:3]))
            return f"{name} is missing from this Python {version}: install it with `python3 -m pip install {module}`"
    return ""


def _quiet():
    """No word to any server, and no progress bars: the node shows the last lines of stderr."""
    for name in ("HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE", "HF_HUB_DISABLE_TELEMETRY", "HF_HUB_DISABLE_PROGRESS_BARS"):
        os.environ[name] = "1"
    os.environ.setdefault("TRANSFORMERS_VERBOSITY", "error")
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    warnings.filterwarnings("ignore", message="Failed to initialize NumPy")
    warnings.filterwarnings("ignore", category=FutureWarning)  # between transformers, PEFT and PyTorch


def _begin(options):
    """Returns the learner and its island."""
    import torch

    from .hflearner import HFLearner
    from .islands import Alone, Island, end_with_parent
    from .torch import devices

    if options.threads:
        torch.set_num_threads(options.threads)
    torch.set_flush_denormal(True)  # arithmetic on denormal numbers is many times slower
    device = devices.choose(options.device)
    world = int(os.environ.get("WORLD_SIZE", "1"))
    if options.fsdp and world < 2:
        start = "torchrun --standalone --nproc-per-node 2 -m atoll.hf --fsdp"
        raise devices.DeviceError(f"--fsdp cuts the model over several processes, and this is one: start it by `{start}`")
    if world > 1:
        end_with_parent()
        device = _own_device(device)
    if options.precision == "bf16":
        devices.check_bf16(device)
    island = Island(device, options.fsdp) if world > 1 else Alone()
    return HFLearner(options, device, island), island


def _own_device(device):
    """The accelerator of this process of torchrun."""
    import torch

    from .torch.devices import DeviceError

    if device.type == "mps":
        raise DeviceError("torchrun cannot share mps among processes: use --device cpu, or one process")
    if device.type != "cuda":
        return device
    local, count = int(os.environ["LOCAL_RANK"]), torch.cuda.device_count()
    if local >= count:
        raise DeviceError(f"process {local} of torchrun has no accelerator, this machine has {count}: use --nproc-per-node {count}")
    torch.cuda.set_device(local)
    return torch.device("cuda", local)


def main(arguments=None):
    options = _options(arguments)
    _quiet()
    missing = _missing(options)
    if missing:
        log(missing)
        return 2
    from .torch.devices import DeviceError

    try:
        learner, island = _begin(options)
    except DeviceError as failure:
        log(str(failure))
        return 2
    if island.world == 1:
        return serve(learner)
    from .islands import Leader, follow

    code = serve(Leader(learner, island)) if island.rank == 0 else follow(learner, island)
    if code == 0:  # otherwise the others may hang in a collective
        with contextlib.suppress(Exception):
            island.close()
    return code


if __name__ == "__main__":
    sys.exit(main())
