"""What to do with partition folders that were made again, in words: a page for whoever puts them under a broker."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from textwrap import wrap

from offsets_log.messages.internal_topics import OFFSETS_TOPIC

README = "README.txt"


def hand_over(partitions: Sequence[int], topic_id: str | None, without_id: Collection[int] = ()) -> str:
    """Return the steps from a folder made again to a broker that serves it (``CL-54``).

    Args:
        topic_id: what was asked to stand in every ``partition.metadata``; None for what stood there before.
        without_id: the partitions whose folder has no ``partition.metadata``.
    """
    names = [f"{OFFSETS_TOPIC}-{partition}" for partition in sorted(partitions)]
    first = names[0] if names else f"{OFFSETS_TOPIC}-N"
    if topic_id:
        identity = f"Every partition.metadata here says topic id {topic_id}, as asked for with --topic-id."
    elif without_id:
        lacking = ", ".join(f"{OFFSETS_TOPIC}-{partition}" for partition in sorted(without_id))
        identity = (
            "THERE IS NO partition.metadata in the folders named below, as the source had none. Make them again with\n"
            f"   --topic-id ID before anything else: {lacking}"
        )
    else:
        identity = (
            "partition.metadata is that of the source. To write for another cluster than that of the source, make\n"
            "   the folders again with --topic-id."
        )
    return TEXT.format(
        folders="\n".join(wrap(", ".join(names), 116, break_on_hyphens=False)),
        first=first,
        identity=identity,
    )


TEXT = """\
How to put these folders under a Kafka broker
=============================================

{folders}

Each is a whole partition folder, with all indexes, producer snapshots and leader epochs. Offsets are those of the
source. The *-offset-checkpoint files beside them have a line for each of these partitions and for no other.

Is it needed? If another replica of the partition is sound, use that one instead: stop the broker with the bad replica,
move its folder out of the data directory, and start it. It copies everything from the leader. The folders here are for
what all replicas have in common: a record that ends every load, a log that no cleaner gets through, no sound replica.

Before
------
1. {identity}
   A broker takes a folder with another id than its cluster's, or with none, for a stray one: it renames it to
   NAME.ID-stray and begins with an empty partition, without any group. The id of the cluster's own topic stands in the
   partition.metadata that is there now, and in: kafka-topics.sh --describe --topic {topic}
2. What was committed after these files were copied is in no folder here. Take the copy from a stopped broker, or stop
   the consumers first. A replica that comes back beside a leader fetches from it what it does not have.
3. Keep the old folders until all is well, but outside of every directory of log.dirs: a folder of any other name there
   (such as {first}.bak) keeps the broker from starting.

On one broker
-------------
1. Shut the broker down cleanly (kafka-server-stop.sh), and wait until it has exited.
2. Move the old folder away as a whole. Never copy new files into an old folder: the broker believes an old index,
   snapshot or .txnindex, and uses old .cleaned, .swap and .deleted files. No second directory of log.dirs may have it.
3. Copy the new folder to the place of the old one, with the owner and permissions of its neighbours.
4. In recovery-point-offset-checkpoint, put the lines of the file here in the place of those of these partitions, and
   leave .kafka_cleanshutdown where it is. The broker then takes the indexes and snapshots here, and starts at once.
   Or have the broker check every byte: delete .kafka_cleanshutdown and the lines of these partitions in that file, and
   lower its second line, the number of entries, by as many. With several replicas the controller then takes this
   broker, in all topics, for one that ended uncleanly: it leaves the replicas that may lead, or leads as after an
   unclean election where it was the last.
5. In log-start-offset-checkpoint, cleaner-offset-checkpoint and replication-offset-checkpoint, put the lines of the
   files here in the place of those of these partitions (no line where there is none here), and set the number of
   entries. A log start behind the end of a log deletes all of it. Never copy these files as a whole over the broker's.
6. Start the broker. For each partition its log says "Finished loading of metadata from {first}", or,
   up to 3.9, "Finished loading offsets and group metadata from {first}". It must not say "Failed to load
   metadata", "Error loading", "stray" or "truncating".

With several replicas
---------------------
A replica with these bytes may stand beside one with the old bytes. Go from broker to broker, one at a time:
1. Begin with the followers. After each, wait until kafka-topics.sh --describe --under-replicated-partitions names none.
2. The leader comes last. When it stops, a follower with the new folder becomes the leader and loads it.
3. If no replica is whole, or the log here ends before those of the followers do, stop all brokers with a replica, put
   the folder on all of them, and start first the one that was stopped last: it was in sync, so it leads.
A replica that keeps the old folder keeps what was left out: it fails again as soon as it becomes the leader.

Afterwards both of these show the same offsets; the second reads this folder by the rules of the broker's release:
    kafka-consumer-groups.sh --bootstrap-server HOST:PORT --all-groups --describe --offsets
    offsets-log offsets DIR --release X.Y
"""
TEXT = TEXT.replace("{topic}", OFFSETS_TOPIC)
