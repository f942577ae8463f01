"""Data-parallel groups: processes of torchrun that are one learner. Rank 0 speaks with the node and tells the others.

The others do what rank 0 does, in the same order, for all of them meet inside of PyTorch's collectives. Where one
fails alone it ends, torchrun then ends all, and the node starts the group again.
"""

import contextlib
import ctypes
import datetime
import os
import signal
import sys
import threading
import time
import types

import torch
import torch.distributed as dist

from .pieces import begins, parts
from .serve import Learner, LearnerError, _explain, _ignore_interrupts, log
from .slab import Slab
from .values import Values, write

_FOREVER = datetime.timedelta(days=3650)  # a node may ask for nothing as long as it likes
_LOOK = 0.1  # seconds between two looks at the parent
_ON_PARENTS_DEATH = 1  # PR_SET_PDEATHSIG
_LINGER = 3.0  # seconds: rank 0, which fails for the same reason, tells the node first

_FIELDS = ("layout", "recipe", "seed", "author", "rows", "context", "text", "held_out", "tokenizer", "resume", "steps", "tensors")


class Alone:
    """The group of one process."""

    rank, world = 0, 1
    cuts = False  # every rank has part of each tensor, in place of all of it

    def spread(self, model):
        """Makes a model ready for training on all ranks. Returns what computes, and what has the parameters."""
        return model, model

    def values(self, run, parameters):
        return Values(run, parameters)

    def mean(self, number):
        """Returns the mean over all ranks."""
        return number

    def total(self, number):
        """Returns the sum over what all ranks have, where each has part of it."""
        return number

    def slowest(self, seconds):
        return seconds

    def hold(self, model, last):
        """A context in which gradients stay on this rank, unless these are the step's last rows."""
        return contextlib.nullcontext()


class Group(Alone):
    """A process of torchrun. With fsdp every rank has part of each tensor, otherwise all of it."""

    def __init__(self, device, fsdp):
        self.device, self.cuts = device, fsdp
        dist.init_process_group("nccl" if device.type == "cuda" else "gloo")
        self.rank, self.world = dist.get_rank(), dist.get_world_size()
        self.control = dist.new_group(backend="gloo", timeout=_FOREVER)

    def spread(self, model):
        if self.cuts:
            return (_shard(model, self.device, self.world),) * 2
        devices = [self.device] if self.device.type == "cuda" else None
        return torch.nn.parallel.DistributedDataParallel(model, device_ids=devices, broadcast_buffers=False), model

    def values(self, run, parameters):
        return (Shards if self.cuts else Replicas)(run, parameters, self)

    def mean(self, number):
        return self._reduced(number, dist.ReduceOp.SUM) / self.world

    def total(self, number):
        return self._reduced(number, dist.ReduceOp.SUM) if self.cuts else number

    def slowest(self, seconds):
        return self._reduced(seconds, dist.ReduceOp.MAX)

    def _reduced(self, number, how):
        reduced = torch.tensor(number, dtype=torch.float64, device=self.device)
        dist.all_reduce(reduced, op=how)
        return reduced.item()

    def hold(self, model, last):
        return contextlib.nullcontext() if last or self.cuts else model.no_sync()

    def tell(self, what, *arguments):
        dist.broadcast_object_list([what, arguments], src=0, group=self.control)

    def told(self):
        message = [None, None]
        dist.broadcast_object_list(message, src=0, group=self.control)
        return message

    def close(self):
        dist.destroy_process_group()


def _shard(model, device, world):
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import fully_shard

    mesh = init_device_mesh(device.type, (world,))
    for layer in _layers(model):
        fully_shard(layer, mesh=mesh)
    return fully_shard(model, mesh=mesh)


def _layers(model):
    """The longest list of modules: the layers of a transformer."""
    lists = [m for m in model.modules() if isinstance(m, torch.nn.ModuleList)]
    return max(lists, key=len, default=[])


class _Elsewhere(Values):
    """Values of which rank 0 alone has the slab."""

    def __init__(self, run, parameters, group):
        self.group = group
        if group.rank == 0:
            super().__init__(run, parameters)
        else:
            self.run, self.parameters, self.slab = run, parameters, None
            self.begins = begins(run.tensors)

    def parts(self, pieces):
        return parts(self.begins, self.run.slab.pieces(pieces))


class Replicas(_Elsewhere):
    """Every rank has all values."""

    @torch.no_grad()
    def load(self, pieces):
        for at, low, high, begin in self.parts(pieces):
            p = self.parameters[at]
            values = self.slab[begin : begin + high - low] if self.group.rank == 0 else torch.empty(high - low)
            values = values.to(p.device, copy=True)
            dist.broadcast(values, src=0)
            write(p, low, high, values)

    def flush(self, pieces):
        if self.group.rank == 0:
            super().flush(pieces)


