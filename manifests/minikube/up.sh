#!/usr/bin/env bash
# From nothing to a finished run on this machine: minikube, Kubeflow Pipelines, this project's manifests and images, and
# the smoke profile. Every step may be repeated: what is there already stays. Settings, by environment variable:
#   CPUS MEMORY DISK        of minikube's node; 4, 8g and 60g are the least
#   KUBERNETES KFP_VERSION  versions
#   CLUSTER                 minikube's profile, which is also kubectl's context
#   IMAGES                  the file that `make images VARIANT=cpu` wrote
#   PROFILE TIMEOUT         what to run, and how many seconds it may take
set -euo pipefail
cd "$(dirname "$0")/../.."

CPUS=${CPUS:-4} MEMORY=${MEMORY:-8g} DISK=${DISK:-60g}
KUBERNETES=${KUBERNETES:-v1.36.1} KFP_VERSION=${KFP_VERSION:-2.17.0}
CLUSTER=${CLUSTER:-deepcoder}
IMAGES=${IMAGES:-build/images.env}
PROFILE=${PROFILE:-smoke} TIMEOUT=${TIMEOUT:-5400}
BIN=${BIN:-.venv/bin}
PORT=${PORT:-8888}

endpoint=http://127.0.0.1:$PORT
kfp_manifests=github.com/kubeflow/pipelines/manifests/kustomize
package=build/minikube.yaml
forward=

k() { kubectl --context "$CLUSTER" "$@"; }
die() { echo "minikube: $*" >&2; exit 1; }
# attempt WHAT COMMAND...: runs the command, and ends the script with a message if it fails.
attempt() {
  local what=$1
  shift
  echo "== $what"
  "$@" || die "failed to $what (exit code $?); nothing after it was done. Repeat when it is mended."
}
finish() {
  [ -z "$forward" ] || { kill "$forward" && wait "$forward"; } 2> /dev/null || true
}
trap finish EXIT

check() {
  local tool image
  for tool in minikube kubectl docker curl base64; do
    command -v "$tool" > /dev/null || { echo "$tool is not installed" >&2; return 1; }
  done
  [ -f "$IMAGES" ] || { echo "no $IMAGES: run make images VARIANT=cpu first" >&2; return 1; }
  for image in $(images); do
    docker image inspect --format '{{.Id}}' "$image" > /dev/null || { echo "no image $image here" >&2; return 1; }
  done
}
images() { sed -n 's/^DEEPCODER_IMAGE_[A-Z]*=//p' "$IMAGES"; }

start() {
  minikube start --profile "$CLUSTER" --cpus "$CPUS" --memory "$MEMORY" --disk-size "$DISK" \
    --kubernetes-version "$KUBERNETES" --cni calico --wait all
}

# Calico, because minikube's own network ignores NetworkPolicies. platform-agnostic, because env/dev needs Google Cloud.
install_kfp() {
  k apply -k "$kfp_manifests/cluster-scoped-resources?ref=$KFP_VERSION" &&
    k wait --for condition=established --timeout 120s crd/applications.app.k8s.io &&
    k apply -k "$kfp_manifests/env/platform-agnostic?ref=$KFP_VERSION" &&
    k --namespace kubeflow wait --for condition=Available --timeout 1200s deployment --all
}

# secret NAMESPACE NAME: from KEY=VALUE lines, so that no value is on a command line; one that exists stays.
secret() {
  if k --namespace "$1" get secret "$2" --output name > /dev/null 2>&1; then
    cat > /dev/null
  else
    k --namespace "$1" create secret generic "$2" --from-env-file /dev/stdin
  fi
}
s3_keys() {
  local id key
  id=$(k --namespace kubeflow get secret mlpipeline-minio-artifact --output 'jsonpath={.data.accesskey}' | base64 -d) &&
    key=$(k --namespace kubeflow get secret mlpipeline-minio-artifact --output 'jsonpath={.data.secretkey}' | base64 -d) &&
    [ -n "$id" ] && printf 'AWS_ACCESS_KEY_ID=%s\nAWS_SECRET_ACCESS_KEY=%s\n' "$id" "$key"
}
make_secrets() {
  local keys password
  keys=$(s3_keys) || return 1
  password=$(head -c 24 /dev/urandom | base64 | tr -d '/+=') || return 1
  k apply --filename manifests/base/services/namespace.yaml &&
    secret deepcoder deepcoder-s3 <<< "$keys" &&
    secret kubeflow deepcoder-s3 <<< "$keys" &&
    secret deepcoder mlflow-postgres <<< "password=$password"
}

apply_overlay() {
  local address rendered
  address=$(minikube ip --profile "$CLUSTER") &&
    rendered=$(kubectl kustomize manifests/overlays/minikube) &&
    k apply --filename - <<< "${rendered//192.168.49.2\/32/$address/32}" &&
    k --namespace deepcoder rollout status statefulset/postgres --timeout 600s &&
    k --namespace deepcoder rollout status deployment/mlflow --timeout 900s
}

load_images() {
  local image
  for image in $(images); do
    minikube image load --profile "$CLUSTER" --daemon "$image" || return 1
  done
}

compile() {
  "$BIN/deepcoder" compile --profile "$PROFILE" --images "$IMAGES" --output "$package" \
    store=s3://mlpipeline/deepcoder \
    'kubernetes.env={S3_ENDPOINT_URL: "http://seaweedfs.kubeflow:9000", MLFLOW_TRACKING_URI: "http://mlflow.deepcoder:5000"}' \
    'kubernetes.secrets=[{name: deepcoder-s3, env: {AWS_ACCESS_KEY_ID: AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY: AWS_SECRET_ACCESS_KEY}}]' \
    kubernetes.image_pull_policy=IfNotPresent
}

open_api() {
  local try
  kubectl --context "$CLUSTER" --namespace kubeflow port-forward svc/ml-pipeline "$PORT:8888" > /dev/null &
  forward=$!
  for try in $(seq 30); do
    curl --silent --fail --output /dev/null "$endpoint/apis/v2beta1/healthz" && return 0
    kill -0 "$forward" 2> /dev/null || return 1
    sleep 1
  done
  echo "$endpoint did not answer $try times" >&2
  return 1
}

# kfp ends with 0 whatever the run ends with, so its answer is read.
submit() {
  local answer
  answer=$("$BIN/kfp" --endpoint "$endpoint" --output json run create --experiment-name "deepcoder-$PROFILE" \
    --run-name "minikube-$PROFILE" --package-file "$package" --timeout "$TIMEOUT") || return 1
  grep --quiet '"state": "SUCCEEDED"' <<< "$answer" || { echo "$answer" >&2; return 1; }
}

attempt "find tools and images" check
attempt "start minikube" start
attempt "install Kubeflow Pipelines $KFP_VERSION" install_kfp
attempt "make the secrets" make_secrets
attempt "apply manifests/overlays/minikube" apply_overlay
attempt "load the images" load_images
attempt "compile the $PROFILE profile" compile
attempt "reach the API of Kubeflow Pipelines" open_api
attempt "run the $PROFILE profile" submit
cat << END
The $PROFILE run has succeeded. To look at it:
  kubectl --context $CLUSTER --namespace kubeflow port-forward svc/ml-pipeline-ui 8080:80
  kubectl --context $CLUSTER --namespace deepcoder port-forward svc/mlflow 5000:5000
To remove everything: minikube delete --profile $CLUSTER
END
