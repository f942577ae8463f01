"""The tensors that a PyTorch model trains, under the names of the run, and their way to the slab and back."""

import inspect

import torch

from .pieces import begins, parts
from .serve import LearnerError
from .slab import layout_digest

WIDE = (torch.float32, torch.float64)
NARROW = (torch.bfloat16, torch.float16)
PRECISION = {torch.float32: "f32", torch.float64: "f32", torch.bfloat16: "bf16", torch.float16: "f16"}


def unwrap(model):
    """Returns the model inside of torch.compile and of DistributedDataParallel."""
    while True:
        if hasattr(model, "_orig_mod"):
            model = model._orig_mod
        elif isinstance(model, torch.nn.parallel.DistributedDataParallel):
            model = model.module
        else:
            return model


def _named(model):
    """Names and parameters, with all names of tied weights: parameters() of PyTorch 1.13 has no such choice."""
    for place, module in model.named_modules(remove_duplicate=False):
        for name, p in module._parameters.items():
            if p is not None:
                yield f"{place}.{name}" if place else name, p


def names_of(model):
    """Returns a list of (names, parameter) of what the model trains. Tied weights are one, with several names."""
    if hasattr(model, "peft_config"):
        return _adapter_names(model)
    names, parameters = {}, {}
    for name, p in _named(model):
        if p.requires_grad:
            names.setdefault(id(p), []).append(name)
            parameters[id(p)] = p
    return [(names[key], p) for key, p in parameters.items()]


def _adapter_names(model):
    """The names of PEFT's file: those of the parameters without the adapter's own name."""
    import peft

    # What saves embeddings by itself would ask a server for the base model.
    saved = peft.get_peft_model_state_dict(model, adapter_name=model.active_adapter, save_embedding_layers=False)
    place = {_place(value): name for name, value in saved.items()}
    return [([place.get(_place(p.data), name)], p) for name, p in model.named_parameters() if p.requires_grad]


def _place(tensor):
    return tensor.data_ptr(), tuple(tensor.shape)


def match(model, tensors):
    """Returns the parameters of the run's tensors, in their order. LearnerError names the first that differs."""
    own = names_of(model)
    by_name = {name: at for at, (names, _) in enumerate(own) for name in names}
    taken = {}
    for name, shape in tensors:
        at = by_name.get(name)
        if at is None:
            raise _differs(f"the run has tensor {name} {list(shape)}, {_why_missing(model, name)}")
        names, p = own[at]
        if tuple(p.shape) != tuple(shape):
            raise _differs(f"the run has tensor {name} {list(shape)}, the model {name} {list(p.shape)}")
        if at in taken:
            raise _differs(f"the run has both {taken[at]} and {name}, which the model ties to one")
        taken[at] = name
        _check_type(name, p)
    for at, (names, p) in enumerate(own):
        if at not in taken:
            raise _differs(f"the model trains {names[0]} {list(p.shape)}, which the run does not have: freeze it by requires_grad_(False)")
    return [own[by_name[name]][1] for name, _ in tensors]


def _why_missing(model, name):
    if any(name == other for other, _ in _named(model)):
        return "which the model does not train: its requires_grad is False"
    if any(name == other for other, _ in model.named_buffers()):
        return "which is a buffer of the model: it is not trained"
    return "which the model does not have"


def _differs(text):
    return LearnerError(text, "use the model that the run was made of, with atoll new --from")


def _check_type(name, p):
    if p.dtype not in WIDE + NARROW:
        known = ", ".join(str(kind).removeprefix("torch.") for kind in WIDE + NARROW)
        raise LearnerError(f"parameter {name} is of {str(p.dtype).removeprefix('torch.')}", f"convert the model to one of {known}")


def precision(parameters):
    """Returns the type that most values have, as hello has it."""
    count = {}
    for p in parameters:
        count[p.dtype] = count.get(p.dtype, 0) + p.numel()
    return PRECISION.get(max(count, key=count.get), "f32") if count else "f32"


