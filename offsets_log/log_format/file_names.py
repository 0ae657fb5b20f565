"""Names of the files that a broker keeps beside segments, and in its data directory."""

PARTITION_METADATA = "partition.metadata"
LEADER_EPOCHS = "leader-epoch-checkpoint"

META_PROPERTIES = "meta.properties"
BOOTSTRAP = "bootstrap.checkpoint"
"""Records that a new metadata log begins with; read at every start."""
CLEAN_SHUTDOWN = ".kafka_cleanshutdown"
"""Lies in a data directory from a broker's orderly stop to its next start."""

CLEANED_UNTIL = "cleaner-offset-checkpoint"
HIGH_WATERMARKS = "replication-offset-checkpoint"
LOG_STARTS = "log-start-offset-checkpoint"
RECOVERY_POINTS = "recovery-point-offset-checkpoint"
