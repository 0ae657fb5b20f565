"""Write README.txt of a rescue, which is read first, and DETAILS.txt: all names, and the commands of each tool."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice

from offsets_log.messages.internal_topics import OFFSETS_TOPIC
from offsets_log.release_names import rules_in_words
from offsets_log.restore import kaf, kafka_consumer_groups, rpk, share_groups
from offsets_log.restore.doubtful import NAME as DOUBTFUL
from offsets_log.restore.doubts import SHARE, is_active
from offsets_log.restore.names import shown
from offsets_log.restore.rows import by_group, by_topic
from offsets_log.restore.tools import TOOLS, accepted_by
from offsets_log.rows.tables import Row
from offsets_log.words import counted, shown_time, to_install

COMMANDS_SHOWN = 20
"""Maximum number of commands written out for each tool."""

TOPICS_SHOWN = 6
"""So many topics stand in README.txt; DETAILS.txt has all."""
README, DETAILS = "README.txt", "DETAILS.txt"

_README = """{title}

{offsets} of {groups} on {topics}, {told_by}{until}.

What is missing or doubtful
---------------------------

{doubts}

Before you set anything
-----------------------

1. {active}
2. Every topic must exist, with at least these partitions, or a tool fails or waits:
   {needed}

Give the offsets back
---------------------

Replace HOST:PORT by a broker, and run the commands in this directory. One of these ways is enough.

With Python and network to the cluster. The first command shows what would change, --execute does it, --undo takes it
back. If it says that kafka-python is missing:
{extra}.

  offsets-log restore plan.json --bootstrap-server HOST:PORT
  offsets-log restore plan.json --bootstrap-server HOST:PORT --execute
  offsets-log restore --undo restore-journal.jsonl --bootstrap-server HOST:PORT --execute

With Kafka's own tool. It moves offsets outside a partition's log to the log's start or end:

  sh kafka-consumer-groups/run.sh --bootstrap-server HOST:PORT
  sh kafka-consumer-groups/run.sh --bootstrap-server HOST:PORT --execute

With other tools, or for one group: DETAILS.txt has the commands. Afterwards check, before the consumers start:

  kafka-consumer-groups.sh --bootstrap-server HOST:PORT --describe --all-groups --offsets

What is here
------------

  plan.json                       everything, for offsets-log restore
  DETAILS.txt                     all groups to stop, all topics, the commands of each tool
  left-out.jsonl                  offsets that a tool would refuse or change, with the reason
{tool_files}{share_files}{other_files}"""

_DETAILS = """{title}

Replace HOST:PORT by a broker, and run the commands in this directory.
GROUP and TOPIC are percent-encoded in names of files.

Groups that must be stopped first
---------------------------------

{active_names}

Topics, with the partitions that they need
------------------------------------------

{all_needed}

Leader epochs
-------------

Leader epochs are in plan.json only, and no command below commits them: they count the elections of the old cluster.
A consumer that is given an offset with an epoch which the cluster never had waits for that epoch, and reads nothing
without a word. On the old cluster itself, `offsets-log restore --leader-epochs if-valid` commits those that its logs
still have.

What is not in __consumer_offsets
---------------------------------

{share}
Source connectors of Kafka Connect keep their own offsets in Connect's topic (offset.storage.topic), and connectors and
their tasks in two more (config.storage.topic, status.storage.topic): they are not rescued here. Of sink connectors
the offsets are here, as groups connect-NAME.

The commands of each tool
-------------------------

kafka-consumer-groups.sh: all groups, first to look, then to do; it prints Jackson stack traces before it works, which
mean nothing. It moves offsets outside a partition's log to the log's start or end, and stops at a topic that does not
exist, after it has set some groups:

  sh kafka-consumer-groups/run.sh --bootstrap-server HOST:PORT
  sh kafka-consumer-groups/run.sh --bootstrap-server HOST:PORT --execute

or one group alone:

{kafka_consumer_groups}

rpk, which commits at once:

{rpk}

kaf, which commits at once, and does not tell where a partition was refused; OffsetCommit version 1, which it speaks, is
gone since Kafka 4.0:

{kaf}

kafkactl, first to look, then to do; it takes no HOST:PORT but the brokers of its current context (`kafkactl config
use-context NAME`). It refuses offsets outside a partition's log:

  sh kafkactl/run.sh
  sh kafkactl/run.sh --execute

