"""AdamW and Muon as the node's built-in trainer has them, on one flat vector of parameters, or on parts of tensors.

    AdamW   m = beta1 m + (1-beta1) g
            v = beta2 v + (1-beta2) g^2
            p = p - lr (m/(1-beta1^t) / (sqrt(v/(1-beta2^t)) + eps) + weight_decay p)

    Muon    m = momentum m + (1-momentum) g
            u = momentum m + (1-momentum) g
            p = p - lr (0.2 sqrt(max(rows, columns)) orthogonal(u) + weight_decay p)

Muon takes the matrices inside layers and leaves the rest to AdamW. Weight decay is for matrices alone.

An accelerator takes the same matrix of many layers in one call, for it spends more time on beginning calls than on such
products. It multiplies in bf16 where the learner's precision is bf16, as K. Jordan's Muon does (2024).
"""

import math
import re
import struct

import torch
import torch.nn.functional as F

from .. import groups

# Newton-Schulz: each step turns every singular value x into ax + bx^3 + cx^5.
SCHULZ_STEPS = 5
SCHULZ_A, SCHULZ_B, SCHULZ_C = 3.4445, -4.7750, 2.0315
SCHULZ_EPS = 1e-7  # of the norm: a gradient that is all but absent moves nothing

MUON_RMS = 0.2  # the root mean square of an update at a learning rate of 1
TINY = 2.0**-100  # a moment below it counts as 0: it would end as a denormal number, which is slow

STACK = 1 << 26  # values that an accelerator takes in one call: a gigabyte of workspace, enough to keep it busy

_OUTSIDE = ("model.embed_tokens.weight", "lm_head.weight")  # matrices that are not inside a layer


def clip(vectors, most, total=lambda number: number):
    """Scales vectors so that their Euclidean norm together is at most that, and returns the norm that they had.

    total adds up what all ranks have, where each has part of the vectors.
    """
    length = math.sqrt(total(squares(vectors)))
    if most < length < math.inf:
        for x in vectors:
            x.mul_(most / length)
    return length


def squares(vectors):
    """The sum of squares. Sums of pieces lose less in float32 than one long sum, and float64 is not everywhere."""
    parts = [torch.linalg.vector_norm(part) for x in vectors for part in x.split(_piece(x.device))]
    return math.fsum(part * part for part in torch.stack(parts).tolist())


class Optimizer:
    """Changes params, a flat vector with the tensors of layout, along grads.

    stack is how many values Muon takes in one call, if a matrix has no more; None leaves it to the device.
    """

    def __init__(self, recipe, layout, params, grads, work=None, precision="f32", stack=None):
        self.recipe, self.params, self.grads = recipe, params, grads
        self.taken = 0  # steps, from which the corrections of AdamW's moments follow
        self.decayed = []  # (begin, end) of AdamW's matrices
        self.plain = []  # (begin, end) of all that is AdamW's
        self.stacks = []  # all that is Muon's
        self._divide(layout, (STACK if _accelerates(params) else 0) if stack is None else stack)
        self.m = torch.zeros_like(params)
        self.v = params.new_zeros(sum(end - begin for begin, end in self.plain))
        self.work = work or Workspace([s.sizes for s in self.stacks], params, products_of(params, precision))

    def _divide(self, layout, most):
        begin, kinds = 0, {}
        for name, shape in layout:
            end = begin + self._length(shape)
            if _for_muon(self.recipe, name, shape):
                kinds.setdefault((re.sub(r"\d+", "N", name), shape), []).append(begin)
            else:
                _append(self.plain, begin, end)
                if len(shape) == 2:
                    _append(self.decayed, begin, end)
            begin = end
        for (_, shape), begins in kinds.items():
            self.stacks += stacks(begins, shape, most)

    def _length(self, shape):
        return math.prod(shape)

    @property
    def size(self):
        """How many values it changes on all ranks together."""
        return len(self.m)

    @property
    def plain_size(self):
        """How many of them are AdamW's."""
        return len(self.v)

    def gradients(self):
        """Returns the gradients, flat."""
        return self.grads

    def clear(self):
        self.grads.zero_()

    def step(self, lr):
        """Takes one step at learning rate lr."""
        self.taken += 1
        keep = 1 - lr * self.recipe.weight_decay
        for begin, end in self.decayed:
            self.params[begin:end].mul_(keep)
        second = 0
        for begin, end in self.plain:
            self._adamw(begin, end, self.v[second : second + end - begin], lr)
            second += end - begin
        for stack in self.stacks:
            self._muon(stack, lr, keep)

    def _adamw(self, begin, end, v, lr):
        o = self.recipe
        rate = lr / (1 - o.beta1**self.taken)
        root = 1 / math.sqrt(1 - o.beta2**self.taken)
        # Piece by piece, so that a piece stays in the processor's cache from one operation to the next.
        windows = (self.params[begin:end], self.grads[begin:end], self.m[begin:end], v)
        for p, g, m, v in zip(*(w.split(_piece(w.device)) for w in windows)):
            m.mul_(o.beta1).add_(g, alpha=_rest(o.beta1))
            m.copy_(F.hardshrink(m, TINY))
            v.mul_(o.beta2).addcmul_(g, g, value=_rest(o.beta2))
            F.threshold_(v, TINY, 0)
            p.sub_((m / v.sqrt().mul_(root).add_(o.eps)).mul_(rate))

    def _muon(self, stack, lr, keep):
        momentum, rest = self.recipe.momentum, _rest(self.recipe.momentum)
        params, fresh, m = (self._window(vector, stack) for vector in (self.params, self.grads, self.m))
        fresh.mul_(rest)  # the gradient has done its work
        m.mul_(momentum).add_(fresh)
        m.copy_(F.hardshrink(m, TINY))
        update = self._orthogonal(fresh, m, momentum, stack)
        params.mul_(keep).sub_(update, alpha=lr * MUON_RMS * math.sqrt(max(stack.shape)))

    def _window(self, vector, stack):
        return stack.window(vector)

    def _orthogonal(self, fresh, m, momentum, stack):
        """Returns what Muon makes of fresh + momentum m, in the shape of these."""
        return self.work.orthogonal(torch.add(fresh, m, alpha=momentum, out=self.work.take(stack)))

    def moments(self):
        """Returns m and v, the state beside taken."""
        return self.m, self.v

    def resume(self, taken, m, v):
        """Goes on from a state that check has seen."""
        self.taken = taken
        self.m.copy_(m)
        self.v.copy_(v)


