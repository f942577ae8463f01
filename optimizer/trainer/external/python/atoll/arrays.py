"""The learner of the built-in family for frameworks whose arrays are like NumPy's: atoll.jax and atoll.mlx.

A framework is an object `xp` with the functions used here. It trains plain lists of arrays, with AdamW.
"""

import json
import math
import mmap
import os
import time

from . import recipe
from .corpus import Corpus
from .pieces import begins, parts
from .serve import Learner, LearnerError, diverged, log, write_whole
from .slab import layout_digest
from .version import __version__

_LAYER = ("input_layernorm", "self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj", "self_attn.o_proj", "post_attention_layernorm",
          "mlp.gate_proj", "mlp.up_proj", "mlp.down_proj")  # fmt: skip


def layout(c):
    """Returns (name, shape) of the tensors of a model."""
    h, kv, wide = c.hidden, c.kv_heads * c.head, c.intermediate
    shapes = ((h,), (h, h), (kv, h), (kv, h), (h, h), (h,), (wide, h), (wide, h), (h, wide))
    listed = [("model.embed_tokens.weight", (c.vocab, h))]
    for i in range(c.layers):
        listed += [(f"model.layers.{i}.{name}.weight", shape) for name, shape in zip(_LAYER, shapes)]
    listed.append(("model.norm.weight", (h,)))
    return listed if c.tied else [*listed, ("lm_head.weight", (c.vocab, h))]


def loss(xp, c, params, tokens):
    """Returns the mean loss in nats of the token after each, of rows [rows, context + 1]."""
    inputs, targets = tokens[:, :-1], tokens[:, 1:]
    x, rotate = params[0][inputs], _rotation(xp, c, inputs.shape[1])
    for i in range(c.layers):
        gain, q, k, v, o, after, gate, up, down = params[1 + i * len(_LAYER) : 1 + (i + 1) * len(_LAYER)]
        y = _norm(xp, x, gain, c.norm_eps)
        x = x + _attention(xp, c, y @ q.T, y @ k.T, y @ v.T, rotate) @ o.T
        y = _norm(xp, x, after, c.norm_eps)
        g = y @ gate.T
        x = x + (g / (1 + xp.exp(-g)) * (y @ up.T)) @ down.T
    x = _norm(xp, x, params[1 + c.layers * len(_LAYER)], c.norm_eps)
    logits = x @ params[0 if c.tied else -1].T
    right = xp.take_along_axis(logits, targets[..., None], axis=-1)[..., 0]
    return xp.mean(xp.logsumexp(logits, axis=-1) - right)


def _norm(xp, x, gain, eps):
    return x / xp.sqrt(xp.mean(x * x, axis=-1, keepdims=True) + eps) * gain


