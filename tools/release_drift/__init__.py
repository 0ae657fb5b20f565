"""What a Kafka release has that the tables here do not say (``make release-drift KAFKA=X.Y.Z``)."""
