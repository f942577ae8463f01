"""The recipe of a run of the built-in family. It comes from a stranger: what is not known here is refused by name."""

import dataclasses
import json
import math

from .serve import LearnerError

LARGEST = 1 << 20  # of each size, as the node has it

_OTHER = "use a learner that knows it"


@dataclasses.dataclass(frozen=True)
class Model:
    vocab: int
    hidden: int
    layers: int
    heads: int
    kv_heads: int
    intermediate: int
    context: int
    rope_theta: float
    norm_eps: float
    tied: bool

    @property
    def head(self):
        """The size of a head."""
        return self.hidden // self.heads


@dataclasses.dataclass(frozen=True)
class Optimizer:
    name: str
    beta1: float
    beta2: float
    eps: float
    weight_decay: float
    clip: float
    momentum: float = 0.0  # Muon's; AdamW has no use for it


def parse(text):
    """Returns Model and Optimizer of a recipe."""
    recipe = read(text)
    check_names("", recipe, ["family", "tokenizer", "model", "optimizer"], [])
    check_choice("family", recipe["family"], ["llama"])
    check_choice("tokenizer", recipe["tokenizer"], ["byte", "corpus"])
    model = build(Model, "model", recipe["model"])
    optimizer = build(Optimizer, "optimizer", recipe["optimizer"])
    _check_model(model)
    check_optimizer(optimizer, recipe["optimizer"])
    return model, optimizer


def check_run(model, tensors, run):
    """Refuses a run whose context or tensors, (name, shape) in their order, are not those of its recipe's model."""
    if not 1 <= run.context <= model.context:
        raise LearnerError(f"the run has a context of {run.context}, its model one of {model.context}", "make the run anew")
    for own, other in zip(tensors, run.tensors):
        if own != other:
            what = f"tensor {other[0]} {list(other[1])} where the recipe's model has {own[0]} {list(own[1])}"
            raise LearnerError(f"the run has {what}", "make the run anew")
    if len(tensors) != len(run.tensors):
        raise LearnerError(f"the run has {len(run.tensors)} tensors, the recipe's model {len(tensors)}", "make the run anew")


def read(text):
    """Returns the fields of a recipe."""
    try:
        fields = json.loads(text)
    except ValueError as failure:
        raise LearnerError(f"recipe is not JSON: {failure}", "make the run anew") from failure
    if not isinstance(fields, dict):
        raise LearnerError(f"recipe is {show(fields)}, not a JSON object", "make the run anew")
    return fields


def build(kind, where, given):
    if not isinstance(given, dict):
        raise LearnerError(f"recipe {where} is {show(given)}, not a JSON object", "make the run anew")
    fields = dataclasses.fields(kind)
    optional = [f.name for f in fields if f.default is not dataclasses.MISSING]
    check_names(where + ".", given, [f.name for f in fields if f.name not in optional], optional)
    return kind(**{f.name: _typed(where + "." + f.name, given[f.name], f.type) for f in fields if f.name in given})


def check_names(where, given, needed, optional):
    for name, value in given.items():
        if name not in needed and name not in optional:
            raise LearnerError(f"recipe field {where}{name} is {show(value)}: this learner does not know the field", _OTHER)
    for name in needed:
        if name not in given:
            raise LearnerError(f"recipe has no field {where}{name}", "make the run anew")


def _typed(name, value, kind):
    fits = type(value) is kind or (kind is float and type(value) is int)
    if not fits or (kind is float and not math.isfinite(value)):
        raise LearnerError(f"recipe {name} is {show(value)}, which is no {kind.__name__}", "make the run anew")
    return kind(value)


def check_choice(name, value, known):
    if value not in known:
        raise LearnerError(f"recipe {name} is {show(value)}: this learner knows {' and '.join(map(show, known))}", _OTHER)


def _check_model(m):
    for name in ("vocab", "hidden", "layers", "heads", "kv_heads", "intermediate", "context"):
        _check(f"model.{name}", getattr(m, name), 1 <= getattr(m, name) <= LARGEST, f"must be from 1 to {LARGEST}")
    _check("model.vocab", m.vocab, m.vocab >= 256, "bytes as tokens need at least 256")
    _check("model.heads", m.heads, m.hidden % m.heads == 0 and m.head % 2 == 0, f"must divide hidden {m.hidden} into heads of even size")
    _check("model.kv_heads", m.kv_heads, m.heads % m.kv_heads == 0, f"must divide heads {m.heads}")
    _check("model.rope_theta", m.rope_theta, m.rope_theta >= 1, "must be at least 1")
    _check("model.norm_eps", m.norm_eps, m.norm_eps > 0, "must be above 0")


def check_optimizer(o, given):
    check_choice("optimizer.name", o.name, ["adamw", "muon"])
    for name in ("beta1", "beta2", "momentum"):
        _check(f"optimizer.{name}", getattr(o, name), 0 <= getattr(o, name) < 1, "must be 0 or more and below 1")
    for name in ("eps", "clip"):
        _check(f"optimizer.{name}", getattr(o, name), getattr(o, name) > 0, "must be above 0")
    _check("optimizer.weight_decay", o.weight_decay, o.weight_decay >= 0, "must be 0 or more")
    if o.name == "muon" and "momentum" not in given:
        raise LearnerError('recipe has no field optimizer.momentum, which "muon" needs', "make the run anew")


def _check(name, value, fits, rule):
    if not fits:
        raise LearnerError(f"recipe {name} is {value}: {rule}", "make the run anew")


def show(value):
    """A value as JSON has it, cut to a readable length."""
    text = json.dumps(value)
    return text if len(text) <= 100 else text[:100] + "..."
