"""Deploy a LoRA checkpoint: check it, show its config, and deploy it with --for-real.

python examples/deploy_checkpoint.py JOB_ID CHECKPOINT [--for-real]
"""

import asyncio
import os
import sys

from api_client import TrainingClient, resolve_remote
from api_client.deployment import DeployAnswers, build_config, deploy, follow, listed_instances, validate
from api_client.servable import adapter_ranks, rank_for


async def main(job_id: str, name: str, *, for_real: bool) -> int:
    """Return exit code 0 if the checkpoint can be deployed; with ``for_real``, if it was deployed."""
    async with TrainingClient(resolve_remote(environ=os.environ)) as client:
        job = await client.jobs.find(job_id)
        checkpoints = await client.checkpoints.list(job.project_id, job.id)
        chosen = [checkpoint for checkpoint in checkpoints if checkpoint.checkpoint_id == name]
        if not chosen:
            names = [checkpoint.checkpoint_id for checkpoint in checkpoints]
            print(f"no such checkpoint; the job has {names}", file=sys.stderr)
            return 1
        # vLLM accepts only certain ranks; the smallest rank that fits the adapter uses the least memory.
        advice = rank_for(adapter_ranks(chosen))
        print(f"LoRA rank {advice.default}: {advice.explanation or advice.refusal}")
        answers = DeployAnswers(
            job_id=job.id,
            checkpoint_names=(name,),
            base_model=chosen[0].base_model,
            lora_rank=advice.default,
            model_name=f"{job.name}-{name}",
            gpu="H100:1",
        )
        config = build_config(answers, checkpoints)
        findings = validate(config, checkpoints, instances=await listed_instances(client))
        for finding in findings:
            print(f"{finding.severity}: {finding.problem} ({finding.remedy})")
        if any(finding.severity == "error" for finding in findings):
            return 1
        # Sent once: if the response is lost, check the models of the workspace for the outcome.
        result = await deploy(client, config, dry_run=not for_real)
        if result.model_id is None or result.version_id is None:
            print(result.truss_config)
            return 0
        print(result.link)
        is_serving = False
        async for update in follow(client, result.model_id, result.version_id):
            is_serving = update.is_serving
            print(update.status, file=sys.stderr)
    return 0 if is_serving else 1


if __name__ == "__main__":
    sys.exit(asyncio.run(main(sys.argv[1], sys.argv[2], for_real="--for-real" in sys.argv[3:])))
