#!/usr/bin/env bash
# Everything in this folder is uploaded with the job, and this runs in it.
set -euo pipefail

python3 train.py
