"""Read and write Kafka's log format: files, batches and records, whatever happened to their bytes.

`segment` walks a file and finds the next good batch behind damage, `batch` and `record` are the layouts of magic 0, 1
and 2, `partition_log` is a partition's segments in a row. Every length is checked against its enclosing end before it
is used. Nothing here opens files. What surprises:

* The end of a batch is `last_offset` of its header, never base + count − 1: a cleaned batch keeps its span.
* Attribute bits are masks (0x07, 0x08, 0x10, 0x20, 0x40), never ordinals; bit 6 turns the base timestamp into a
  horizon.
* Batches of LogAppendTime carry timestamp deltas of no meaning, which are kept, or building is not exact.
* Frames of lz4 in magic 0 have a wrong header checksum, and must be written with it.
* A tombstone is a null value. Empty bytes are not one.
* Java replaces an encoded surrogate (`ED A0 80`) by one U+FFFD, Python by three (`java_text`).
"""
