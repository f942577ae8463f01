"""models.py make DIR [NAME...]: models with random weights of many architectures, as save_pretrained writes them, with a tokenizer of their own.

models.py compare SOURCES EXPORTS: whether each folder in EXPORTS is what the one of its name in SOURCES is. Prints a line for each.

models.py rounded EXPORT SAME: whether the weights of a folder are those of another, in float32, rounded to their type, and what they say too.
"""

import json
import os
import sys

import torch
import transformers
from safetensors.torch import load_file
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

TEXTS = [
    "", " ", "\n", "\t\n \r\n", "light", " light", "Light of the sun", "the  sun", "sun\n\n\nprism", "1234567890", "a" * 300, "\0", "\x7f\x1b[0m", "é", "e\u0301",
    "日本語", "한국어", "עברית", "العربية", "हिन्दी", "🙂", "👩‍👩‍👧‍👦", "\u200b\ufeff", "\ud7ff\ue000", "\U0010ffff", "<|im_start|>user\nhi<|im_end|>", "<|im_start", "<tool>x</tool>",
    "Ünï and U\u0308nï", " <|think|> <|endoftext|><|im_end|>", "def f(x):\n    return x ** 2  # ∑", "ﬁ ½ Ⅳ ①",
]
CHAT = [{"role": "user", "content": "What is light?"}, {"role": "assistant", "content": "A wave."}, {"role": "user", "content": "<|im_end|> 🙂"}]

SMALL = dict(
    vocab_size=320, hidden_size=32, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2, intermediate_size=48, max_position_embeddings=64,
    bos_token_id=None, eos_token_id=2, pad_token_id=0,
)
OLD = dict(vocab_size=320, bos_token_id=None, eos_token_id=2)
WIDE = dict(SMALL, head_dim=8)
ROPE = dict(rope_type="llama3", factor=8.0, low_freq_factor=1.0, high_freq_factor=4.0, original_max_position_embeddings=32)
VISION = dict(hidden_size=16, intermediate_size=16, num_hidden_layers=1, num_attention_heads=2, image_size=28, patch_size=14)
KINDS = {  # by folder: kind, config, type
    "gpt2": ("gpt2", dict(OLD, n_embd=32, n_layer=2, n_head=4, n_positions=64), "float32"),
    "opt": ("opt", dict(OLD, hidden_size=32, word_embed_proj_dim=32, num_hidden_layers=2, num_attention_heads=4, ffn_dim=48, max_position_embeddings=64, pad_token_id=0), "float16"),
    "llama": ("llama", dict(SMALL, tie_word_embeddings=False), "bfloat16"),
    "llama-tied": ("llama", dict(SMALL, tie_word_embeddings=True), "float32"),
    "llama3": ("llama", dict(SMALL, rope_scaling=ROPE, tie_word_embeddings=False), "bfloat16"),
    "qwen2": ("qwen2", dict(SMALL, tie_word_embeddings=True), "bfloat16"),
    "qwen3": ("qwen3", dict(WIDE, tie_word_embeddings=False), "bfloat16"),
    "mistral": ("mistral", dict(SMALL, tie_word_embeddings=False), "float16"),
    "mixtral": ("mixtral", dict(SMALL, num_local_experts=4, tie_word_embeddings=False), "bfloat16"),
    "gemma2": ("gemma2", WIDE, "bfloat16"),
    "gemma3": ("gemma3_text", WIDE, "bfloat16"),
    "gemma3-nested": ("gemma3", dict(text_config=WIDE, vision_config=VISION, mm_tokens_per_image=4), "bfloat16"),
    "phi3": ("phi3", SMALL, "bfloat16"),
    "smollm3": ("smollm3", SMALL, "float32"),
    "olmo2": ("olmo2", SMALL, "float32"),
    "mixed": ("llama", SMALL, "bfloat16"),  # with norms in float32
}


def tokenizer():
    made = Tokenizer(models.BPE())
    made.pre_tokenizer, made.decoder = pre_tokenizers.ByteLevel(add_prefix_space=False), decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=300, special_tokens=["<|endoftext|>", "<|im_start|>", "<|im_end|>"], initial_alphabet=pre_tokenizers.ByteLevel.alphabet(), show_progress=False
    )
    made.train_from_iterator(["light of the sun, refracted by a prism"] * 20, trainer)
    fast = transformers.PreTrainedTokenizerFast(tokenizer_object=made, eos_token="<|im_end|>", pad_token="<|endoftext|>", model_max_length=64)
    fast.add_tokens(["<tool>", "Ünï"])
    fast.add_special_tokens({"additional_special_tokens": ["<|think|>"]})
    fast.chat_template = (
        "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
    )
    return fast


