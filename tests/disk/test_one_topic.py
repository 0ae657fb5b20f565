"""Which folders are no replicas, by what lies in them and above them."""

from __future__ import annotations

from itertools import permutations

import pytest

from offsets_log.disk.folder import Folder
from offsets_log.disk.one_topic import refuse_several_topics
from offsets_log.errors import InputError

T, U, V = "SFu3y3lgTBaCY_N_P-zJ-g", "0hrjKLfNT_2NsNDA7ms4Pg", "Rx4zZ9jER2S8-SiZVaiw8g"


def folder(path: str, topic_id: str | None, cluster_id: str | None, name: str = "__consumer_offsets-0") -> Folder:
    beside = {} if topic_id is None else {"partition.metadata": lambda: f"version: 0\ntopic_id: {topic_id}".encode()}
    meta = f"version=1\nnode.id=1\ncluster.id={cluster_id}\n".encode()
    above = {} if cluster_id is None else {"meta.properties": lambda: meta}
    return Folder(f"{path}/{name}/", name, beside=beside, above=above)


ONE, OTHER = (f"{path}/__consumer_offsets-0" for path in "ab")
NONE = "and no replicas of one __consumer_offsets:"


@pytest.mark.parametrize(
    ("told", "refused"),
    [
        ([(T, None), (U, None)], f"2 topics, {NONE} {ONE} has topic id {T}, {OTHER} "
         f"has {U}. Give those of one at a time"),
        ([(T, "x"), (U, "x")], f"2 topics, {NONE} {ONE} has topic id {T}"),
        ([(T, "x"), (U, None), (V, "y")], f"3 topics, {NONE} {ONE} has topic id {T}, "
         f"{OTHER} has {U}, and others have 1 more. Give"),
        ([(None, "x"), (None, "y")], f"2 clusters, {NONE} {ONE} has cluster id x, "
         f"{OTHER} has y. Give"),
        ([(T, "x"), (None, "y")], f"2 clusters, {NONE} {ONE} has cluster id x"),
        ([(T, "x"), (T, "y")], None),
        ([(T, "x"), (None, "x")], None),
        ([(T, "x"), (T, None), (None, None)], None),
        ([(T, "x"), ("no id", "x")], None),
    ],
)  # fmt: skip
def test_folders_of_one_topic(told: list[tuple[str | None, str | None]], refused: str | None) -> None:
    """In the order in which they are given."""
    folders = [folder(path, *ids) for path, ids in zip("abc", told, strict=False)]
    if refused is None:
        refuse_several_topics(folders)
        return
    with pytest.raises(InputError) as raised:
        refuse_several_topics(folders)
    assert f"these are folders of {refused}" in str(raised.value)
    for order in permutations(folders):
        with pytest.raises(InputError):
            refuse_several_topics(order)


def test_folders_of_other_names_do_not_count() -> None:
    refuse_several_topics([folder("a", T, "x"), folder("b", U, "y", "orders-0"), folder("c", V, "z", "mine")])
