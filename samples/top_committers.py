"""Spark over files of __consumer_offsets: which groups commit most, what was committed at a time, groups by state.

PYSPARK_PYTHON=$(which python) python samples/top_committers.py samples/kafka-4.3-mixed/log
"""

import sys

from pyspark.sql import SparkSession
from pyspark.sql import functions as f


def main(path: str) -> None:
    """Print three tables."""
    spark = SparkSession.builder.appName("top committers").getOrCreate()

    records = spark.read.format("offsets_log").option("level", "records").load(path)
    commits = records.where("name = 'OffsetCommit' and not is_tombstone")
    commits.groupBy("group").count().orderBy(f.desc("count"), "group").show(5)

    at_a_time = spark.read.format("offsets_log").option("until_time", "2026-11-21T05:36:10Z")
    at_a_time.load(path).select("group", "topic", "partition", "committed_offset").show(5)

    groups = spark.read.format("offsets_log").option("level", "groups").load(path)
    groups.groupBy("type", "state").count().orderBy("type", "state").show()


if __name__ == "__main__":
    main(*sys.argv[1:])