class Values:
    """Moves pieces between the slab and parameters. Both stand in the order of the run's tensors.

    Where a parameter is narrower than float32, it keeps the rounded values of the last move: flush adds to the
    slab what has changed since, so that what rounding took away stays there.
    """

    def __init__(self, run, parameters):
        self.run, self.parameters = run, parameters
        self.slab = torch.frombuffer(run.slab.values, dtype=torch.float32)
        self.begins = begins(run.tensors)
        self.known = [torch.zeros(p.numel(), dtype=p.dtype) if p.dtype in NARROW else None for p in parameters]

    def digest(self):
        return layout_digest([(name, tuple(p.shape)) for (name, _), p in zip(self.run.tensors, self.parameters)])

    @torch.no_grad()
    def load(self, pieces):
        for at, low, high, begin in parts(self.begins, self.run.slab.pieces(pieces)):
            p, values = self.parameters[at], self.slab[begin : begin + high - low]
            if self.known[at] is not None:
                rounded = self.known[at][low:high].copy_(values)
                _check_rounded(self.run.tensors[at][0], values, rounded)
                values = rounded
            write(p, low, high, values)

    @torch.no_grad()
    def flush(self, pieces):
        # What can fail comes first: the slab has all of it or nothing.
        staged = [
            (at, low, begin, read(self.parameters[at], low, high).cpu())
            for at, low, high, begin in parts(self.begins, self.run.slab.pieces(pieces))
        ]
        for at, low, begin, values in staged:
            place = self.slab[begin : begin + len(values)]
            if self.known[at] is None:
                place.copy_(values)
            else:
                self._add_changes(at, low, values, place)

    def _add_changes(self, at, low, values, place):
        known = self.known[at][low : low + len(values)]
        # By bits: adding a difference of 0 would turn -0 into 0.
        changed = values.view(torch.int16) != known.view(torch.int16)
        place.copy_(torch.where(changed, place + (values.float() - known.float()), place))
        # Near 0 what rounding took away is worth more than a step between narrow numbers: the parameter gets it
        # back. So it is the rounded slab after every flush, and a learner that begins again has the same values.
        rounded = place.to(values.dtype)
        rounded = torch.where(rounded.isinf(), values, rounded)
        if not torch.equal(rounded.view(torch.int16), values.view(torch.int16)):
            write(self.parameters[at], low, low + len(values), rounded)
        known.copy_(rounded)


def _check_rounded(name, values, rounded):
    if rounded.dtype == torch.float16 and not torch.equal(values.isinf(), rounded.isinf()):
        raise LearnerError(f"tensor {name} has values up to {values.abs().max():.3g}, a float16 at most 65504", "convert the model to bfloat16")


def read(p, low, high):
    """Returns values of a parameter, flat. They may be a window of it."""
    return p.detach().reshape(-1)[low:high]


def write(p, low, high, values):
    p = p.detach()
    if p.is_contiguous():
        p.view(-1)[low:high].copy_(values)
        return
    # Of such a parameter reshape makes a copy.
    whole = p.reshape(-1)
    whole[low:high].copy_(values)
    p.copy_(whole.view(p.shape))


def resume_state(path, format, layout):
    """Reads a learner's state of a format and a layout. ValueError says which it is of instead."""
    # Plain tensors alone, where PyTorch can promise that: a pickle could run code.
    safe = "weights_only" in inspect.signature(torch.load).parameters
    state = torch.load(path, map_location="cpu", **({"weights_only": True} if safe else {}))
    if state["format"] != format:
        raise ValueError(f"it has format {state['format']}, this learner reads {format}")
    if state["layout"] != layout:
        raise ValueError("it is of another model")
    return state


def first_line(failure):
    return f"{type(failure).__name__}: {str(failure).partition(chr(10))[0]}"
