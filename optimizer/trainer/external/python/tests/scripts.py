"""Training scripts as users have them, for tests of atoll.join: each has the lines of atoll in a loop of its own."""

HEAD = """
import sys, torch, atoll
torch.set_num_threads(1)
torch.manual_seed(5)
"""

# A network of its own on data of its own. Arguments: the type of its values, and whether it wants to diverge.
PERCEPTRON = (
    HEAD
    + """
model = torch.nn.Sequential(torch.nn.Linear(3, 5), torch.nn.Tanh(), torch.nn.Linear(5, 2)).to(getattr(torch, sys.argv[1]))
model.register_buffer("seen", torch.zeros(1))
optimizer = torch.optim.AdamW(model.parameters())
run = atoll.join(model, optimizer)
while not run.over:
    torch.manual_seed(run.number)
    x = torch.randn(16, 3)
    loss = torch.nn.functional.cross_entropy(model(x.to(model[0].weight.dtype)).float(), (x.sum(1) > 0).long())
    optimizer.zero_grad()
    loss.backward()
    run.apply(optimizer)
    optimizer.step()
    run.step(tokens=len(x), loss=loss * float("nan") if "diverge" in sys.argv else loss)
assert not run.step(1, 1.0)
print("end", run.recipe, file=sys.stderr)
"""
)

# The batches of the run, in a model that counts how often a byte follows another.
BATCHES = (
    HEAD
    + """
class Pairs(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.table = torch.nn.Embedding(256, 256)
    def forward(self, input_ids, labels):
        return torch.nn.functional.cross_entropy(self.table(input_ids[:, :-1]).flatten(0, 1), labels[:, 1:].flatten())
model = Pairs()
optimizer = torch.optim.SGD(model.parameters(), lr=0)
run = atoll.join(model)
for batch in run.batches():
    assert batch["input_ids"].dtype == torch.int64
    print("batch", bytes(batch["input_ids"].flatten().tolist()).decode(), file=sys.stderr)
    loss = model(**batch)
    loss.backward()
    run.apply(optimizer)
    optimizer.step()
    if not run.step(tokens=batch["labels"][:, 1:].numel(), loss=loss):
        break
"""
)

# transformers.Trainer with the callback.
TRAINER = (
    HEAD
    + """
import transformers
from atoll.callback import AtollCallback
config = transformers.LlamaConfig(vocab_size=256, hidden_size=16, intermediate_size=24, num_hidden_layers=1, num_attention_heads=2)
model = transformers.LlamaForCausalLM(config)
rows = [{"input_ids": list(range(k, k + 9)), "labels": list(range(k, k + 9))} for k in range(64)]
callback = AtollCallback()
arguments = transformers.TrainingArguments(
    output_dir=sys.argv[1], max_steps=1000, per_device_train_batch_size=2, gradient_accumulation_steps=2, use_cpu=True,
    report_to=[], disable_tqdm=True, save_strategy="no", logging_strategy="no", learning_rate=1.0, max_grad_norm=0,
)
trainer = transformers.Trainer(model, arguments, train_dataset=rows, callbacks=[callback])
trainer.train()
print("steps", trainer.state.global_step, "over", callback.run.over, file=sys.stderr)
"""
)

# A script that runs already and attaches, twice: the first time its node goes. Arguments: the node's folder.
ATTACHES = (
    HEAD
    + """
model = torch.nn.Linear(3, 2)
optimizer = torch.optim.SGD(model.parameters(), lr=0)
for _ in range(2):
    try:
        run = atoll.join(model, optimizer, *sys.argv[1:])
        while not run.over:
            run.apply(optimizer)
            for p in model.parameters():
                p.grad = torch.ones_like(p)
            optimizer.step()
            run.step(tokens=4, loss=1.0)
        print("over", file=sys.stderr)
    except atoll.LearnerError as failure:
        print("failed:", failure, file=sys.stderr, flush=True)
"""
)
