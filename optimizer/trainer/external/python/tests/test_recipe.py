import copy
import json
import unittest

from atoll.recipe import parse
from atoll.serve import LearnerError

RECIPE = {
    "family": "llama",
    "tokenizer": "byte",
    "model": {
        "vocab": 256, "hidden": 128, "layers": 4, "heads": 4, "kv_heads": 4, "intermediate": 344, "context": 128,
        "rope_theta": 10000, "norm_eps": 1e-5, "tied": True,
    },  # fmt: skip
    "optimizer": {
        "name": "muon", "beta1": 0.9, "beta2": 0.95, "eps": 1e-8, "weight_decay": 0.1, "momentum": 0.95, "clip": 1,
    },  # fmt: skip
}
MISSING = object()


def changed(path, value):
    """The recipe as JSON with one field changed or left out."""
    recipe = copy.deepcopy(RECIPE)
    *parents, leaf = path.split(".")
    owner = recipe
    for name in parents:
        owner = owner[name]
    if value is MISSING:
        del owner[leaf]
    else:
        owner[leaf] = value
    return json.dumps(recipe)


class Recipes(unittest.TestCase):
    def test_known(self):
        model, optimizer = parse(json.dumps(RECIPE))
        self.assertEqual((model.hidden, model.head, model.rope_theta, model.tied), (128, 32, 10000.0, True))
        self.assertEqual((optimizer.name, optimizer.momentum, optimizer.clip), ("muon", 0.95, 1.0))

    def test_adamw_needs_no_momentum(self):
        recipe = copy.deepcopy(RECIPE)
        recipe["optimizer"]["name"] = "adamw"
        parse(json.dumps(recipe))
        del recipe["optimizer"]["momentum"]
        self.assertEqual(parse(json.dumps(recipe))[1].momentum, 0)

    def test_refused(self):
        for path, value, error in (
            ("family", "mamba", 'family is "mamba": this learner knows "llama"'),
            ("tokenizer", "bpe", 'tokenizer is "bpe": this learner knows "byte"'),
            ("data", "pile", 'field data is "pile": this learner does not know'),
            ("model.window", 512, "field model.window is 512: this learner does not know"),
            ("optimizer.amsgrad", True, "field optimizer.amsgrad is true: this learner does not know"),
            ("optimizer.name", "lion", 'optimizer.name is "lion": this learner knows "adamw" and "muon"'),
            ("model.hidden", MISSING, "no field model.hidden"),
            ("optimizer.momentum", MISSING, 'no field optimizer.momentum, which "muon" needs'),
            ("model", 5, "model is 5, not a JSON object"),
            ("model.layers", 2.5, "model.layers is 2.5, which is no int"),
            ("model.layers", True, "model.layers is true, which is no int"),
            ("model.layers", 0, "model.layers is 0: must be from 1"),
            ("model.tied", 1, "model.tied is 1, which is no bool"),
            ("model.vocab", 17, "model.vocab is 17: bytes as tokens need at least 256"),
            ("model.heads", 3, "model.heads is 3: must divide hidden 128"),
            ("model.heads", 128, "model.heads is 128: must divide hidden 128 into heads of even size"),
            ("model.kv_heads", 3, "model.kv_heads is 3: must divide heads 4"),
            ("model.rope_theta", 0.5, "model.rope_theta is 0.5: must be at least 1"),
            ("model.norm_eps", 0, "model.norm_eps is 0.0: must be above 0"),
            ("optimizer.beta1", 1, "optimizer.beta1 is 1.0: must be 0 or more and below 1"),
            ("optimizer.eps", float("nan"), "optimizer.eps is NaN, which is no float"),
            ("optimizer.clip", 0, "optimizer.clip is 0.0: must be above 0"),
            ("optimizer.weight_decay", -1, "optimizer.weight_decay is -1.0: must be 0 or more"),
        ):
            with self.subTest(error), self.assertRaises(LearnerError) as caught:
                parse(changed(path, value))
            self.assertIn(error, caught.exception.error)
            self.assertTrue(caught.exception.remedy)

    def test_no_recipe(self):
        for text, error in (("", "not JSON"), ("{", "not JSON"), ("[]", "not a JSON object"), ("{}", "no field family")):
            with self.subTest(error), self.assertRaisesRegex(LearnerError, error):
                parse(text)


if __name__ == "__main__":
    unittest.main()
