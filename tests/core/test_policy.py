import json
from pathlib import Path

import pytest
from transformers import AutoModelForCausalLM, AutoTokenizer

from components.core.errors import UserError
from components.core.policy import ensure_base_policy
from components.core.store import open_store
from pipelines.compile import load_profile
from tests.chaos.s3_server import S3Server


def base_policy(tmp_path: Path, model: str, *overrides: str) -> Path:
    _, config = load_profile("micro", [f"store={tmp_path / 'store'}", f"model_name={model}", *overrides])
    store = open_store(config.store)
    return store.fetch(ensure_base_policy(config, store)) / "hf"


def test_a_directory_is_brought_in_whole_and_a_changed_one_anew(tmp_path: Path) -> None:
    first = base_policy(tmp_path, "random:1x32")
    copied = base_policy(tmp_path, str(first))
    assert copied != first
    assert {path.name: path.read_bytes() for path in copied.iterdir()} == {
        path.name: path.read_bytes() for path in first.iterdir()
    }
    assert AutoModelForCausalLM.from_pretrained(copied).config.hidden_size == 32
    config = json.loads((first / "config.json").read_text())
    (first / "config.json").write_text(json.dumps({**config, "note": "changed"}))
    assert base_policy(tmp_path, str(first)) != copied


def test_a_policy_on_s3_is_brought_in_whole_and_a_changed_one_anew(s3_server: S3Server, tmp_path: Path) -> None:
    files = {"config.json": b"{}", "tokenizer.json": b"{}", "model.safetensors": b"weights"}
    for name, data in files.items():
        s3_server.client.put_object(Bucket="bucket", Key=f"models/mine/{name}", Body=data)
    copied = base_policy(tmp_path, "s3://bucket/models/mine")
    assert {path.name: path.read_bytes() for path in copied.iterdir()} == files
    s3_server.client.put_object(Bucket="bucket", Key="models/mine/model.safetensors", Body=b"wEights")
    assert (base_policy(tmp_path, "s3://bucket/models/mine") / "model.safetensors").read_bytes() == b"wEights"


def test_an_untrained_policy_of_another_seed_is_another(tmp_path: Path) -> None:
    first, second = (base_policy(tmp_path, "random:1x32", f"seed={seed}") for seed in (0, 1))
    assert (first / "model.safetensors").read_bytes() != (second / "model.safetensors").read_bytes()


def test_the_tiny_policy_has_a_chat_template_and_one_token_a_byte(tmp_path: Path) -> None:
    tokenizer = AutoTokenizer.from_pretrained(base_policy(tmp_path, "random:1x32"))
    text = tokenizer.apply_chat_template([{"role": "user", "content": "é"}], tokenize=False, add_generation_prompt=True)
    assert text == "<|im_start|>user\né<|im_end|>\n<|im_start|>assistant\n"
    ids = tokenizer.encode("é```\n", add_special_tokens=False)
    assert len(ids) == 6
    assert tokenizer.decode(ids) == "é```\n"


@pytest.mark.parametrize(
    ("make", "message"),
    [
        ([], "no such directory"),
        (["config.json", "tokenizer.json"], r"no weights \(\*\.safetensors\)"),
        (["config.json", "model.safetensors"], r"no tokenizer\.json"),
    ],
)
def test_a_model_directory_that_lacks_something_is_named_and_leaves_nothing(
    make: list[str], message: str, tmp_path: Path
) -> None:
    model = tmp_path / "model"
    for name in make:
        model.mkdir(exist_ok=True)
        (model / name).write_text("{}")
    with pytest.raises(UserError, match=f"model_name={model}.*{message}"):
        base_policy(tmp_path, str(model))
    assert not list((tmp_path / "store").glob("policies/*/_COMPLETE"))


@pytest.mark.parametrize(
    ("model", "message"),
    [
        ("package:no_such_package/x.gguf", "the Python package no_such_package is not installed"),
        ("package:json/x.gguf", r"the package has no file x\.gguf"),
        ("random:2x50", r"write random:LAYERSxWIDTH"),
        ("not a/hub/id", "not to be had from the hub"),
    ],
)
def test_a_model_name_that_leads_nowhere_says_why(model: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(UserError, match=message):
        base_policy(tmp_path, model)
