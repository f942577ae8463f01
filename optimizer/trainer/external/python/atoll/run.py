"""run = atoll.join(model): a training script of a user's own takes part in a run.

The node starts the script: atoll join LINK --learner "python3 train.py". Or the script runs already, and attaches to a
node that waits for it: atoll join LINK FOLDER --learner attach. Importing this file loads no framework.
"""

import contextlib
import json
import math
import os
import sys

from . import attach, frames, tracking
from .serve import Learner, LearnerError, _explain, _Session, connect, diverged, log, write_whole
from .version import __version__

FORMAT = 1  # of the optimizer's state on disk


def join(model, optimizer=None, folder=None, evaluate=None, tensorboard=None, wandb=None):
    """Meets the node that started this script, or attaches to the node of a folder, and loads the run's values into the model.

    The trainable parameters must be the run's tensors. The state of an optimizer given here is kept with the node's
    checkpoints. folder is the node's folder; without it ATOLL_DIR names one. A script that a node has started meets that node.
    evaluate(run) returns the model's mean loss in nats per token on text that is held out, or (loss, tokens), or (loss, tokens,
    bytes of text): the node shows it as the run's quality. tensorboard is a folder for curves, wandb a project of Weights & Biases.
    Returns a JoinedRun once the node asks for the first step.
    """
    if int(os.environ.get("WORLD_SIZE", "1")) > 1:
        raise LearnerError(
            f"WORLD_SIZE is {os.environ['WORLD_SIZE']}, and atoll.join is for one process: start one, or use `torchrun ... -m atoll.hf`"
        )
    script, run = _Script(model, optimizer, evaluate), None
    try:
        script.tracking = tracking.Tracking(tensorboard or "", wandb or "")
        while run is None:
            run = _meet(script, folder)
    except LearnerError as failure:
        raise _with_remedy(failure) from failure
    return run


def _with_remedy(failure):
    """The same error, whose text says the remedy too."""
    return LearnerError(f"{failure.error}: {failure.remedy}" if failure.remedy else failure.error, "", failure.kind)


def _meet(script, folder):
    """Returns a JoinedRun, or None where the node took another script at the same moment."""
    folder = str(folder or os.environ.get("ATOLL_DIR", ""))
    if os.environ.get("ATOLL_LEARNER"):
        folder = ""  # the node that started this process waits for it
    elif not folder:
        raise LearnerError(
            "no node has started this script, and it names none",
            "let a node start it by --learner CMD, or attach to one by atoll.join(model, folder=DIR) or ATOLL_DIR=DIR",
        )
    connection, token = attach.find(folder) if folder else connect()
    run = JoinedRun(script, connection, folder)
    return run if run._begin(token) else None


class JoinedRun:
    """What a script sees of a run.

    over: the node has said stop, and the script is to end. lr: the learning rate that the node asks for.
    number: that of the step, from 0. recipe: what the run's learners agree on.
    """

    def __init__(self, script, connection, folder=""):
        self._script, self._connection, self._folder = script, connection, folder
        script.joined = self
        # A script that attached is its user's: it does not end with the node, and Ctrl-C ends it.
        self._session = _Session(script, connection, watch=not folder, tracking=script.tracking)
        self._pending = None  # the step that the node waits for
        self.over = False
        self.lr = self.number = 0

    @property
    def recipe(self):
        try:
            return json.loads(self._script.run.recipe)
        except ValueError:
            return self._script.run.recipe  # only the run's learners know what is in it

    @property
    def rows(self):
        """Rows that the node has in mind for a step."""
        return len((self._pending or {}).get("starts") or []) or self._script.run.rows

    @property
    def context(self):
        return self._script.run.context

    def step(self, tokens, loss):
        """Tells the node of a step that the optimizer has taken: how many targets it had, and their mean loss before it.

        Serves the node until it asks for the next step. Returns False where it has said stop: then end the script.
        """
        if self.over:
            return False
        tokens, loss = _number("tokens", tokens), float(_number("loss", loss))
        if tokens < 1 or tokens != int(tokens):
            raise ValueError(f"tokens is {tokens}: give the number of targets in the batch, 1 or more")
        if math.isfinite(loss):
            self._session.stepped(self.number, self.lr, tokens, loss)
        else:
            self._refuse(diverged(self.number, f"loss {loss}", self.lr))
        return self._serve()

    def leave(self):
        """Leaves the run between two steps, in order: the node takes all that was stepped, and waits for the next script."""
        asked = self._pending is not None and not self.over
        self.over = True
        with contextlib.suppress(frames.FrameError, OSError):
            if asked:
                self._refuse(LearnerError("the script leaves", kind="leaving"))
                while (request := frames.read(self._connection)) is not None and self._session.serve(request) is None:
                    pass
        self._end()

    def apply(self, optimizer):
        """Sets the node's learning rate in all groups of an optimizer."""
        for group in optimizer.param_groups:
            if hasattr(group["lr"], "fill_"):  # a tensor, which a captured step reads
                group["lr"].fill_(self.lr)
            else:
                group["lr"] = self.lr

    def batches(self, rows=None, context=None):
        """Yields batches of the run's text at the places that the node names, until the run is over.

        Each is a dict of input_ids and labels, int64 [rows, context]: labels are the same tokens, as the models of
        Hugging Face have them. So a batch has rows x (context - 1) targets.
        """
        text = self._script.text()
        while not self.over:
            yield text.batch(self._pending.get("starts") or [], rows, context)

    def held_out(self):
        """Yields batches of the run's held-out text, for models of bytes, as batches() does: evaluate(run) may use them."""
        text, starts = self._script.text("held_out"), self._script.places
        rows = max(1, self._script.run.rows)
        for at in range(0, len(starts), rows):
            yield text.batch(starts[at : at + rows])

    def _begin(self, token):
        """Serves the node until it asks for the first step. Returns False where it closed the connection without a word."""
        try:
            self._session.hello(token)
            request = frames.read(self._connection)
        except (frames.FrameError, OSError) as failure:
            if not self._folder:
                raise LearnerError(f"the connection to the node failed: {failure}", "start the node again") from failure
            request = None
        if request is None:
            self._connection.close()
            if self._folder:
                return False
            raise LearnerError("the node closed the connection before it told of its run", "its log says why; start it again")
        self._serve(request)
        return True

    def _refuse(self, error):
        self._session.send({"type": "error", "error": error.error, "remedy": error.remedy, "kind": error.kind})

    def _serve(self, request=None):
        """Answers requests until one is a step. Returns whether there is one."""
        self._pending = None
        while not self.over:
            request = request or self._read()
            if request["type"] == "step" and self._session.started:
                if self._take(request):
                    return True
            else:
                self._answer(request)
            request = None
        return False

    def _answer(self, request):
        code = self._session.serve(request)
        if request["type"] == "stop" and code == 0:
            self._end()
        elif code is not None or self._misfit(request):
            self._leave(code)

    def _misfit(self, request):
        """Says that this script has refused the run. Without an earlier script's state it is told of the run again."""
        return self._folder and request["type"] == "run" and not self._session.started and not request.get("resume")

    def _read(self):
        try:
            request = frames.read(self._connection)
        except (frames.FrameError, OSError) as failure:
            log(f"the connection to the node failed: {failure}")
            self._leave(1)
        if request is None:
            log("the node has closed the connection")
            self._leave(1)
        return request

    def _leave(self, code):
        """Ends a script that the node has started; one that attached learns why the node is gone."""
        self._connection.close()
        if not self._folder:
            raise SystemExit(code)
        raise _with_remedy(
            self._session.failure
            or LearnerError(
                f"the node of {self._folder} has ended, or has let go of this script",
                "see its log; once it waits for a script, call atoll.join again",
            )
        )

    def _take(self, request):
        try:
            self.number, self.lr = int(request["number"]), float(request["lr"])
        except (KeyError, TypeError, ValueError) as failure:
            self._refuse(_explain(failure))
            return False
        self._pending = request
        return True

    def _end(self):
        self.over = True
        self._session.over.set()
        self._session.end_tracking()
        self._connection.close()


