"""What is put to a policy: its chat template, its BOS token once, the configured templates, and what does not fit."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tokenizers.processors import TemplateProcessing
from transformers import AutoTokenizer

from components.core.config import RolloutConfig
from components.core.errors import UserError
from components.core.schema import Problem, Test
from components.rollout.engine import Chat
from components.rollout.task import first_messages
from tests.rollout.conftest import Configure
from tests.rollout.scripted import PROBLEMS, World


class Tokens(Chat):
    """What the engines share, without a policy."""

    def __init__(self, tokenizer: Any) -> None:
        self._tokenizer = tokenizer


@pytest.fixture
def tokenizer(policy: Path) -> Any:
    return AutoTokenizer.from_pretrained(policy)


USER = [{"role": "user", "content": "add"}]


def test_the_bos_token_stands_once_whether_template_and_tokenizer_write_it_or_only_one(tokenizer: Any) -> None:
    tokenizer.add_special_tokens({"bos_token": "<s>"})
    bos = tokenizer.bos_token_id
    tokenizer.backend_tokenizer.post_processor = TemplateProcessing(
        single="<s> $A", pair="<s> $A $B", special_tokens=[("<s>", bos)]
    )
    assert tokenizer("add").input_ids[0] == bos  # by itself it writes one before every text
    tokenizer.chat_template = "{{ bos_token }}" + tokenizer.chat_template
    chat = Tokens(tokenizer)
    ids = chat.encode_chat(USER)
    assert ids[0] == bos
    assert ids.count(bos) == 1
    assert bos not in chat.encode("So: ")  # which goes on after the prompt


def test_a_policy_without_a_chat_template_is_refused_with_what_to_do(tokenizer: Any) -> None:
    tokenizer.chat_template = None
    with pytest.raises(UserError, match=r"no chat template.*Add chat_template\.jinja"):
        Tokens(tokenizer).encode_chat(USER)


def test_what_a_template_refuses_or_makes_nothing_of_is_told(tokenizer: Any) -> None:
    tokenizer.chat_template = "{{ raise_exception('no system turns') if messages[0].role == 'system' }}"
    with pytest.raises(UserError, match="refuses the turns system, user: no system turns"):
        Tokens(tokenizer).encode_chat([{"role": "system", "content": "Be brief."}, *USER])
    with pytest.raises(UserError, match="makes an empty prompt of "):
        Tokens(tokenizer).encode_chat(USER)


@pytest.mark.parametrize(
    ("ending", "opening"),
    [
        ("", ""),
        ("<think>\n", "<think>\n"),
        ("<think>", "<think>"),
        ("<think>\n\n</think>\n\n", ""),
        ("Begin with <think>, please.", ""),
    ],
)
def test_a_thought_that_the_template_opens_begins_the_answer(tokenizer: Any, ending: str, opening: str) -> None:
    tokenizer.chat_template += "{{ '" + ending.replace("\n", "\\n") + "' if add_generation_prompt }}"
    assert Tokens(tokenizer).opening == opening


def test_braces_and_fences_in_a_problem_reach_the_prompt_as_they_are() -> None:
    starter = 'class Solution:\n    def f(self, d={}):\n        """\n        ```\n        {question} %s\n        ```"""'
    function = Problem("p", "s", "Return {x}.", [Test("function", "[]", "1")], starter_code=starter, fn_name="f")
    rollout = RolloutConfig(
        function_template="{question} Call it {fn_name}: {{}}\n{starter_code}", stdin_template="Read.\n{question}"
    )
    assert first_messages(rollout, function) == [
        {"role": "user", "content": f"Return {{x}}. Call it f: {{}}\n{starter}"}
    ]
    stdin = Problem("p", "s", "", [Test("stdin", "", "1")])
    assert first_messages(rollout, stdin) == [{"role": "user", "content": "Read.\n"}]
    with pytest.raises(UserError, match=r"rollout templates may use \{question\}"):
        first_messages(RolloutConfig(stdin_template="{answer}"), stdin)


def test_a_stage_longer_than_the_context_is_refused_before_anything_starts(configure: Configure) -> None:
    stages = (
        "stages=[{name: a, max_response_length: 16, iterations: 1}, {name: b, max_response_length: 900, iterations: 1}]"
    )
    with pytest.raises(UserError, match=r"context_length=640 is less than .* max_response_length=900: set it to 1500"):
        configure(stages)


def test_a_prompt_that_fits_only_without_the_answers_prefix_is_left_out_and_the_report_would_say_so(
    configure: Configure, capsys: pytest.CaptureFixture[str]
) -> None:
    world = World(configure("data.max_prompt_length=600", "context_length=624", "rollout.answer_prefix=" + "x" * 590))
    pointer = world.rollout()
    assert pointer.rows == 0
    assert pointer.extra["metrics"]["prompts/too_long"] == len(PROBLEMS)
    assert pointer.extra["metrics"]["turns/too_long"] == 0
    said = capsys.readouterr().out
    assert "4 of 4 problems are left out: their prompt is longer than context_length - max_response_length" in said
