"""Each field set to something other than its default."""

from truss.base.truss_config import Accelerator, AcceleratorSpec
from truss_train import definitions as d

project = d.TrainingProject(
    name="everything · 全部",
    team_name="Research",
    job=d.TrainingJob(
        name="run-1",
        priority=7,
        enable_baseten_workdir=False,
        image=d.Image(base_image="nvcr.io/nvidia/nemo:25.07"),
        compute=d.Compute(
            node_count=4,
            cpu_count=16,
            memory="256Gi",
            accelerator=AcceleratorSpec(accelerator=Accelerator.A100_40GB, count=8),
            availability_model=d.AvailabilityModel.SPOT,
        ),
        runtime=d.Runtime(
            start_commands=["pip install -r requirements.txt", "/bin/sh -c './run.sh \"a b\"'"],
            environment_variables={"EMPTY": "", "A": "naïve", "B": d.SecretReference(name="b")},
            checkpointing_config=d.CheckpointingConfig(
                enabled=True, checkpoint_path="/ckpts", volume_size_gib=10
            ),
            load_checkpoint_config=d.LoadCheckpointConfig(download_folder="/loaded", checkpoints=[]),
            cache_config=d.CacheConfig(
                enabled=True,
                enable_legacy_hf_mount=True,
                require_cache_affinity=False,
                mount_base_path="/cache",
            ),
        ),
        interactive_session=d.InteractiveSession(
            trigger=d.InteractiveSessionTrigger.ON_FAILURE,
            timeout_minutes=-1,
            session_provider=d.InteractiveSessionProvider.SSH,
            auth_provider=d.InteractiveSessionAuthProvider.GITHUB,
        ),
    ),
)
