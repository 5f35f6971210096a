#!/usr/bin/env bash
# Build the wheel, install it in an empty environment outside the checkout, and use it on a copy of one dossier.
# Usage: check_wheel.sh PYTHON (one that has `build`)
set -euo pipefail
python=$1
root=$(cd "$(dirname "$0")/../.." && pwd)
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

# setuptools leaves build/ behind and would ship what lies there: build from a copy of what git tracks.
mkdir "$scratch/source"
(cd "$root" && git ls-files -z | xargs -0 cp --parents -t "$scratch/source")
"$python" -m build --wheel --outdir "$scratch/dist" "$scratch/source" >"$scratch/build.log" 2>&1 || {
    tail -n 30 "$scratch/build.log"
    exit 1
}
"$python" -m venv "$scratch/venv"
"$scratch/venv/bin/python" -m pip install --quiet --disable-pip-version-check -c "$root/constraints.txt" "$scratch"/dist/gsum-*.whl

mkdir -p "$scratch/workspace/corpus/dossiers" "$scratch/workspace/corpus/labels"
cp "$root/BUILD.toml" "$scratch/workspace/"
cp -r "$root/corpus/dossiers/S-037" "$scratch/workspace/corpus/dossiers/"
cd "$scratch/workspace"
gsum=$scratch/venv/bin/gsum

expect() { # expect WANTED GOT WHAT
    [ "$1" = "$2" ] || { echo "wheel: $3: wanted '$1', got '$2'"; exit 1; }
}
version=$(cd "$root" && "$python" -c 'from gsum.store.version import VERSION; print(VERSION)')
expect "gsum, version $version" "$("$gsum" --version)" "gsum --version"
expect 16 "$("$gsum" query //dossier:S-037/... | wc -l)" "parts of a dossier"
expect "$(printf '%s\n' //baseline:S-037/leaf-11 //baseline:S-037/root //corpus:S-037/D-37-11 \
    //dossier:S-037/leaf-11 //dossier:S-037/reduce-02 //dossier:S-037/root)" \
    "$("$gsum" query 'rdeps(//dossier:... + //baseline:..., //corpus:S-037/D-37-11)' | sort)" "what depends on a document"
status=0
"$gsum" show //dossier:S-037/root >/dev/null 2>&1 || status=$?
expect 4 "$status" "exit code of showing what is not built"

# Every package of the checkout is in the wheel, with its py.typed.
"$scratch/venv/bin/python" - "$root" <<'PY'
import importlib, pathlib, sys
root = pathlib.Path(sys.argv[1])
for top in ("cli", "corpus", "engine", "rules", "store"):
    for init in sorted((root / top).rglob("__init__.py")):
        name = "gsum." + ".".join(init.parent.relative_to(root).parts)
        module = importlib.import_module(name)
        assert not module.__file__.startswith(str(root)), module.__file__
    assert (pathlib.Path(importlib.import_module("gsum." + top).__file__).parent / "py.typed").exists(), top
PY
echo "wheel: $(basename "$scratch"/dist/gsum-*.whl) works outside the checkout"
