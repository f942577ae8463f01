import base64
import copy
import json
import math
import pathlib
import random
import struct
import subprocess
import sys
import tempfile
import unittest

from fakenode import PACKAGE, FakeNode
from test_recipe import RECIPE

from atoll.recipe import Model, Optimizer, parse
from atoll.serve import LearnerError, Run
from atoll.slab import layout_digest

try:
    import torch
except ImportError:
    torch = None
else:
    from atoll.torch import devices, llama
    from atoll.torch import optim
    from atoll.torch.learner import TorchLearner

    torch.set_num_threads(1)

GOLDEN = PACKAGE.parents[3] / "tensor" / "llama" / "testdata" / "golden.json"
ROWS, CONTEXT = 4, 16
TEXT = bytes(random.Random(1).choices(range(97, 123), k=500))
STARTS = [0, 7, 100, len(TEXT) - CONTEXT - 1]


def small(name="muon", **model):
    recipe = copy.deepcopy(RECIPE)
    recipe["model"].update({"hidden": 16, "layers": 2, "heads": 4, "kv_heads": 2, "intermediate": 24, "context": CONTEXT, **model})
    recipe["optimizer"]["name"] = name
    return recipe


def llama_layout(m):
    """The layout of the built-in family, written out."""
    kv = m["kv_heads"] * m["hidden"] // m["heads"]
    layout = [("model.embed_tokens.weight", (m["vocab"], m["hidden"]))]
    for i in range(m["layers"]):
        for part, *shape in (
            ("input_layernorm", m["hidden"]),
            ("self_attn.q_proj", m["hidden"], m["hidden"]),
            ("self_attn.k_proj", kv, m["hidden"]),
            ("self_attn.v_proj", kv, m["hidden"]),
            ("self_attn.o_proj", m["hidden"], m["hidden"]),
            ("post_attention_layernorm", m["hidden"]),
            ("mlp.gate_proj", m["intermediate"], m["hidden"]),
            ("mlp.up_proj", m["intermediate"], m["hidden"]),
            ("mlp.down_proj", m["hidden"], m["intermediate"]),
        ):
            layout.append((f"model.layers.{i}.{part}.weight", tuple(shape)))
    layout.append(("model.norm.weight", (m["hidden"],)))
    if not m["tied"]:
        layout.append(("lm_head.weight", (m["vocab"], m["hidden"])))
    return layout


def fresh(layout, seed=3):
    """The bytes of first values: ones for norms, a normal distribution for matrices."""
    normal, values = random.Random(seed), []
    for _, shape in layout:
        length = math.prod(shape)
        values += [1.0] * length if len(shape) == 1 else [normal.gauss(0, 0.1) for _ in range(length)]
    return struct.pack(f"<{len(values)}f", *values)


def node_of(test, recipe, **fields):
    layout = llama_layout(recipe["model"])
    fields = {"recipe": json.dumps(recipe), "rows": ROWS, "context": CONTEXT, **fields}
    return FakeNode(test, layout, fresh(layout), TEXT, **fields)


def learner_of(node, **options):
    """A learner in this process, with everything loaded."""
    learner = TorchLearner(torch.device("cpu"), **options)
    learner.ready = learner.start(Run(node.run))
    learner.load(node.everything())
    return learner


