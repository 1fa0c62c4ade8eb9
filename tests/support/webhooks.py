"""A webhook on a real socket."""

from dataclasses import replace

from support.fake_baseten import Answer, FakeBaseten, ReceivedRequest
from tui.alerts.delivery import RETRIES

HANGS = 0
"""Instead of a status: no answer until the webhook is closed."""
AT_ONCE = {way: replace(policy, base_s=0.0) for way, policy in RETRIES.items()}
"""``tui.alerts.delivery.RETRIES`` without pauses."""


class Webhook(FakeBaseten):
    """Takes messages; ``answers`` are the status codes to give, then 200.

    ``retry_after`` is sent with them.
    """

    def __init__(self, *answers: int, retry_after: str = "") -> None:
        super().__init__()
        self.answers = list(answers)
        self.retry_after = retry_after

    @property
    def url(self) -> str:
        return f"{super().url}/hook/hush"

    @property
    def texts(self) -> list[str]:
        return [str(request.body["text"]) for request in self.asked]

    def answer(self, asked: ReceivedRequest) -> Answer:
        self.asked.append(asked)
        status = self.answers.pop(0) if self.answers else 200
        headers = {"location": self.url} | ({"retry-after": self.retry_after} if self.retry_after else {})
        return Answer(b"", status=status, headers=headers, hangs=status == HANGS)
