"""Curves of a learner in TensorBoard and in Weights & Biases, as their users expect them. Importing this file loads neither."""

import argparse
import importlib
import time

from .serve import LearnerError, log, serve
from .version import __version__


def add_options(parser):
    parser.add_argument("--tensorboard", default="", metavar="DIR", help="write curves for TensorBoard to this folder")
    parser.add_argument("--wandb", default="", metavar="PROJECT", help="log to this project of Weights & Biases; WANDB_MODE=offline keeps it here")


def serve_tracked(name, learner_of, arguments=None):
    """Serves learner_of() with the options of this file alone. Returns the exit code of the process."""
    parser = argparse.ArgumentParser(prog=f"python3 -m {name}")
    add_options(parser)
    options = parser.parse_args(arguments)
    try:
        tracking = Tracking(options.tensorboard, options.wandb)
    except LearnerError as failure:
        log(f"{failure.error}: {failure.remedy}")
        return 2
    return serve(learner_of(), tracking=tracking)


class Tracking:
    """Where the steps of a learner are logged: loss, learning rate, tokens so far and tokens per second, by the number of the step.

    A step counts for more than its point on a curve: where a tracker fails, it says so once and is left out.
    """

    def __init__(self, tensorboard="", wandb=""):
        self._open = []
        for name, where, kind in (("tensorboard", tensorboard, _TensorBoard), ("wandb", wandb, _WandB)):
            if where:
                self._open.append((name, kind(str(where))))
        self._last, self._tokens = time.monotonic(), 0

    def began(self, run):
        """Takes the Run that the learner is told of."""
        self._last = time.monotonic()
        self._each(lambda tracker: tracker.began(run))

    def stepped(self, number, lr, tokens, loss):
        now = time.monotonic()
        self._tokens += tokens
        values = {"loss": loss, "lr": lr, "tokens": self._tokens, "tokens_per_second": tokens / max(now - self._last, 1e-9)}
        self._last = now
        self._each(lambda tracker: tracker.log(number, values))

    def evaluated(self, number, tokens, loss):
        self._each(lambda tracker: tracker.log(number, {"held_out_loss": loss}))

    def close(self):
        self._each(lambda tracker: tracker.close())
        self._open = []

    def _each(self, call):
        for entry in list(self._open):
            try:
                call(entry[1])
            except Exception as failure:  # of somebody else's program, which may fail in any way
                self._open.remove(entry)
                log(f"{entry[0]} is left out from here on: {type(failure).__name__}: {failure}")


def _load(module, name, package=""):
    try:
        return importlib.import_module(module)
    except ImportError:
        raise LearnerError(
            f"{name} is missing from this Python", f"install it with `python3 -m pip install {package or module}`, or leave it out"
        ) from None


class _TensorBoard:
    def __init__(self, folder):
        try:
            module = importlib.import_module("torch.utils.tensorboard")
        except ImportError:
            module = _load("tensorboardX", "TensorBoard", "tensorboard")
        self._writer = module.SummaryWriter(folder)

    def began(self, run):
        self._writer.add_text("recipe", run.recipe)

    def log(self, number, values):
        for name, value in values.items():
            self._writer.add_scalar(name, value, number)

    def close(self):
        self._writer.close()


class _WandB:
    def __init__(self, project):
        self._wandb, self._project, self._run = _load("wandb", "Weights & Biases"), project, None

    def began(self, run):
        # The node's learner goes on in one curve after each restart.
        settings = self._wandb.Settings(silent=True, console="off")
        self._run = self._wandb.init(
            project=self._project, id=f"{run.author[:16]}-{run.layout[:8]}", name=f"node {run.author[:10]}", resume="allow", settings=settings,
            config={"recipe": run.recipe, "seed": run.seed, "rows": run.rows, "context": run.context, "atoll": __version__},
        )  # fmt: skip

    def log(self, number, values):
        self._run.log(values, step=number)

    def close(self):
        self._run.finish()
