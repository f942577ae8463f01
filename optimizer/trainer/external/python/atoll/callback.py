"""AtollCallback: transformers.Trainer takes part in a run, trainer.add_callback(AtollCallback()).

The node starts the script, or it attaches to one, as for atoll.join. max_steps must be more than the run can take: the node ends the training.
"""

from transformers import TrainerCallback

from .run import join
from .serve import LearnerError, log
from .values import unwrap


class AtollCallback(TrainerCallback):
    """Sets the node's learning rate before each optimizer step, and tells the node of the step after it.

    The loss is the one that the model returns for its labels; the callback reads it as the model computes it.
    """

    def __init__(self, folder=None, evaluate=None):
        self.run = None
        self._folder, self._evaluate = folder, evaluate
        self._losses, self._tokens, self._total = [], 0, False

    def on_train_begin(self, args, state, control, model=None, optimizer=None, **others):
        if self.run is None:
            self.run = join(model, optimizer, self._folder, self._evaluate)
            unwrap(model).register_forward_hook(self._saw, with_kwargs=True)
        control.should_training_stop = self.run.over

    def on_step_begin(self, args, state, control, **others):
        self._losses, self._tokens, self._total = [], 0, False

    def on_pre_optimizer_step(self, args, state, control, optimizer=None, **others):
        self.run.apply(optimizer)

    def on_step_end(self, args, state, control, **others):
        if not self._losses:
            raise LearnerError("the model returned no loss: give it labels, and leave label_smoothing_factor at 0")
        loss = sum(x.item() for x in self._losses)
        if not self._total:
            loss /= len(self._losses)
        if not self.run.step(self._tokens, loss):
            control.should_training_stop = True

    def on_train_end(self, args, state, control, **others):
        if not self.run.over:
            log(f"the trainer ends after {state.global_step} steps, before the run: use a larger max_steps")

    def _saw(self, module, arguments, fields, output):
        """Keeps the loss of a forward pass, and the number of its targets."""
        loss, labels = getattr(output, "loss", None), fields.get("labels")
        if not module.training or loss is None or labels is None:
            return
        self._losses.append(loss.detach())
        self._tokens += int((labels[..., 1:] != -100).sum())
        # Then the losses of all micro-batches are parts of one mean.
        self._total = fields.get("num_items_in_batch") is not None
