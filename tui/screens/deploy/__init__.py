"""From checkpoints to a served model: the wizard's steps, the review, and the deployment as it comes up."""