def _number(name, value):
    """The value of a number, or of a tensor with one."""
    if hasattr(value, "numel") and value.numel() != 1:
        raise TypeError(f"{name} is a tensor of {value.numel()} values: give one number, such as targets.numel() for tokens")
    if hasattr(value, "item"):
        value = value.item()
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise TypeError(f"{name} is {value!r}: give a number, or a tensor with one value")
    return value


class _Script(Learner):
    """The learner's side of a script: all but the step, which is the user's."""

    def __init__(self, model, optimizer, evaluate=None):
        from . import values

        self.values_of, self.model, self.optimizer = values, values.unwrap(model), optimizer
        self.run = self.joined = self.tracking = None
        self.quality, self.places = evaluate, []  # the user's function, and where the node's rows of held-out text begin

    def hello(self):
        import torch

        parameters = [p for _, p in self.values_of.names_of(self.model)]
        return {
            "name": os.path.basename(sys.argv[0]) or "atoll.join", "version": f"{__version__}, PyTorch {torch.__version__}",
            "devices": _devices(parameters), "precision": self.values_of.precision(parameters),
            "evaluates": self.quality is not None,
        }  # fmt: skip

    def start(self, run):
        self.run = run
        parameters = self.values_of.match(self.model, run.tensors)
        self.values = self.values_of.Values(run, parameters)
        if run.resume:
            self._resume(run.resume)
        return {"layout": self.values.digest(), "tokens_per_second": 0, "memory_bytes": 0}

    def load(self, pieces):
        self.values.load(pieces)

    def flush(self, pieces):
        self.values.flush(pieces)

    def evaluate(self, starts):
        import torch

        self.places = starts
        with torch.no_grad():
            found = self.quality(self.joined)
        loss, tokens, count = (*found, 0, 0)[:3] if isinstance(found, tuple) else (found, 0, 0)
        return int(_number("tokens", tokens)), float(_number("loss", loss)), int(_number("bytes", count))

    def save(self, path):
        import torch

        state = {"format": FORMAT, "layout": self.run.layout}
        if self.optimizer is not None:
            state["optimizer"] = self.optimizer.state_dict()
        write_whole(path, lambda file: torch.save(state, file))

    def _resume(self, path):
        if self.optimizer is None:
            return  # its owner has to care for it
        try:
            state = self.values_of.resume_state(path, FORMAT, self.run.layout)
            if "optimizer" in state:
                self.optimizer.load_state_dict(state["optimizer"])
        except Exception as failure:  # a broken file can fail in any way
            raise LearnerError(f"cannot resume from {path}: {self.values_of.first_line(failure)}", "start without it") from failure

    def text(self, part="text"):
        from .text import opened

        path = getattr(self.run, part)
        if not path:
            raise LearnerError("this run has no text of its own: give your own batches in place of run.batches and run.held_out")
        return opened(path, self.run.context, "held_out" if part == "held_out" else "shards")


def _devices(parameters):
    """The devices of parameters, as hello has them."""
    from .torch import devices

    listed = []
    for device in dict.fromkeys(p.device for p in parameters):
        try:
            listed.append(devices.describe(device))
        except KeyError:  # of a kind that only this PyTorch knows
            listed.append({"kind": device.type, "name": str(device), "count": 1, "memory_bytes": 0})
    return listed
