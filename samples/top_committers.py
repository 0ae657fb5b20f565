"""Spark over files of __consumer_offsets: which groups commit most, what was committed at a time, groups by state.

PYSPARK_PYTHON=$(which python) python samples/top_committers.py samples/kafka-4.3-mixed/log
"""

import sys

from pyspark.sql import SparkSession
from pyspark.sql import functions as f

import spark_jobs


def main(path: str) -> None:
    """Print three tables."""
    spark = SparkSession.builder.appName("top committers").getOrCreate()
    spark_jobs.register(spark)
    files = spark.read.format("offsets_log")

    events = files.option("level", "events").load(path)
    commits = events.where("name = 'OffsetCommit' and not is_tombstone")
    commits.groupBy("group").count().orderBy(f.desc("count"), "group").show(5)

    at_a_time = spark.read.format("offsets_log").option("level", "partials").option("until_time", 1795239370000)
    spark_jobs.compact(at_a_time.load(path)).orderBy("group", "topic", "partition").show(5)

    partials = spark.read.format("offsets_log").option("level", "partials").load(path).persist()
    groups = spark_jobs.rebuild(partials).groups
    groups.groupBy("type", "state").count().orderBy("type", "state").show()


if __name__ == "__main__":
    main(*sys.argv[1:])
