#!/usr/bin/env bash
set -euo pipefail

# Keep downloads in the project's cache for the next job.
if [ -n "${BT_PROJECT_CACHE_DIR:-}" ]; then
    export PIP_CACHE_DIR="$BT_PROJECT_CACHE_DIR/pip"
    export HF_HOME="$BT_PROJECT_CACHE_DIR/huggingface"
fi

pip install --quiet --requirement requirements.txt
python3 train.py