class Shards(_Elsewhere):
    """Every rank has part of each tensor, as fully_shard cuts it."""

    @torch.no_grad()
    def load(self, pieces):
        for at, low, high, begin in self.parts(pieces):
            p = self.parameters[at]
            partial = high - low < p.numel()
            full = whole(p) if partial else torch.empty(p.shape, dtype=p.dtype, device=p.device)
            if self.group.rank == 0:
                full.view(-1)[low:high].copy_(self.slab[begin : begin + high - low])
            place(p, full)

    @torch.no_grad()
    def flush(self, pieces):
        staged = []
        for at, low, high, begin in self.parts(pieces):
            full = whole(self.parameters[at])  # all ranks have to take part
            if self.group.rank == 0:
                staged.append((begin, full.reshape(-1)[low:high].to("cpu", copy=True)))
        for begin, values in staged:
            self.slab[begin : begin + len(values)].copy_(values)


def whole(tensor):
    """Returns all of a tensor, of which each rank may have a part. All ranks have to ask."""
    tensor = tensor.detach()
    return tensor.full_tensor().contiguous() if hasattr(tensor, "full_tensor") else tensor


def cut_like(own, tensor):
    """Makes a tensor cut like another of this rank's values of it, flat or not."""
    from torch.distributed.tensor import DTensor

    own = own.view(tensor.to_local().shape)
    return DTensor.from_local(own, tensor.device_mesh, tensor.placements, run_check=False, shape=tensor.shape, stride=tensor.stride())


def own(full, tensor):
    """Returns the rows of full that this rank has of a tensor, as fully_shard cuts it."""
    parts = full.chunk(tensor.device_mesh.size())
    rank = tensor.device_mesh.get_local_rank()
    return parts[rank] if rank < len(parts) else full[:0]


def place(into, full):
    """Copies rank 0's full to a tensor of which each rank may have a part, or all."""
    into = into.detach()
    if hasattr(into, "to_local"):
        from torch.distributed.tensor import distribute_tensor

        into.to_local().copy_(distribute_tensor(full, into.device_mesh, into.placements).to_local())
        return
    if dist.is_available() and dist.is_initialized():
        dist.broadcast(full, src=0)
    into.copy_(full)


class Leader(Learner):
    """Rank 0's learner for the loop that speaks with the node: it tells the others of each request first."""

    def __init__(self, learner, group):
        self.learner, self.group = learner, group

    def hello(self):
        return self.learner.hello()

    def start(self, run):
        self.group.tell("start", {name: getattr(run, name) for name in _FIELDS}, len(run.slab))
        return self.learner.start(run)

    def load(self, pieces):
        self._all("load", pieces)

    def flush(self, pieces):
        self._all("flush", pieces)

    def step(self, number, lr, starts):
        return self._all("step", number, lr, starts)

    def evaluate(self, starts):
        self.learner.check_evaluate(starts)  # a rank that fails alone ends the group
        return self._all("evaluate", starts)

    def save(self, path):
        self._all("save", path)

    def stop(self):
        self._all("stop")

    def _all(self, what, *arguments):
        self.group.tell(what, *arguments)
        return getattr(self.learner, what)(*arguments)


class _NoSlab(Slab):
    """Knows how long the slab is, to check pieces, and has no values."""

    def __init__(self, count):
        self.count, self.values = count, None

    def __len__(self):
        return self.count


def follow(learner, group):
    """Does what rank 0 tells, until it tells to stop. Returns the exit code."""
    _ignore_interrupts()
    while True:
        what, arguments = group.told()
        if what == "start":
            fields, count = arguments
            arguments = [types.SimpleNamespace(**fields, slab=_NoSlab(count))]
        try:
            getattr(learner, what)(*arguments)
        except Exception as failure:
            _fail(group.rank, what, failure)
        if what == "stop":
            return 0


def _fail(rank, what, failure):
    if isinstance(failure, LearnerError) and failure.kind == "diverged":
        return  # all ranks know it, from a sum over them
    error = _explain(failure)
    time.sleep(_LINGER)
    log(f"rank {rank} failed in {what}: {error.error}: {error.remedy}")
    os._exit(1)


def end_with_parent():
    """Ends the process with torchrun, whose workers are out of reach of who kills torchrun."""
    parent = os.getppid()
    if sys.platform == "linux":
        with contextlib.suppress(OSError, AttributeError):
            ctypes.CDLL(None).prctl(_ON_PARENTS_DEATH, signal.SIGKILL)

    def look():
        while os.getppid() == parent:
            time.sleep(_LOOK)
        os._exit(1)

    threading.Thread(target=look, daemon=True).start()
