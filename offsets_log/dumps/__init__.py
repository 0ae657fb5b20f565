"""Inputs that are no segments: texts and tables that tools print of the topic, made to segments again.

`formats` has a row for each, `source` turns contents to log segments, a module reads one format. What a dump does not
tell has Kafka's "none" in the bytes, and the column stands in `Segment.missing_columns`: rows must pass
`without_missing_columns`, or they tell a guess; what cannot be answered without a column is refused by
`open_session(needs=…)`.
"""