def make(out, names):
    for name in names or KINDS:
        kind, settings, dtype = KINDS[name]
        torch.manual_seed(7)
        config = transformers.AutoConfig.for_model(kind, **settings)
        model = transformers.Gemma3ForConditionalGeneration(config) if kind == "gemma3" else transformers.AutoModelForCausalLM.from_config(config)
        for p in model.parameters():  # those of norms as well
            p.data += 0.02 * torch.randn_like(p)
        model.to(getattr(torch, dtype))
        if name == "mixed":
            for part, p in model.named_parameters():
                p.data = p.data.float() if "norm" in part else p.data
        model.generation_config = transformers.GenerationConfig(eos_token_id=2, pad_token_id=0, do_sample=True, temperature=0.7, top_k=20)
        model.save_pretrained(os.path.join(out, name))
        tokenizer().save_pretrained(os.path.join(out, name))


def bits(tensors):
    """The type and the bytes of each tensor, by the name that it has in a model of text alone."""
    values = {}
    for name, x in tensors.items():
        if not name.startswith(("vision_tower", "multi_modal_projector", "model.vision_tower", "model.multi_modal_projector")):
            name = name.removeprefix("language_model.") if name.startswith("language_model.model.") else name.replace("model.language_model.", "model.")
            values[name] = (x.dtype, tuple(x.shape), x.contiguous().view(torch.uint8).numpy().tobytes())
    return values


def check(what, same):
    if not same:
        raise AssertionError(what)


def compare(source, export):
    def weights(folder):
        return load_file(os.path.join(folder, "model.safetensors"))

    want, got = bits(weights(source)), bits(weights(export))
    check(f"tensors {sorted(want.keys() ^ got.keys())}", want.keys() == got.keys())
    check(f"bits of {[name for name in want if want[name] != got[name]]}", want == got)
    loads = transformers.AutoModelForCausalLM.from_pretrained
    model, seen = loads(export, output_loading_info=True)
    check(f"loading: {seen}", not any(seen.values()))
    named = json.load(open(os.path.join(source, "config.json"), encoding="utf-8"))
    if "text_config" not in named:
        config = json.load(open(os.path.join(export, "config.json"), encoding="utf-8"))
        check(f"config {config}", config == named)
        sizes = [os.path.getsize(os.path.join(folder, "model.safetensors")) for folder in (source, export)]
        check(f"bytes of weights {sizes}", abs(sizes[0] - sizes[1]) <= 0.01 * sizes[0])
        ids = torch.arange(40).unsqueeze(0)
        check("logits", torch.equal(loads(source)(ids).logits, model(ids).logits))
    check("AutoModel", transformers.AutoModel.from_pretrained(export) is not None)
    compare_text(source, export)


def compare_text(source, export):
    old, new = (transformers.AutoTokenizer.from_pretrained(folder) for folder in (source, export))
    check(f"{len(new)} tokens", len(old) == len(new) and len(old) > 280)
    for text in TEXTS:
        check(f"encoding of {text!r}", old(text)["input_ids"] == new(text)["input_ids"])
    chats = [t.apply_chat_template(CHAT, tokenize=False, add_generation_prompt=True) for t in (old, new)]
    check("chat template", chats[0] == chats[1] and "assistant" in chats[0])
    check("end token", new.eos_token == "<|im_end|>" and new.eos_token_id == 2)
    told = [transformers.GenerationConfig.from_pretrained(folder).to_dict() for folder in (source, export)]
    check(f"generation config {told}", told[0] == told[1] and told[0]["top_k"] == 20)
    for name in os.listdir(source):
        if name not in ("config.json", "model.safetensors"):
            a, b = (open(os.path.join(folder, name), "rb").read() for folder in (source, export))
            check(f"{name} is other bytes", a == b)
    answer = transformers.pipeline("text-generation", model=export)("light of", max_new_tokens=4, do_sample=False)
    check("pipeline", answer[0]["generated_text"].startswith("light of"))


def rounded(export, same):
    narrow, full = (load_file(os.path.join(folder, "model.safetensors")) for folder in (export, same))
    check("names", narrow.keys() == full.keys())
    for name, x in narrow.items():
        check(f"{name} is {x.dtype}", x.dtype != torch.float32 and full[name].dtype == torch.float32 and torch.equal(x, full[name].to(x.dtype)))
    models = [transformers.AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32) for folder in (export, same)]
    for p in models[1].parameters():
        p.data = p.data.to(next(iter(narrow.values())).dtype).float()
    ids = torch.arange(60).unsqueeze(0)
    apart = (models[0](ids).logits - models[1](ids).logits).abs().max().item()
    check(f"logits {apart} apart", apart <= 1e-4)


def main():
    transformers.logging.set_verbosity_error()
    if sys.argv[1] == "make":
        return make(sys.argv[2], sys.argv[3:])
    if sys.argv[1] == "rounded":
        return rounded(*sys.argv[2:])
    failed = 0
    for name in sorted(os.listdir(sys.argv[3])):
        try:
            compare(*(os.path.join(folder, name) for folder in sys.argv[2:4]))
            print(name, "ok")
        except Exception as wrong:
            failed += 1
            print(name, f"FAILED: {type(wrong).__name__}: {str(wrong)[:2000]}")
    return failed


if __name__ == "__main__":
    sys.exit(main())
