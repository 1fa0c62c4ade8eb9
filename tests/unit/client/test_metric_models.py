from api_client.models import JobMetrics


def test_samples_with_fields_of_a_newer_server_are_read() -> None:
    sample = {"value": 0.5, "timestamp": "2026-03-01T12:00:00Z", "confidence": "high"}
    answer = JobMetrics.model_validate({"gpu_utilization": {"0": [sample]}, "cpu_usage": [sample]})
    assert answer.gpu_utilization["0"][0].value == answer.cpu_usage[0].value == 0.5


def test_null_series_are_empty_ones() -> None:
    nulls = {"cpu_usage": None, "ephemeral_storage": None, "per_node_metrics": None}
    answer = JobMetrics.model_validate({"gpu_utilization": {"0": None}, **nulls})
    assert answer.gpu_utilization == {"0": []}
    assert answer.cpu_usage == answer.per_node_metrics == []
