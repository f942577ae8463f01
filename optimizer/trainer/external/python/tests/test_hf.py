import importlib.util
import json
import os
import pathlib
import random
import signal
import struct
import subprocess
import sys
import tempfile
import time
import unittest

from fakenode import PACKAGE, FakeNode
from scripts import TRAINER

from atoll.serve import LearnerError
from atoll.weights import digest

MISSING = [name for name in ("torch", "transformers", "peft", "safetensors") if importlib.util.find_spec(name) is None]
if not MISSING:
    os.environ.update(HF_HUB_OFFLINE="1", TRANSFORMERS_VERBOSITY="error")
    import peft
    import torch
    import transformers
    from safetensors.torch import load_file

    transformers.utils.logging.disable_progress_bar()

    from atoll import hfrecipe, values

    torch.set_num_threads(1)

TEXT = bytes(random.Random(1).choices(range(97, 123), k=2000))
OPTIMIZER = {"name": "adamw", "beta1": 0.9, "beta2": 0.95, "eps": 1e-8, "weight_decay": 0.1, "clip": 1}
CONTEXT = 16


def config(kind="llama", **fields):
    sizes = {"vocab_size": 256, "hidden_size": 16, "intermediate_size": 24, "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2}
    if kind == "gpt2":
        sizes = {"vocab_size": 256, "n_embd": 16, "n_layer": 2, "n_head": 4, "n_positions": CONTEXT}
    return {"model_type": kind, **sizes, **fields}


def recipe(given=None, family="transformers", **optimizer):
    return json.dumps({"family": family, "config": given or config(), "optimizer": {**OPTIMIZER, **optimizer}})


def saved(folder, name="model.safetensors"):
    """The layout of a file in the order of its places, and its values: as atoll new --from reads it."""
    data = (pathlib.Path(folder) / name).read_bytes()
    (size,) = struct.unpack("<Q", data[:8])
    head = json.loads(data[8 : 8 + size])
    head.pop("__metadata__", None)
    tensors = sorted(head.items(), key=lambda item: item[1]["data_offsets"])
    return [(name, tuple(t["shape"])) for name, t in tensors], data[8 + size :]


@unittest.skipIf(MISSING, f"missing: {', '.join(MISSING)}")
class Case(unittest.TestCase):
    def folder(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        return folder.name

    def save(self, given=None):
        """Saves a model of a config. Returns its folder."""
        folder = self.folder()
        torch.manual_seed(3)
        transformers.AutoModelForCausalLM.from_config(hfrecipe.causal(given or config())).save_pretrained(folder)
        return folder

    def node(self, folder=None, given=None, **fields):
        layout, first = saved(folder or self.save(given))
        return FakeNode(self, layout, first, TEXT, **{"recipe": recipe(given), "rows": 4, "context": CONTEXT, **fields})

    def begin(self, node, *options):
        node.hello = node.start("atoll.hf", "--threads", 1, "--device", "cpu", *options)
        node.ready = node.begin_run()
        return node

    def stepped(self, node, number, lr=0.01, starts=(0, 100, 200, 300)):
        answer = node.ask("step", number=number, lr=lr, starts=list(starts))
        self.assertEqual(answer["type"], "stepped", answer)
        return answer


class Recipes(Case):
    def refused(self, text, words, base=""):
        with self.assertRaises(LearnerError) as caught:
            family, given, _ = hfrecipe.parse(text)
            hfrecipe.build(family, given, base)
        self.assertIn(words, caught.exception.error)

    def test_refused_by_name(self):
        self.refused("{", "not JSON")
        self.refused("[]", "not a JSON object")
        self.refused("{}", "no field family")
        self.refused('{"family": "llama"}', 'family is "llama"')
        self.refused(recipe(config("nonesuch")), 'model_type is "nonesuch"')
        self.refused(recipe(config("vit")), 'model_type is "vit"')
        self.refused(recipe({"hidden_size": 3}), "model_type is null")
        self.refused(recipe(config(quantization_config={"bits": 4})), "quantization_config")
        self.refused(recipe(name="muon"), 'optimizer.name is "muon"')
        self.refused(recipe(speed=1), "optimizer.speed")
        self.refused(json.dumps({**json.loads(recipe()), "code": "x"}), "code")
        self.refused(recipe(config(hidden_size=-1)), "llama")

    def test_adapters_refused_by_name(self):
        given = {"peft_type": "LORA", "r": 2, "target_modules": ["q_proj"], "task_type": "CAUSAL_LM"}
        self.refused(recipe({**given, "peft_type": "IA3"}, "peft"), "config.peft_type")
        self.refused(recipe({**given, "init_lora_weights": "pissa"}, "peft"), "changes the base model")
        self.refused(recipe({**given, "run_this": "x"}, "peft"), "config.run_this")
        self.refused(recipe({**given, "megatron_config": {"a": 1}}, "peft"), "config.megatron_config")
        self.refused(recipe({**given, "base_model_name_or_path": "a/b"}, "peft"), '"a/b"')
        self.refused(recipe(given, "peft"), "cannot load --base /nowhere", "/nowhere")
        self.refused(recipe({**given, "target_modules": ["nothing"]}, "peft"), "do not fit", self.save())

    def test_fields_that_name_code_are_left_out(self):
        given = config(auto_map={"AutoModelForCausalLM": "x--y.Z"}, attn_implementation="someone/kernel", dtype="bfloat16", _name_or_path="/x")
        model = hfrecipe.build("transformers", given, "")
        self.assertEqual({p.dtype for p in model.parameters()}, {torch.float32})
        self.assertNotIn("kernel", model.config._attn_implementation)
        self.assertFalse(hasattr(model.config, "auto_map"))


class Models(Case):
    def test_names_are_those_of_the_file(self):
        for kind in ("llama", "qwen2", "mistral", "gpt2"):
            for tied in (True, False):
                with self.subTest(kind=kind, tied=tied):
                    given = config(kind, tie_word_embeddings=tied)
                    layout, _ = saved(self.save(given))
                    self.assertEqual("lm_head.weight" in dict(layout), not tied)
                    parameters = values.match(hfrecipe.build("transformers", given, ""), layout)
                    self.assertEqual([tuple(p.shape) for p in parameters], [shape for _, shape in layout])

    def test_names_of_adapters_are_those_of_the_file(self):
        base = self.save()
        for fields in ({}, {"use_dora": True}, {"modules_to_save": ["lm_head"]}, {"target_modules": ["embed_tokens", "q_proj"]}):
            with self.subTest(**fields):
                model = hfrecipe._base(base)
                folder = self.folder()
                given = peft.LoraConfig(**{"r": 2, "target_modules": ["q_proj", "v_proj"], "task_type": "CAUSAL_LM", **fields})
                peft.get_peft_model(model, given).save_pretrained(folder, save_embedding_layers=False)
                layout, _ = saved(folder, "adapter_model.safetensors")
                written = json.loads((pathlib.Path(folder) / "adapter_config.json").read_text())
                again = hfrecipe.build("peft", written, base)
                self.assertEqual(len(values.match(again, layout)), len(layout))


class Learning(Case):
    def test_run(self):
        for given in (config(tie_word_embeddings=True), config("gpt2")):
            with self.subTest(given["model_type"]):
                folder = self.save(given)
                node = self.begin(self.node(folder, given))
                self.assertEqual((node.hello["name"], node.ready["layout"]), ("atoll.hf", node.run["layout"]))
                self.assertGreater(node.ready["tokens_per_second"], 0)
                first = node.values()
                node.ask("flush", pieces=node.everything())
                self.assertEqual(node.values(), first)
                answers = [self.stepped(node, number) for number in range(8)]
                self.assertEqual(answers[0]["tokens"], 4 * CONTEXT)
                if given["model_type"] == "llama":  # the other drops out
                    self.assertAlmostEqual(answers[0]["loss"], self.loss(folder, [0, 100, 200, 300]), places=5)
                self.assertLess(answers[-1]["loss"], answers[0]["loss"] - 0.3)
                node.ask("flush", pieces=node.everything())
                self.assertNotEqual(node.values(), first)
                self.assertEqual(node.ask("stop"), {"type": "stopped"})
                self.assertEqual(node.stderr()[0], 0)

    def test_evaluate(self):
        """Without dropout, it gives the loss that transformers has, and leaves training as it is."""
        starts = [0, 100, 200, 300]
        for given in (config(tie_word_embeddings=True), config("gpt2")):
            with self.subTest(given["model_type"]):
                folder = self.save(given)
                node, other = self.node(folder, given), self.node(folder, given)
                node.run["held_out"] = node.run["text"]
                self.assertTrue(self.begin(node, "--micro-batch", 3).hello["evaluates"])
                self.begin(other, "--micro-batch", 3)
                first = node.values()
                self.assertEqual(self.stepped(node, 0), self.stepped(other, 0))
                answer = node.evaluate(first, starts)
                self.assertEqual((answer["tokens"], answer["bytes"]), (4 * CONTEXT, 4 * CONTEXT))
                self.assertAlmostEqual(answer["loss"], self.loss(folder, starts), places=5)
                self.assertEqual(self.stepped(node, 1), self.stepped(other, 1))
                for each in (node, other):
                    each.ask("flush", pieces=each.everything())
                self.assertEqual(node.values(), other.values())
                self.assertIn("no held-out text", other.ask("evaluate", starts=starts)["error"])

    def loss(self, folder, starts):
        model = transformers.AutoModelForCausalLM.from_pretrained(folder).eval()
        rows = torch.tensor([list(TEXT[s : s + CONTEXT + 1]) for s in starts])
        logits = model(rows[:, :-1]).logits
        return torch.nn.functional.cross_entropy(logits.flatten(0, 1), rows[:, 1:].flatten()).item()

    def after(self, *options, folder, steps=2, **fields):
        node = self.begin(self.node(folder, **fields), *options)
        losses = [self.stepped(node, number)["loss"] for number in range(steps)]
        node.ask("flush", pieces=node.everything())
        return losses, torch.tensor(struct.unpack(f"<{node.count}f", node.values()))

    def test_micro_batches_and_checkpoints_change_nothing(self):
        folder = self.save()
        losses, whole = self.after(folder=folder)
        others, small = self.after("--micro-batch", 3, "--gradient-checkpointing", folder=folder)
        self.assertAlmostEqual(losses[1], others[1], places=4)
        self.assertLess((whole - small).abs().max(), 1e-4)

    def test_bf16(self):
        folder = self.save()
        (loss, *_), _ = self.after(folder=folder)
        (other, *_), _ = self.after("--precision", "bf16", folder=folder)
        self.assertNotEqual(loss, other)
        self.assertAlmostEqual(loss, other, delta=0.05)

    def test_state(self):
        node = self.begin(self.node())
        for number in range(2):
            self.stepped(node, number)
        node.ask("flush", pieces=node.everything())
        middle = node.values()
        self.assertEqual(node.ask("save", path=node.path("state")), {"type": "saved"})
        self.stepped(node, 2)
        node.ask("flush", pieces=node.everything())
        other = self.node(resume=node.path("state"), steps=2)
        other.overwrite(middle)
        self.begin(other)
        self.stepped(other, 2)
        other.ask("flush", pieces=other.everything())
        self.assertEqual(other.values(), node.values())

    def test_tokenizer(self):
        """Windows of tokens follow from seed, author and step, held-out ones from their number alone."""
        import tokenizers

        folder, held_out = self.folder(), self.folder() + "/held-out"
        words = tokenizers.Tokenizer(tokenizers.models.WordLevel({"[UNK]": 0, **{chr(97 + k): k + 1 for k in range(26)}}, unk_token="[UNK]"))
        words.pre_tokenizer = tokenizers.pre_tokenizers.Split("", "isolated")
        transformers.PreTrainedTokenizerFast(tokenizer_object=words, unk_token="[UNK]").save_pretrained(folder)
        pathlib.Path(held_out).write_bytes(b"a" * 10 * CONTEXT)
        given, losses = config(vocab_size=27), []
        # The last two are the run's own, which --tokenizer takes the place of.
        for fields in ({}, {"author": "11" * 32}, {"tokenizer": folder}, {"tokenizer": "typed"}):
            typed = [] if fields.get("tokenizer") == folder else ["--tokenizer", folder]
            node = self.begin(self.node(given=given, held_out=held_out, **fields), *typed)
            first = node.values()
            answers = [node.evaluate(first, [0] * 7) for _ in range(2)]
            self.assertEqual(answers[0], answers[1])
            self.assertEqual(answers[0]["tokens"], 7 * CONTEXT)
            losses.append(self.stepped(node, 0)["loss"])
        self.assertLess(abs(losses[0] - 3.3), 0.1)  # ln 27
        self.assertNotEqual(losses[0], losses[1])
        self.assertEqual([losses[0]] * 2, losses[2:])
        node = self.node(given=given)
        node.start("atoll.hf", "--device", "cpu")
        self.assertIn("vocabulary of 27", node.ask(node.run)["error"])
        node = self.node()
        node.start("atoll.hf", "--device", "cpu")
        self.assertIn("no text", node.ask({**node.run, "text": ""})["error"])

    def test_diverged(self):
        node = self.node()
        node.overwrite(struct.pack("<f", float("nan")) * node.count)
        self.begin(node)
        answer = node.ask("step", number=0, lr=0.1, starts=[0])
        self.assertEqual((answer["type"], answer["kind"]), ("error", "diverged"))

    def test_refuses_other_tensors(self):
        node = self.node(recipe=recipe(config(intermediate_size=32)))
        node.start("atoll.hf", "--device", "cpu")
        self.assertRegex(node.ask(node.run)["error"], r"mlp\.\w+\.weight")

    def test_adapters(self):
        base, folder = self.save(), self.folder()
        torch.manual_seed(4)
        model = peft.get_peft_model(hfrecipe._base(base), peft.LoraConfig(r=2, target_modules=["q_proj", "v_proj"], task_type="CAUSAL_LM"))
        model.save_pretrained(folder)
        layout, first = saved(folder, "adapter_model.safetensors")
        given = json.loads((pathlib.Path(folder) / "adapter_config.json").read_text())
        of_base = json.dumps({**json.loads(recipe(given, "peft")), "base_sha256": digest(base)})
        node = FakeNode(self, layout, first, TEXT, recipe=of_base, rows=4, context=CONTEXT)
        other = self.save(config(initializer_range=0.03))
        node.start("atoll.hf", "--device", "cpu", "--base", other)
        answer = node.ask(node.run)
        for words in (digest(base), digest(other), "--base " + other):
            self.assertIn(words, answer["error"])
        self.assertIn("the very model", answer["remedy"])
        self.begin(node, "--base", base)
        losses = [self.stepped(node, number, 0.05)["loss"] for number in range(10)]
        self.assertLess(losses[-1], losses[0])
        node.ask("flush", pieces=node.everything())
        pathlib.Path(folder, "adapter_model.safetensors").write_bytes(pathlib.Path(node.slab).read_bytes())
        loaded = peft.PeftModel.from_pretrained(hfrecipe._base(base), folder)
        state = peft.get_peft_model_state_dict(loaded, save_embedding_layers=False)
        slab = load_file(node.slab)
        self.assertEqual(set(state), set(slab))
        self.assertTrue(all(torch.equal(state[name], slab[name]) for name in slab))
        self.assertGreater(max(x.abs().max() for name, x in slab.items() if "lora_B" in name), 0.01)


class Programs(Case):
    def run_alone(self, *options, **environment):
        command = [sys.executable, "-m", "atoll.hf", *options]
        environment = {**os.environ, "PYTHONPATH": str(PACKAGE), **environment}
        return subprocess.run(command, env=environment, stderr=subprocess.PIPE, text=True, timeout=120)

    def test_missing_packages(self):
        folder = self.folder()
        pathlib.Path(folder, "sitecustomize.py").write_text(
            "import importlib.util as u\nfind = u.find_spec\nu.find_spec = lambda name, *a: None if name == 'transformers' else find(name, *a)\n"
        )
        done = self.run_alone(PYTHONPATH=f"{folder}{os.pathsep}{PACKAGE}")
        self.assertEqual(done.returncode, 2, done.stderr)
        self.assertEqual(done.stderr.count("\n"), 1, done.stderr)
        self.assertIn("python3 -m pip install transformers", done.stderr)

    @unittest.skipIf(not MISSING and torch.cuda.is_available(), "this machine has cuda")
    def test_device_that_is_not_there(self):
        done = self.run_alone("--device", "cuda")
        self.assertEqual(done.returncode, 2)
        self.assertIn("found only: cpu", done.stderr)

    def test_fsdp_alone(self):
        done = self.run_alone("--fsdp", "--device", "cpu")
        self.assertEqual(done.returncode, 2)
        self.assertIn("torchrun", done.stderr)

    def test_trainer(self):
        folder = self.folder()
        given = config(num_hidden_layers=1, num_attention_heads=2)
        del given["num_key_value_heads"]
        node = self.node(given=given)
        path = node.path("train.py")
        pathlib.Path(path).write_text(TRAINER)
        node.start(path, folder)
        node.begin_run()
        first = node.values()
        answer = self.stepped(node, 0, lr=0.0)
        self.assertEqual(answer["tokens"], 4 * 8)
        self.assertAlmostEqual(answer["loss"], 5.545, delta=0.1)  # ln 256
        node.ask("flush", pieces=node.everything())
        self.assertEqual(node.values(), first)  # at the node's rate of 0, not the trainer's of 1
        losses = [self.stepped(node, number, lr=0.02)["loss"] for number in range(1, 8)]
        self.assertLess(losses[-1], losses[0] - 0.1)
        self.assertEqual(node.ask("stop"), {"type": "stopped"})
        code, text = node.stderr()
        self.assertEqual(code, 0, text)
        self.assertIn("steps 8 over True", text)


class Groups(Case):
    def group(self, *options, **fields):
        path = self.folder() + "/group.py"
        pathlib.Path(path).write_text(
            "import sys\nfrom torch.distributed.run import main\n"
            "main(['--standalone', '--nproc-per-node', '2', '-m', 'atoll.hf', *sys.argv[1:]])\n"
        )
        node = self.node(**fields)
        node.run["held_out"] = node.run["text"]
        node.start(path, "--threads", 1, "--device", "cpu", *options)
        node.begin_run()
        return node

    def test_two_ranks_are_one_learner(self):
        folder = self.save()
        lone = self.begin(self.node(folder))
        want = [self.stepped(lone, number) for number in range(3)]
        lone.ask("flush", pieces=lone.everything())
        begin = self.node(folder)
        begin.run["held_out"] = begin.run["text"]
        self.begin(begin)
        self.quality = begin.evaluate(begin.values(), [0, 100, 200])["loss"]
        for options in ((), ("--fsdp",), ("--micro-batch", 1), ("--fsdp", "--micro-batch", 1)):
            with self.subTest(options):
                node = self.group(*options, folder=folder)
                first = node.values()
                node.ask("flush", pieces=node.everything())
                self.assertEqual(node.values(), first)
                for number, answer in enumerate(want):
                    got = self.stepped(node, number)
                    self.assertEqual(got["tokens"], answer["tokens"])
                    self.assertAlmostEqual(got["loss"], answer["loss"], places=4)
                answer = node.evaluate(first, [0, 100, 200])  # a row too few for two ranks
                self.assertAlmostEqual(answer["loss"], self.quality, places=4)
                self.assertIn("no held-out text", node.ask("evaluate", starts=[])["error"])
                piece = [node.count // 3, node.count // 5]
                node.ask("flush", pieces=[piece])
                self.near(node, lone, *piece)
                node.ask("flush", pieces=node.everything())
                self.near(node, lone, 0, node.count)
                node.overwrite(first)
                node.ask("load", pieces=[piece])
                node.ask("flush", pieces=node.everything())
                begin, end = 4 * piece[0], 4 * sum(piece)
                self.assertEqual(node.values()[begin:end], first[begin:end])
                self.near(node, lone, 0, piece[0])
                self.assertEqual(node.ask("stop"), {"type": "stopped"})
                self.assertEqual(node.stderr()[0], 0)

    def near(self, node, other, begin, length):
        a, b = (torch.tensor(struct.unpack(f"<{n.count}f", n.values())[begin : begin + length]) for n in (node, other))
        self.assertLess((a - b).abs().max(), 1e-4)

    def test_state_moves_between_groups(self):
        folder = self.save()
        node = self.group("--fsdp", folder=folder)
        self.stepped(node, 0)
        node.ask("flush", pieces=node.everything())
        middle = node.values()
        node.ask("save", path=node.path("state"))
        self.stepped(node, 1)
        node.ask("flush", pieces=node.everything())
        for start in (self.group, lambda **fields: self.begin(self.node(**fields))):
            other = start(folder=folder, resume=node.path("state"), steps=1)
            other.overwrite(middle)
            other.ask("load", pieces=other.everything())
            self.stepped(other, 1)
            other.ask("flush", pieces=other.everything())
            self.near(other, node, 0, node.count)

    def test_diverged(self):
        node = self.group()
        node.overwrite(struct.pack("<f", float("nan")) * node.count)
        node.ask("load", pieces=node.everything())
        self.assertEqual(node.ask("step", number=0, lr=0.1, starts=[])["kind"], "diverged")

    @unittest.skipUnless(sys.platform == "linux", "reads /proc")
    def test_the_death_of_one_ends_all(self):
        for victim in ("rank", "torchrun"):
            with self.subTest(victim):
                node = self.group("--fsdp")
                ranks = workers(node.process.pid)
                self.assertEqual(len(ranks), 2)
                os.kill(ranks[1] if victim == "rank" else node.process.pid, signal.SIGKILL)
                node.process.wait(timeout=60)
                self.assertNotEqual(node.process.returncode, 0)
                end = time.monotonic() + 10
                while any(alive(pid) for pid in ranks) and time.monotonic() < end:
                    time.sleep(0.05)
                self.assertFalse(any(alive(pid) for pid in ranks))


def workers(parent):
    """The processes that a process has started, by their rank."""
    found = {}
    for path in pathlib.Path("/proc").glob("[0-9]*/stat"):
        try:
            ppid = int(path.read_text().rpartition(")")[2].split()[1])
            environment = (path.parent / "environ").read_bytes().split(b"\0")
        except OSError:
            continue
        rank = [int(e[5:]) for e in environment if e.startswith(b"RANK=")]
        if ppid == parent and rank:
            found[rank[0]] = int(path.parent.name)
    return [found[rank] for rank in sorted(found)]


def alive(pid):
    try:
        return pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


if __name__ == "__main__":
    unittest.main()
