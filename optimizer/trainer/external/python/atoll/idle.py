"""python3 -m atoll.idle: a learner that computes nothing. It keeps to the protocol unless told to break it.

It tests a node: it starts fast, needs nothing but Python, and its changes are the same on every machine.
"""

import argparse
import array
import hashlib
import json
import math
import os
import sys
import time

from . import arrays, recipe, tracking
from .corpus import Corpus
from .serve import Learner, LearnerError, connect, diverged, log, serve, write_whole
from .version import __version__

_CHANGED = 16  # values that a step changes
_APART = 7919  # a prime, so that the changes spread over all tensors


class Idle(Learner):
    def __init__(self, options, connection):
        self.options, self.connection = options, connection
        self.here = 0  # steps of this process

    def hello(self):
        device = {"kind": "cpu", "name": "idle", "count": 1, "memory_bytes": 0}
        return {"name": "atoll.idle", "version": __version__, "devices": [device], "precision": "f32", "evaluates": True}

    def start(self, run):
        self.run = run
        _check_tensors(run)
        self.own = array.array("f", bytes(4 * len(run.slab)))
        self.taken = _resume(run.resume) if run.resume else 0
        layout = run.layout
        if self.options.layout == "wrong":
            layout = hashlib.sha256(layout.encode()).hexdigest()
        return {"layout": layout, "tokens_per_second": 0, "memory_bytes": 0}

    def load(self, pieces):
        with memoryview(self.own) as own:
            for begin, end in self.run.slab.pieces(pieces):
                own[begin:end] = self.run.slab.values[begin:end]

    def flush(self, pieces):
        with memoryview(self.own) as own:
            for begin, end in self.run.slab.pieces(pieces):
                self.run.slab.values[begin:end] = own[begin:end]

    def step(self, number, lr, starts):
        self.misbehave(number, lr)
        self.read(number, "text", "shards", starts)
        time.sleep(self.options.step_seconds)
        for i in range(_CHANGED):
            self.own[(number * _CHANGED + i) * _APART % len(self.own)] += lr * 1e-3
        self.taken, self.here = self.taken + 1, self.here + 1
        return (len(starts) or self.run.rows) * self.run.context, math.log(256)

    def evaluate(self, starts):
        """Of other values it says something else."""
        self.read(-1, "held_out", "held_out", starts)
        return len(starts) * self.run.context, sum(x * x for x in self.own) / len(self.own), 0

    def save(self, path):
        state = json.dumps({"learner": "atoll.idle", "steps": self.taken})
        write_whole(path, lambda file: file.write(state.encode()))

    def stop(self):
        log(f"stopped after {self.taken} steps")

    def read(self, number, name, part, starts):
        """Writes the rows of a step on a corpus in shards as a line of JSON, if it was asked to; evaluations have step -1."""
        if self.options.reads:
            text = Corpus(getattr(self.run, name)).text(part)
            rows = [text[start : start + self.run.context + 1] for start in starts]
            with open(self.options.reads, "a", encoding="utf-8") as file:
                print(json.dumps({"step": number, "rows": rows}), file=file)

    def misbehave(self, number, lr):
        o = self.options
        if self.here == o.leave_after:
            raise LearnerError(f"it leaves after {self.here} steps", kind="leaving")
        if number == o.die_at_step and self.first():
            os._exit(3)
        if number == o.hang_at_step and self.first():
            while True:
                time.sleep(3600)
        if number == o.garbage_at_step and self.first():
            self.connection.sendall(b"\xffno frame\n" * 8)
        if number == o.nan_at_step and self.first():
            raise diverged(number, "loss NaN", lr)

    def first(self):
        """Reports whether to misbehave: always, or with --once for the first process that comes here."""
        if not self.options.once:
            return True
        try:
            open(self.options.once, "x").close()
        except FileExistsError:
            return False
        return True


def _check_tensors(run):
    """Refuses other tensors than those of a built-in model, where the recipe is of one. It takes the tensors of any other recipe."""
    if json.loads(run.recipe or "{}").get("family") == "llama":
        model, _ = recipe.parse(run.recipe)
        recipe.check_run(model, arrays.layout(model), run)


def _resume(path):
    try:
        with open(path, "rb") as file:
            state = json.load(file)
        if state["learner"] != "atoll.idle":
            raise ValueError(f"it is of {state['learner']}")
        return int(state["steps"])
    except (OSError, ValueError, KeyError, TypeError) as failure:
        raise LearnerError(f"cannot resume from {path}: {failure}", "start without it") from failure


def _options(arguments):
    parser = argparse.ArgumentParser(prog="python3 -m atoll.idle", description="A learner that computes nothing.")
    parser.add_argument("--step-seconds", type=float, default=0, metavar="X", help="how long a step takes")
    parser.add_argument("--die-at-step", type=int, metavar="N", help="exit with code 3 inside step N, counted from 0")
    parser.add_argument("--hang-at-step", type=int, metavar="N", help="never answer step N")
    parser.add_argument("--garbage-at-step", type=int, metavar="N", help="send bytes that are no frame inside step N")
    parser.add_argument("--nan-at-step", type=int, metavar="N", help="answer step N with an error of kind diverged")
    parser.add_argument("--leave-after", type=int, metavar="N", help="leave in order after N steps of this process")
    parser.add_argument("--layout", choices=["right", "wrong"], default="right", help="the digest in ready")
    parser.add_argument("--reads", metavar="FILE", help="write the rows of each step to FILE, in a run on a corpus in shards")
    parser.add_argument("--once", metavar="FILE", help="misbehave at a step only where FILE is missing, and make it")
    tracking.add_options(parser)
    return parser.parse_args(arguments)


def main(arguments=None):
    options = _options(arguments)
    try:
        track = tracking.Tracking(options.tensorboard, options.wandb)
    except LearnerError as failure:
        log(f"{failure.error}: {failure.remedy}")
        return 2
    try:
        connection, token = connect()
    except LearnerError as failure:
        log(f"{failure.error}: {failure.remedy}")
        return 1
    return serve(Idle(options, connection), connection, token, tracking=track)


if __name__ == "__main__":
    sys.exit(main())
