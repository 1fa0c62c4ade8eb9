#!/usr/bin/env bash
# Runs on every node; torchrun starts one process per GPU (one if there is none).
set -euo pipefail

processes=$(python3 -c 'import torch; print(torch.cuda.device_count() or 1)')

torchrun \
    --nnodes="${BT_GROUP_SIZE:-1}" \
    --node-rank="${BT_NODE_RANK:-0}" \
    --master-addr="${BT_LEADER_ADDR:-127.0.0.1}" \
    --master-port="${MASTER_PORT:-29500}" \
    --nproc-per-node="$processes" \
    train.py