class Part(Optimizer):
    """Changes this rank's rows of one tensor, a DTensor that fully_shard has cut."""

    def __init__(self, recipe, tensor, parameter, work):
        self.tensor, self.parameter = tensor, parameter
        super().__init__(recipe, [tensor], _flat(parameter), None, work, stack=0)

    def _length(self, shape):
        return len(self.params)

    @property
    def size(self):
        return self.parameter.numel()

    @property
    def plain_size(self):
        return 0 if self.stacks else self.size

    def gradients(self):
        # fully_shard may have moved both since.
        self.params, self.grads = _flat(self.parameter), _flat(self.parameter.grad)
        return self.grads

    def clear(self):
        self.parameter.grad = self.grads = None

    def _window(self, vector, stack):
        return vector  # this rank's rows

    def _orthogonal(self, fresh, m, momentum, stack):
        # It needs the whole matrix. Every rank computes it and takes its rows.
        whole = self._whole(torch.add(fresh, m, alpha=momentum))
        u = self.work.take(stack).copy_(whole.view(stack.sizes))
        return self._own(self.work.orthogonal(u))

    def _whole(self, own):
        """Gathers a vector of which every rank has the rows that it has of the tensor. All ranks have to ask."""
        return groups.whole(groups.cut_like(own, self.parameter)).view(-1)

    def _own(self, whole):
        return groups.own(whole.view(self.tensor[1]), self.parameter).reshape(-1)

    def moments(self):
        return self._whole(self.m), self.v if self.stacks else self._whole(self.v)

    def resume(self, taken, m, v):
        super().resume(taken, self._own(m), v if self.stacks else self._own(v))


def check(state, name, sizes):
    """Raises ValueError where a state is not of an optimizer of that name, and of vectors of these (size, plain_size)."""
    if state["optimizer"] != name:
        raise ValueError(f"it is of {state['optimizer']}, the run has {name}")
    if type(state["taken"]) is not int or state["taken"] < 0:
        raise ValueError(f"it has taken {state['taken']!r} steps")
    for key, size in zip("mv", (sum(each) for each in zip(*sizes))):
        moments = state[key]
        if moments.dtype != torch.float32 or tuple(moments.shape) != (size,):
            raise ValueError(f"its {key} is {moments.dtype} {tuple(moments.shape)}, the run has {torch.float32} {(size,)}")