Client libraries, with client-libraries/offsets.json; neither Karafka's nor confluent-kafka's lines carry metadata.

  kafka-python, all groups; a cluster that had no group makes __consumer_offsets first, which takes some seconds:

    import json, time
    from kafka.admin import KafkaAdminClient
    from kafka.errors import CoordinatorLoadInProgressError, CoordinatorNotAvailableError, NotCoordinatorError
    from kafka.structs import OffsetAndMetadata, TopicPartition
    passing = {{CoordinatorLoadInProgressError, CoordinatorNotAvailableError, NotCoordinatorError}}
    admin = KafkaAdminClient(bootstrap_servers='HOST:PORT')
    for group, topics in json.load(open('client-libraries/offsets.json', encoding='utf-8')).items():
        offsets = {{TopicPartition(topic, int(partition)): OffsetAndMetadata(value['offset'], value['metadata'], None)
                   for topic, partitions in topics.items() for partition, value in partitions.items()}}
        answers = passing
        while answers & passing:
            try:
                answers = set(admin.alter_group_offsets(group, offsets).values())
            except tuple(passing) as error:
                answers = {{type(error)}}
                time.sleep(1)
        print(group, *(answer.__name__ for answer in answers))

  Karafka, for each group:

    Karafka::Admin::ConsumerGroups.seek(group, topics.transform_values {{ |partitions|
      partitions.to_h {{ |partition, value| [Integer(partition), value['offset']] }} }})

  confluent-kafka, for each group; given metadata, its 2.16 commits it with a NUL behind it:

    admin.alter_consumer_group_offsets([ConsumerGroupTopicPartitions(group, [
        TopicPartition(topic, int(partition), value['offset'])
        for topic, partitions in topics.items() for partition, value in partitions.items()])])

Spark, for a query without a checkpoint; partitions the group never committed must be added, -2 for their start:

  .option("startingOffsets", open("spark/GROUP.json").read())
"""

_TOOL_FILES = {
    "kafka-consumer-groups": ("kafka-consumer-groups/", "CSV for kafka-consumer-groups.sh --reset-offsets --from-file"),
    "rpk": ("rpk/GROUP.txt", "for rpk group seek --to-file"),
    "kaf": ("kaf/GROUP/TOPIC.json", "for kaf group commit --offset-map (brokers up to 3.9)"),
    "kafkactl": ("kafkactl/run.sh", "one kafkactl reset offset command a partition"),
    "client-libraries": ("client-libraries/offsets.json", "group -> topic -> partition -> offset, metadata"),
    "spark": ("spark/GROUP.json", "for the option startingOffsets of Spark's Kafka source"),
}
"""Tool → its files, and what these are."""


def readme(plan: Row, refused: Sequence[Row]) -> Iterator[str]:
    """Yield the text of README.txt.

    Args:
        refused: the result of `refused_by_some` for the plan's offsets.
    """
    rows, until, snapshot = plan["offsets"], plan["until"], plan.get("snapshot")
    bounds = [f"until {shown_time(until['time_ms'])} ({until['time_ms']} ms)"] if until["time_ms"] is not None else []
    bounds += [f"below record offset {n}" + ("" if p is None else f" of partition {p}") for p, n in until["offsets"]]
    counts = {tool.name: len(accepted_by(tool, rows, refused)) for tool in TOOLS}
    yield _README.format(
        extra=to_install("restore"),
        offsets=counted(len(rows), "offset"),
        groups=counted(len({row["group"] for row in rows}), "group"),
        topics=counted(len({row["topic"] for row in rows}), "topic"),
        title=_title("Offsets rescued from " + (OFFSETS_TOPIC if snapshot is None else "a running cluster")),
        told_by=f"by the rules of {rules_in_words(plan['profile'])}" if snapshot is None else _asked(snapshot),
        until="".join(f", {bound}" for bound in bounds),
        doubts="\n".join(f"- {sentence}" for sentence in (*_of_none(plan), *plan["doubts"])) or "Nothing.",
        needed=_needed(plan),
        tool_files="".join(
            f"  {files:31} {what}: {counted(counts[name], 'offset')}\n" for name, (files, what) in _TOOL_FILES.items()
        ),
        share_files=_SHARE_FILES if "share_offsets" in plan else "",
        other_files="".join(text for name, text in _OTHER_FILES.items() if name in plan),
        active=_active(plan),
    )


def details(plan: Row, refused: Sequence[Row]) -> Iterator[str]:
    """Yield the text of DETAILS.txt; arguments as of `readme`."""
    accepted = {tool.name: accepted_by(tool, plan["offsets"], refused) for tool in TOOLS}
    yield _DETAILS.format(
        title=_title("All names, and the commands of each tool"),
        active_names="\n".join(f"  {shown(group)}" for group in _active_groups(plan)) or f"  {_active(plan)}",
        all_needed="\n".join(f"  {shown(topic)}: {count}" for topic, count in plan["topics"].items()) or "  (none)",
        share=_share(plan),
        kafka_consumer_groups=_commands(
            kafka_consumer_groups.command(group) for group, _ in by_group(accepted[kafka_consumer_groups.NAME])
        ),
        rpk=_commands(rpk.command(group) for group, _ in by_group(accepted[rpk.NAME])),
        kaf=_commands(
            kaf.command(group, topic) for group, own in by_group(accepted[kaf.NAME]) for topic, _ in by_topic(own)
        ),
    )


def _title(words: str) -> str:
    return f"{words}\n{'=' * len(words)}"


def _needed(plan: Row) -> str:
    """Return the first topics, with the partitions that they need."""
    named = [f"{shown(topic)}: {count}" for topic, count in islice(plan["topics"].items(), TOPICS_SHOWN)]
    more = len(plan["topics"]) - TOPICS_SHOWN
    return ", ".join([*named, *([f"and {more} more, as DETAILS.txt says"] if more > 0 else [])]) or "(none)"


def _active_groups(plan: Row) -> list[str]:
    return [row["group"] for row in plan["groups"] if is_active(row["state"])]


def _of_none(plan: Row) -> Iterator[str]:
    """Yield that nothing is here, if so, and whether filters or bounds may be why."""
    if not plan["offsets"]:
        is_bounded = any(plan["filters"].values()) or plan["until"]["time_ms"] is not None or plan["until"]["offsets"]
        yield ("nothing fits the filters and bounds: " if is_bounded else "") + "no committed offset is here"


def _asked(snapshot: Row) -> str:
    times = " to ".join(shown_time(snapshot[name]) for name in ("began_ms", "ended_ms"))
    return f"as the brokers of cluster {snapshot['cluster_id']} answered from {times}"


def _active(plan: Row) -> str:
    if any(row["state"] is None for row in plan["groups"]):
        return "No group may have members. Which had some is not told: stop all of them first."
    if not (count := len(_active_groups(plan))):
        return "No group had members then; none may have any now."
    return f"No group may have members. {counted(count, 'group')} had some: DETAILS.txt names them, stop them first."


_SHARE_FILES = """\
  share-groups/offsets.json       share group -> topic -> partition -> start offset
  share-groups/GROUP.csv          the same for kafka-share-groups.sh --reset-offsets --from-file, of 4.4 or later
  share-groups/run.sh             runs that tool for all groups
  share-groups/delivered-twice.jsonl, left-out.jsonl   what comes again; what cannot be set
