-- Two states of one log side by side; an offset is the same if the record that commits it is, or says the same.
select coalesce(b.g, a.g) as g, coalesce(b.topic, a.topic) as topic, coalesce(b.partition, a.partition) as partition,
  case when a.g is null then 'new' when b.g is null then 'deleted' when b.committed_offset > a.committed_offset then 'advanced'
    when b.committed_offset < a.committed_offset then 'rewound' end as change,
  a.committed_offset, b.committed_offset
from earlier a full join later b
  on a.offsets_partition = b.offsets_partition and a.g = b.g and a.topic = b.topic and a.partition = b.partition
where a.committed_offset is distinct from b.committed_offset