class Stack:
    """Matrices of one shape that lie in a flat vector at even distances."""

    def __init__(self, begins, shape):
        self.begin, self.shape, self.sizes = begins[0], shape, (len(begins), *shape)
        self.apart = begins[1] - begins[0] if len(begins) > 1 else math.prod(shape)

    def window(self, vector):
        """Returns the matrices, [how many, rows, columns], as part of the vector."""
        return vector.as_strided(self.sizes, (self.apart, self.shape[1], 1), vector.storage_offset() + self.begin)


def stacks(begins, shape, most):
    """Cuts matrices of one shape that begin there into Stacks of at most so many values, or of one matrix."""
    apart = {after - before for before, after in zip(begins, begins[1:])}
    number = max(1, most // math.prod(shape)) if len(apart) == 1 else 1
    return [Stack(begins[at : at + number], shape) for at in range(0, len(begins), number)]


class Workspace:
    """The memory of Muon's steps, made once for the largest stack, so that no step can run out of it."""

    def __init__(self, sizes, like, products=torch.float32):
        values = max((math.prod(each) for each in sizes), default=0)
        squares = max((count * min(shape) ** 2 for count, *shape in sizes), default=0)
        self.first = like.new_empty(values)
        self.x = self.first if products == like.dtype else like.new_empty(values, dtype=products)
        self.next, self.gram, self.poly = (like.new_empty(count, dtype=products) for count in (values, squares, squares))

    @classmethod
    def of(cls, recipe, layout, like, precision="f32"):
        """The memory for the tensors of a layout, one after the other."""
        return cls([(1, *shape) for name, shape in layout if _for_muon(recipe, name, shape)], like, products_of(like, precision))

    def take(self, stack):
        """Returns where a stack's updates have to lie for orthogonal."""
        return self.first[: math.prod(stack.sizes)].view(stack.sizes)

    def orthogonal(self, u):
        """Brings the singular values of each matrix of u, which take gave, near 1. The result lies here as well."""
        u.mul_(_inverse_norms(u))
        x, after = (own[: u.numel()].view(u.shape) for own in (self.x, self.next))
        if x.dtype != u.dtype:
            x.copy_(u)
        wide = u.shape[1] <= u.shape[2]
        for _ in range(SCHULZ_STEPS):
            poly = self._polynomial(x, wide)
            torch.bmm(*((poly, x) if wide else (x, poly)), out=after)
            x, after = after, x
        return x

    def _polynomial(self, x, wide):
        """Returns a + bG + cG^2, where G is the product of x and its transpose over the shorter side."""
        n = min(x.shape[1:])
        gram, poly = (own[: len(x) * n * n].view(-1, n, n) for own in (self.gram, self.poly))
        torch.bmm(*((x, x.mT) if wide else (x.mT, x)), out=gram)
        torch.bmm(gram, gram, out=poly)
        poly.mul_(SCHULZ_C).add_(gram, alpha=SCHULZ_B)
        poly.diagonal(dim1=1, dim2=2).add_(SCHULZ_A)
        return poly


def products_of(like, precision):
    """Returns the type of Muon's products beside values like these, in a learner of that precision."""
    return torch.bfloat16 if precision == "bf16" and _accelerates(like) else torch.float32


def _inverse_norms(u):
    """Returns 1 / (norm + eps) of each matrix. It does not wait for an accelerator."""
    if len(u) == 1 and not _accelerates(u):
        return 1 / (math.sqrt(squares([u.view(-1)])) + SCHULZ_EPS)  # of pieces, which is closer
    return 1 / (torch.linalg.vector_norm(u, dim=(1, 2), keepdim=True) + SCHULZ_EPS)


def _accelerates(tensor):
    return tensor.device.type != "cpu"


def _flat(tensor):
    return tensor.detach().to_local().view(-1)


def _for_muon(recipe, name, shape):
    return recipe.name == "muon" and len(shape) == 2 and name not in _OUTSIDE


def _append(spans, begin, end):
    """Appends a span, joined with its neighbour."""
    if spans and spans[-1][1] == begin:
        begin = spans.pop()[0]
    spans.append((begin, end))


def _piece(device):
    """How many values one call handles: what a core's cache holds, or enough to keep an accelerator busy."""
    return 1 << 16 if device.type == "cpu" else 1 << 22


def _rest(rate):
    """1 - rate in float32, as the node computes it: rate was rounded before."""
    return _float32(1 - _float32(rate))


def _float32(x):
    return struct.unpack("f", struct.pack("f", x))[0]