"""

_OTHER_FILES = {
    DOUBTFUL: """\
  doubtful.jsonl                  offsets that may be older than a lost commit, or that were deleted
""",
    "target": """\
  target.jsonl                    offsets that will not do on the target as they are, and why
""",
    "translation": """\
  translation.jsonl               where each offset was in the other cluster, and how sure its place here is
""",
}
"""Part of a plan → the file that it makes."""

_SHARE_OFFSETS = """\
Share groups keep where they are in __share_group_state, {told}: {offsets} places of {groups} groups. Only where
they start can be set; {twice} were done above it, and are delivered again
(share-groups/delivered-twice.jsonl). The groups must have no members. `offsets-log restore plan.json` sets them too.
With the Java client, for each group of share-groups/offsets.json:

    admin.alterShareGroupOffsets(group, Map.of(new TopicPartition(topic, partition), offset)).all().get();

kafka-share-groups.sh of 4.4 or later sets these offsets; it moves those outside a partition's log to its start or end,
and sets nothing of a group whose topic or partition does not exist. Up to 4.3 it takes times and no offsets: it may
start at an earlier record of the same time. First to look, then to do:

  sh share-groups/run.sh --bootstrap-server HOST:PORT --dry-run
  sh share-groups/run.sh --bootstrap-server HOST:PORT --execute
"""


def _share(plan: Row) -> str:
    """Return what is said of share groups."""
    if "share_offsets" in plan:
        taken = [row for row in plan["share_offsets"] if share_groups.refusal(row) is None]
        twice = share_groups.count_delivered_twice(taken)
        groups = len({row["group"] for row in taken})
        told = "which was read" if plan.get("snapshot") is None else "of which brokers told"
        return _SHARE_OFFSETS.format(told=told, offsets=len(taken), groups=groups, twice=counted(twice, "record"))
    beginning = "Share groups keep where they are in __share_group_state, which is not read here"
    groups_there = [row["group"] for row in plan["groups"] if row["type"] == SHARE]
    if not groups_there and plan.get("snapshot") is not None:
        return "The cluster listed no share groups."
    if not groups_there:
        return f"{beginning}; the log has none."
    names = "\n".join(f"  {shown(group)}" for group in groups_there)
    return f"{beginning}. The log has these, and nothing\ngives them back where they were:\n\n{names}\n."


def _commands(commands: Iterator[str]) -> str:
    """Return the first commands; those with names that could disturb a terminal are left to a script."""
    shown_ones = [f"  {command}" for command in islice(commands, COMMANDS_SHOWN) if command.isprintable()]
    if next(commands, None) is not None:
        shown_ones.append("  ... and so on for the others")
    return "\n".join(shown_ones) or "  (none)"
