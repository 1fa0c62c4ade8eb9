#!/usr/bin/env bash
# This folder is uploaded with the job and is the working directory.
set -euo pipefail

python3 train.py
