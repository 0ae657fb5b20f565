"""Records of ``__cluster_metadata``, the log in which a KRaft controller keeps what the cluster is."""
