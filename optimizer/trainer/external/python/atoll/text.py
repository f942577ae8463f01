"""The tokens that a PyTorch learner trains on, and rows of them."""

import hashlib
import mmap
import os
import random

import torch

from .corpus import Corpus
from .serve import LearnerError


class Bytes:
    """A file whose bytes are the tokens."""

    def __init__(self, path, context):
        self.path, self.context = path, context
        self.tokens = _map(path)
        self.check(context)

    def check(self, context):
        if len(self.tokens) <= context:
            raise LearnerError(
                f"text {self.path} has {len(self.tokens)} tokens, a row needs {context + 1}", "use more text, or a smaller --context of atoll new"
            )

    def spread(self, rows):
        """Returns places of rows that lie evenly over the text: always the same."""
        last = len(self.tokens) - self.context - 1
        return [(2 * i + 1) * last // (2 * rows) for i in range(rows)]

    def rows(self, starts, length):
        """Returns length tokens from each of starts, int64 [rows, length]."""
        last = len(self.tokens) - length
        for start in starts:
            if type(start) is not int or not 0 <= start <= last:
                raise LearnerError(f"a row starts at {start!r}, the text allows 0 to {last}", "use the text of the run")
        return self.tokens[torch.tensor(starts)[:, None] + torch.arange(length)].long()

    def batch(self, starts, rows=None, context=None):
        """Returns input_ids and labels in the form of Hugging Face."""
        rows, context = rows or len(starts), context or self.context
        if not 1 <= rows <= len(starts):
            raise ValueError(f"rows is {rows}: the node names the places of {len(starts)} rows in a step: use 1 to {len(starts)}")
        if not 2 <= context <= self.context + 1:
            raise ValueError(f"context is {context}: the rows of this run have 2 to {self.context + 1} tokens")
        ids = self.rows(starts[:rows], context)
        return {"input_ids": ids, "labels": ids.clone()}

    def windows(self, run, number, rows):
        """Returns places of a step's rows. They are the same wherever run, author and step are."""
        source = random.Random(seed(run, number, "rows"))
        return [source.randrange(len(self.tokens) - self.context) for _ in range(rows)]


class Shards(Bytes):
    """A corpus in shards, whose tokens are "shards" or "held_out" of its manifest, one after the other."""

    def __init__(self, folder, context, part):
        self.path, self.context = folder, context
        try:
            corpus = Corpus(folder)
        except (OSError, ValueError) as failure:
            raise LearnerError(f"cannot read the corpus in {folder}: {failure}", "start the node again") from failure
        self.vocab, self.tokens = corpus.manifest["tokenizer"]["size"], corpus.text(part)

    def rows(self, starts, length):
        """Returns length tokens from each of starts, int64 [rows, length]. From None it is a row of zeros."""
        last = len(self.tokens) - length
        found = []
        for start in starts:
            if start is None:
                found.append([0] * length)
                continue
            if type(start) is not int or not 0 <= start <= last:
                raise LearnerError(f"a row starts at {start!r}, the corpus allows 0 to {last}", "use the corpus of the run")
            try:
                found.append(self.tokens[start : start + length])
            except (OSError, ValueError) as failure:
                raise LearnerError(f"cannot read a row at {start}: {failure}", "start the node again") from failure
        return torch.tensor(found)

    def windows(self, run, number, rows):
        """Returns places for measuring the speed: the shards may not be there yet."""
        return [None] * rows


def opened(path, context, part="shards"):
    """Returns the text at a path: a file of bytes, or the folder of a corpus, with the part of it that is meant."""
    return Shards(path, context, part) if os.path.isdir(path) else Bytes(path, context)


_PIECE = 1 << 22  # bytes that are cut into tokens at once


class Tokens(Bytes):
    """A text file, cut into tokens by a tokenizer."""

    def __init__(self, path, context, tokenizer, vocab):
        self.path, self.context = path, context
        self.tokens = _cut(path, tokenizer)
        most = int(self.tokens.max())
        if most >= vocab:
            raise LearnerError(f"the tokenizer makes token {most}, the model has {vocab}", "give the model's own --tokenizer")


def _cut(path, tokenizer):
    if os.path.isdir(path):
        raise LearnerError(f"the run's text {path} is a corpus, which is cut into tokens already", "leave --tokenizer out")
    # Where the text is parted, its first and last character may be cut in two. Pieces end with lines: ids as lists take 30 times
    # the memory of text.
    cut, ids = {"add_special_tokens": False, "return_attention_mask": False, "return_token_type_ids": False, "verbose": False}, []
    with open(path, "rb") as file:
        while lines := file.readlines(_PIECE):
            text = b"".join(lines)
            if not ids:
                text = text.lstrip(bytes(range(0x80, 0xC0)))
            ids.append(torch.tensor(tokenizer(text.decode("utf-8", errors="ignore"), **cut)["input_ids"], dtype=torch.int32))
    tokens = torch.cat([torch.zeros(0, dtype=torch.int32), *ids])
    return tokens if len(tokens) else torch.zeros(1, dtype=torch.int32)


def _map(path):
    """Maps the text, so that many learners on one machine share its memory."""
    try:
        with open(path, "rb") as file:
            # A private writable mapping: PyTorch warns of memory that it may not write to.
            text = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_COPY)
    except (OSError, ValueError) as failure:  # ValueError: an empty file
        raise LearnerError(f"cannot read text {path!r}: {failure}", "start the node again") from failure
    return torch.frombuffer(text, dtype=torch.uint8)


def seed(run, number, use):
    """Returns a number for a source of chance, of 63 bits."""
    digest = hashlib.sha256(f"{run.seed} {run.author} {number} {use}".encode()).digest()
    return int.from_bytes(digest[:8], "little") >> 1
