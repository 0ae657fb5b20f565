"""README.txt of a rescue: what is here, what is missing or doubtful, and the commands."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

from offsets_log.restore import kaf, kafka_consumer_groups, rpk
from offsets_log.restore.doubts import is_active
from offsets_log.restore.names import shown
from offsets_log.restore.rows import by_group, by_topic
from offsets_log.restore.tools import TOOLS, accepted_by
from offsets_log.tables import Row

COMMANDS_SHOWN = 20
"""Commands that are written out for each tool."""

_HEAD = """Offsets rescued from __consumer_offsets
=======================================

{offsets} offsets of {groups} groups on {topics} topics, by the rules of a {profile} coordinator{until}.
Replace HOST:PORT by a broker; run the commands in this directory.

What is missing or doubtful
---------------------------

{doubts}

Before anything is set
----------------------

Every topic must exist, with at least these partitions, or a tool fails or waits:

{needed}

{active}

What is here
------------

  plan.json                       everything, for `offsets-log restore` (below)
  kafka-consumer-groups/          CSV for kafka-consumer-groups.sh --reset-offsets --from-file
  rpk/GROUP.txt                   for rpk group seek --to-file
  kaf/GROUP/TOPIC.json            for kaf group commit --offset-map (brokers up to 3.9)
  kafkactl/run.sh                 one kafkactl reset offset command a partition
  client-libraries/offsets.json   group -> topic -> partition -> offset, metadata, leader epoch
  spark/GROUP.json                for the option startingOffsets of Spark's Kafka source
  left-out.jsonl                  offsets a tool would refuse or change, with the reason

GROUP and TOPIC are percent-encoded in names of files. {counts}

The commands
------------

All at once, with leader epochs and metadata (pip install 'offsets-log[restore]'); shows what would change, --execute
does it:

  offsets-log restore plan.json --bootstrap-server HOST:PORT
  offsets-log restore plan.json --bootstrap-server HOST:PORT --execute

kafka-consumer-groups.sh: all groups, first to look, then to do; it prints Jackson stack traces before it works, which
mean nothing. It moves offsets outside a partition's log to the log's start or end, and stops at a topic that does not
exist when some groups are set already:

  sh kafka-consumer-groups/run.sh --bootstrap-server HOST:PORT
  sh kafka-consumer-groups/run.sh --bootstrap-server HOST:PORT --execute

or one group alone:

{kafka_consumer_groups}

rpk, which commits at once:

{rpk}

kaf, which commits at once, and does not tell where a partition was refused; OffsetCommit version 1, which it speaks, is
gone since Kafka 4.0:

{kaf}

kafkactl, first to look, then to do; it refuses offsets outside a partition's log:

  sh kafkactl/run.sh
  sh kafkactl/run.sh --execute

Client libraries, for each group of client-libraries/offsets.json:

  Karafka       Karafka::Admin::ConsumerGroups.seek(group, topics.transform_values {{ |partitions|
                  partitions.to_h {{ |partition, value| [Integer(partition), value['offset']] }} }})
  kafka-python  admin.alter_group_offsets(group, {{
                  TopicPartition(topic, int(partition)):
                    OffsetAndMetadata(value['offset'], value['metadata'], value['leader_epoch'])
                  for topic, partitions in topics.items() for partition, value in partitions.items()}})
  confluent     admin.alter_consumer_group_offsets([ConsumerGroupTopicPartitions(group, [
                  TopicPartition(topic, int(partition), value['offset'])
                  for topic, partitions in topics.items() for partition, value in partitions.items()])])
                (given metadata, confluent-kafka 2.16 commits it with a NUL behind it)

Spark, for a query without a checkpoint; partitions the group never committed must be added, -2 for their start:

  .option("startingOffsets", open("spark/GROUP.json").read())
"""


def readme(plan: Row) -> Iterator[str]:
    """The text."""
    rows = plan["offsets"]
    active = [row["group"] for row in plan["groups"] if is_active(row["state"])]
    until = plan["until"]
    bounds = [f"until {until['time_ms']} ms"] if until["time_ms"] is not None else []
    bounds += [f"below record offset {n}" + ("" if p is None else f" of partition {p}") for p, n in until["offsets"]]
    yield _HEAD.format(
        offsets=len(rows),
        groups=len({row["group"] for row in rows}),
        topics=len({row["topic"] for row in rows}),
        profile=plan["profile"],
        until="".join(f", {bound}" for bound in bounds),
        doubts="\n".join(f"- {sentence}" for sentence in plan["doubts"]) or "Nothing.",
        needed="\n".join(_topics_needed(rows)) or "  (none)",
        active=_active(active, tells_states=all(row["state"] is not None for row in plan["groups"])),
        counts=" ".join(f"{tool.name}: {len(accepted_by(tool, rows))} offsets." for tool in TOOLS),
        kafka_consumer_groups=_commands(
            kafka_consumer_groups.command(group)
            for group, _ in by_group([row for row in rows if kafka_consumer_groups.refusal(row) is None])
        ),
        rpk=_commands(rpk.command(group) for group, _ in by_group([r for r in rows if rpk.refusal(r) is None])),
        kaf=_commands(
            kaf.command(group, topic)
            for group, own in by_group([row for row in rows if kaf.refusal(row) is None])
            for topic, _ in by_topic(own)
        ),
    )


def _topics_needed(rows: list[Row]) -> Iterator[str]:
    partitions: dict[str, int] = {}
    for row in rows:
        partitions[row["topic"]] = max(partitions.get(row["topic"], 0), row["partition"] + 1)
    return (f"  {shown(topic)}: {count}" for topic, count in sorted(partitions.items()))


def _active(groups: list[str], *, tells_states: bool) -> str:
    if not tells_states:
        return "No group may have members; which had some is not told: stop all of them first."
    if not groups:
        return "No group had members then; none may have any now."
    names = "\n".join(f"  {shown(group)}" for group in groups)
    return f"No group may have members. These had some, and must be stopped first:\n\n{names}"


def _commands(commands: Iterator[str]) -> str:
    """The first of them; those of names that could disturb a terminal are for a script to run."""
    shown_ones = [f"  {command}" for command in islice(commands, COMMANDS_SHOWN) if command.isprintable()]
    if next(commands, None) is not None:
        shown_ones.append("  ... and so on for the others")
    return "\n".join(shown_ones) or "  (none)"
