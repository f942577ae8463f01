"""What the programs of PyTorch's learners have in common. This file does not load PyTorch before it has to."""

import contextlib
import importlib.util
import os
import sys
import warnings

from ..serve import LearnerError, log, serve
from ..tracking import Tracking, add_options as add_tracking


def add_options(parser):
    parser.add_argument("--device", choices=["auto", "cpu", "cuda", "mps"], default="auto", help="auto takes cuda, then mps, then cpu")
    parser.add_argument("--precision", choices=["f32", "bf16"], default="f32", help="of the arithmetic; values stay float32")
    parser.add_argument("--micro-batch", type=int, default=0, metavar="N", help="rows at once, where all do not fit; 0 takes all")
    parser.add_argument("--threads", type=int, default=0, metavar="N", help="threads on the CPU; 0 leaves it to PyTorch")
    parser.add_argument("--fsdp", action="store_true", help="under torchrun: cut the model over all processes")
    add_tracking(parser)


def parse(parser, arguments):
    options = parser.parse_args(arguments)
    for name in ("threads", "micro_batch"):
        if getattr(options, name) < 0:
            parser.error(f"--{name.replace('_', '-')} is {getattr(options, name)}: use 1 or more, or 0")
    return options


def missing(packages):
    """Says which of (module, name) this Python lacks."""
    for module, name in packages:
        if importlib.util.find_spec(module) is None:
            version = ".".join(map(str, sys.version_info[:3]))
            return f"{name} is missing from this Python {version}: install it with `python3 -m pip install {module}`"
    return ""


def run(options, packages, learner_of):
    """Runs learner_of(device, group) until the node says stop. Returns the exit code of the process."""
    lacks = missing(packages)
    if lacks:
        log(lacks)
        return 2
    # The node shows the last lines of stderr, and the users of a learner can do nothing about these.
    warnings.filterwarnings("ignore", message="Failed to initialize NumPy")
    warnings.filterwarnings("ignore", category=FutureWarning)
    from .devices import DeviceError

    try:
        device, group = _place(options)
        learner = learner_of(device, group)
        tracking = Tracking(options.tensorboard, options.wandb) if group.rank == 0 else None
    except DeviceError as failure:
        log(str(failure))
        return 2
    except LearnerError as failure:
        log(f"{failure.error}: {failure.remedy}")
        return 2
    if group.world == 1:
        return serve(learner, tracking=tracking)
    from ..groups import Leader, follow

    code = serve(Leader(learner, group), tracking=tracking) if group.rank == 0 else follow(learner, group)
    if code == 0:  # otherwise the others may hang in a collective
        with contextlib.suppress(Exception):
            group.close()
        # All is said and saved. Frameworks take many seconds to take themselves apart, and the node waits for all ranks.
        sys.stderr.flush()
        os._exit(0)
    return code


def _place(options):
    """Returns the device of this process, and its group."""
    import torch

    from ..groups import Alone, Group, end_with_parent
    from . import devices

    if options.threads:
        torch.set_num_threads(options.threads)
    torch.set_flush_denormal(True)  # arithmetic on denormal numbers is many times slower
    device = devices.choose(options.device)
    world = int(os.environ.get("WORLD_SIZE", "1"))
    if options.fsdp:
        _check_fsdp(world)
    if world > 1:
        end_with_parent()
        device = devices.of_rank(device)
    if options.precision == "bf16":
        devices.check_bf16(device)
    return device, Group(device, options.fsdp) if world > 1 else Alone()


def _check_fsdp(world):
    import torch

    from .devices import DeviceError

    if world < 2:
        raise DeviceError('--fsdp cuts the model over several processes, and this is one: use --learner "torchrun:2 ... --fsdp"')
    try:
        from torch.distributed.fsdp import fully_shard  # noqa: F401
    except ImportError:
        raise DeviceError(f"--fsdp needs PyTorch 2.6, this is {torch.__version__}: leave it out, or install a newer one") from None
