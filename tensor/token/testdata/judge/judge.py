"""The judge of package token: PyPI's tokenizers.

    python3 judge.py train OUT FILE...      a small tokenizer.json of each family, trained on files
    python3 judge.py encode TOKENIZER       texts as JSON strings on stdin, one a line; for each
                                            its ids and what they decode to
    python3 judge.py retrain TOKENIZER FILE SIZE   what its trainer makes of a text
    python3 judge.py speed TOKENIZER FILE   MB/s on one core
"""

import json
import os
import sys
import time

os.environ["TOKENIZERS_PARALLELISM"] = "false"
from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers  # noqa: E402

CONTRACTIONS = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|"
REST = r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
LLAMA3 = CONTRACTIONS + r"\p{N}{1,3}" + REST
QWEN2 = CONTRACTIONS + r"\p{N}" + REST


def split(pattern):
    return pre_tokenizers.Sequence(
        [pre_tokenizers.Split(Regex(pattern), "isolated"), pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)]
    )


def byte_level():
    return pre_tokenizers.ByteLevel(add_prefix_space=False)


# A family: its pre-tokenizer, its normalizer, what its added tokens are called, ignore_merges.
FAMILIES = {
    "gpt2": (byte_level(), None, ["<|endoftext|>"], False),
    "llama3": (split(LLAMA3), None, ["<|begin_of_text|>", "<|end_of_text|>", "<|reserved_special_token_1|>"], True),
    "qwen2": (split(QWEN2), normalizers.NFC(), ["<|endoftext|>", "<|im_start|>", "<|im_end|>", "<tool_call>"], False),
    "smollm": (pre_tokenizers.Sequence([pre_tokenizers.Digits(True), byte_level()]), None, ["<|endoftext|>", "<|im_start|>"], False),
}


def train(out, files, size=700):
    for name, (pre, normalizer, added, whole) in FAMILIES.items():
        t = Tokenizer(models.BPE(ignore_merges=whole))
        t.pre_tokenizer, t.decoder = pre, decoders.ByteLevel()
        if normalizer:
            t.normalizer = normalizer
        first = added if name == "smollm" else []
        t.train(files, trainers.BpeTrainer(vocab_size=size, initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
                                           special_tokens=first, show_progress=False))
        if name == "qwen2":
            t.add_tokens([AddedToken("e\u0302\u0301<>", normalized=True)])
        t.add_special_tokens([AddedToken(a, normalized=name == "gpt2") for a in added])
        t.save(os.path.join(out, name + ".json"), pretty=False)


def encode(path):
    t = Tokenizer.from_file(path)
    while lines := sys.stdin.readlines(1 << 20):
        texts = [json.loads(line) for line in lines]
        for e in t.encode_batch(texts, add_special_tokens=False):
            print(json.dumps([e.ids, t.decode(e.ids, skip_special_tokens=False)]))
        sys.stdout.flush()


def retrain(path, text, size):
    """What the judge's own trainer makes of a text, with the pre-tokenizer of a file."""
    t = Tokenizer.from_file(path)
    # A text at once, as Go has it: from a file the judge would take lines.
    with open(text, encoding="utf-8") as f:
        t.train_from_iterator([f.read()], trainers.BpeTrainer(
            vocab_size=int(size), initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
            special_tokens=["<|endoftext|>"], show_progress=False))
    m = json.loads(t.to_str())["model"]
    print(json.dumps({"vocab": m["vocab"], "merges": m["merges"]}))


def speed(path, name):
    t = Tokenizer.from_file(path)
    # Documents of a few KB, as corpora have them.
    with open(name, encoding="utf-8") as f:
        text = f.read()
    pieces = [text[at : at + 4096] for at in range(0, len(text), 4096)]
    size = sum(len(p.encode()) for p in pieces)
    best = 1e9
    for _ in range(3):
        begin = time.process_time()
        for p in pieces:
            t.encode(p, add_special_tokens=False)
        best = min(best, time.process_time() - begin)
    print("%.1f" % (size / best / 1e6))


if __name__ == "__main__":
    command, *rest = sys.argv[1:]
    if command == "train":
        train(rest[0], rest[1:])
    else:
        {"encode": encode, "retrain": retrain, "speed": speed}[command](*rest)
