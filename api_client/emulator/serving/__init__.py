"""Deploying checkpoints: what the platform does with ``create_model_version_from_inference_template``.

Nothing is really served. The emulator checks the request, renders the configuration the platform would,
and lets the deployment walk through its states on the clock, with a log that says what would happen.
"""
