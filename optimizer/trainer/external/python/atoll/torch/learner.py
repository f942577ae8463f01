"""The learner that computes with PyTorch."""

import contextlib
import math
import time

import torch

from .. import recipe
from ..serve import SMALLER, Learner, LearnerError, diverged, log, out_of_memory, write_whole
from ..slab import layout_digest
from ..text import Bytes
from ..values import first_line, resume_state
from ..version import __version__
from . import devices, llama
from .optim import Optimizer, clip

FORMAT = 1  # of the optimizer's state on disk

_MEASURE = 2.0  # seconds
_PASSES = 10  # more tell nothing new


class TorchLearner(Learner):
    def __init__(self, device, precision="f32", micro_batch=0, compile=False):
        self.device, self.precision = device, precision
        self.micro_batch, self.compile = micro_batch, compile

    def hello(self):
        version = f"{__version__}, PyTorch {torch.__version__}"
        return {"name": "atoll.torch", "version": version, "devices": [devices.describe(self.device)], "precision": self.precision}

    def start(self, run):
        self.run = run
        model, self.settings = recipe.parse(run.recipe)
        if not 1 <= run.context <= model.context:
            raise LearnerError(f"the run has a context of {run.context}, its model one of {model.context}", "make the run anew")
        self.text = Bytes(run.text, run.context)
        self.slab = torch.frombuffer(run.slab.values, dtype=torch.float32)
        self._build(model)
        if run.resume:
            self._resume(run.resume)
        speed = self._measure(run.rows, run.context)
        return {"layout": self.layout, "tokens_per_second": speed, "memory_bytes": devices.memory_bytes(self.device)}

    def _build(self, model):
        self.model = llama.Llama(model, self.device)
        layout = llama.layout(self.model)
        self.layout = layout_digest(layout)
        _compare(layout, self.run.tensors)
        # Until load the values are 0: the speed of a matrix does not depend on what is in it.
        self.values = torch.zeros(len(self.slab), device=self.device)
        self.grads = torch.zeros_like(self.values)
        llama.bind(self.model, self.values, self.grads)
        self.optimizer = Optimizer(self.settings, layout, self.values, self.grads)
        self.loss = torch.compile(self.model) if self.compile else self.model

    def load(self, pieces):
        for begin, end in self.run.slab.pieces(pieces):
            self.values[begin:end].copy_(self.slab[begin:end])

    def flush(self, pieces):
        spans = self.run.slab.pieces(pieces)
        # What can fail comes first: the slab has all of it or nothing.
        staged = [self.values[begin:end].cpu() for begin, end in spans]
        for (begin, end), values in zip(spans, staged):
            self.slab[begin:end].copy_(values)

    def step(self, number, lr, starts):
        tokens = self._batch(starts)
        loss = self._gradient(tokens)
        if not math.isfinite(loss):
            raise diverged(number, f"loss {loss}", lr)
        norm = clip(self.grads, self.settings.clip)
        if not math.isfinite(norm):
            raise diverged(number, f"gradient norm {norm}", lr)
        self._update(number, lr)
        return len(starts) * self.run.context, loss

    def _update(self, number, lr):
        try:
            self.optimizer.step(lr)
        except Exception as failure:
            # Some tensors have taken the step and others have not.
            remedy = SMALLER if out_of_memory(failure) else "start the learner again"
            raise LearnerError(f"step {number} broke off: {failure}", remedy, fatal=True) from failure

    def _batch(self, starts):
        """Returns the windows of text at starts, [rows, context + 1]."""
        if not starts:
            raise LearnerError("the step has no starts", "send the place in text of each row")
        return self.text.rows(starts, self.run.context + 1)

    def _gradient(self, tokens):
        """Leaves the mean gradient over all rows in grads and returns the mean loss."""
        self.grads.zero_()
        losses, share = [], []
        for part in tokens.split(self.micro_batch or len(tokens)):
            part = part.to(self.device)
            with self._autocast():
                loss = self.loss(part[:, :-1], part[:, 1:])
            share.append(len(part) / len(tokens))
            (loss * share[-1]).backward()
            losses.append(loss.detach())
        return math.fsum(loss * weight for loss, weight in zip(torch.stack(losses).tolist(), share))

    def _autocast(self):
        if self.precision == "f32":
            return contextlib.nullcontext()
        return torch.autocast(self.device.type, dtype=torch.bfloat16)

    def _measure(self, rows, context):
        """Returns the tokens per second of forward and backward. Parameters stay as they are."""
        rows = min(rows, self.micro_batch or rows)
        if rows < 1:
            return 0
        generator = torch.Generator().manual_seed(0)
        tokens = torch.randint(0, 256, (rows, context + 1), generator=generator)
        first = self._timed(tokens)
        if first > _MEASURE and not self.compile:  # a first pass that slow tells enough
            return rows * context / first
        times = [self._timed(tokens)]
        while len(times) < _PASSES and first + sum(times) < _MEASURE:
            times.append(self._timed(tokens))
        return rows * context / sorted(times)[len(times) // 2]

    def _timed(self, tokens):
        begin = time.perf_counter()
        self._gradient(tokens)
        devices.synchronize(self.device)
        return time.perf_counter() - begin

    def save(self, path):
        state = {"format": FORMAT, "layout": self.layout, **self.optimizer.state()}
        write_whole(path, lambda file: torch.save(state, file))

    def _resume(self, path):
        try:
            self.optimizer.resume(resume_state(path, FORMAT, self.layout))
        except Exception as failure:  # a broken file can fail in any way
            raise LearnerError(f"cannot resume from {path}: {first_line(failure)}", "start without it") from failure

    def stop(self):
        log(f"stopped after {self.optimizer.taken} steps of this optimizer")


def _compare(own, theirs):
    """Names the first tensor in which two layouts differ."""
    for mine, other in zip(own, theirs):
        if mine != other:
            raise LearnerError(f"the run has tensor {_tensor(other)} where the recipe's model has {_tensor(mine)}", "make the run anew")
    if len(own) != len(theirs):
        raise LearnerError(f"the run has {len(theirs)} tensors, the recipe's model {len(own)}", "make the run anew")


def _tensor(pair):
    name, shape = pair
    return f"{name} {list(shape)}"
