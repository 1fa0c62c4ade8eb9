from api_client.models import TrainingJob
from support.fake_baseten import job
from support.worlds import ONE_O_CLOCK
from tui.analysis.run.snapshot import RunSnapshot
from tui.screens.job.details import facts


def test_unknown_fields_are_shown_as_json_and_capacity_in_lower_case() -> None:
    odd = job(availability_model="SPOT", future=[None, {"deep": "☃"}], later="words", absent=None)
    run = RunSnapshot(TrainingJob.model_validate(odd), ONE_O_CLOCK, ONE_O_CLOCK)
    shown = dict(facts(run))
    assert shown["availability"] == "spot"
    assert (shown["future"], shown["later"]) == ('[null, {"deep": "☃"}]', "words")
    assert "absent" not in shown
