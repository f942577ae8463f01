"""Writes ../llama2.json, ../mistral.json and ../gemma.json: small tokenizers of these shapes, of sentencepiece's
tokens, with the merges that transformers makes of them: all ways to put a token together of two others.

    python3 pieces.py OUT FILE...
"""

import io
import json
import os
import sys

import sentencepiece

MARK = "\u2581"
RUNS = ["\n" * n for n in range(1, 5)] + [MARK * n for n in range(2, 6)]
GEMMA = ["<mask>", "<unused0>", "<start_of_turn>", "<end_of_turn>", *RUNS, "<table>", "<b>", "</b>", "<s>", "</s>"]


def pieces(files, size, names, own):
    """The tokens of a model in the order of ids, with their scores."""
    model = io.BytesIO()
    text = [line for f in files for line in open(f, encoding="utf-8").read().split("\n")]
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(text), model_writer=model, model_type="bpe", vocab_size=size, byte_fallback=True, split_digits=True,
        normalization_rule_name="identity", allow_whitespace_only_pieces=True, remove_extra_whitespaces=False,
        character_coverage=0.98, max_sentence_length=1 << 20, num_threads=1, user_defined_symbols=own, minloglevel=2, **names)
    p = sentencepiece.SentencePieceProcessor(model_proto=model.getvalue())
    return {p.id_to_piece(i): p.get_score(i) for i in range(len(p))}


def merges(scores):
    ids = {piece: i for i, piece in enumerate(scores)}
    found = []
    for piece, score in scores.items():
        cuts = [(piece[:n], piece[n:]) for n in range(1, len(piece))]
        here = [c for c in cuts if c[0] in ids and c[1] in ids]
        found += [(score, c) for c in sorted(here, key=lambda c: (ids[c[0]], ids[c[1]]))]
    return [list(c) for _, c in sorted(found, key=lambda f: (f[0], len(f[1][0]), len(f[1][1])), reverse=True)]


def file(scores, added, normalizer, pre, strip, begin):
    ids = {piece: i for i, piece in enumerate(scores)}
    decoders = [{"type": "Replace", "pattern": {"String": MARK}, "content": " "}, {"type": "ByteFallback"}, {"type": "Fuse"}]
    special, text = {"SpecialToken": {"id": begin, "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}
    return {
        "version": "1.0", "truncation": None, "padding": None,
        "added_tokens": [{"id": ids[a], "content": a, "single_word": False, "lstrip": False, "rstrip": False, "normalized": False,
                          "special": control} for a, control in added],
        "normalizer": normalizer, "pre_tokenizer": pre,
        "post_processor": {"type": "TemplateProcessing", "single": [special, text],
                           "pair": [special, text, {"Sequence": {"id": "B", "type_id": 1}}],
                           "special_tokens": {begin: {"id": begin, "ids": [ids[begin]], "tokens": [begin]}}},
        "decoder": {"type": "Sequence", "decoders": decoders + [{"type": "Strip", "content": " ", "start": 1, "stop": 0}] * strip},
        "model": {"type": "BPE", "dropout": None, "unk_token": "<unk>", "continuing_subword_prefix": None, "end_of_word_suffix": None,
                  "fuse_unk": True, "byte_fallback": True, "ignore_merges": False, "vocab": ids, "merges": merges(scores)},
    }


def main(out, files):
    replace = {"type": "Replace", "pattern": {"String": " "}, "content": MARK}
    both = {"type": "Sequence", "normalizers": [{"type": "Prepend", "prepend": MARK}, replace]}
    meta = {"type": "Metaspace", "replacement": MARK, "prepend_scheme": "first", "split": False}
    split = {"type": "Split", "pattern": {"String": " "}, "behavior": "MergedWithPrevious", "invert": False}
    llama = [("<unk>", True), ("<s>", True), ("</s>", True)]
    first = {"unk_id": 0, "bos_id": 1, "eos_id": 2, "pad_id": -1}
    gemma = {"pad_id": 0, "eos_id": 1, "bos_id": 2, "unk_id": 3, "pad_piece": "<pad>", "eos_piece": "<eos>", "bos_piece": "<bos>"}
    control = [(name, True) for name in ("<pad>", "<eos>", "<bos>", "<unk>")]
    for name, made in {
        "llama2": file(pieces(files, 2000, first, []), llama, both, None, 1, "<s>"),
        "mistral": file(pieces(files, 1900, first, ["[INST]", "[/INST]"]), [*llama, ("[INST]", True), ("[/INST]", True)], None, meta, 1, "<s>"),
        "gemma": file(pieces(files, 2100, gemma, GEMMA), control + [(a, False) for a in GEMMA], replace, split, 0, "<bos>"),
    }.items():
        with open(os.path.join(out, name + ".json"), "w", encoding="utf-8") as f:
            json.dump(made, f, ensure_ascii=False, separators=(",", ":"))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])
