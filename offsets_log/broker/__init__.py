"""What a broker makes of a partition's files at its start, damage included: recovery, then the coordinator's load.

    files ─► recovery (`LogLoader`) ─► the log as the broker holds it ─► reading (`CoordinatorLoader`) ─► replay
    indexes      cuts, deletes, or          `LogFile`s                       fails, or never ends
                 refuses to start

Nothing here says what is *readable* — that is `log_format.segment` — but what a certain release does. Facts of
recorded brokers are cited as ``D-1`` and on; the classes are those of Kafka's storage module.
"""
