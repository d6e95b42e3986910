#!/usr/bin/env bash
# Builds the four images and writes their names to a file that `make pipeline` and `make smoke-docker` take: by digest
# where they were pushed, which is what a cluster should get, else by tag.
#   VARIANT=gpu|cpu  REGISTRY=  TAG=  BASE= (the base image)  PUSH=1  OUTPUT=build/images.env
# pip's own settings PIP_EXTRA_INDEX_URL, or a base image that has them, say where torch's CPU build is.
set -euo pipefail
cd "$(dirname "$0")/.."

variant=${VARIANT:-gpu}
registry=${REGISTRY:-deepcoder}
tag=${TAG:-$(sed -n 's/^VERSION = "\(.*\)"$/\1/p' components/core/images.py)}
base=${BASE:-python:3.11-slim-bookworm}
output=${OUTPUT:-build/images.env}
[ "$variant" = gpu ] || [ "$variant" = cpu ] || { echo "VARIANT=$variant: gpu or cpu" >&2; exit 2; }
revision=$(git rev-parse HEAD 2>/dev/null || echo unknown)

mkdir -p "$(dirname "$output")"
: > "$output.tmp"
for image in data rollout sandbox trainer; do
  name="$registry/$image:$tag"
  docker build --file images/Dockerfile --tag "$name" \
    --build-arg BASE="$base" --build-arg IMAGE="$image" --build-arg VARIANT="$variant" \
    --build-arg VERSION="$tag" --build-arg REVISION="$revision" \
    --build-arg PIP_EXTRA_INDEX_URL="${PIP_EXTRA_INDEX_URL:-}" .
  if [ "${PUSH:-}" = 1 ]; then
    docker push "$name"
    name=$(docker image inspect --format '{{join .RepoDigests "\n"}}' "$name" | grep "^$registry/$image@sha256:")
  fi
  echo "DEEPCODER_IMAGE_${image^^}=$name" >> "$output.tmp"
done
mv "$output.tmp" "$output"
cat "$output"
