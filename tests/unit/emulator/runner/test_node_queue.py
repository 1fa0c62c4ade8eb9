"""Who starts next when nodes and GPUs are short."""

from __future__ import annotations

from api_client.emulator.runner.node_queue import GpuPool, NodeQueue, WaitingJob


def queue(max_nodes: int = 8, **limits: int) -> NodeQueue:
    """A queue over one pool for each GPU type, and one for each team of projects named ``team/…``."""

    def pools(project_id: str, gpu_type: str) -> list[GpuPool]:
        names = [gpu_type, f"{project_id.partition('/')[0]}_{gpu_type}"]
        return [GpuPool(name, limits[name]) for name in names if name in limits]

    return NodeQueue(max_nodes, pools)


def job(name: str, *, priority: int = 0, nodes: int = 1, gpus: int = 0, project: str = "a/p") -> WaitingJob:
    return WaitingJob(
        job_id=name,
        priority=priority,
        sequence=int(name.strip("abcdefghijklmnopqrstuvwxyz") or 0),
        nodes=nodes,
        project_id=project,
        gpu_type="H100" if gpus else None,
        gpus=gpus,
    )


def filled(line: NodeQueue, *jobs: WaitingJob) -> NodeQueue:
    for each in jobs:
        line.add(each)
    return line


def test_gpus_are_given_out_by_priority_then_age_and_come_back() -> None:
    line = filled(queue(H100=8), job("job1", gpus=8), job("job2", gpus=4), job("job3", gpus=4, priority=1))
    assert line.admit() == ["job3"]
    line.remove("job3")
    assert line.admit() == ["job1"]
    assert line.admit() == []
    line.remove("job1")
    assert line.admit() == ["job2"]


def test_a_small_job_does_not_overtake_a_large_one_of_its_pool() -> None:
    line = filled(queue(H100=8), job("job1", gpus=4))
    assert line.admit() == ["job1"]
    filled(line, job("job2", gpus=8), job("job3", gpus=4), job("job4"))
    assert line.admit() == ["job4"]  # it needs no GPU, so nobody is held up by it


def test_nodes_are_short_for_all() -> None:
    line = filled(queue(max_nodes=2), job("job1"), job("job2", nodes=2), job("job3"))
    assert line.admit() == ["job1"]


def test_a_teams_limit_holds_up_that_team_alone() -> None:
    jobs = [job(f"job{n}", gpus=gpus, project=where) for n, gpus, where in ((1, 4, "a/1"), (2, 2, "a/2"))]
    line = filled(queue(H100=16, a_H100=4), *jobs, job("job3", gpus=8, project="b/one"))
    assert line.admit() == ["job1", "job3"]


def test_more_than_a_limit_waits_without_holding_up_the_rest() -> None:
    line = filled(queue(H100=16, a_H100=4), job("job1", gpus=8), job("job2", gpus=4))
    assert line.admit() == ["job2"]
    assert line.is_waiting("job1")


def test_a_new_place_in_line_counts() -> None:
    line = filled(queue(max_nodes=1), job("job1"), job("job2"), job("job2", priority=3))
    assert line.admit() == ["job2"]
