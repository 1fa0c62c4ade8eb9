"""The short labels of replicas in a log."""

from hypothesis import given, strategies as st

from tui.text.sanitize import cell_width
from tui.widgets.log_view.gutter import NodeLabels

SIMILAR_NAMES = st.lists(
    st.text("an-3\x00\u200b·２", max_size=16) | st.sampled_from(["node-3", "rank3", "n3", "node-03"]),
    unique=True,
)


@given(SIMILAR_NAMES | st.lists(st.text(), unique=True))
def test_labels_of_replicas_are_unique_stable_and_fit(replicas: list[str]) -> None:
    labels = NodeLabels()
    shown = [labels.get(replica) for replica in replicas]
    texts = [text for text, _ in shown]
    assert len({*texts, labels.get(None)[0]}) == len(replicas) + 1
    assert [labels.get(replica) for replica in reversed(replicas)] == shown[::-1]
    assert labels.width == max(map(cell_width, texts), default=0)


def test_label_is_the_number_of_the_node_or_more_of_its_name() -> None:
    labels = NodeLabels()
    names = ["node-3", "rank3", "n3", "worker-pool-b/node-3", "worker-pool-b-node-03"]
    assert [labels.get(name)[0] for name in names] == [
        "n3",
        "rank3",
        "n3·3",
        "worker-pool…",
        "worker-pool…·5",
    ]
