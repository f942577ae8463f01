"""The examples as their users have them: saved, started by a node, and attached to one."""

import importlib.util
import math
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

from fakenode import PACKAGE, WAIT, FakeNode
from test_hf import config, saved

EXAMPLES = PACKAGE / "examples"
MORE = {"finetune.py": ("transformers",), "lora.py": ("transformers", "peft")}
TEXT = "Every learner of a run has text of its own, and none of them waits for another. " * 40


def lacks(*packages):
    return ", ".join(name for name in ("torch", *packages) if importlib.util.find_spec(name) is None)


class Examples(unittest.TestCase):
    """A script saves a model, takes steps that a node asks for, and leaves in order."""

    def folder(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        return folder.name

    def run_script(self, name, *options):
        command = [sys.executable, str(EXAMPLES / name), *options]
        environment = {**os.environ, "PYTHONPATH": str(PACKAGE), "HF_HUB_OFFLINE": "1"}
        done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=WAIT)
        self.assertEqual(done.returncode, 0, done.stderr)

    def model(self):
        """A model with a tokenizer of bytes, as a folder of Hugging Face. Returns the folder."""
        import tokenizers
        import torch
        import transformers

        folder = self.folder()
        torch.manual_seed(3)
        transformers.AutoModelForCausalLM.from_config(transformers.AutoConfig.for_model(**config())).save_pretrained(folder)
        vocabulary = {chr(k): k for k in range(256)}
        tokenizer = tokenizers.Tokenizer(tokenizers.models.BPE(vocabulary, []))
        transformers.PreTrainedTokenizerFast(tokenizer_object=tokenizer).save_pretrained(folder)
        return folder

    def text(self):
        path = os.path.join(self.folder(), "text.txt")
        pathlib.Path(path).write_text(TEXT)
        return path

    def takes_part(self, name, folder, options=(), file="model.safetensors", lr=0.01, steps=6, **fields):
        """Has a script take steps of a node that started it, and leave one that it attached to. Returns the losses."""
        layout, first = saved(folder, file)
        node = FakeNode(self, layout, first, **{"context": 16, "rows": 4, **fields})
        self.assertEqual(node.start(str(EXAMPLES / name), *options)["name"], name)
        node.begin_run()
        losses = []
        for number in range(steps):
            answer = node.ask("step", number=number, lr=lr, starts=[0] * node.run["rows"])
            self.assertEqual(answer["type"], "stepped", answer)
            losses.append(answer["loss"])
        node.ask("flush", pieces=node.everything())
        self.assertNotEqual(node.values(), first)
        self.assertEqual(node.ask("stop"), {"type": "stopped"})
        code, text = node.stderr()
        self.assertEqual(code, 0, text)
        self.attaches(name, layout, first, options, fields)
        self.assertTrue(all(math.isfinite(loss) for loss in losses))
        self.assertLess(min(losses[-3:]), losses[0])
        return losses

    def attaches(self, name, layout, first, options, fields):
        node = FakeNode(self, layout, first, **{"context": 16, "rows": 4, **fields})
        listener = node.open_door()
        node.launch(str(EXAMPLES / name), [*options, "--dir", node.folder.name, "--steps", 2])
        node.let_in(listener)
        node.begin_run()
        for number in range(2):
            node.ask("step", number=number, lr=0.01, starts=[0] * node.run["rows"])
        # It has stepped twice, and says that it leaves in place of a third step.
        self.assertEqual(node.ask("step", number=2, lr=0.01, starts=[0] * node.run["rows"])["kind"], "leaving")
        self.assertEqual(node.ask("flush", pieces=node.everything()), {"type": "flushed"})
        self.assertNotEqual(node.values(), first)
        node.connection.close()
        code, text = node.stderr()
        self.assertEqual(code, 0, text)

    @unittest.skipIf(lacks(), f"missing: {lacks()}")
    def test_gpt(self):
        folder = self.folder()
        self.run_script("gpt.py", "--save", folder)
        losses = self.takes_part("gpt.py", folder, lr=0.001, steps=8)
        self.assertLess(abs(losses[0] - math.log(256)), 0.5)

    @unittest.skipIf(lacks(), f"missing: {lacks()}")
    def test_vision(self):
        folder = self.folder()
        self.run_script("vision.py", "--save", folder)
        losses = self.takes_part("vision.py", folder, lr=0.001, steps=60)
        self.assertLess(losses[-1], losses[0] / 2)

    @unittest.skipIf(lacks("transformers"), f"missing: {lacks('transformers')}")
    def test_finetune(self):
        folder = self.model()
        self.takes_part("finetune.py", folder, ["--model", folder, "--text", self.text()])

    @unittest.skipIf(lacks("transformers", "peft"), f"missing: {lacks('transformers', 'peft')}")
    def test_lora(self):
        base, folder = self.model(), self.folder()
        self.run_script("lora.py", "--base", base, "--save", folder)
        self.takes_part("lora.py", folder, ["--base", base, "--text", self.text()], "adapter_model.safetensors", steps=12)


class Texts(unittest.TestCase):
    def test_each_says_how_to_make_its_run(self):
        names = sorted(path.name for path in EXAMPLES.glob("*.py"))
        self.assertEqual(names, ["finetune.py", "gpt.py", "lora.py", "vision.py"])
        readme = (PACKAGE / "README.md").read_text(encoding="utf-8")
        for name in names:
            text = (EXAMPLES / name).read_text(encoding="utf-8")
            compile(text, name, "exec")
            top = text.split('"""')[1]
            for words in ("atoll new --from", f"python3 {name}", "--learner attach", " --init "):
                self.assertIn(words, top, name)
            for line in ("atoll.join(", "run.step(", "run.leave()"):
                self.assertEqual(text.count(line), 1, name)
            self.assertIn(f"examples/{name}", readme)


if __name__ == "__main__":
    unittest.main()
