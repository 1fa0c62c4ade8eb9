"""Configs that the official SDK has read too: whole files, and a few words for each small matter."""

from pathlib import Path

EXAMPLES = Path(__file__).parents[1] / "unit" / "submission" / "config_file" / "examples"
FILES = {
    **{path.stem: path for path in EXAMPLES.glob("*.py") if path.stem != "submit"},
    "dynamic": EXAMPLES / "dynamic" / "config.py",
}

IMPORTS = "from truss.base.truss_config import *\nfrom truss_train.definitions import *\n"
ECR, GCR, PKG = "123456789.dkr.ecr.us-east-1.amazonaws.com", "gcr.io", "us-docker.pkg.dev"
ROLE = "role_arn='arn:aws:iam::123456789:role/puller', region='us-east-1'"

JOBS = {
    "accelerator_count": "compute=Compute(accelerator={'count': 2})",
    "accelerator_dict": "compute=Compute(accelerator={'accelerator': 'B300', 'count': '4'})",
    "accelerator_single": "compute=Compute(accelerator=' RTX_PRO_6000 ')",
    "accelerator_string": "compute=Compute(accelerator='H100:8')",
    "accelerator_zero": "compute=Compute(accelerator={'accelerator': 'L4', 'count': 0})",
    "dicts": "compute={'node_count': 3}, runtime={'start_commands': ['a'], 'environment_variables':"
    " {'S': {'name': 's'}}}",
    "enable_cache": "runtime=Runtime(enable_cache=True)",
    "enable_cache_off": "runtime=Runtime(enable_cache=False)",
    "load_checkpoints": """runtime=Runtime(load_checkpoint_config=LoadCheckpointConfig(
        enabled=True, checkpoints=[
        BasetenCheckpoint.from_latest_checkpoint(project_name="my-project"),
        BasetenCheckpoint.from_latest_checkpoint(job_id="lqz4pw4"),
        BasetenCheckpoint.from_latest_checkpoint("my-project", "lqz4pw4"),
        BasetenCheckpoint.from_named_checkpoint(checkpoint_name="checkpoint-24", job_id="abc123"),
        LoopsCheckpoint.from_checkpoint(run_id="r1", checkpoint_name="step-100"),
        LoopsCheckpoint.from_checkpoint("r1", "step-200", target="sampler"),
    ]))""",
    "load_latest": "runtime=Runtime(load_checkpoint_config=LoadCheckpointConfig(enabled=True))",
    "session": "interactive_session=InteractiveSession()",
    "workspace": "workspace=Workspace(workspace_root='..', exclude_dirs=['../data'])",
}
REGISTRIES = {
    "docker_aws_iam": ("AWS_IAM", ECR, "AWSIAMDockerAuth(access_key_secret_ref=SecretReference("
        "name='aws_access_key'), secret_access_key_secret_ref=SecretReference(name='aws_secret_key'))"),
    "docker_aws_oidc": ("AWS_OIDC", ECR, f"AWSOIDCDockerAuth({ROLE})"),
    "docker_aws_role": ("AWS_ASSUME_ROLE", ECR, f"AWSAssumeRoleDockerAuth({ROLE})"),
    "docker_gcp_key": ("GCP_SERVICE_ACCOUNT_JSON", GCR, "GCPServiceAccountJSONDockerAuth("
        "service_account_json_secret_ref=SecretReference(name='gcp_service_account_json'))"),
    "docker_gcp_oidc": ("GCP_OIDC", PKG, "GCPOIDCDockerAuth("
        "service_account='puller@project.iam.gserviceaccount.com',"
        " workload_identity_provider='projects/1/locations/global/workloadIdentityPools/p')"),
    "docker_registry_secret": ("REGISTRY_SECRET", "registry.example.com",
        "RegistrySecretDockerAuth(secret_ref=SecretReference(name='registry_login'))"),
}  # fmt: skip
DEPLOYMENTS = {
    "deploy_empty": "",
    "deploy_loops": "checkpoint_details=CheckpointList(loops_checkpoint_ids=['l1', 'l2'])",
}
PROJECT_NAMES = {"load_checkpoints": "resume", "load_latest": "resume"}
ASSIGNED = """
job = TrainingJob(image=Image(base_image="python:3.12-slim"))
job.name = "later"
job.compute = Compute()
job.compute.accelerator = "H200:2"
job.compute.accelerator.count = 4
job.runtime.environment_variables["LATE"] = "yes"
job.priority = 2
project = TrainingProject(name="assigned", job=job)
"""


def _job(project: str, image: str, more: str = "") -> str:
    job = f"TrainingJob(image=Image(base_image={image}), {more})"
    return f"project = TrainingProject(name={project!r}, job={job})\n"


TEXTS = {
    **{name: _job(PROJECT_NAMES.get(name, name), "'python:3.12-slim'", more) for name, more in JOBS.items()},
    **{
        name: _job(
            "private-image",
            f"'{registry}/my-image:latest', docker_auth=DockerAuth(auth_method=DockerAuthType.{method},"
            f" registry='{registry}', {method.lower()}_docker_auth={block})",
        )
        for name, (method, registry, block) in REGISTRIES.items()
    },
    **{name: f"config = DeployCheckpointsConfig({fields})\n" for name, fields in DEPLOYMENTS.items()},
    "assigned": ASSIGNED,
}
NAMES = sorted([*FILES, *TEXTS])


def example_config(name: str, folder: Path) -> Path:
    """The config's file; one of a few words is written into the folder."""
    if name in FILES:
        return FILES[name]
    path = folder / f"{name}.py"
    path.write_text(IMPORTS + TEXTS[name], encoding="utf-8")
    return path
