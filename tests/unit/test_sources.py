"""Where model files are looked for, and that they must be the declared ones. No model library is needed."""

import hashlib
import sys
from pathlib import Path

import pytest

from gsum.engine.llm.sources import (
    ModelMissing,
    ToolchainError,
    files_digest,
    hub_cache,
    is_gguf,
    locate_model,
    sha256_file,
    source_gguf,
    verify_files,
)
from gsum.rules.config import (
    Attention,
    Device,
    Dtype,
    FolderSource,
    GrammarSection,
    HuggingFaceSource,
    LocalToolchain,
    PackageSource,
    Strength,
)
from gsum.store.errors import ExitCode

COMMIT = "989aa7980e4cf806f80c7fef2b1adb7bc71aa306"
DATA = b"weights"
DIGEST = hashlib.sha256(DATA).hexdigest()


def toolchain(source, files=None) -> LocalToolchain:
    return LocalToolchain(
        source=source,
        files={"model.safetensors": DIGEST} if files is None else files,
        tied_embeddings=True,
        device=Device.CPU,
        dtype=Dtype.FLOAT32,
        attention=Attention.SDPA,
        numerics="n",
        grammar=GrammarSection(Strength.NONE),
    )


def locate(declared: LocalToolchain, tmp_path: Path, **environ: str):
    return locate_model("qwen", declared, cache_dir=tmp_path / "cache", workspace_root=tmp_path, environ=environ)


def test_a_folder_is_relative_to_the_workspace(tmp_path):
    (tmp_path / "m").mkdir()
    (tmp_path / "m" / "model.safetensors").write_bytes(DATA)
    found = locate(toolchain(FolderSource("m")), tmp_path)
    assert found.files == {"model.safetensors": tmp_path / "m" / "model.safetensors"}
    verify_files("qwen", toolchain(FolderSource("m")), found.folder)


def test_a_missing_folder_says_what_to_change(tmp_path):
    with pytest.raises(ModelMissing) as caught:
        locate(toolchain(FolderSource("m")), tmp_path)
    assert caught.value.exit_code is ExitCode.TOOLCHAIN
    assert caught.value.facts["missing"] == "model.safetensors"
    assert "`[toolchain.qwen]`" in caught.value.hint


def test_a_package_and_a_hub_model_say_what_to_type(tmp_path):
    package = toolchain(PackageSource("p", "1.0", "p/m.gguf"), {"p/m.gguf": DIGEST})
    hub = toolchain(HuggingFaceSource("Qwen/Qwen2.5-1.5B-Instruct", COMMIT))
    for declared in (package, hub):
        with pytest.raises(ModelMissing) as caught:
            locate(declared, tmp_path, HF_HOME=str(tmp_path / "hf"))
        assert caught.value.hint == "gsum fetch --toolchain qwen"
    assert COMMIT in caught.value.facts["source"]


def test_the_hub_s_cache_is_read_at_the_exact_commit(tmp_path):
    snapshots = tmp_path / "hf" / "hub" / "models--a--b" / "snapshots"
    (snapshots / COMMIT).mkdir(parents=True)
    (snapshots / COMMIT / "model.safetensors").write_bytes(DATA)
    found = locate(toolchain(HuggingFaceSource("a/b", COMMIT)), tmp_path, HF_HOME=str(tmp_path / "hf"))
    assert found.folder == snapshots / COMMIT
    with pytest.raises(ModelMissing):
        locate(toolchain(HuggingFaceSource("a/b", "0" * 40)), tmp_path, HF_HOME=str(tmp_path / "hf"))


def test_the_hub_s_own_variables_decide_where_its_cache_is():
    assert hub_cache({"HF_HUB_CACHE": "/x", "HF_HOME": "/y"}) == Path("/x")
    assert hub_cache({"HF_HOME": "/y", "XDG_CACHE_HOME": "/z"}) == Path("/y/hub")
    assert hub_cache({"XDG_CACHE_HOME": "/z"}) == Path("/z/huggingface/hub")


@pytest.mark.parametrize("file", ["pytorch_model.bin", "model.pt", "weights.pkl", "modeling_x.py", "model.gguf"])
def test_only_safetensors_are_read_from_hub_and_folder(tmp_path, file):
    (tmp_path / file).write_bytes(DATA)
    with pytest.raises(ToolchainError, match="not safetensors") as caught:
        locate(toolchain(FolderSource("."), {file: DIGEST}), tmp_path)
    assert not isinstance(caught.value, ModelMissing)
    assert caught.value.facts == {"files": file}


@pytest.mark.parametrize("file", ["../model.safetensors", "/etc/model.safetensors", "a/../../b.safetensors"])
def test_a_file_outside_its_source_is_refused(tmp_path, file):
    with pytest.raises(ToolchainError, match="outside its source"):
        locate(toolchain(FolderSource("m"), {file: DIGEST}), tmp_path)


def test_a_wrong_hash_names_the_file_and_both_hashes(tmp_path):
    (tmp_path / "model.safetensors").write_bytes(b"other")
    with pytest.raises(ToolchainError) as caught:
        verify_files("qwen", toolchain(FolderSource(".")), tmp_path)
    assert caught.value.exit_code is ExitCode.TOOLCHAIN
    assert caught.value.facts == {
        "file": tmp_path / "model.safetensors",
        "declared": DIGEST,
        "found": hashlib.sha256(b"other").hexdigest(),
    }


def test_a_changed_byte_with_size_and_times_kept_is_found(tmp_path):
    import os

    path = tmp_path / "model.safetensors"
    path.write_bytes(DATA)
    before = path.stat()
    path.write_bytes(b"weighty")
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    with pytest.raises(ToolchainError):
        verify_files("qwen", toolchain(FolderSource(".")), tmp_path)


def test_files_are_hashed_in_chunks(tmp_path):
    data = bytes(range(256)) * 9000
    (tmp_path / "f").write_bytes(data)
    assert sha256_file(tmp_path / "f") == hashlib.sha256(data).hexdigest()


def test_fetched_files_are_kept_under_the_digest_of_their_table():
    one = toolchain(FolderSource("."), {"a": "1" * 64, "b": "2" * 64})
    same = toolchain(FolderSource("elsewhere"), {"b": "2" * 64, "a": "1" * 64})
    assert files_digest(one) == files_digest(same)
    assert files_digest(one) == hashlib.sha256(f"{'1' * 64}  a\n{'2' * 64}  b\n".encode()).hexdigest()


def test_a_gguf_toolchain_has_one_gguf_file():
    assert is_gguf(toolchain(FolderSource("."), {"a.gguf": DIGEST}))
    assert not is_gguf(toolchain(FolderSource(".")))
    with pytest.raises(ToolchainError, match="exactly one"):
        source_gguf(toolchain(FolderSource("."), {"a.gguf": DIGEST, "b.gguf": DIGEST}))


def test_locating_a_model_imports_no_model_library():
    import subprocess

    code = (
        "import sys, gsum.engine.executors.make, gsum.engine.llm.fetch\n"
        "print(sorted({'torch', 'transformers', 'llguidance', 'huggingface_hub'} & set(sys.modules)))"
    )
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ended.stdout.strip() == "[]"
