"""A webhook on a real socket."""

from support.fake_baseten import Answer, FakeBaseten, ReceivedRequest

HANGS = 0
"""Instead of a status: no answer until the webhook is closed."""


class Webhook(FakeBaseten):
    """Takes messages; ``answers`` are the status codes to give, then 200."""

    def __init__(self, *answers: int) -> None:
        super().__init__()
        self.answers = list(answers)

    @property
    def url(self) -> str:
        return f"{super().url}/hook/hush"

    @property
    def texts(self) -> list[str]:
        return [str(request.body["text"]) for request in self.asked]

    def answer(self, asked: ReceivedRequest) -> Answer:
        self.asked.append(asked)
        status = self.answers.pop(0) if self.answers else 200
        return Answer(b"", status=status, headers={"location": self.url}, hangs=status == HANGS)
