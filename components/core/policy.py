"""Base policies: whatever `model_name` says becomes a Hugging Face directory in the store, once.

A policy folder holds `hf/`: config.json, safetensors, tokenizer.json, and the chat template.
"""

from __future__ import annotations

import importlib.util
import json
import re
import shutil
from pathlib import Path

from components.core.config import Config
from components.core.errors import UserError
from components.core.paths import base_policy_path
from components.core.progress import say
from components.core.seeds import derive_seed
from components.core.store import Pointer, Store, config_hash, file_sha256, open_store

_HUB_FILES = ["*.safetensors", "*.json", "*.jinja", "*.model", "*.txt"]


def ensure_base_policy(config: Config, store: Store) -> Pointer:
    """The pointer to the base policy of `config.model_name`; converts or copies it if the store has none yet.

    Raises:
        UserError: the model is not there, or is a directory without weights.
    """
    name = config.model_name
    key = config_hash(["base policy", name, _source_identity(name, config.seed)])
    where = base_policy_path(key)
    found = store.complete(where, key)
    if found is not None:
        return found
    store.delete(where)
    with store.scratch() as scratch:
        target = scratch / "hf"
        target.mkdir()
        if name.startswith("package:"):
            _from_package(name, target)
        elif name.startswith("random:"):
            _random(name, target, config.seed)
        elif name.startswith("s3://"):
            shutil.copytree(open_store(name).local_dir(""), target, dirs_exist_ok=True)
        elif _is_path(name):
            _check_directory(Path(name).expanduser(), name)
            shutil.copytree(Path(name).expanduser(), target, dirs_exist_ok=True)
        else:
            _from_hub(name, target)
        _check_directory(target, name)
        hashes = {f"hf/{path.relative_to(target)}": file_sha256(path) for path in target.rglob("*") if path.is_file()}
        store.put_dir(target, f"{where}/hf")
    return store.commit(
        where,
        kind="policy",
        step="prepare_data",
        rows=1,
        key=key,
        hashes=hashes,
        version="base",
        global_step=0,
        model=name,
    )


def _is_path(name: str) -> bool:
    return name.startswith(("/", ".", "~")) or Path(name).is_dir()


def _source_identity(name: str, seed: int) -> object:
    """What makes a changed source another policy: names, sizes and times of local files, S3's ETags, a seed."""
    if name.startswith("random:"):
        return seed
    if name.startswith("s3://"):
        from components.core.s3_store import S3Store

        return sorted(S3Store(name).etags("").items())
    if not _is_path(name):
        return None
    folder = Path(name).expanduser()
    return sorted(
        (path.name, path.stat().st_size, path.stat().st_mtime_ns) for path in folder.glob("*") if path.is_file()
    )


def _check_directory(folder: Path, name: str) -> None:
    if not folder.is_dir():
        raise UserError(f"model_name={name}: no such directory")
    for pattern, what in (
        ("config.json", "config.json"),
        ("*.safetensors", "weights (*.safetensors)"),
        ("tokenizer.json", "tokenizer.json"),
    ):
        if not any(folder.glob(pattern)):
            raise UserError(f"model_name={name}: the directory holds no {what}; export it with save_pretrained")
    index = folder / "model.safetensors.index.json"
    if index.is_file():
        parts = set(json.loads(index.read_text())["weight_map"].values())
        missing = sorted(part for part in parts if not (folder / part).is_file())
        if missing:
            raise UserError(f"model_name={name}: {index.name} names weights that are not there: {', '.join(missing)}")


def _from_package(name: str, target: Path) -> None:
    """`package:MODULE/FILE.gguf`: dequantize the GGUF that an installed package ships, to float32."""
    module, _, file = name.removeprefix("package:").partition("/")
    spec = importlib.util.find_spec(module)
    if spec is None or spec.origin is None:
        raise UserError(f"model_name={name}: the Python package {module} is not installed; `make install` brings it")
    folder = Path(spec.origin).parent
    if not (folder / file).is_file():
        raise UserError(f"model_name={name}: the package has no file {file}")
    say("base policy", f"converting {file} to a Hugging Face directory (once, about 20 s)")
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer
    from transformers.utils import logging

    logging.disable_progress_bar()
    model = AutoModelForCausalLM.from_pretrained(folder, gguf_file=file, dtype=torch.float32)
    # The weights are no longer quantized, but the loader leaves its marks, with which saving refuses.
    if hasattr(model.config, "quantization_config"):
        del model.config.quantization_config
    model.hf_quantizer = None
    model.save_pretrained(target)
    AutoTokenizer.from_pretrained(folder, gguf_file=file).save_pretrained(target)


def _random(name: str, target: Path, seed: int) -> None:
    """`random:LAYERSxWIDTH`: an untrained Llama over bytes, to try the pipeline with in seconds."""
    match = re.fullmatch(r"random:(\d+)x(\d+)", name)
    if match is None or int(match[2]) % 32:
        raise UserError(f"model_name={name}: write random:LAYERSxWIDTH, the width a multiple of 32, as in random:2x64")
    import torch
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers
    from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    tokenizer = Tokenizer(models.BPE(vocab={char: i for i, char in enumerate(alphabet)}, merges=[]))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    fast = PreTrainedTokenizerFast(tokenizer_object=tokenizer, eos_token="<|im_end|>", pad_token="<|im_end|>")
    fast.add_special_tokens({"additional_special_tokens": ["<|im_start|>"]})
    fast.chat_template = (
        "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}"
        "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
    )
    layers, width = int(match[1]), int(match[2])
    torch.manual_seed(derive_seed(seed, "random policy") % 2**32)
    model = LlamaForCausalLM(
        LlamaConfig(
            vocab_size=len(fast),
            hidden_size=width,
            intermediate_size=2 * width,
            num_hidden_layers=layers,
            num_attention_heads=width // 32,
            num_key_value_heads=width // 32,
            max_position_embeddings=4096,
            eos_token_id=fast.eos_token_id,
            pad_token_id=fast.eos_token_id,
            bos_token_id=None,
            tie_word_embeddings=True,
        )
    )
    model.generation_config.eos_token_id = fast.eos_token_id
    model.save_pretrained(target)
    fast.save_pretrained(target)


def _from_hub(name: str, target: Path) -> None:
    import httpx2
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import HfHubHTTPError, HFValidationError, LocalEntryNotFoundError

    try:
        snapshot_download(name, local_dir=target, allow_patterns=_HUB_FILES)
    except (HfHubHTTPError, HFValidationError, LocalEntryNotFoundError, httpx2.HTTPError, OSError) as error:
        raise UserError(
            f"model_name={name}: not a directory here, and not to be had from the hub ({type(error).__name__}: {error})"
        ) from error
    shutil.rmtree(target / ".cache", ignore_errors=True)
