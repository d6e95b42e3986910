"""How long a problem's prompt is for the policy: its own tokenizer and chat template, without loading transformers."""

from __future__ import annotations

import hashlib
import json
from datetime import datetime
from functools import cached_property
from typing import Any

from components.core.config import RolloutConfig
from components.core.errors import UserError
from components.core.schema import Problem
from components.core.store import Pointer, Store

_FILES = ("tokenizer.json", "tokenizer_config.json", "chat_template.jinja")


class PromptCounter:
    """Counts the tokens of a problem's whole prompt; can be sent to other processes."""

    def __init__(self, files: dict[str, bytes], rollout: RolloutConfig) -> None:
        """Take a policy's tokenizer files by name; see `from_policy`."""
        self._files, self._rollout = files, rollout

    @classmethod
    def from_policy(cls, store: Store, policy: Pointer, rollout: RolloutConfig) -> PromptCounter:
        """The counter of a policy in the store; weights are not read.

        Raises:
            UserError: the policy has no tokenizer.json.
        """
        folder = store.rel(policy.uri)
        read = {name: store.read_bytes(f"{folder}/hf/{name}") for name in _FILES}
        files = {name: data for name, data in read.items() if data is not None}
        if "tokenizer.json" not in files:
            raise UserError(f"{policy.uri}/hf: holds no tokenizer.json; export the model with save_pretrained")
        return cls(files, rollout)

    @property
    def identity(self) -> str:
        """Changes when a prompt's length may: with the tokenizer, its chat template and the prompt templates."""
        digest = hashlib.sha256()
        for name, data in sorted(self._files.items()):
            digest.update(f"{name} {hashlib.sha256(data).hexdigest()} ".encode())
        rollout = self._rollout
        digest.update(json.dumps([rollout.stdin_template, rollout.function_template, rollout.system_prompt]).encode())
        return digest.hexdigest()

    def __call__(self, problem: Problem) -> int:
        """Tokens of the prompt as the rollout engine will see it."""
        return len(self._tokenizer.encode(self.render(problem), add_special_tokens=False).ids)

    def render(self, problem: Problem) -> str:
        """The prompt's text: the configured message, inside the policy's chat template if it has one."""
        rollout = self._rollout
        template = rollout.stdin_template if problem.fn_name is None else rollout.function_template
        user = template.format(
            question=problem.question, starter_code=problem.starter_code, fn_name=problem.fn_name or ""
        )
        messages = [{"role": "system", "content": rollout.system_prompt}] if rollout.system_prompt else []
        messages.append({"role": "user", "content": user})
        if self._chat_template is None:
            return "\n".join(message["content"] for message in messages)
        text: str = self._chat_template.render(messages=messages, add_generation_prompt=True, **self._special_tokens)
        return text

    def __getstate__(self) -> dict[str, Any]:
        """Without what is built from the files on first use."""
        return {"_files": self._files, "_rollout": self._rollout}

    @cached_property
    def _tokenizer(self) -> Any:
        from tokenizers import Tokenizer

        return Tokenizer.from_buffer(self._files["tokenizer.json"])

    @cached_property
    def _settings(self) -> dict[str, Any]:
        settings: dict[str, Any] = json.loads(self._files.get("tokenizer_config.json", b"{}"))
        return settings

    @cached_property
    def _special_tokens(self) -> dict[str, str]:
        found: dict[str, str] = {}
        for name, value in self._settings.items():
            if name.endswith("_token") and value:
                found[name] = value["content"] if isinstance(value, dict) else str(value)
        return found

    @cached_property
    def _chat_template(self) -> Any:
        import jinja2
        from jinja2.sandbox import ImmutableSandboxedEnvironment

        def raise_exception(message: str) -> None:
            raise jinja2.TemplateError(message)

        source = self._files.get("chat_template.jinja", b"").decode() or self._settings.get("chat_template")
        if isinstance(source, list):  # several named templates
            source = next((entry["template"] for entry in source if entry["name"] == "default"), None)
        if not source:
            return None
        # The settings and names that chat templates are written for.
        environment = ImmutableSandboxedEnvironment(
            trim_blocks=True, lstrip_blocks=True, extensions=["jinja2.ext.loopcontrols"]
        )
        environment.filters["tojson"] = lambda value, indent=None: json.dumps(value, ensure_ascii=False, indent=indent)
        environment.globals["raise_exception"] = raise_exception
        environment.globals["strftime_now"] = lambda form: datetime.now().strftime(form)
        return environment.from_string(source)
