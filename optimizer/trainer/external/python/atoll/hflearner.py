"""The learner of atoll.hf: any causal model of transformers, on one process or on a data-parallel group."""

import json
import os

import torch
import torch.nn.functional as F
import transformers

from . import groups, hfrecipe
from .serve import LearnerError
from .text import Shards, Tokens, opened, seed
from .torch.steps import Steps
from .values import first_line, match
from .version import __version__


class HFLearner(Steps):
    def __init__(self, options, device, group):
        super().__init__(device, group, options.precision, options.micro_batch)
        self.options, self.tokenizer = options, None

    def hello(self):
        return self.describe("atoll.hf", f"{__version__}, PyTorch {torch.__version__}, transformers {transformers.__version__}")

    def start(self, run):
        self.run = run
        family, config, self.settings = hfrecipe.parse(run.recipe)
        torch.manual_seed(run.seed % (1 << 63))
        hfrecipe.check_base(run.recipe, self.options.base)
        model = hfrecipe.build(family, config, self.options.base)
        self.config = model.config
        self.text = self._text()
        self.held_out = self._held_out()
        self._build(model)
        return self.ready()

    def _text(self):
        o, context = self.options, self.run.context
        vocab, most = self.config.vocab_size, getattr(self.config, "max_position_embeddings", None) or context
        if context > most:
            raise LearnerError(f"the run has a context of {context}, its model one of {most}", "make the run anew with a smaller --context")
        if not self.run.text:
            raise LearnerError("the run has no text", "pass --data PATH to atoll join")
        folder = o.tokenizer or self.run.tokenizer
        self.of_bytes = not folder
        if folder:
            self.tokenizer = _tokenizer(folder, self.config if not o.tokenizer else None)
            text = self._cut(self.run.text)
            text.check(context)
            return text
        if vocab < 256:
            raise LearnerError(f"the model has a vocabulary of {vocab}, bytes as tokens need 256", "pass --tokenizer DIR")
        text = opened(self.run.text, context)
        if isinstance(text, Shards):
            self.of_bytes = False
            if text.vocab > vocab:
                raise LearnerError(f"the corpus has {text.vocab} tokens, the model {vocab}", "use a model of the corpus' tokenizer")
        return text

    def _cut(self, path):
        return Tokens(path, self.run.context, self.tokenizer, self.config.vocab_size)

    def _held_out(self):
        """The part of the text that nobody trains on; None where there is none, or less than a row of tokens."""
        if not self.run.held_out:
            return None
        if self.tokenizer is None:
            return opened(self.run.held_out, self.run.context, "held_out")
        held = self._cut(self.run.held_out)
        return held if len(held.tokens) > self.run.context else None

    def _build(self, model):
        try:
            match(model, self.run.tensors)  # before it moves: an error costs no memory of the device
        except LearnerError as failure:
            if any(".experts." in name for name, _ in self.run.tensors):
                failure.remedy = f"use transformers 4, not {transformers.__version__}, if each expert has tensors of its own; since 5 all of a layer are one"
            raise
        if self.options.gradient_checkpointing:
            model.gradient_checkpointing_enable(gradient_checkpointing_kwargs={"use_reentrant": False})
        model.to(self.device).train()
        names = self._places(model)
        self.model, holder = self.group.spread(model)
        own = dict(holder.named_parameters())
        self.parameters = [own[name] for name in names]
        self.values = self.group.values(self.run, self.parameters)
        self.layout = self.values.digest()
        self.optimizer = _adamw(self.settings, self.parameters)
        self.taken = 0

    def _places(self, model):
        """The model's own names of the run's tensors: what shards them makes new parameters of the same names."""
        place = {id(p): name for name, p in model.named_parameters()}
        return [place[id(p)] for p in match(model, self.run.tensors)]

    def places(self, number, starts):
        if self.tokenizer is not None or not starts:  # the node counts bytes
            return self.text.windows(self.run, number, len(starts) or self.run.rows)
        return starts

    def held_places(self, starts):
        return starts if self.tokenizer is None else self.held_out.spread(len(starts))

    def step(self, number, lr, starts):
        torch.manual_seed(seed(self.run, number, f"dropout {self.group.rank}"))
        return super().step(number, lr, starts)

    def loss(self, tokens):
        # Not the loss of transformers, which leaves out the last target of a row.
        logits = self.model(input_ids=tokens[:, :-1], use_cache=False).logits
        return F.cross_entropy(logits.flatten(0, 1).float(), tokens[:, 1:].flatten())

    def clear(self):
        self.optimizer.zero_grad(set_to_none=True)

    def clip(self):
        return groups.whole(torch.nn.utils.clip_grad_norm_(self.parameters, self.settings.clip)).item()

    def update(self, lr):
        for group in self.optimizer.param_groups:
            group["lr"] = lr
        self.optimizer.step()
        self.taken += 1

    def state(self):
        state = {"taken": self.taken, "m": [], "v": []}
        for p in self.parameters if self.taken else []:
            for key, name in (("m", "exp_avg"), ("v", "exp_avg_sq")):
                full = groups.whole(self.optimizer.state[p][name])  # all ranks have to take part
                if self.group.rank == 0:
                    state[key].append(full.cpu())
        return state

    def go_on(self, state):
        shapes = [tuple(p.shape) for p in self.parameters] if state["taken"] else []
        for key in ("m", "v"):
            if [tuple(x.shape) for x in state[key]] != shapes:
                raise ValueError(f"its {key} is not of the run's tensors")
        self.taken = state["taken"]
        for at, p in enumerate(self.parameters if self.taken else []):
            self.optimizer.state[p] = self._moments(p, state["m"][at], state["v"][at])

    def _moments(self, p, m, v):
        fused = self.optimizer.param_groups[0].get("fused")
        moments = {"step": torch.tensor(float(self.taken), device=p.device if fused else "cpu")}
        for name, full in (("exp_avg", m), ("exp_avg_sq", v)):
            moments[name] = torch.zeros_like(p, memory_format=torch.preserve_format)
            groups.place(moments[name], full.to(self.device))
        return moments


