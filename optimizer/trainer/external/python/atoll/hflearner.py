"""The learner of atoll.hf: any causal model of transformers, on one process or on an island."""

import contextlib
import math
import time

import torch
import torch.nn.functional as F
import transformers

from . import hfrecipe, islands
from .serve import SMALLER, Learner, LearnerError, diverged, log, out_of_memory, write_whole
from .text import Bytes, Tokens, seed
from .torch import devices
from .values import first_line, match, resume_state
from .version import __version__

FORMAT = 1  # of the optimizer's state on disk

_SLOW = 2.0  # seconds of a first pass that tell enough of the speed


class HFLearner(Learner):
    def __init__(self, options, device, island):
        self.options, self.device, self.island = options, device, island
        self.precision = options.precision

    def hello(self):
        device = {**devices.describe(self.device), "count": self.island.world if self.device.type != "cpu" else 1}
        version = f"{__version__}, PyTorch {torch.__version__}, transformers {transformers.__version__}"
        return {"name": "atoll.hf", "version": version, "devices": [device], "precision": self.precision}

    def start(self, run):
        self.run = run
        family, config, self.settings = hfrecipe.parse(run.recipe)
        torch.manual_seed(run.seed % (1 << 63))
        model = hfrecipe.build(family, config, self.options.base)
        self.config = model.config
        self.text = self._text()
        self._build(model)
        if run.resume:
            self._resume(run.resume)
        speed = self._measure()
        return {"layout": self.layout, "tokens_per_second": speed, "memory_bytes": devices.memory_bytes(self.device)}

    def _text(self):
        o, context = self.options, self.run.context
        vocab, most = self.config.vocab_size, getattr(self.config, "max_position_embeddings", None) or context
        if context > most:
            raise LearnerError(f"the run has a context of {context}, its model one of {most}", "make the run anew with a smaller --context")
        if o.tokenizer:
            return Tokens(o.data, context, _tokenizer(o.tokenizer), vocab)
        if vocab < 256:
            raise LearnerError(f"the model has a vocabulary of {vocab}, bytes as tokens need 256", "pass --tokenizer DIR and --data PATH")
        if not (o.data or self.run.text):
            raise LearnerError("the run has no text", "pass --data PATH, and --tokenizer DIR for tokens that are not bytes")
        return Bytes(o.data or self.run.text, context)

    def _build(self, model):
        match(model, self.run.tensors)  # before it moves: an error costs no memory of the device
        if self.options.gradient_checkpointing:
            model.gradient_checkpointing_enable(gradient_checkpointing_kwargs={"use_reentrant": False})
        model.to(self.device).train()
        names = self._places(model)
        self.model, holder = self.island.spread(model)
        own = dict(holder.named_parameters())
        self.parameters = [own[name] for name in names]
        self.values = self.island.values(self.run, self.parameters)
        self.layout = self.values.digest()
        self.optimizer = _adamw(self.settings, self.parameters)
        self.taken = 0

    def _places(self, model):
        """The model's own names of the run's tensors: what shards them makes new parameters of the same names."""
        place = {id(p): name for name, p in model.named_parameters()}
        return [place[id(p)] for p in match(model, self.run.tensors)]

    def load(self, pieces):
        self.values.load(pieces)

    def flush(self, pieces):
        self.values.flush(pieces)

    def step(self, number, lr, starts):
        tokens = self._rows(number, starts)
        torch.manual_seed(seed(self.run, number, f"dropout {self.island.rank}"))
        loss = self._gradient(tokens)
        if not math.isfinite(loss):
            raise diverged(number, f"loss {loss}", lr)
        norm = islands.whole(torch.nn.utils.clip_grad_norm_(self.parameters, self.settings.clip)).item()
        if not math.isfinite(norm):
            raise diverged(number, f"gradient norm {norm}", lr)
        self._update(number, lr)
        return len(tokens) * self.island.world * self.run.context, loss

    def _update(self, number, lr):
        for group in self.optimizer.param_groups:
            group["lr"] = lr
        try:
            self.optimizer.step()
        except Exception as failure:
            # Some tensors have taken the step and others have not.
            remedy = SMALLER if out_of_memory(failure) else "start the learner again"
            raise LearnerError(f"step {number} broke off: {failure}", remedy, fatal=True) from failure
        self.taken += 1

    def _rows(self, number, starts):
        """Returns this rank's rows of a step, [rows, context + 1]. Every rank has as many."""
        world, rows = self.island.world, len(starts) or self.run.rows
        if self.options.data or not starts:
            starts = self.text.windows(self.run, number, -(-rows // world) * world)
        else:
            starts = starts + starts[:1] * (-rows % world)
        return self.text.rows(starts[self.island.rank :: world], self.run.context + 1)

    def _gradient(self, tokens):
        """Leaves the mean gradient over all rows of all ranks, and returns their mean loss."""
        self.optimizer.zero_grad(set_to_none=True)
        losses = []
        parts = tokens.split(self.options.micro_batch or len(tokens))
        for at, part in enumerate(parts):
            with self.island.hold(self.model, at == len(parts) - 1):
                loss = self._loss(part.to(self.device)) * (len(part) / len(tokens))
                loss.backward()
            losses.append(loss.detach())
        return self.island.mean(math.fsum(torch.stack(losses).tolist()))

    def _loss(self, tokens):
        # Not the loss of transformers, which leaves out the last target of a row.
        with self._autocast():
            logits = self.model(input_ids=tokens[:, :-1], use_cache=False).logits
        return F.cross_entropy(logits.flatten(0, 1).float(), tokens[:, 1:].flatten())

    def _autocast(self):
        if self.precision == "f32":
            return contextlib.nullcontext()
        return torch.autocast(self.device.type, dtype=torch.bfloat16)

    def _measure(self):
        """Returns the tokens per second of forward and backward over all ranks. Parameters stay as they are."""
        world = self.island.world
        rows = max(1, self.run.rows // world)
        rows = min(rows, self.options.micro_batch or rows)
        places = self.text.windows(self.run, "speed", rows)
        tokens = self.text.rows(places, self.run.context + 1)
        took = self._timed(tokens)
        if took < _SLOW:
            took = min(self._timed(tokens) for _ in range(2))
        self.optimizer.zero_grad(set_to_none=True)
        return rows * world * self.run.context / took

    def _timed(self, tokens):
        begin = time.perf_counter()
        self._gradient(tokens)
        devices.synchronize(self.device)
        return self.island.slowest(time.perf_counter() - begin)

    def save(self, path):
        state = {"format": FORMAT, "layout": self.layout, "taken": self.taken, "m": [], "v": []}
        for p in self.parameters if self.taken else []:
            for key, name in (("m", "exp_avg"), ("v", "exp_avg_sq")):
                full = islands.whole(self.optimizer.state[p][name])  # all ranks have to take part
                if self.island.rank == 0:
                    state[key].append(full.cpu())
        if self.island.rank == 0:
            write_whole(path, lambda file: torch.save(state, file))

    def _resume(self, path):
        try:
            state = resume_state(path, FORMAT, self.layout)
            self._check(state)
        except Exception as failure:  # a broken file can fail in any way
            raise LearnerError(f"cannot resume from {path}: {first_line(failure)}", "start without it") from failure
        self.taken = state["taken"]
        for at, p in enumerate(self.parameters if self.taken else []):
            self.optimizer.state[p] = self._moments(p, state["m"][at], state["v"][at])

    def _check(self, state):
        shapes = [tuple(p.shape) for p in self.parameters] if state["taken"] else []
        for key in ("m", "v"):
            if [tuple(x.shape) for x in state[key]] != shapes:
                raise ValueError(f"its {key} is not of the run's tensors")

    def _moments(self, p, m, v):
        fused = self.optimizer.param_groups[0].get("fused")
        moments = {"step": torch.tensor(float(self.taken), device=p.device if fused else "cpu")}
        for name, full in (("exp_avg", m), ("exp_avg_sq", v)):
            moments[name] = torch.zeros_like(p, memory_format=torch.preserve_format)
            islands.place(moments[name], full.to(self.device))
        return moments

    def stop(self):
        if self.island.rank == 0:
            log(f"stopped after {self.taken} steps of this optimizer")


def _tokenizer(folder):
    try:
        return transformers.AutoTokenizer.from_pretrained(folder, local_files_only=True, trust_remote_code=False)
    except Exception as failure:
        raise LearnerError(f"cannot load --tokenizer {folder}: {first_line(failure)}", "give a folder with the model's tokenizer.json") from failure


def _adamw(settings, parameters):
    """AdamW in one kernel where PyTorch has one. Weight decay is for tensors of two dimensions."""
    groups = [
        {"params": [p for p in parameters if p.dim() == 2], "weight_decay": settings.weight_decay},
        {"params": [p for p in parameters if p.dim() != 2], "weight_decay": 0.0},
    ]
    groups = [group for group in groups if group["params"]]
    fixed = {"lr": 0.0, "betas": (settings.beta1, settings.beta2), "eps": settings.eps}
    try:
        return torch.optim.AdamW(groups, fused=True, **fixed)
    except (RuntimeError, TypeError, ValueError):
        return torch.optim.AdamW(groups, **fixed)
