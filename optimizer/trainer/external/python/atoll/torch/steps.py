"""What learners in PyTorch have in common: a step, on one process or on a data-parallel group."""

import contextlib
import math
import time

import torch

from ..serve import SMALLER, Learner, LearnerError, diverged, log, out_of_memory, write_whole
from ..values import first_line, resume_state
from . import devices

_MEASURE = 2.0  # seconds
_PASSES = 10  # more tell nothing new


class Steps(Learner):
    """A learner that is derived from it has, once built: run, text, model, values, layout and taken.

    Its format is that of the optimizer's state on disk. held_out is text that nobody trains on; of_bytes says that a
    token is a byte.
    """

    format = 1
    held_out, of_bytes = None, True
    slow_start = False  # the first pass takes far longer than those that follow

    def __init__(self, device, group, precision="f32", micro_batch=0):
        self.device, self.group = device, group
        self.precision, self.micro_batch = precision, micro_batch

    def describe(self, name, version):
        """Returns hello."""
        device = {**devices.describe(self.device), "count": self.group.world if self.device.type != "cpu" else 1}
        return {"name": name, "version": version, "devices": [device], "precision": self.precision, "evaluates": True}

    def ready(self):
        """Goes on from a state where the run names one, and returns what start has to."""
        if self.run.resume:
            self._resume(self.run.resume)
        speed = self._measure()
        return {"layout": self.layout, "tokens_per_second": speed, "memory_bytes": devices.memory_bytes(self.device)}

    def places(self, number, starts):
        """Returns the places in text of all rows of a step."""
        raise NotImplementedError

    def held_places(self, starts):
        """Returns the places in held_out of the rows that are evaluated."""
        return starts

    def loss(self, tokens):
        """Returns the mean loss of rows, a tensor with one value."""
        raise NotImplementedError

    def clear(self):
        """Forgets gradients."""
        raise NotImplementedError

    def clip(self):
        """Clips gradients, and returns the norm that they had over all ranks."""
        raise NotImplementedError

    def update(self, lr):
        """Moves values along gradients."""
        raise NotImplementedError

    def state(self):
        """Returns the optimizer's state, plain tensors and numbers. Ranks other than 0 may leave tensors out."""
        raise NotImplementedError

    def go_on(self, state):
        """Takes in what state returned. ValueError says why one does not fit; then nothing has changed."""
        raise NotImplementedError

    def load(self, pieces):
        self.values.load(pieces)

    def flush(self, pieces):
        self.values.flush(pieces)

    def step(self, number, lr, starts):
        places = self.places(number, starts)
        loss = self._gradient(places)
        if not math.isfinite(loss):
            raise diverged(number, f"loss {loss}", lr)
        norm = self.clip()
        if not math.isfinite(norm):
            raise diverged(number, f"gradient norm {norm}", lr)
        try:
            self.update(lr)
        except Exception as failure:
            # Some tensors have taken the step and others have not.
            remedy = SMALLER if out_of_memory(failure) else "start the learner again"
            raise LearnerError(f"step {number} broke off: {failure}", remedy, fatal=True) from failure
        return len(places) * self.run.context, loss

    def _gradient(self, places):
        """Leaves the mean gradient over all rows of all ranks, and returns their mean loss."""
        self.clear()
        losses = []
        parts = share(places, self.group.rank, self.group.world, self.micro_batch)
        for at, (rows, weight) in enumerate(parts):
            tokens = self.text.rows(rows, self.run.context + 1).to(self.device)
            with self.group.hold(self.model, at == len(parts) - 1):
                with self._autocast():
                    loss = self.loss(tokens)
                (loss * weight).backward()
            losses.append(loss.detach() * weight)
        return self.group.mean(math.fsum(torch.stack(losses).tolist()))

    def check_evaluate(self, starts):
        """Says that there is nothing to evaluate on: a group has to know before any of its ranks begins."""
        if self.held_out is None or not starts:
            raise LearnerError("there is no held-out text, or it is less than a row", "make the run with more text, or give more by --data")

    @torch.no_grad()
    def evaluate(self, starts):
        self.check_evaluate(starts)
        places, world, losses = self.held_places(starts), self.group.world, []
        self.model.eval()
        try:
            for rows, weight in share(places, self.group.rank, world, self.micro_batch or max(1, self.run.rows // world)):
                tokens = self.held_out.rows(rows, self.run.context + 1).to(self.device)
                with self._autocast():
                    losses.append(self.loss(tokens).item() * weight)
        finally:
            self.model.train()
        count = len(places) * self.run.context
        return count, self.group.mean(math.fsum(losses)), count if self.of_bytes else 0

    def _autocast(self):
        if self.precision == "f32":
            return contextlib.nullcontext()
        return torch.autocast(self.device.type, dtype=torch.bfloat16)

    def _measure(self):
        """Returns the tokens per second of forward and backward over all ranks. Values stay as they are."""
        rows = min(self.run.rows, self.micro_batch * self.group.world or self.run.rows)
        if rows < 1:
            return 0
        places = self.text.windows(self.run, "speed", rows)
        first = self._timed(places)
        times = [self._timed(places)] if first < _MEASURE or self.slow_start else [first]
        while len(times) < _PASSES and first + sum(times) < _MEASURE:
            times.append(self._timed(places))
        self.clear()
        return rows * self.run.context / sorted(times)[len(times) // 2]

    def _timed(self, places):
        begin = time.perf_counter()
        self._gradient(places)
        devices.synchronize(self.device)
        return self.group.slowest(time.perf_counter() - begin)

    def save(self, path):
        state = {"format": self.format, "layout": self.layout, **self.state()}  # all ranks have to take part
        if self.group.rank == 0:
            write_whole(path, lambda file: torch.save(state, file))

    def _resume(self, path):
        try:
            self.go_on(resume_state(path, self.format, self.layout))
        except Exception as failure:  # a broken file can fail in any way
            raise LearnerError(f"cannot resume from {path}: {first_line(failure)}", "start without it") from failure

    def stop(self):
        if self.group.rank == 0:
            log(f"stopped after {self.taken} steps of this optimizer")


def share(places, rank, world, most):
    """Cuts a rank's rows of a step into parts of at most so many, 0 for all. Returns the rows and the weight of each.

    The mean over ranks of what a rank's losses add up to, times these weights, is the mean loss of the step. Ranks
    meet in every part, so all have as many: where one has no rows, a row of weight 0 stands in.
    """
    own, longest = places[rank::world], -(-len(places) // world)
    parts = [own[at : at + (most or longest)] for at in range(0, longest, most or longest)]
    return [(part or places[:1], len(part) * world / len(places)) for part in parts]
