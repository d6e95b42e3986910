#!/usr/bin/env bash
# Writes images/*/requirements-{gpu,cpu}.txt from the .in files beside them, at the versions of the local environment.
# Needs uv (`pip install uv`). The cpu locks need torch's CPU build to be found, for what it depends on: for example
# UV_EXTRA_INDEX_URL=https://download.pytorch.org/whl/cpu, or UV_FIND_LINKS=DIRECTORY. Its own line is torch-cpu.txt.
set -euo pipefail
cd "$(dirname "$0")"

compile() {
  # What finds the CPU build must not find it for the gpu locks.
  local hide=()
  [ "$variant" = cpu ] || hide=(-u UV_EXTRA_INDEX_URL -u UV_FIND_LINKS -u UV_TORCH_BACKEND)
  env "${hide[@]}" uv pip compile --quiet --no-config --python-version 3.11 --python-platform x86_64-manylinux_2_28 \
    --index-strategy unsafe-best-match --no-header --no-annotate \
    --generate-hashes --constraint ../requirements.txt --constraint ../requirements-no-deps.txt "$@"
}

for image in data rollout sandbox trainer; do
  for variant in gpu cpu; do
    lock="$image/requirements-$variant.txt"
    input="$image/requirements-$variant.in"
    [ -f "$input" ] || input="$image/requirements.in"
    without_dependencies=(no-deps.in)
    [ ! -f "$image/no-deps-$variant.in" ] || without_dependencies+=("$image/no-deps-$variant.in")
    torch=()
    [ "$variant" = gpu ] || torch=(--no-emit-package torch)
    {
      echo "# Written by images/lock.sh from $input; installed as it is, without resolving dependencies."
      compile "${torch[@]}" "$input"
      compile --no-deps "${without_dependencies[@]}"
    } > "$lock.tmp"
    mv "$lock.tmp" "$lock"
    echo "$lock: $(grep -c == "$lock") packages"
  done
done
