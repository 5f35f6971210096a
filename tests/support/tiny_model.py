"""Tiny random models with a real tokenizer, made offline in a second: safetensors folders and a fake hub cache."""

from __future__ import annotations

import hashlib
import json
import shutil
from pathlib import Path
from typing import Any

from gsum.rules.config import (
    Attention,
    Device,
    Dtype,
    FolderSource,
    GrammarSection,
    LocalToolchain,
    NumericsSection,
    Strength,
)

CHATML = (
    "{% for message in messages %}{{ '<|im_start|>' + message['role'] + '\n' + message['content'] + '<|im_end|>\n' }}"
    "{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}"
)
CONTROL = ("<|endoftext|>", "<|im_start|>", "<|im_end|>")
PLAIN_ADDED = "<tool_call>"
TEXTS = ("the quick brown fox jumps over the lazy dog", "Product P-1 site: Lyon.", "hello world, hello harbour")
VOCABULARY = 320
FILES = ("config.json", "generation_config.json", "model.safetensors", "tokenizer.json", "tokenizer_config.json")


def make_model(folder: Path, *, family: str = "llama", tied: bool = True, seed: int = 0) -> Path:
    """Write a two-layer model of random weights, its tokenizer and its chat template to `folder`."""
    import torch
    from transformers import AutoModelForCausalLM, LlamaConfig, Qwen2Config

    _tokenizer().save_pretrained(str(folder), save_jinja_files=False)
    torch.manual_seed(seed)
    config = {"llama": LlamaConfig, "qwen2": Qwen2Config}[family](
        vocab_size=VOCABULARY + 64,  # larger than the tokenizer's, as real models' are
        hidden_size=32,
        intermediate_size=64,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        max_position_embeddings=4096,
        tie_word_embeddings=tied,
        bos_token_id=0,
        eos_token_id=2,
        pad_token_id=0,
    )
    model = AutoModelForCausalLM.from_config(config, dtype=torch.float32)
    for parameter in model.parameters():
        parameter.data.mul_(4.0)  # so that choices differ clearly
    model.generation_config.update(do_sample=True, temperature=0.7, top_p=0.8, top_k=20, repetition_penalty=1.1)
    model.save_pretrained(str(folder))
    return folder


def _tokenizer() -> Any:
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
    from transformers import PreTrainedTokenizerFast

    raw = Tokenizer(models.BPE())
    raw.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    raw.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    raw.train_from_iterator(
        TEXTS,
        trainers.BpeTrainer(
            vocab_size=VOCABULARY, special_tokens=list(CONTROL), initial_alphabet=alphabet, show_progress=False
        ),
    )
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=raw, eos_token="<|im_end|>", pad_token="<|endoftext|>", chat_template=CHATML
    )
    tokenizer.add_tokens([PLAIN_ADDED])
    return tokenizer


def sha256_of(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def toolchain_for(folder: Path, **changes: Any) -> LocalToolchain:
    """Return a toolchain that declares the files of `folder` as they are, on the CPU in float32."""
    names = [name for name in FILES if (folder / name).exists()]
    declared: dict[str, Any] = {
        "source": FolderSource(str(folder)),
        "files": {name: sha256_of(folder / name) for name in names},
        "tied_embeddings": True,
        "chat_template": hashlib.sha256(CHATML.encode()).hexdigest(),
        "device": Device.CPU,
        "dtype": Dtype.FLOAT32,
        "attention": Attention.SDPA,
        "numerics": "test",
        "grammar": GrammarSection(Strength.NONE),
    }
    return LocalToolchain(**{**declared, **changes})


NUMERICS = NumericsSection(batching="single-2", threads=1)


def fake_hub_cache(cache: Path, folder: Path, repo: str, commit: str) -> Path:
    """Lay a folder out as the hub's cache does: blobs by digest, snapshots of links. Returns the snapshot."""
    base = cache / f"models--{repo.replace('/', '--')}"
    snapshot = base / "snapshots" / commit
    (base / "blobs").mkdir(parents=True)
    (base / "refs").mkdir()
    snapshot.mkdir(parents=True)
    (base / "refs" / "main").write_text(commit)
    for path in sorted(folder.iterdir()):
        blob = base / "blobs" / sha256_of(path)
        shutil.copyfile(path, blob)
        (snapshot / path.name).symlink_to(Path("../../blobs") / blob.name)
    return snapshot


def edit_json(path: Path, **changes: Any) -> None:
    """Change members of a JSON file."""
    path.write_text(json.dumps({**json.loads(path.read_text()), **changes}))