@unittest.skipUnless(torch, "PyTorch is missing")
class Models(unittest.TestCase):
    def test_layout(self):
        for fields in ({}, {"tied": False}):
            recipe = small(**fields)
            model = llama.Llama(parse(json.dumps(recipe))[0], "cpu")
            self.assertEqual(llama.layout(model), llama_layout(recipe["model"]))

    def test_layout_digest(self):
        node = node_of(self, small())
        ready = learner_of(node).ready
        self.assertEqual(ready["layout"], layout_digest(llama_layout(small()["model"])))
        self.assertGreater(ready["tokens_per_second"], 0)

    @unittest.skipUnless(GOLDEN.exists(), "the node's golden values are not here")
    def test_golden_gradients(self):
        """Loss and gradients of the node's golden batch, which has groups of heads and weights that are not small."""
        golden = json.loads(GOLDEN.read_text())
        c = golden["config"]
        model = llama.Llama(
            Model(c["Vocab"], c["Hidden"], c["Layers"], c["Heads"], c["KVHeads"], c["Intermediate"], c["Context"],
                  c["RopeTheta"], c["NormEps"], c["Tied"]), "cpu",
        )  # fmt: skip
        values = floats(golden["params"])
        grads = torch.zeros_like(values)
        llama.bind(model, values, grads)
        self.assertEqual([name for name, _ in llama.layout(model)], golden["names"])
        tokens = torch.tensor(golden["tokens"]).view(golden["batch"], -1)
        loss = model(tokens[:, :-1], tokens[:, 1:])
        loss.backward()
        self.assertAlmostEqual(loss.item(), golden["loss"], delta=1e-6 * golden["loss"])
        want = floats(golden["grads"])
        self.assertLess((grads - want).norm() / want.norm(), 1e-6)

    def test_evaluate(self):
        """It gives the loss of a step on the same rows, and changes nothing: a run without it has the same bits."""
        ends = []
        for evaluates in (True, False):
            node = node_of(self, small())
            node.run["held_out"] = node.run["text"]
            learner = learner_of(node, micro_batch=3)
            first = node.values()
            losses = [learner.step(0, 0.01, STARTS)[1]]
            if evaluates:
                learner.flush(node.everything())
                now = node.values()
                found = []
                for values in (first, now):
                    node.overwrite(values)
                    learner.load(node.everything())
                    found.append(learner.evaluate(STARTS))
                self.assertEqual(found[0][::2], (ROWS * CONTEXT, ROWS * CONTEXT))
                self.assertAlmostEqual(found[0][1], losses[0], places=5)
            losses.append(learner.step(1, 0.01, STARTS)[1])
            learner.flush(node.everything())
            ends.append((losses, node.values()))
        self.assertEqual(*ends)
        self.assertAlmostEqual(found[1][1], losses[1], places=5)

    def test_evaluate_without_a_text(self):
        with self.assertRaisesRegex(LearnerError, "no held-out text"):
            learner_of(node_of(self, small())).evaluate(STARTS)

    def test_attention_without_sdpa(self):
        """Older versions of PyTorch have no attention of their own."""
        generator = torch.Generator().manual_seed(1)
        q, k, v = (torch.randn(2, 3, 5, 4, generator=generator) for _ in range(3))
        fast = llama.attend(q, k, v)
        attention = vars(torch.nn.functional).pop("scaled_dot_product_attention", None)
        try:
            plain = llama.attend(q, k, v)
        finally:
            if attention:
                torch.nn.functional.scaled_dot_product_attention = attention
        self.assertLess((fast - plain).abs().max(), 1e-6)

    def test_norm_without_rms_norm(self):
        norm = llama.RMSNorm(8, 1e-5)
        norm.weight = torch.nn.Parameter(torch.arange(8.0))
        x = torch.randn(3, 8, generator=torch.Generator().manual_seed(1))
        fast = norm(x)
        native = vars(torch.nn.functional).pop("rms_norm", None)
        try:
            plain = norm(x)
        finally:
            if native:
                torch.nn.functional.rms_norm = native
        self.assertLess((fast - plain).abs().max(), 1e-6)


def floats(encoded):
    return torch.frombuffer(bytearray(base64.b64decode(encoded)), dtype=torch.float32).clone()