def _rotation(xp, c, length):
    """Cosines and sines [length, head] of Hugging Face's rotary embedding: halves of a head turn together."""
    rates = [c.rope_theta ** (-2 * i / c.head) for i in range(c.head // 2)] * 2
    angles = [[place * rate for rate in rates] for place in range(length)]
    return tuple(xp.array([[f(a) for a in row] for row in angles], dtype=xp.float32) for f in (math.cos, math.sin))


def _attention(xp, c, q, k, v, rotate):
    cos, sin = rotate
    rows, length, _ = q.shape

    def heads(x, count):
        return xp.swapaxes(x.reshape(rows, length, count, c.head), 1, 2)

    def turn(x):
        half = c.head // 2
        return x * cos + xp.concatenate([-x[..., half:], x[..., :half]], axis=-1) * sin

    q, k, v = turn(heads(q, c.heads)), turn(heads(k, c.kv_heads)), heads(v, c.kv_heads)
    k, v = (xp.repeat(x, c.heads // c.kv_heads, axis=1) for x in (k, v))
    places = xp.arange(length)
    scores = xp.where(places[:, None] >= places[None, :], q @ xp.swapaxes(k, 2, 3) / math.sqrt(c.head), -1e30)
    weights = xp.exp(scores - xp.logsumexp(scores, axis=-1, keepdims=True))
    return xp.swapaxes(weights @ v, 1, 2).reshape(rows, length, c.heads * c.head)


def step(xp, o, params, m, v, grads, lr, taken):
    """Returns params, m and v after step number taken, from 1, and the norm of all gradients."""
    norm = xp.sqrt(sum(xp.sum(g * g) for g in grads))
    scale = xp.minimum(1.0, o.clip / (norm + 1e-12))
    grads = [g * scale for g in grads]
    m = [o.beta1 * a + (1 - o.beta1) * g for a, g in zip(m, grads)]
    v = [o.beta2 * a + (1 - o.beta2) * g * g for a, g in zip(v, grads)]
    first, second = 1 - o.beta1**taken, 1 - o.beta2**taken
    keep = {2: 1 - lr * o.weight_decay}
    params = [p * keep.get(p.ndim, 1.0) - lr * (a / first) / (xp.sqrt(b / second) + o.eps) for p, a, b in zip(params, m, v)]
    return params, m, v, norm


def _read(path, part):
    """Maps a file whose bytes are the tokens, or a part of the corpus in a folder."""
    try:
        if os.path.isdir(path):
            return Corpus(path).text(part)
        with open(path, "rb") as file:
            return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    except (OSError, ValueError) as failure:  # ValueError: an empty file
        raise LearnerError(f"cannot read text {path!r}: {failure}", "check the run's --data") from failure


class ArrayLearner(Learner):
    """A framework derives a class, with name, version, devices() and the functions at its end."""

    def hello(self):
        return {"name": self.name, "version": f"{__version__}, {self.version}", "devices": self.devices(), "precision": "f32", "evaluates": True}

    def start(self, run):
        self.run = run
        self.model, self.settings = recipe.parse(run.recipe)
        recipe.check_choice("optimizer.name", self.settings.name, ["adamw"])
        tensors = layout(self.model)
        recipe.check_run(self.model, tensors, run)
        self.begins, self.shapes = begins(tensors), [shape for _, shape in tensors]
        self.text = _read(run.text, "shards")
        self.held_out = _read(run.held_out, "held_out") if run.held_out else None
        self.of_bytes = not os.path.isdir(run.text)
        self.params, self.m, self.v = (self._zeros() for _ in range(3))
        self.taken = 0
        self.prepare()
        if run.resume:
            self._resume(run.resume)
        return {"layout": layout_digest(tensors), "tokens_per_second": self._measure(), "memory_bytes": 0}

    def _zeros(self):
        return [self.array(memoryview(bytearray(4 * math.prod(shape))).cast("f"), shape) for shape in self.shapes]

    def load(self, pieces):
        for at, low, high, begin in parts(self.begins, self.run.slab.pieces(pieces)):
            # A copy of its own: a framework may use the memory that it is given.
            whole = memoryview(bytearray(self.flat(self.params[at]).cast("B"))).cast("f")
            whole[low:high] = self.run.slab.values[begin : begin + high - low]
            self.params[at] = self.array(whole, self.shapes[at])

    def flush(self, pieces):
        cut = list(parts(self.begins, self.run.slab.pieces(pieces)))
        # What can fail comes first: the slab has all of it or nothing.
        staged = [(begin, self.flat(self.params[at])[low:high]) for at, low, high, begin in cut]
        for begin, values in staged:
            self.run.slab.values[begin : begin + len(values)] = values

    def step(self, number, lr, starts):
        value, grads = self.gradient(self._rows(self.text, starts))
        if not math.isfinite(value):
            raise diverged(number, f"loss {value}", lr)
        params, m, v, norm = self.update(grads, lr, self.taken + 1)
        if not math.isfinite(norm):
            raise diverged(number, f"gradient norm {norm}", lr)
        self.params, self.m, self.v, self.taken = params, m, v, self.taken + 1
        return len(starts) * self.run.context, value

    def evaluate(self, starts):
        if self.held_out is None:
            raise LearnerError("the run has no held-out text", "make the run with --data")
        if not starts:
            raise LearnerError("the request to evaluate names no row of the held-out text", "send the place of each row, one or more")
        losses, rows = [], max(1, self.run.rows)
        for at in range(0, len(starts), rows):
            part = starts[at : at + rows]
            # Gradients too, which are thrown away: a framework has compiled this for so many rows.
            losses.append(self.gradient(self._rows(self.held_out, part))[0] * len(part))
        count = len(starts) * self.run.context
        return count, math.fsum(losses) / len(starts), count if self.of_bytes else 0

    def _rows(self, text, starts):
        """Returns the tokens of rows that begin at these places."""
        last = len(text) - self.run.context - 1
        for start in starts:
            if not 0 <= start <= last:
                raise LearnerError(f"a row starts at {start!r}, text allows 0 to {last}", "use the text of the run")
        if not starts:
            raise LearnerError("the step has no starts", "send the place in text of each row")
        return self.tokens([list(text[s : s + self.run.context + 1]) for s in starts])

    def _measure(self):
        """Returns the tokens per second of forward and backward, from the second pass: the first compiles."""
        tokens = self.tokens([[(7 * i) % 256 for i in range(self.run.context + 1)]] * max(1, self.run.rows))
        self.gradient(tokens)
        begin = time.perf_counter()
        self.gradient(tokens)
        return max(1, self.run.rows) * self.run.context / (time.perf_counter() - begin)

    def save(self, path):
        head = json.dumps({"learner": "atoll.arrays", "layout": self.run.layout, "taken": self.taken}).encode() + b"\n"

        def write(file):
            file.write(head)
            for x in self.m + self.v:
                file.write(self.flat(x).cast("B"))

        write_whole(path, write)

    def _resume(self, path):
        try:
            with open(path, "rb") as file:
                head, data = json.loads(file.readline(1 << 16)), memoryview(bytearray(file.read())).cast("f")
            if head["learner"] != "atoll.arrays" or head["layout"] != self.run.layout or len(data) != 2 * self.begins[-1]:
                raise ValueError("it is of another model or another learner")
            taken = int(head["taken"])
        except (OSError, ValueError, KeyError, TypeError) as failure:
            raise LearnerError(f"cannot resume from {path}: {failure}", "start without it") from failure
        for into, begin in ((self.m, 0), (self.v, self.begins[-1])):
            for at, shape in enumerate(self.shapes):
                into[at] = self.array(data[begin + self.begins[at] : begin + self.begins[at + 1]], shape)
        self.taken = taken

    def stop(self):
        log(f"stopped after {self.taken} steps of this optimizer")

    def prepare(self):
        """Makes what gradient and update need, once model and settings are known."""

    def array(self, values, shape):
        """Returns an array of a memoryview of float32."""
        raise NotImplementedError

    def tokens(self, rows):
        """Returns an array of a list of rows."""
        raise NotImplementedError

    def flat(self, x):
        """Returns the values of an array, a memoryview of float32 in one dimension."""
        raise NotImplementedError

    def gradient(self, tokens):
        """Returns the loss, a number, and the gradients."""
        raise NotImplementedError

    def update(self, grads, lr, taken):
        """Returns params, m, v and the norm of all gradients, a number, after a step."""
        raise NotImplementedError
