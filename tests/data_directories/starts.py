"""Data directories that a broker may or may not start on: what is changed of a sound one, by name.

A variant is a function that takes the directory of a broker and changes it; `VARIANTS` has all of them.
`record_starts.py` started real brokers on each, and ``starts.json`` has what they did.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from functools import partial
from pathlib import Path

GROUPS = tuple(f"app-{number}" for number in range(8))
"""Groups of the sound directories; each has committed offset 10 + its number for partition 0 of ``orders``."""
OFFSETS_PARTITIONS = 4
ONE = "__consumer_offsets-3"
FIRST = "00000000000000000000"
CHECKPOINTS = {
    "recovery-points": "recovery-point-offset-checkpoint",
    "log-starts": "log-start-offset-checkpoint",
    "high-watermarks": "replication-offset-checkpoint",
    "cleaned": "cleaner-offset-checkpoint",
}
UUID = ".b6a8b6d3b9a04f0f8d4c1f0b2f0f5b11"
OTHER_ID = "AAAAAAAAAAAAAAAAAAAAAQ"

Change = Callable[[Path], None]


def _write(name: str, data: bytes | str, home: Path) -> None:
    path = home / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data.encode() if isinstance(data, str) else data)


def _remove(name: str, home: Path) -> None:
    path = home / name
    shutil.rmtree(path) if path.is_dir() else path.unlink()


def _folder(name: str, home: Path) -> None:
    (home / name).mkdir()


def _copy(name: str, copy: str, home: Path) -> None:
    source, target = home / name, home / copy
    shutil.copytree(source, target) if source.is_dir() else shutil.copyfile(source, target)


def _replace(name: str, old: str, new: str, home: Path) -> None:
    text = (home / name).read_text()
    assert old in text
    (home / name).write_text(text.replace(old, new))


def _all_ids(topic_id: str, home: Path) -> None:
    for number in range(OFFSETS_PARTITIONS):
        _write(f"__consumer_offsets-{number}/partition.metadata", f"version: 0\ntopic_id: {topic_id}", home)


def _link(name: str, home: Path) -> None:
    (home / f"{name}.real").mkdir()
    (home / name).symlink_to(f"{name}.real")


META = "meta.properties"
ID = f"{ONE}/partition.metadata"
ORDERS_ID = "orders-0/partition.metadata"
QUORUM = "__cluster_metadata-0/quorum-state"

VARIANTS: dict[str, Change] = {
    "intact": lambda home: None,
    # whose directory it is
    "meta-missing": partial(_remove, META),
    "meta-empty": partial(_write, META, ""),
    "meta-of-zeros": partial(_write, META, bytes(96)),
    "meta-of-garbage": partial(_write, META, b"\xff\xfe\x00garbage\n"),
    "meta-of-another-node": partial(_replace, META, "node.id=1", "node.id=2"),
    "meta-without-node": partial(_replace, META, "node.id=1", "x=1"),
    "meta-without-cluster": partial(_replace, META, "cluster.id=", "x="),
    "meta-of-another-cluster": partial(_replace, META, "cluster.id=M", "cluster.id=N"),
    "meta-directory-id-of-letters": partial(_replace, META, "directory.id=", "directory.id=!"),
    "meta-directory-id-reserved": lambda home: _write(
        META,
        (home / META).read_text().split("directory.id=")[0] + f"directory.id={OTHER_ID}\nversion=1\n"
        "cluster.id=MkU3OEVBNTcwNTJENDM2Qk\nnode.id=1\n",
        home,
    ),
    "meta-version-7": partial(_replace, META, "version=1", "version=7"),
    "meta-version-0": partial(_replace, META, "version=1", "version=0"),
    "meta-node-of-letters": partial(_replace, META, "node.id=1", "node.id=one"),
    # the checkpoints
    **{f"{kind}-of-zeros": partial(_write, name, bytes(80)) for kind, name in CHECKPOINTS.items()},
    **{f"{kind}-of-garbage": partial(_write, name, "\x07garbage\nof text\n") for kind, name in CHECKPOINTS.items()},
    **{f"{kind}-empty": partial(_write, name, "") for kind, name in CHECKPOINTS.items()},
    **{
        f"{kind}-offset-of-letters": partial(_write, name, "0\n1\n__consumer_offsets 3 x\n")
        for kind, name in CHECKPOINTS.items()
    },
    **{f"{kind}-cut": partial(_write, name, "0\n9\n__consumer_offsets 3 6\n") for kind, name in CHECKPOINTS.items()},
    **{
        f"{kind}-missing": lambda home, name=name: (home / name).unlink(missing_ok=True)
        for kind, name in CHECKPOINTS.items()
    },
    "high-watermarks-version-1": partial(_write, CHECKPOINTS["high-watermarks"], "1\n0\n"),
    "high-watermarks-no-utf-8": partial(_write, CHECKPOINTS["high-watermarks"], b"0\n1\n\xff\xff 3 6\n"),
    "high-watermarks-blank-line": partial(_write, CHECKPOINTS["high-watermarks"], "0\n1\n__consumer_offsets 3 6\n\n"),
    "high-watermarks-version-only": partial(_write, CHECKPOINTS["high-watermarks"], "0\n"),
    "high-watermarks-twice": partial(
        _write, CHECKPOINTS["high-watermarks"], "0\n2\n__consumer_offsets 3 6\n__consumer_offsets 3 6\n"
    ),
    "checkpoint-unfinished": partial(_write, f"{CHECKPOINTS['high-watermarks']}.tmp", bytes(30)),
    "shutdown-file-of-garbage": partial(_write, ".kafka_cleanshutdown", b"\x00\xff{"),
    # what tells the topic
    "id-missing": partial(_remove, ID),
    "id-empty": partial(_write, ID, ""),
    "id-of-zeros": partial(_write, ID, bytes(43)),
    "id-of-another-topic": partial(_write, ID, f"version: 0\ntopic_id: {OTHER_ID}"),
    "id-zero": partial(_write, ID, "version: 0\ntopic_id: AAAAAAAAAAAAAAAAAAAAAA"),
    "id-without-second-line": partial(_write, ID, "version: 0\n"),
    "id-of-letters": partial(_write, ID, "version: 0\ntopic_id: x!y"),
    "id-too-long": partial(_write, ID, f"version: 0\ntopic_id: {OTHER_ID}{OTHER_ID}"),
    "id-version-of-letters": partial(_replace, ID, "version: 0", "version: x"),
    "id-version-1": partial(_replace, ID, "version: 0", "version: 1"),
    "id-version-below-0": partial(_replace, ID, "version: 0", "version: -1"),
    "id-without-blank": partial(_replace, ID, "version: 0", "version:0"),
    "id-with-crlf": partial(_replace, ID, "\n", "\r\n"),
    "id-with-more-lines": lambda home: _write(ID, (home / ID).read_text() + "\nmore: 1\n", home),
    "id-with-mark": lambda home: _write(ID, b"\xef\xbb\xbf" + (home / ID).read_bytes(), home),
    "all-ids-of-another-cluster": partial(_all_ids, OTHER_ID),
    "all-ids-missing": lambda home: [_remove(f"__consumer_offsets-{n}/partition.metadata", home) for n in range(4)],
    "orders-id-missing": partial(_remove, ORDERS_ID),
    "orders-id-empty": partial(_write, ORDERS_ID, ""),
    # folders
    "folder-lost-and-found": partial(_folder, "lost+found"),
    "folder-bak": partial(_folder, f"{ONE}.bak"),
    "folder-backup": partial(_folder, "backup"),
    "folder-my-backup": partial(_folder, "my-backup"),
    "folder-with-date": partial(_folder, "backup-20261121"),
    "folder-hidden": partial(_folder, ".snapshot"),
    "folder-without-topic": partial(_folder, "-1"),
    "folder-without-partition": partial(_folder, "orders-"),
    "folder-partition-too-large": partial(_folder, "backup-20261121103000"),
    "folder-copy": partial(_copy, ONE, f"{ONE} (copy)"),
    "folder-copy-with-number": partial(_copy, ONE, f"{ONE}-1"),
    "folder-with-zeros-in-number": partial(_folder, "orders-007"),
    "folder-digit-of-arabic": partial(_folder, "orders-٩"),
    "folder-of-the-same-partition": partial(_copy, "orders-0", "orders-00"),
    "folder-of-the-same-partition-of-arabic": partial(_copy, "orders-0", "orders-٠"),
    "folder-of-the-same-partition-with-plus": partial(_folder, "orders-+1"),
    "folder-of-the-same-offsets-partition": partial(_copy, ONE, "__consumer_offsets-03"),
    "folder-of-the-same-offsets-partition-empty": partial(_folder, "__consumer_offsets-03"),
    "folder-deleted": partial(_copy, "orders-0", "orders-0.b6a8b6d3b9a04f0f8d4c1f0b2f0f5b11-delete"),
    "folder-deleted-without-id": partial(_folder, "orders-delete"),
    "folder-stray": partial(_copy, "orders-0", "orders-0.b6a8b6d3b9a04f0f8d4c1f0b2f0f5b11-stray"),
    "folder-future": partial(_copy, "orders-0", "orders-0.b6a8b6d3b9a04f0f8d4c1f0b2f0f5b11-future"),
    "folder-index-cache": partial(_folder, "remote-log-index-cache"),
    "folder-by-a-link": partial(_link, "archive"),
    "file-beside": partial(_write, "notes.bak", "x"),
    "file-named-as-a-partition": partial(_write, "orders-9", "x"),
    # files in a partition's folder
    "segment-copied": partial(_copy, f"{ONE}/{FIRST}.log", f"{ONE}/{FIRST} (1).log"),
    "segment-of-macos": partial(_write, f"{ONE}/._{FIRST}.log", b"\x00\x05\x16\x07"),
    "segment-named-backup": partial(_write, f"{ONE}/backup.log", ""),
    "segment-named-0": partial(_copy, f"{ONE}/{FIRST}.log", f"{ONE}/0.log"),
    "segment-with-date": partial(_write, f"{ONE}/{FIRST}.20261121.log", ""),
    "segment-packed": partial(_write, f"{ONE}/{FIRST}.log.gz", b"\x1f\x8b"),
    "file-bak-in-folder": partial(_copy, f"{ONE}/{FIRST}.log", f"{ONE}/{FIRST}.log.bak"),
    "index-named-old": partial(_write, f"{ONE}/old.index", ""),
    "time-index-copied": partial(_write, f"{ONE}/{FIRST} (1).timeindex", ""),
    "transaction-index-without-segment": partial(_write, f"{ONE}/00000000000000009999.txnindex", ""),
    "snapshot-named-old": partial(_write, f"{ONE}/old.snapshot", ""),
    "swap-named-old": partial(_write, f"{ONE}/old.log.swap", ""),
    "cleaned-named-old": partial(_write, f"{ONE}/old.log.cleaned", ""),
    "deleted-named-old": partial(_write, f"{ONE}/old.log.deleted", ""),
    "folder-in-folder": partial(_folder, f"{ONE}/backup"),
    "folder-in-folder-named-log": partial(_folder, f"{ONE}/backup.log"),
    "folder-in-folder-named-as-a-segment": partial(_folder, f"{ONE}/00000000000000009999.log"),
    "orders-segment-copied": partial(_copy, f"orders-0/{FIRST}.log", f"orders-0/{FIRST} (1).log"),
    "orders-segment-of-macos": partial(_write, f"orders-0/._{FIRST}.log", b"\x00\x05"),
    "leader-epochs-of-zeros": partial(_write, f"{ONE}/leader-epoch-checkpoint", bytes(40)),
    "leader-epochs-of-garbage": partial(_write, f"{ONE}/leader-epoch-checkpoint", "garbage\n"),
    "leader-epochs-of-letters": partial(_write, f"{ONE}/leader-epoch-checkpoint", "0\n1\nx y\n"),
    "leader-epochs-empty": partial(_write, f"{ONE}/leader-epoch-checkpoint", ""),
    "orders-leader-epochs-of-zeros": partial(_write, "orders-0/leader-epoch-checkpoint", bytes(40)),
    "offsets-folder-removed": partial(_remove, ONE),
    # the cluster's metadata
    "metadata-segment-copied": partial(
        _copy, f"__cluster_metadata-0/{FIRST}.log", f"__cluster_metadata-0/{FIRST} (1).log"
    ),
    "metadata-id-missing": partial(_remove, "__cluster_metadata-0/partition.metadata"),
    "metadata-id-other": partial(
        _write, "__cluster_metadata-0/partition.metadata", f"version: 0\ntopic_id: {OTHER_ID[:-2]}Ag"
    ),
    "metadata-id-empty": partial(_write, "__cluster_metadata-0/partition.metadata", ""),
    "quorum-state-missing": partial(_remove, QUORUM),
    "quorum-state-of-zeros": partial(_write, QUORUM, bytes(120)),
    "quorum-state-empty": partial(_write, QUORUM, ""),
    "quorum-state-of-garbage": partial(_write, QUORUM, "{"),
    "bootstrap-missing": lambda home: (home / "bootstrap.checkpoint").unlink(missing_ok=True),
    "bootstrap-of-zeros": partial(_write, "bootstrap.checkpoint", bytes(60)),
}
"""Name → what is changed of a sound directory, which was left by an orderly stop."""

SECOND: dict[str, Change] = {
    "second-empty-folder": lambda second: None,
    "second-meta-of-zeros": partial(_write, META, bytes(96)),
    "second-recovery-points-of-zeros": partial(_write, CHECKPOINTS["recovery-points"], bytes(80)),
    "second-high-watermarks-of-zeros": partial(_write, CHECKPOINTS["high-watermarks"], bytes(80)),
    "second-has-metadata-too": lambda second: shutil.copytree(
        second.parent / "data" / "__cluster_metadata-0", second / "__cluster_metadata-0"
    ),
    "second-lost-and-found": partial(_folder, "lost+found"),
    "second-has-one-of-four": lambda second: shutil.move(second.parent / "data" / ONE, second / ONE),
    "second-has-one-and-checkpoint-of-zeros": lambda second: (
        shutil.move(second.parent / "data" / ONE, second / ONE),
        _write(CHECKPOINTS["high-watermarks"], bytes(80), second),
    )[0],
    "second-has-the-same": lambda second: _copy(f"data/{ONE}", f"second/{ONE}", second.parent),
    "second-has-the-same-of-orders": lambda second: _copy("data/orders-0", "second/orders-0", second.parent),
    "second-has-the-same-empty": partial(_folder, ONE),
    "second-has-the-same-without-id": lambda second: (
        _copy(f"data/{ONE}", f"second/{ONE}", second.parent),
        _remove(ID, second),
    )[0],
    "second-has-the-same-with-another-id": lambda second: (
        _copy(f"data/{ONE}", f"second/{ONE}", second.parent),
        _write(ID, f"version: 0\ntopic_id: {OTHER_ID}", second),
    )[0],
    "second-has-the-same-being-deleted": lambda second: _copy(
        f"data/{ONE}", f"second/{ONE}{UUID}-delete", second.parent
    ),
    "second-has-the-same-stray": lambda second: _copy(f"data/{ONE}", f"second/{ONE}{UUID}-stray", second.parent),
    "second-has-the-same-on-its-way": lambda second: _copy(f"data/{ONE}", f"second/{ONE}{UUID}-future", second.parent),
    "second-has-the-same-and-checkpoint-of-zeros": lambda second: (
        _copy(f"data/{ONE}", f"second/{ONE}", second.parent),
        _write(CHECKPOINTS["recovery-points"], bytes(80), second),
    )[0],
    "second-has-the-same-and-lost-and-found": lambda second: (
        _copy(f"data/{ONE}", f"second/{ONE}", second.parent),
        _folder("lost+found", second),
    )[0],
}
"""Name → what is changed of a second data directory ``second`` of the same broker, beside ``data``, that holds nothing
but a sound ``meta.properties``."""


def made(name: str, base: Path, place: Path) -> list[Path]:
    """Make a variant below a folder; return the broker's data directories."""
    data, second = place / "data", place / "second"
    shutil.copytree(base, data)
    if name in VARIANTS:
        VARIANTS[name](data)
        return [data]
    second.mkdir()
    text = (data / META).read_text()
    own = next(line for line in text.splitlines() if line.startswith("directory.id="))
    (second / META).write_text(text.replace(own, "directory.id=Q2jK3n5tS0eT1mZ8yX4w7A"))
    SECOND[name](second)
    return [data, second]