@unittest.skipUnless(torch, "PyTorch is missing")
class Steps(unittest.TestCase):
    """The optimizer against its formulas in plain float64."""

    layout = [
        ("model.embed_tokens.weight", (5, 4)),
        ("model.layers.0.input_layernorm.weight", (4,)),
        ("model.layers.0.mlp.up_proj.weight", (6, 4)),
        ("model.layers.0.mlp.down_proj.weight", (4, 6)),
        ("model.norm.weight", (4,)),
        ("lm_head.weight", (5, 4)),
    ]
    beta1, beta2, eps, decay, momentum = 0.9, 0.95, 1e-8, 0.1, 0.95

    def setUp(self):
        self.random = random.Random(5)
        self.count = sum(math.prod(shape) for _, shape in self.layout)
        self.start = [self.random.gauss(0, 1) for _ in range(self.count)]

    def compare(self, name, want):
        recipe = Optimizer(name, self.beta1, self.beta2, self.eps, self.decay, 1.0, self.momentum)
        params, grads = torch.tensor(self.start), torch.zeros(self.count)
        optimizer = optim.Optimizer(recipe, self.layout, params, grads)
        state = [{"m": [0.0] * self.count, "v": [0.0] * self.count}, list(params.tolist())]
        for t, lr in ((1, 0.01), (2, 0.02), (3, 0.005)):
            grads.copy_(torch.tensor([self.random.gauss(0, 1) for _ in range(self.count)]))
            before = grads.tolist()
            optimizer.step(lr)
            state[1] = want(state[0], state[1], before, lr, t)
            worst = max(abs(a - b) for a, b in zip(params.tolist(), state[1]))
            self.assertLess(worst, 1e-5 if name == "muon" else 1e-6, f"step {t}")

    def spans(self):
        begin = 0
        for name, shape in self.layout:
            end = begin + math.prod(shape)
            yield name, shape, begin, end
            begin = end

    def adamw(self, s, p, g, lr, t):
        p = list(p)
        for _, shape, begin, end in self.spans():
            self.adamw_span(s, p, g, lr, t, begin, end, len(shape) == 2)
        return p

    def adamw_span(self, s, p, g, lr, t, begin, end, decayed):
        m, v = s["m"], s["v"]
        for i in range(begin, end):
            m[i] = self.beta1 * m[i] + (1 - self.beta1) * g[i]
            v[i] = self.beta2 * v[i] + (1 - self.beta2) * g[i] ** 2
            change = m[i] / (1 - self.beta1**t) / (math.sqrt(v[i] / (1 - self.beta2**t)) + self.eps)
            p[i] -= lr * (change + (self.decay * p[i] if decayed else 0))

    def muon(self, s, p, g, lr, t):
        p, m = list(p), s["m"]
        for name, shape, begin, end in self.spans():
            if "mlp" not in name:
                self.adamw_span(s, p, g, lr, t, begin, end, len(shape) == 2)
                continue
            for i in range(begin, end):
                m[i] = self.momentum * m[i] + (1 - self.momentum) * g[i]
            u = [self.momentum * m[i] + (1 - self.momentum) * g[i] for i in range(begin, end)]
            update = orthogonal(u, *shape)
            size = 0.2 * math.sqrt(max(shape))
            for i in range(begin, end):
                p[i] -= lr * (size * update[i - begin] + self.decay * p[i])
        return p

    def test_adamw(self):
        self.compare("adamw", self.adamw)

    def test_muon(self):
        self.compare("muon", self.muon)

    def muon_of(self, stack, products):
        """Five layers after two steps of Muon, with so many values in one call."""
        layout = [(f"model.layers.{i}.{name}.weight", shape) for i in range(5) for name, shape in (("q_proj", (8, 8)), ("norm", (8,)), ("k_proj", (8, 8)), ("up", (12, 8)))]
        layout.append(("model.layers.5.up.weight", (12, 8)))  # which lies elsewhere
        count, normal = sum(math.prod(shape) for _, shape in layout), random.Random(7)
        draw = lambda: torch.tensor([normal.gauss(0, 1) for _ in range(count)])
        params, grads = draw(), torch.zeros(count)
        optimizer = optim.Optimizer(Optimizer("muon", self.beta1, self.beta2, self.eps, self.decay, 1.0, self.momentum), layout, params, grads, stack=stack)
        if products != torch.float32:
            optimizer.work = optim.Workspace([s.sizes for s in optimizer.stacks], params, products)
        start = params.clone()
        for _ in range(2):
            grads.copy_(draw())
            optimizer.step(0.1)
        return params - start, optimizer

    def test_stacks_do_not_show(self):
        """One matrix after the other, or those of all layers at once, in stacks that a layer does not fill."""
        alone, optimizer = self.muon_of(0, torch.float32)
        self.assertEqual([s.sizes for s in optimizer.stacks], [(1, 8, 8)] * 10 + [(1, 12, 8)] * 6)
        for most, sizes in ((3 * 64, [(3, 8, 8), (2, 8, 8)] * 2 + [(1, 12, 8)] * 6), (1 << 20, [(5, 8, 8)] * 2 + [(1, 12, 8)] * 6)):
            stacked, optimizer = self.muon_of(most, torch.float32)
            self.assertEqual([s.sizes for s in optimizer.stacks], sizes)
            self.assertLess((stacked - alone).norm() / alone.norm(), 1e-6)

    def test_muon_in_bf16(self):
        """Products in bf16 move values as far, and by and large the same way."""
        exact, _ = self.muon_of(1 << 20, torch.float32)
        near, _ = self.muon_of(1 << 20, torch.bfloat16)
        self.assertLess((near - exact).norm() / exact.norm(), 0.05)
        self.assertGreater((near - exact).norm(), 0)

    def test_pieces_do_not_show(self):
        """A vector longer than a piece takes the same step as its parts."""
        recipe = Optimizer("adamw", self.beta1, self.beta2, self.eps, self.decay, 1.0)
        length = (1 << 16) + 3
        start, slope = torch.linspace(-1, 1, length), torch.linspace(1, -2, length)
        whole = start.clone()
        optim.Optimizer(recipe, [("a", (length,))], whole, slope.clone()).step(0.1)
        tail = start[-5:].clone()
        optim.Optimizer(recipe, [("a", (5,))], tail, slope[-5:].clone()).step(0.1)
        self.assertTrue(torch.equal(whole[-5:], tail))

    def test_clip(self):
        grads = torch.tensor([3.0, 4.0])
        self.assertEqual(optim.clip([grads], 10), 5)
        self.assertEqual(grads.tolist(), [3, 4])
        self.assertEqual(optim.clip([grads[:1], grads[1:]], 1), 5)
        self.assertAlmostEqual(optim.squares([grads]), 1, places=6)
        self.assertAlmostEqual(optim.clip([grads], 1, lambda own: own + 3), 2, places=6)
        self.assertAlmostEqual(optim.squares([grads]), 0.25, places=6)
        grads[0] = math.inf
        self.assertEqual(optim.clip([grads], 1), math.inf)
        self.assertEqual(grads[0], math.inf)

    def test_tiny_moments_become_zero(self):
        recipe = Optimizer("adamw", self.beta1, self.beta2, self.eps, self.decay, 1.0)
        optimizer = optim.Optimizer(recipe, [("a", (2,))], torch.ones(2), torch.tensor([1e-31, 1.0]))
        optimizer.step(0.1)
        self.assertEqual((optimizer.m[0], optimizer.v[0]), (0, 0))
        self.assertGreater(optimizer.m[1], 0)