def _tokenizer(folder, config):
    """The tokenizer in a folder, which may lack the config.json that says of what model it is."""
    _refuse_paths(folder)
    try:
        return transformers.AutoTokenizer.from_pretrained(folder, config=config, local_files_only=True, trust_remote_code=False)
    except Exception as failure:
        raise LearnerError(f"cannot load the tokenizer {folder}: {first_line(failure)}", "give --tokenizer DIR with the model's tokenizer.json") from failure


def _refuse_paths(folder):
    """Refuses a config that names files elsewhere, which transformers 4 would read: the tokenizer may be a stranger's."""
    path = os.path.join(folder, "tokenizer_config.json")
    try:
        with open(path, encoding="utf-8-sig") as file:
            config = json.load(file)
    except (OSError, ValueError):
        return  # transformers says better what is wrong
    for name, value in config.items() if isinstance(config, dict) else []:
        if name.endswith("_file") and isinstance(value, str) and os.path.basename(value) != value:
            raise LearnerError(f"{path}: {name} is {value!r}, outside of its folder", "use a tokenizer that has all its files beside it")


def _adamw(settings, parameters):
    """AdamW in one kernel where PyTorch has one. Weight decay is for tensors of two dimensions."""
    param_groups = [
        {"params": [p for p in parameters if p.dim() == 2], "weight_decay": settings.weight_decay},
        {"params": [p for p in parameters if p.dim() != 2], "weight_decay": 0.0},
    ]
    param_groups = [group for group in param_groups if group["params"]]
    fixed = {"lr": 0.0, "betas": (settings.beta1, settings.beta2), "eps": settings.eps}
    try:
        return torch.optim.AdamW(param_groups, fused=True, **fixed)
    except (RuntimeError, TypeError, ValueError):
        return torch.optim.AdamW(param_groups, **fixed)
