"""The built-in model in PyTorch, with the arithmetic and the names of Hugging Face's LlamaForCausalLM.

Its modules stand in the order of the layout, so that named_parameters lists the tensors as the slab has them.
"""

import math

import torch
import torch.nn.functional as F
from torch import nn


def _parameter(*shape):
    """A parameter without memory: bind gives it some."""
    return nn.Parameter(torch.empty(shape, device="meta"))


class Matrix(nn.Module):
    """A matrix [out, in] without bias."""

    def __init__(self, out, width):
        super().__init__()
        self.weight = _parameter(out, width)

    def forward(self, x):
        return F.linear(x, self.weight)


class Embedding(Matrix):
    def forward(self, tokens):
        return F.embedding(tokens, self.weight)


class RMSNorm(nn.Module):
    def __init__(self, width, eps):
        super().__init__()
        self.eps = eps
        self.weight = _parameter(width)

    def forward(self, x):
        if hasattr(F, "rms_norm"):  # since PyTorch 2.4
            return F.rms_norm(x, self.weight.shape, self.weight, self.eps)
        return x * torch.rsqrt(x.square().mean(-1, keepdim=True) + self.eps) * self.weight


class Attention(nn.Module):
    """Causal grouped-query attention with rotary positions."""

    def __init__(self, c):
        super().__init__()
        self.size, self.group = c.head, c.heads // c.kv_heads
        self.q_proj = Matrix(c.hidden, c.hidden)
        self.k_proj = Matrix(c.kv_heads * c.head, c.hidden)
        self.v_proj = Matrix(c.kv_heads * c.head, c.hidden)
        self.o_proj = Matrix(c.hidden, c.hidden)

    def forward(self, x, cos, sin):
        v = self.split(self.v_proj(x))
        q = rotate(self.split(self.q_proj(x)), cos, sin).to(v.dtype)
        k = rotate(self.split(self.k_proj(x)), cos, sin).to(v.dtype)
        if self.group > 1:
            k, v = k.repeat_interleave(self.group, 1), v.repeat_interleave(self.group, 1)
        return self.o_proj(attend(q, k, v).transpose(1, 2).flatten(2))

    def split(self, x):
        """[rows, context, heads * size] to [rows, heads, context, size]."""
        return x.unflatten(2, (-1, self.size)).transpose(1, 2)


def attend(q, k, v):
    if hasattr(F, "scaled_dot_product_attention"):  # since PyTorch 2.0
        return F.scaled_dot_product_attention(q, k, v, is_causal=True)
    scores = (q @ k.transpose(-1, -2)).float() / math.sqrt(q.size(-1))
    future = torch.ones(scores.shape[-2:], dtype=torch.bool, device=q.device).triu(1)
    return scores.masked_fill(future, -math.inf).softmax(-1).to(v.dtype) @ v


def rotate(x, cos, sin):
    """Rotary positions: element i of the first half of a head is paired with element i of the second half."""
    first, second = x.chunk(2, -1)
    return torch.cat([first * cos - second * sin, second * cos + first * sin], -1)


def angles(c, device):
    """Returns cos and sin, [context, half of a head], of position / theta^(2i/head).

    Frequencies and angles are rounded to float32, as the node does; the rest is float64.
    """
    exponent = torch.arange(0, c.head, 2, dtype=torch.float64) / c.head
    frequency = 1 / (c.rope_theta**exponent).float()
    angle = torch.outer(torch.arange(c.context).float(), frequency).double()
    return angle.cos().float().to(device), angle.sin().float().to(device)


class FeedForward(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.gate_proj = Matrix(c.intermediate, c.hidden)
        self.up_proj = Matrix(c.intermediate, c.hidden)
        self.down_proj = Matrix(c.hidden, c.intermediate)

    def forward(self, x):
        return self.down_proj(F.silu(self.gate_proj(x)) * self.up_proj(x))


class Layer(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.input_layernorm = RMSNorm(c.hidden, c.norm_eps)
        self.self_attn = Attention(c)
        self.post_attention_layernorm = RMSNorm(c.hidden, c.norm_eps)
        self.mlp = FeedForward(c)

    def forward(self, x, cos, sin):
        x = x + self.self_attn(self.input_layernorm(x), cos, sin)
        return x + self.mlp(self.post_attention_layernorm(x))


class Stack(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.embed_tokens = Embedding(c.vocab, c.hidden)
        self.layers = nn.ModuleList([Layer(c) for _ in range(c.layers)])
        self.norm = RMSNorm(c.hidden, c.norm_eps)

    def forward(self, tokens, cos, sin):
        x = self.embed_tokens(tokens)
        for layer in self.layers:
            x = layer(x, cos, sin)
        return self.norm(x)


class Llama(nn.Module):
    """Its parameters have no memory until bind."""

    def __init__(self, c, device):
        super().__init__()
        self.model = Stack(c)
        self.lm_head = None if c.tied else Matrix(c.vocab, c.hidden)
        self.cos, self.sin = angles(c, device)

    def forward(self, inputs, targets):
        """Returns the mean loss in nats of targets, [rows, context]."""
        context = inputs.size(1)
        x = self.model(inputs, self.cos[:context], self.sin[:context])
        head = self.model.embed_tokens.weight if self.lm_head is None else self.lm_head.weight
        return F.cross_entropy(F.linear(x, head).flatten(0, 1).float(), targets.flatten())


def layout(model):
    """Returns (name, shape) of the trained tensors in the order of the slab."""
    return [(name, tuple(p.shape)) for name, p in model.named_parameters()]


def bind(model, values, grads):
    """Makes parameters and their gradients windows of two flat vectors.

    So a piece of the slab is one copy, and the optimizer needs few calls whatever the number of tensors.
    """
    at = 0
    for name, old in list(model.named_parameters()):
        owner, _, leaf = name.rpartition(".")
        end = at + old.numel()
        new = nn.Parameter(values[at:end].view(old.shape))
        new.grad = grads[at:end].view(old.shape)
        setattr(model.get_submodule(owner), leaf, new)
        at = end
