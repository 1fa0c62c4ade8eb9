"""Deployment of checkpoints: the emulator's side of ``create_model_version_from_inference_template``.

Nothing is really served. The emulator validates the request, renders the configuration as the platform
would, and lets the deployment change its status with time. The log says what would happen.
"""
