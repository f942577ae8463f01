"""What learners of every peer have in common: the model, the text, the rates, and what they tell the driver.

A job is a folder: job.json, init.f32 with the first parameters as one flat vector, train.txt. Learner number I writes
learnerI.jsonl, a line for each step, and modelI.f32 at its end.
"""

import json
import math
import os
import random
import struct
import sys
import time
import types

import torch
from torch import nn

from atoll.torch.llama import Llama, layout


class Job:
    def __init__(self, folder, learner):
        self.folder, self.learner = folder, learner
        with open(os.path.join(folder, "job.json"), encoding="utf-8") as file:
            self.__dict__.update(json.load(file))
        with open(os.path.join(folder, "train.txt"), "rb") as file:
            self.text = torch.frombuffer(bytearray(file.read()), dtype=torch.uint8)
        # A learner that comes back draws other rows than those it has had.
        self.draws = random.Random(f"{self.seed} {learner} {os.getpid()}")
        self.lines = open(os.path.join(folder, f"learner{learner}.jsonl"), "a", encoding="utf-8")
        torch.set_num_threads(1)
        torch.set_flush_denormal(True)

    @property
    def step_tokens(self):
        return self.batch * self.model["context"]

    def network(self):
        """Returns the model with the first parameters that all have."""
        config = types.SimpleNamespace(**self.model)
        config.head = config.hidden // config.heads
        model = Llama(config, "cpu")
        with open(os.path.join(self.folder, "init.f32"), "rb") as file:
            values = torch.frombuffer(bytearray(file.read()), dtype=torch.float32)
        at = 0
        for name, shape in layout(model):
            owner, _, leaf = name.rpartition(".")
            end = at + math.prod(shape)
            setattr(model.get_submodule(owner), leaf, nn.Parameter(values[at:end].view(shape).clone()))
            at = end
        if at != len(values):
            sys.exit(f"init.f32 has {len(values)} values, the model has {at}")
        return model

    def groups(self, model):
        """Returns the parameters with weight decay, and those without: norms are decayed by nobody."""
        matrices = [p for p in model.parameters() if p.dim() == 2]
        others = [p for p in model.parameters() if p.dim() != 2]
        return [{"params": matrices, "weight_decay": self.weight_decay}, {"params": others, "weight_decay": 0.0}]

    def adamw(self, params):
        return torch.optim.AdamW(params, lr=self.rate, betas=(self.beta1, self.beta2), eps=self.eps)

    def factor(self, tokens):
        """Returns the rate when so many tokens of all learners are trained, of the highest rate."""
        done = min(max(tokens / self.tokens, 0), 1)
        if done < self.warmup:
            return 0.1 + 0.9 * done / self.warmup
        cosine = math.cos(math.pi * (done - self.warmup) / (1 - self.warmup))
        return self.final + (1 - self.final) * (1 + cosine) / 2

    def rows(self):
        """Returns inputs and targets, [rows, context] each, drawn from the text."""
        context = self.model["context"]
        starts = torch.tensor([self.draws.randrange(len(self.text) - context) for _ in range(self.batch)])
        tokens = self.text[starts[:, None] + torch.arange(context + 1)].long()
        return tokens[:, :-1], tokens[:, 1:]

    def loss(self, model):
        """Takes a step's forward and backward pass, and returns the mean loss in nats."""
        loss = model(*self.rows())
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), self.clip)
        return loss.item()

    def tell(self, what, **more):
        print(json.dumps({"at": time.time(), "what": what, **more}), file=self.lines, flush=True)

    def end(self, model):
        """Leaves the model and ends the process: the threads and processes of frameworks are not waited for."""
        values = torch.cat([p.detach().flatten() for p in model.parameters()])
        with open(os.path.join(self.folder, f"model{self.learner}.f32"), "wb") as file:
            file.write(struct.pack(f"<{len(values)}f", *values.tolist()))
        self.tell("end")
        sys.stdout.flush()
        os._exit(0)
