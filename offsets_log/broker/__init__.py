"""Model what a broker does with a partition's files at its start, damage included: recovery, then the load.

    files ─► recovery (`LogLoader`) ─► the log as the broker holds it ─► reading (`CoordinatorLoader`) ─► replay
    indexes      cuts, deletes, or          `LogFile`s                       fails, or never ends
                 refuses to start

What is *readable* is decided in `log_format.segment`; here is what a certain release does. Facts seen on recorded
brokers have rule ids that begin with D; the classes are those of Kafka's storage module.
"""
