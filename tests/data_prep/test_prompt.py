from __future__ import annotations

import pickle
from pathlib import Path

import pytest

from components.core.config import RolloutConfig
from components.core.errors import UserError
from components.core.schema import Problem, Test
from components.core.store import LocalStore
from components.data_prep.prompt import PromptCounter

STDIN = Problem("a", "s", "Print {x} twice; naïve — 数.\n", [Test("stdin", "1", "2")])
FUNCTION = Problem("b", "s", "Add.", [Test("function", "[1]", "2")], starter_code="def add(a):\n    ", fn_name="add")
TEMPLATES = {
    "plain": "{% for m in messages %}<|{{ m.role }}|>\n{{ m.content }}{{ eos_token }}\n{% endfor %}"
    "{% if add_generation_prompt %}<|assistant|>\n{% endif %}",
    # Default system turn, namespaces, loop controls, whitespace control: what published templates make use of.
    "busy": "{{- bos_token -}}\n{%- set ns = namespace(seen=false) %}\n{% if messages[0]['role'] != 'system' %}\n"
    "    <|system|>You help.{{ eos_token }}\n{% endif %}\n{%- for m in messages %}\n"
    "    {%- if m.content is none %}{% continue %}{% endif %}\n    {% if m.role == 'tool' %}{{ raise_exception('no') }}"
    "{% endif %}\n<|{{ m.role }}|>{{ m.content | trim }}{{ m | tojson | length }}\n{% set ns.seen = true %}\n"
    "{%- endfor %}{% if add_generation_prompt and ns.seen %}<|assistant|>{% endif %}",
}


def save_tokenizer(folder: Path, template: str) -> None:
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    vocabulary = {char: i for i, char in enumerate(alphabet)} | {"in": 256, "th": 257}
    tokenizer = Tokenizer(models.BPE(vocab=vocabulary, merges=[("i", "n"), ("t", "h")]))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    fast = PreTrainedTokenizerFast(tokenizer_object=tokenizer, eos_token="<|end|>", bos_token="<|begin|>")
    fast.add_special_tokens({"additional_special_tokens": ["<|user|>", "<|assistant|>", "<|system|>"]})
    fast.chat_template = template
    fast.save_pretrained(folder)


@pytest.mark.parametrize("name", sorted(TEMPLATES))
@pytest.mark.parametrize("system", [None, "Be brief."])
def test_prompts_are_as_long_as_transformers_makes_them(tmp_path: Path, name: str, system: str | None) -> None:
    from transformers import AutoTokenizer

    store = LocalStore(str(tmp_path))
    save_tokenizer(tmp_path / "p" / "hf", TEMPLATES[name])
    pointer = store.commit("p", kind="policy", step="x", rows=1, key="k")
    rollout = RolloutConfig(
        stdin_template="Solve:\n{question}",
        function_template="{question}\n{starter_code}{fn_name}",
        system_prompt=system,
    )
    counter = PromptCounter.from_policy(store, pointer, rollout)
    theirs = AutoTokenizer.from_pretrained(tmp_path / "p" / "hf")
    for problem, user in (
        (STDIN, f"Solve:\n{STDIN.question}"),
        (FUNCTION, f"Add.\n{FUNCTION.starter_code}add"),
    ):
        messages = [{"role": "system", "content": system}] if system else []
        messages.append({"role": "user", "content": user})
        text = theirs.apply_chat_template(messages, tokenize=False, add_generation_prompt=True)
        assert counter.render(problem) == text
        assert counter(problem) == len(theirs.encode(text, add_special_tokens=False))
        assert pickle.loads(pickle.dumps(counter))(problem) == counter(problem)


def test_identity_follows_templates_and_tokenizer() -> None:
    first = PromptCounter({"tokenizer.json": b"1"}, RolloutConfig())
    others = [
        PromptCounter({"tokenizer.json": b"2"}, RolloutConfig()),
        PromptCounter({"tokenizer.json": b"1", "chat_template.jinja": b"x"}, RolloutConfig()),
        PromptCounter({"tokenizer.json": b"1"}, RolloutConfig(stdin_template="Solve {question}")),
    ]
    assert len({counter.identity for counter in [first, *others]}) == 4
    assert first.identity == PromptCounter({"tokenizer.json": b"1"}, RolloutConfig(n=3)).identity


def test_a_policy_without_a_tokenizer_is_named(tmp_path: Path) -> None:
    store = LocalStore(str(tmp_path))
    (tmp_path / "p" / "hf").mkdir(parents=True)
    (tmp_path / "p" / "hf" / "config.json").write_text("{}")
    pointer = store.commit("p", kind="policy", step="x", rows=1, key="k")
    with pytest.raises(UserError, match=r"p/hf: holds no tokenizer\.json"):
        PromptCounter.from_policy(store, pointer, RolloutConfig())
