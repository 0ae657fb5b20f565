"""Which configurations hold no secret, by their names, so that their values may be shown.

These are all that 3.9 and 4.3 know of topics, groups and client metrics, and of brokers those that can be changed while
they run, but for passwords and keys; what came later stands in the table of releases. As in Kafka's own tools, a name
that is not known may be that of a secret.

References: ``LogConfig.java``, ``GroupConfig.java``, ``ClientMetricsConfigs.java``, ``DynamicBrokerConfig.java``,
``KafkaConfigSchema.isSensitive``.
"""

from __future__ import annotations

import re

from offsets_log.kafka_releases import SETTINGS

_OF_LISTENER = re.compile(r"listener\.name\.[^.]+\.")

_PLAIN_NAMES = """
    advertised.listeners background.threads cleanup.policy compression.gzip.level compression.lz4.level
    compression.type compression.zstd.level config.providers consumer.assignment.interval.ms
    consumer.heartbeat.interval.ms consumer.session.timeout.ms cordoned.log.dirs delete.retention.ms
    file.delete.delay.ms flush.messages flush.ms follower.fetch.last.tiered.offset.enable
    follower.replication.throttled.replicas group.consumer.assignment.interval.ms
    group.coordinator.cached.buffer.max.bytes group.share.assignment.interval.ms
    group.streams.assignment.interval.ms index.interval.bytes internal.segment.bytes interval.ms
    leader.replication.throttled.replicas listener.security.protocol.map listeners local.retention.bytes
    local.retention.ms log.cleaner.backoff.ms log.cleaner.dedupe.buffer.size log.cleaner.delete.retention.ms
    log.cleaner.io.buffer.load.factor log.cleaner.io.buffer.size log.cleaner.io.max.bytes.per.second
    log.cleaner.max.compaction.lag.ms log.cleaner.min.cleanable.ratio log.cleaner.min.compaction.lag.ms
    log.cleaner.threads log.cleanup.policy log.flush.interval.messages log.flush.interval.ms
    log.index.interval.bytes log.index.size.max.bytes log.local.retention.bytes log.local.retention.ms
    log.message.downconversion.enable log.message.timestamp.after.max.ms log.message.timestamp.before.max.ms
    log.message.timestamp.difference.max.ms log.message.timestamp.type log.preallocate log.retention.bytes
    log.retention.ms log.roll.jitter.ms log.roll.ms log.segment.bytes log.segment.delete.delay.ms match
    max.compaction.lag.ms max.connection.creation.rate max.connections max.connections.per.ip
    max.connections.per.ip.overrides max.message.bytes message.downconversion.enable message.format.version
    message.max.bytes message.timestamp.after.max.ms message.timestamp.before.max.ms
    message.timestamp.difference.max.ms message.timestamp.type metric.reporters metrics min.cleanable.dirty.ratio
    min.compaction.lag.ms min.insync.replicas num.io.threads num.network.threads num.recovery.threads.per.data.dir
    num.replica.fetchers preallocate principal.builder.class producer.id.expiration.ms remote.fetch.max.wait.ms
    remote.list.offsets.request.timeout.ms remote.log.copy.disable remote.log.delete.on.disable
    remote.log.index.file.cache.total.size.bytes remote.log.manager.copier.thread.pool.size
    remote.log.manager.copy.max.bytes.per.second remote.log.manager.expiration.thread.pool.size
    remote.log.manager.fetch.max.bytes.per.second remote.log.manager.follower.thread.pool.size
    remote.log.reader.threads remote.storage.enable retention.bytes retention.ms sasl.enabled.mechanisms
    sasl.kerberos.kinit.cmd sasl.kerberos.min.time.before.relogin sasl.kerberos.principal.to.local.rules
    sasl.kerberos.service.name sasl.kerberos.ticket.renew.jitter sasl.kerberos.ticket.renew.window.factor
    sasl.login.refresh.buffer.seconds sasl.login.refresh.min.period.seconds sasl.login.refresh.window.factor
    sasl.login.refresh.window.jitter sasl.mechanism.inter.broker.protocol segment.bytes segment.index.bytes
    segment.jitter.ms segment.ms share.assignment.interval.ms share.auto.offset.reset
    share.coordinator.cached.buffer.max.bytes share.delivery.count.limit share.heartbeat.interval.ms
    share.isolation.level share.partition.max.record.locks share.record.lock.duration.ms
    share.renew.acknowledge.enable share.session.timeout.ms ssl.cipher.suites ssl.client.auth ssl.enabled.protocols
    ssl.endpoint.identification.algorithm ssl.engine.factory.class ssl.keymanager.algorithm ssl.keystore.location
    ssl.keystore.type ssl.protocol ssl.provider ssl.secure.random.implementation ssl.trustmanager.algorithm
    ssl.truststore.location ssl.truststore.type streams.assignment.interval.ms streams.heartbeat.interval.ms
    streams.initial.rebalance.delay.ms streams.num.standby.replicas streams.session.timeout.ms
    transaction.partition.verification.enable unclean.leader.election.enable
"""
PLAIN = SETTINGS | frozenset(_PLAIN_NAMES.split())


def is_sensitive(name: str) -> bool:
    """Whether the value of a configuration must not be shown: a secret, or a name that nobody knows."""
    return _OF_LISTENER.sub("", name, count=1) not in PLAIN