def orthogonal(u, rows, cols):
    """Newton-Schulz in plain float64; always over the rows, whichever side is shorter."""
    norm = math.sqrt(sum(x * x for x in u)) + 1e-7
    x = [[u[r * cols + c] / norm for c in range(cols)] for r in range(rows)]
    for _ in range(5):
        gram = product(x, list(zip(*x)))
        square = product(gram, gram)
        poly = [[-4.7750 * a + 2.0315 * b for a, b in zip(*pair)] for pair in zip(gram, square)]
        for i in range(rows):
            poly[i][i] += 3.4445
        x = product(poly, x)
    return [value for row in x for value in row]


def product(a, b):
    columns = list(zip(*b))
    return [[sum(x * y for x, y in zip(row, column)) for column in columns] for row in a]


@unittest.skipUnless(torch, "PyTorch is missing")
class Learners(unittest.TestCase):
    def test_flush_and_load_are_exact(self):
        """To the bit, for -0, denormal numbers and NaN as well, also where arithmetic flushes denormals."""
        self.addCleanup(torch.set_flush_denormal, False)
        torch.set_flush_denormal(True)
        node = node_of(self, small())
        bits = random.Random(2)
        values = b"".join(struct.pack("<I", bits.getrandbits(32)) for _ in range(node.count))
        values = struct.pack("<4I", 0x80000000, 1, 0x7F800001, 0x007FFFFF) + values[16:]
        node.overwrite(values)
        learner = learner_of(node)
        node.overwrite(bytes(len(values)))
        learner.flush([[0, 100], [100, node.count - 100]])
        self.assertEqual(node.values(), values)

    def test_flush_touches_its_pieces_alone(self):
        node = node_of(self, small())
        learner = learner_of(node)
        before = node.values()
        learner.step(0, 0.01, STARTS)
        self.assertEqual(node.values(), before)
        learner.flush([[40, 8]])
        after = node.values()
        self.assertEqual(after[:160] + after[192:], before[:160] + before[192:])
        self.assertNotEqual(after[160:192], before[160:192])

    def test_loss_falls(self):
        for name in ("adamw", "muon"):
            for precision in ("f32", "bf16"):
                with self.subTest(name + " " + precision):
                    learner = learner_of(node_of(self, small(name)), precision=precision)
                    losses = [learner.step(i, 0.01, STARTS)[1] for i in range(40)]
                    self.assertLess(losses[-1], losses[0] - 1)
                    self.assertEqual(learner.params.dtype, torch.float32)

    def test_bf16_is_near_f32(self):
        losses = [learner_of(node_of(self, small()), precision=p).step(0, 0.01, STARTS)[1] for p in ("f32", "bf16")]
        self.assertAlmostEqual(losses[0], losses[1], delta=0.01 * losses[0])

    def test_measuring_changes_nothing(self):
        node = node_of(self, small())
        learner = learner_of(node)
        learner.step(0, 0.01, STARTS)
        before = learner.params.clone(), learner.optimizers[0].m.clone(), learner.optimizers[0].v.clone()
        learner._measure()
        for was, now in zip(before, (learner.params, learner.optimizers[0].m, learner.optimizers[0].v)):
            self.assertTrue(torch.equal(was, now))

    def test_micro_batches_add_up(self):
        node = node_of(self, small())
        whole = learner_of(node)
        loss = whole._gradient(STARTS)
        for rows in (1, 2, 3):  # 3 leaves a smaller last one
            split = learner_of(node, micro_batch=rows)
            self.assertAlmostEqual(split._gradient(STARTS), loss, delta=1e-6 * loss)
            self.assertLess((split.grads - whole.grads).norm() / whole.grads.norm(), 1e-6)

    def test_gradients_stay_in_the_flat_vector(self):
        learner = learner_of(node_of(self, small(tied=False)))
        learner._gradient(STARTS)
        at = 0
        for _, p in learner.model.named_parameters():
            self.assertEqual(p.data_ptr(), learner.params[at:].data_ptr())
            self.assertEqual(p.grad.data_ptr(), learner.grads[at:].data_ptr())
            self.assertGreater(p.grad.abs().sum(), 0)
            at += p.numel()
        self.assertEqual(at, len(learner.params))

    def test_batch(self):
        learner = learner_of(node_of(self, small()))
        tokens = learner.text.rows(learner.places(0, STARTS), CONTEXT + 1)
        self.assertEqual([bytes(row) for row in tokens.tolist()], [TEXT[s : s + CONTEXT + 1] for s in STARTS])
        for starts in ([STARTS[-1] + 1], [-1], [1.5], []):
            with self.subTest(starts), self.assertRaises(LearnerError):
                learner.step(0, 0.01, starts)

    def test_resume_is_exact(self):
        for name in ("adamw", "muon"):
            with self.subTest(name):
                node = node_of(self, small(name))
                one = learner_of(node)
                for i in range(3):
                    one.step(i, 0.01, STARTS)
                one.flush(node.everything())
                one.save(node.path("state"))
                node.run.update(resume=node.path("state"), steps=3)
                other = learner_of(node)
                self.assertEqual(one.step(3, 0.01, STARTS), other.step(3, 0.01, STARTS))
                self.assertTrue(torch.equal(one.params, other.params))
                self.assertTrue(torch.equal(one.optimizers[0].m, other.optimizers[0].m))
                self.assertTrue(torch.equal(one.optimizers[0].v, other.optimizers[0].v))

    def test_resume_of_another_file(self):
        node = node_of(self, small("muon"))
        learner_of(node).save(node.path("state"))
        wide = node_of(self, small("muon", vocab=300))
        for resume, run, error in (
            (node.path("state"), node_of(self, small("adamw")), "it is of muon, the run has adamw"),
            (node.path("state"), wide, "it is of another model"),
            (node.path("text"), node, "text"),
            (node.path("missing"), node, "missing"),
        ):
            run.run["resume"] = resume
            with self.subTest(error), self.assertRaises(LearnerError) as caught:
                TorchLearner(torch.device("cpu")).start(Run(run.run))
            self.assertIn(error, caught.exception.error)
            self.assertEqual(caught.exception.remedy, "start without it")

    def test_divergence_changes_nothing(self):
        learner = learner_of(node_of(self, small()))
        learner.step(0, 0.01, STARTS)
        learner.params[-1] = math.inf  # of the last norm, so no loss is finite
        state = learner.params.clone(), learner.optimizers[0].m.clone(), learner.optimizers[0].v.clone()
        with self.assertRaises(LearnerError) as caught:
            learner.step(1, 0.01, STARTS)
        self.assertEqual(caught.exception.kind, "diverged")
        self.assertIn("step 1: loss nan", caught.exception.error)
        self.assertEqual(learner.taken, 1)
        for was, now in zip(state, (learner.params, learner.optimizers[0].m, learner.optimizers[0].v)):
            self.assertTrue(torch.equal(was, now))

    def test_infinite_gradient_is_divergence(self):
        learner = learner_of(node_of(self, small()))
        gradient = learner._gradient

        def broken(places):
            loss = gradient(places)
            learner.grads[5] = math.inf
            return loss

        learner._gradient = broken
        before = learner.params.clone()
        with self.assertRaises(LearnerError) as caught:
            learner.step(0, 0.01, STARTS)
        self.assertEqual(caught.exception.kind, "diverged")
        self.assertTrue(torch.equal(before, learner.params))

    def test_failure_inside_the_update_is_fatal(self):
        learner = learner_of(node_of(self, small()))
        learner.optimizers[0].step = lambda lr: 1 / 0
        with self.assertRaises(LearnerError) as caught:
            learner.step(0, 0.01, STARTS)
        self.assertTrue(caught.exception.fatal)

    def test_refused_runs(self):
        mamba = small()
        mamba["family"] = "mamba"
        for recipe, fields, error in (
            (mamba, {}, 'family is "mamba"'),
            (small(window=5), {}, "model.window is 5"),
            (small(), {"context": 17}, "context of 17"),
            (small(), {"text": "nowhere"}, "text 'nowhere'"),
        ):
            node = node_of(self, recipe)
            node.run.update(fields)
            with self.subTest(error), self.assertRaises(LearnerError) as caught:
                TorchLearner(torch.device("cpu")).start(Run(node.run))
            self.assertIn(error, caught.exception.error)
            self.assertTrue(caught.exception.remedy)

    def test_another_layout(self):
        layout = llama_layout(small()["model"])
        renamed = [("other.weight", layout[0][1]), *layout[1:]]
        for tensors, error in ((renamed, "tensor other.weight [256, 16] where"), (layout[:-1], "the run has 19 tensors")):
            node = FakeNode(self, tensors, fresh(tensors), TEXT, recipe=json.dumps(small()), rows=ROWS, context=CONTEXT)
            with self.subTest(error), self.assertRaises(LearnerError) as caught:
                TorchLearner(torch.device("cpu")).start(Run(node.run))
            self.assertIn(error, caught.exception.error)

    def test_short_text(self):
        node = node_of(self, small())
        for size in (0, CONTEXT):
            pathlib.Path(node.run["text"]).write_bytes(TEXT[:size])
            with self.subTest(size), self.assertRaisesRegex(LearnerError, "text"):
                TorchLearner(torch.device("cpu")).start(Run(node.run))

    def test_devices(self):
        missing = [kind for kind in devices.KINDS if kind not in devices.found()]
        for kind in missing:
            with self.assertRaisesRegex(devices.DeviceError, f"--device {kind} was asked for, but .* found only: .*cpu"):
                devices.choose(kind)
        self.assertEqual(devices.choose("auto").type, devices.found()[0])
        cpu = devices.describe(torch.device("cpu"))
        self.assertEqual((cpu["kind"], cpu["count"]), ("cpu", 1))
        self.assertGreater(cpu["memory_bytes"], 0)


