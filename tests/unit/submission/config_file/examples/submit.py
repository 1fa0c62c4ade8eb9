"""The page's programmatic submission: a script, not a config."""

import json
import shutil
import sys
import tempfile
from pathlib import Path

from truss_train.public_api import push


def submit_training_job(template_dir: Path, dataset_id: str, model_id: str) -> dict:
    """Submit a training job with dynamic configuration."""
    with tempfile.TemporaryDirectory() as tmp_dir:
        tmp_path = Path(tmp_dir)

        # Copy training template
        shutil.copytree(template_dir, tmp_path, dirs_exist_ok=True)

        # Write runtime configuration
        runtime_config = {"dataset_id": dataset_id, "model_id": model_id}
        (tmp_path / "runtime_config.json").write_text(json.dumps(runtime_config, indent=2))

        # Submit the job
        return push(config=tmp_path / "config.py")


result = submit_training_job(
    template_dir=Path(sys.argv[1]),
    dataset_id="HuggingFaceH4/Multilingual-Thinking",
    model_id="meta-llama/Llama-3.1-8B",
)

# ruff: noqa: T201

print(f"Project ID: {result['training_project']['id']}")
print(f"Job ID: {result['training_job']['id']}")
