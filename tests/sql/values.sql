-- What every replay begins with: ends of transactions, committed offsets, tombstones, and the
-- commits that took effect, with where they did; `n` is the place in the log.
create or replace temp view markers as
select offsets_partition, producer_id, n, record_offset, timestamp_ms, control_type = 'COMMIT' as commits
from records where is_control and control_type in ('COMMIT', 'ABORT');

create or replace temp view commits as
select *, "group" as g from records
where record_type in (0, 1) and not is_control and not is_tombstone and error is null;

create or replace temp view tombstones as
select offsets_partition, "group" as g, topic, partition, n, producer_id, in_transaction
from records where record_type in (0, 1) and not is_control and is_tombstone and error is null;

create or replace temp view taken as
select c.*, case when in_transaction then m.n else c.n end as applied
from commits c asof left join markers m
  on c.offsets_partition = m.offsets_partition and c.producer_id = m.producer_id and c.n < m.n
where not in_transaction or m.commits;
