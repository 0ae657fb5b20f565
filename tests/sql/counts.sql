-- What `info` counts of each partition; times of control records are not those of a client.
select offsets_partition, count(*) as records, count(*) filter (is_tombstone and error is null) as tombstones,
  min(timestamp_ms) filter (not is_control) as first_timestamp_ms,
  max(timestamp_ms) filter (not is_control) as last_timestamp_ms
from records group by all
