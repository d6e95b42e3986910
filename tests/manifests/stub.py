"""Stands for each tool that up.sh calls: records its arguments, answers as the real one would, fails where told to."""

import json
import os
import sys
import time
from pathlib import Path

tool, arguments = Path(sys.argv[0]).name, sys.argv[1:]
line = " ".join([tool, *arguments])
with open(os.environ["STUB_LOG"], "a") as file:
    file.write(json.dumps([tool, *arguments]) + "\n")
with open(os.environ["STUB_INPUT"], "a") as file:
    if "/dev/stdin" in arguments or arguments[-1:] == ["-"]:
        file.write(json.dumps([line, sys.stdin.read()]) + "\n")

failing = os.environ.get("STUB_FAIL", "")
if failing and failing in line:
    sys.exit(7)
if tool == "curl" and failing == "port-forward":
    sys.exit(7)
if "port-forward" in arguments:
    Path(os.environ["STUB_LOG"]).with_suffix(".pid").write_text(str(os.getpid()))
    time.sleep(60)
elif tool == "minikube" and arguments[0] == "ip":
    print("192.168.58.2")
elif "kustomize" in arguments:
    print("cidr: 192.168.49.2/32")
elif "mlpipeline-minio-artifact" in arguments:
    print("bWluaW8=" if "accesskey" in line else "bWluaW8xMjM=", end="")
elif "get" in arguments and "secret" in arguments:
    sys.exit(0 if os.environ.get("STUB_HAVE_SECRETS") else 1)
elif tool == "kfp":
    print(f"Run details: {arguments[1]}/#/runs/details/1")
    state = os.environ.get("STUB_STATE", "SUCCEEDED")
    print(
        json.dumps({"id": "1", "name": "x", "created_at": "", "state": state, "storage_state": "AVAILABLE"}, indent=4)
    )
