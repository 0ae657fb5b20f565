// Runs one round of Kafka's own log cleaner over a partition's folder, with the buffers of a broker's defaults.
// usage: java -cp "LIBS/*:CLASSES" CleanerRound NOW_MS PARTITION_FOLDER
// Prints how many seconds the round took: not the start of the JVM, nor the opening of the log.
import java.io.File;
import java.util.Map;
import java.util.Optional;
import java.util.function.Supplier;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.coordinator.transaction.TransactionLogConfig;
import org.apache.kafka.server.util.KafkaScheduler;
import org.apache.kafka.storage.internals.log.Cleaner;
import org.apache.kafka.storage.internals.log.CleanerConfig;
import org.apache.kafka.storage.internals.log.LogConfig;
import org.apache.kafka.storage.internals.log.LogDirFailureChannel;
import org.apache.kafka.storage.internals.log.LogToClean;
import org.apache.kafka.storage.internals.log.ProducerStateManagerConfig;
import org.apache.kafka.storage.internals.log.SkimpyOffsetMap;
import org.apache.kafka.storage.internals.log.UnifiedLog;
import org.apache.kafka.storage.internals.utils.Throttler;
import org.apache.kafka.storage.log.metrics.BrokerTopicStats;

public class CleanerRound {
    public static void main(String[] args) throws Exception {
        Time clock = new Standing(Long.parseLong(args[0]));
        LogConfig topic = new LogConfig(Map.of("cleanup.policy", "compact", "segment.bytes", 100 << 20));
        int expiration = TransactionLogConfig.PRODUCER_ID_EXPIRATION_MS_DEFAULT;
        KafkaScheduler scheduler = new KafkaScheduler(1);
        scheduler.startup();
        UnifiedLog log = UnifiedLog.create(
            new File(args[1]), topic, 0, 0, scheduler, new BrokerTopicStats(), clock, 900_000,
            new ProducerStateManagerConfig(expiration, true), 600_000, new LogDirFailureChannel(1), true,
            Optional.empty());
        log.updateHighWatermark(log.logEndOffset());

        long started = System.nanoTime();
        Cleaner cleaner = new Cleaner(
            0, new SkimpyOffsetMap((int) CleanerConfig.LOG_CLEANER_DEDUPE_BUFFER_SIZE, CleanerConfig.HASH_ALGORITHM),
            CleanerConfig.LOG_CLEANER_IO_BUFFER_SIZE / 2, topic.maxMessageSize(),
            CleanerConfig.LOG_CLEANER_DEDUPE_BUFFER_LOAD_FACTOR,
            new Throttler(CleanerConfig.LOG_CLEANER_IO_MAX_BYTES_PER_SECOND, 300, "cleaner-io", "bytes", Time.SYSTEM),
            clock, partition -> { });
        long end = Math.min(log.lastStableOffset(), log.activeSegment().baseOffset());
        cleaner.clean(new LogToClean(log, log.logStartOffset(), end, false));
        System.out.println((System.nanoTime() - started) / 1e9);
        log.close();
        scheduler.shutdown();
    }

    /** A clock that stands still, so that both cleaners see the same time. */
    record Standing(long milliseconds) implements Time {
        @Override public long hiResClockMs() { return milliseconds; }
        @Override public long nanoseconds() { return milliseconds * 1_000_000; }
        @Override public void sleep(long ms) { }
        @Override public void waitObject(Object object, Supplier<Boolean> condition, long deadline) { }
    }
}