@unittest.skipUnless(torch, "PyTorch is missing")
class Process(unittest.TestCase):
    def test_a_whole_run(self):
        node = node_of(self, small())
        hello = node.start("atoll.torch", "--device", "cpu", "--threads", 1, "--precision", "bf16", "--micro-batch", 2)
        self.assertEqual((hello["name"], hello["precision"], hello["devices"][0]["kind"]), ("atoll.torch", "bf16", "cpu"))
        ready = node.begin_run()
        self.assertEqual(ready["layout"], node.run["layout"])
        before = node.values()
        answer = node.ask("step", number=0, lr=0.01, starts=STARTS)
        self.assertEqual((answer["type"], answer["tokens"]), ("stepped", ROWS * CONTEXT))
        node.ask("flush", pieces=node.everything())
        self.assertNotEqual(node.values(), before)
        self.assertEqual(node.ask("save", path=node.path("state")), {"type": "saved"})
        self.assertEqual(node.ask("stop"), {"type": "stopped"})
        self.assertEqual(node.stderr()[0], 0)

    def test_missing_device(self):
        missing = next((kind for kind in devices.KINDS if kind not in devices.found()), None)
        if missing is None:
            self.skipTest("this machine has every device")
        node = node_of(self, small())
        node.launch("atoll.torch", ["--device", missing], 1)
        code, text = node.stderr()
        self.assertEqual(code, 2)
        self.assertIn(f"--device {missing} was asked for", text)


class WithoutTorch(unittest.TestCase):
    def test_says_how_to_install(self):
        with tempfile.TemporaryDirectory() as folder:
            # Hides PyTorch where there is one.
            hide = f"import sys; sys.modules['torch'] = None; sys.path.insert(0, {str(PACKAGE)!r})\n"
            hide += "from atoll.torch.__main__ import main; sys.exit(main([]))"
            done = subprocess.run([sys.executable, "-c", hide], cwd=folder, capture_output=True, text=True)
        self.assertEqual(done.returncode, 2, done.stderr)
        self.assertEqual(done.stderr.count("\n"), 1)
        self.assertIn("python3 -m pip install torch", done.stderr)


if __name__ == "__main__":
    unittest.main()
