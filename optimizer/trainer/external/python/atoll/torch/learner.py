"""The learner that computes the built-in family with PyTorch."""

import os
import types

import torch

from .. import groups, recipe
from ..serve import LearnerError
from ..slab import layout_digest
from ..text import opened
from ..version import __version__
from . import llama, optim
from .steps import Steps


class TorchLearner(Steps):
    def __init__(self, device, precision="f32", micro_batch=0, compile=False, group=None):
        super().__init__(device, group or groups.Alone(), precision, micro_batch)
        self.compile = self.slow_start = compile

    def hello(self):
        return self.describe("atoll.torch", f"{__version__}, PyTorch {torch.__version__}")

    def start(self, run):
        self.run = run
        sizes, self.settings = recipe.parse(run.recipe)
        model = llama.Llama(sizes, self.device)
        layout = llama.layout(model)
        recipe.check_run(sizes, layout, run)
        self.text = opened(run.text, run.context)
        self.held_out = opened(run.held_out, run.context, "held_out") if run.held_out else None
        self.of_bytes = not os.path.isdir(run.text)
        self._build(model, layout)
        return self.ready()

    def _build(self, model, layout):
        self.layout = layout_digest(layout)
        if self.group.cuts:
            self._cut(model, layout)
        else:
            self._bind(model, layout)
        self.compiled = torch.compile(self.model) if self.compile else self.model

    def _bind(self, model, layout):
        """Has all tensors on this rank, as windows of one vector: a piece of the slab is one copy then."""
        # Until load the values are 0: the speed of a matrix does not depend on what is in it.
        self.params = torch.zeros(len(self.run.slab), device=self.device)
        self.grads = torch.zeros_like(self.params)
        llama.bind(model, self.params, self.grads)
        self.optimizers = [optim.Optimizer(self.settings, layout, self.params, self.grads, precision=self.precision)]
        vector = types.SimpleNamespace(slab=self.run.slab, tensors=[("all", (len(self.run.slab),))])
        self.values = self.group.values(vector, [self.params])
        self.model, _ = self.group.spread(model)

    def _cut(self, model, layout):
        """Has part of each tensor on this rank. No rank ever has the whole model."""
        self.model, _ = self.group.spread(model)
        self.model.to_empty(device=self.device)
        parameters = list(self.model.parameters())
        for p in parameters:
            p.detach().zero_()
        work = optim.Workspace.of(self.settings, layout, parameters[0].to_local(), self.precision)
        self.optimizers = [optim.Part(self.settings, tensor, p, work) for tensor, p in zip(layout, parameters)]
        self.values = self.group.values(self.run, parameters)

    @property
    def taken(self):
        return self.optimizers[0].taken

    def places(self, number, starts):
        if not starts:
            raise LearnerError("the step has no starts", "send the place in text of each row")
        return starts

    def loss(self, tokens):
        return self.compiled(tokens[:, :-1], tokens[:, 1:])

    def clear(self):
        for optimizer in self.optimizers:
            optimizer.clear()

    def clip(self):
        return optim.clip([optimizer.gradients() for optimizer in self.optimizers], self.settings.clip, self.group.total)

    def update(self, lr):
        for optimizer in self.optimizers:
            optimizer.step(lr)

    def state(self):
        parts = []
        for optimizer in self.optimizers:
            m, v = optimizer.moments()  # all ranks have to take part
            if self.group.rank == 0:
                parts.append((m.cpu(), v.cpu()))
        m, v = (torch.cat(moments) for moments in zip(*parts)) if parts else ((), ())
        return {"optimizer": self.settings.name, "taken": self.taken, "m": m, "v": v}

    def go_on(self, state):
        optim.check(state, self.settings.name, [(o.size, o.plain_size) for o in self.optimizers])
        m, v = state["m"], state["v"]
        for optimizer in self.optimizers:
            optimizer.resume(state["taken"], m[: optimizer.size], v[: optimizer.plain_size])
            m, v = m[optimizer.size :], v[optimizer.plain_size :]
