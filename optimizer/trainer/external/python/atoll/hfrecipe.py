"""Models that recipes of the families "transformers" and "peft" describe. What is not known here is refused by name."""

import dataclasses

from . import recipe, weights
from .serve import LearnerError
from .values import first_line

_OTHER = "use a learner that knows it"

# Fields of a config.json that say where code or weights come from, or which kernel computes: never of use here.
_DROPPED = ("auto_map", "_name_or_path", "name_or_path", "torch_dtype", "dtype", "transformers_version", "architectures")
_REFUSED = ("quantization_config", "custom_pipelines", "adapter_layers")

# Fields of an adapter_config.json that name other things to read or to import, or that change the base model.
_ADAPTER_DROPPED = ("base_model_name_or_path", "revision", "auto_mapping", "peft_version", "inference_mode")
_ADAPTER_REFUSED = (
    "megatron_config", "eva_config", "corda_config", "lora_ga_config", "velora_config", "monteclora_config", "kasa_config", "arrow_config",
    "layer_replication", "trainable_token_indices", "alora_invocation_tokens", "use_qalora", "use_bdlora",
)  # fmt: skip
_KEPT_BASE = (True, False, None, "gaussian", "orthogonal")


def parse(text):
    """Returns family, config and Optimizer of a recipe."""
    given = recipe.read(text)
    recipe.check_names("", given, ["family"], ["config", "optimizer", *given])
    recipe.check_choice("family", given["family"], ["transformers", "peft"])
    recipe.check_names("", given, ["family", "config", "optimizer"], ["base_sha256"] if given["family"] == "peft" else [])
    if not isinstance(given["config"], dict):
        raise LearnerError(f"recipe config is {recipe.show(given['config'])}, not a JSON object", "make the run anew")
    optimizer = recipe.build(recipe.Optimizer, "optimizer", given["optimizer"])
    recipe.check_choice("optimizer.name", optimizer.name, ["adamw"])
    recipe.check_optimizer(optimizer, given["optimizer"])
    return given["family"], given["config"], optimizer


def check_base(text, folder):
    """Refuses another model than that of the run's adapters, where the recipe names its weights."""
    want = recipe.read(text).get("base_sha256")
    if want is None or not folder:  # without a folder, build says what is missing
        return
    found = weights.digest(folder)
    if found != want:
        raise LearnerError(
            f"--base {folder} has weights of SHA-256 {found}, and the run's adapters belong to {recipe.show(want)}",
            "give the folder of the very model that the run was made for: same version, same files",
        )


def build(family, config, base):
    """Returns the model, in float32. Its values are to be loaded."""
    if family == "peft":
        return _adapters(config, base)
    from transformers import AutoModelForCausalLM

    known = causal(config)
    try:
        return AutoModelForCausalLM.from_config(known, trust_remote_code=False).float()
    except Exception as failure:  # a config can be wrong in any way
        raise LearnerError(f"recipe config makes no {known.model_type}: {first_line(failure)}", "make the run anew") from failure


def causal(config):
    """Returns the config of a model for text that transformers knows."""
    from transformers import CONFIG_MAPPING, MODEL_FOR_CAUSAL_LM_MAPPING, AutoConfig, __version__

    kind = config.get("model_type")
    if not isinstance(kind, str) or kind not in CONFIG_MAPPING or CONFIG_MAPPING[kind] not in MODEL_FOR_CAUSAL_LM_MAPPING:
        raise LearnerError(
            f"recipe config.model_type is {recipe.show(kind)}: transformers {__version__} has no causal model of that name",
            "use a newer transformers, or a learner that knows it",
        )
    for name in _REFUSED:
        if config.get(name):
            raise LearnerError(f"recipe config.{name} is {recipe.show(config[name])}: this learner trains plain weights", _OTHER)
    fields = {name: value for name, value in _cleaned(config).items() if name != "model_type"}
    try:
        return AutoConfig.for_model(kind, **fields)
    except Exception as failure:
        raise LearnerError(f"recipe config is not of a {kind}: {first_line(failure)}", "make the run anew") from failure


def _cleaned(value):
    """Leaves out fields that name code, kernels or places. Kernels can be named by where to download them."""
    if isinstance(value, list):
        return [_cleaned(x) for x in value]
    if not isinstance(value, dict):
        return value
    return {name: _cleaned(x) for name, x in value.items() if not _names_code(name)}


def _names_code(name):
    return name in _DROPPED or name.endswith("_implementation") or name == "use_kernels"


def _adapters(config, base):
    import importlib.util

    if importlib.util.find_spec("peft") is None:
        raise LearnerError("the run trains adapters, and PEFT is missing from this Python", "install it with `python3 -m pip install peft`")
    import peft

    kind = config.get("peft_type")
    recipe.check_choice("config.peft_type", kind, ["LORA"])
    given = peft.LoraConfig(**_adapter_fields(config, peft.LoraConfig))
    if not base:
        named = recipe.show(config.get("base_model_name_or_path"))
        raise LearnerError(f"the run trains adapters of {named}, and its values are not in the run", "pass the folder of that model by --base DIR")
    model = _base(base)
    try:
        return peft.get_peft_model(model, given)
    except Exception as failure:
        raise LearnerError(f"the adapters do not fit --base {base}: {first_line(failure)}", "give the model that they are made for") from failure


def _adapter_fields(config, kind):
    known = {field.name for field in dataclasses.fields(kind)}
    fields = {}
    for name, value in config.items():
        if name in _ADAPTER_DROPPED:
            continue
        if name not in known:
            raise LearnerError(f"recipe field config.{name} is {recipe.show(value)}: this PEFT does not know the field", "use a newer peft")
        if name in _ADAPTER_REFUSED and value:
            raise LearnerError(f"recipe config.{name} is {recipe.show(value)}: this learner does not train such adapters", _OTHER)
        if name == "init_lora_weights" and value not in _KEPT_BASE:
            raise LearnerError(
                f"recipe config.{name} is {recipe.show(value)}, which changes the base model", "make the adapters anew with init_lora_weights=True"
            )
        if name not in ("megatron_core", "runtime_config", "loftq_config"):
            fields[name] = value
    return fields


def _base(folder):
    from transformers import AutoModelForCausalLM

    try:
        model = AutoModelForCausalLM.from_pretrained(folder, local_files_only=True, trust_remote_code=False, use_safetensors=True)
    except Exception as failure:
        raise LearnerError(f"cannot load --base {folder}: {first_line(failure)}", "give a folder with config.json and safetensors") from failure
    return model.float()
