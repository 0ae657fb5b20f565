// One round of a release's own log cleaner over each recorded case, with a clock that stands still.
// usage: java -cp "CLASSES:JARS/*" org.apache.kafka.storage.internals.log.CleanRounds RELEASE CASES
// CASES holds a folder a case: case.json and before/. Beside them it writes after/ and result-RELEASE.json.
// It stands in Kafka's own package, for some of what it calls is for that package alone.
package org.apache.kafka.storage.internals.log;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.IOException;
import java.lang.reflect.Method;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.FileTime;
import java.util.ArrayDeque;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Properties;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.Delayed;
import java.util.concurrent.ScheduledFuture;
import java.util.concurrent.TimeUnit;
import java.util.function.Supplier;
import java.util.stream.Stream;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.server.util.Scheduler;
import org.apache.kafka.storage.internals.utils.Throttler;
import org.apache.kafka.storage.log.metrics.BrokerTopicStats;

public class CleanRounds {
    static final ObjectMapper JSON = new ObjectMapper();
    static final List<String> LEFT_OVER = List.of(".cleaned", ".swap", ".deleted");
    static final long SMALLEST_SEGMENT = 1 << 20;

    public static void main(String[] args) throws Exception {
        for (Path folder : listed(Path.of(args[1]))) {
            JsonNode asked = JSON.readTree(folder.resolve("case.json").toFile());
            Path after = Files.createDirectories(folder.resolve("work").resolve(asked.get("partition").asText()));
            for (Path file : listed(folder.resolve("before"))) {
                Path copy = Files.copy(file, after.resolve(file.getFileName()));
                JsonNode modified = asked.path("mtime_ms").path(file.getFileName().toString());
                Files.setLastModifiedTime(copy, FileTime.fromMillis(modified.asLong(asked.get("now_ms").asLong())));
            }
            ObjectNode result = JSON.createObjectNode();
            try {
                clean(asked, after, result);
            } catch (Throwable failure) {
                result.put("outcome", "not loaded").put("exception", failure.toString());
            }
            ObjectNode files = result.putObject("files");
            for (Path file : listed(after)) {
                String name = file.getFileName().toString();
                if (LEFT_OVER.stream().anyMatch(name::endsWith)) Files.delete(file);
                else files.putObject(name).put("mtime_ms", Files.getLastModifiedTime(file).toMillis());
            }
            Files.move(after, folder.resolve("after"));
            JSON.writeValue(folder.resolve("result-" + args[0] + ".json").toFile(), result);
        }
    }

    static void clean(JsonNode asked, Path folder, ObjectNode result) throws Exception {
        Clock clock = new Clock(asked.get("now_ms").asLong());
        AtOnce tasks = new AtOnce();
        UnifiedLog log = UnifiedLog.create(folder.toFile(), new LogConfig(settings(asked)), number(asked, "log_start_offset", 0), 0, tasks,
            new BrokerTopicStats(), clock, 900_000, new ProducerStateManagerConfig((int) number(asked, "producer_id_expiration_ms", 86_400_000), true),
            600_000, new LogDirFailureChannel(10), true, Optional.empty());
        log.updateHighWatermark(number(asked, "high_watermark", log.logEndOffset()));
        Optional<Long> checkpoint = asked.hasNonNull("first_dirty_offset") ? Optional.of(asked.get("first_dirty_offset").asLong()) : Optional.empty();
        LogCleanerManager.OffsetsToClean bounds = LogCleanerManager.cleanableOffsets(log, checkpoint, clock.milliseconds());
        LogToClean round = new LogToClean(log, bounds.firstDirtyOffset(), bounds.firstUncleanableDirtyOffset(), false);
        tell(log, bounds, round, result);
        if (round.cleanableBytes() == 0) {
            result.put("outcome", "not started").put("end_offset", round.firstDirtyOffset());
        } else {
            int dedupe = (int) number(asked, "dedupe_buffer_bytes", 8 << 20), buffers = (int) number(asked, "io_buffer_bytes", 512 << 10);
            Cleaner cleaner = new Cleaner(0, new SkimpyOffsetMap(dedupe, "MD5"), buffers / 2, (int) number(asked, "cleaner_max_message_bytes", 1_048_588),
                number(asked, "load_factor_percent", 90) / 100.0, new Throttler(Double.MAX_VALUE, 300, "cleaner-io", "bytes", clock), clock, partition -> { });
            try {
                Map.Entry<Long, CleanerStats> done = cleaner.clean(round);
                result.put("outcome", "cleaned").put("end_offset", done.getKey());
            } catch (LogCleaningAbortedException aborted) {
                result.put("outcome", "aborted").put("end_offset", round.firstDirtyOffset());
            } catch (Exception failure) {
                result.put("outcome", "failed").put("end_offset", round.firstDirtyOffset()).put("exception", failure.toString());
            }
            tasks.runLater();
            log.flush(true);
        }
        stop(log);
    }

    static void tell(UnifiedLog log, LogCleanerManager.OffsetsToClean bounds, LogToClean round, ObjectNode result) throws IOException {
        result.put("first_dirty_offset", round.firstDirtyOffset()).put("checkpoint_was_invalid", bounds.forceUpdateCheckpoint())
            .put("first_uncleanable_raw", bounds.firstUncleanableDirtyOffset()).put("first_uncleanable_offset", round.firstUncleanableOffset())
            .put("clean_bytes", round.cleanBytes()).put("cleanable_bytes", round.cleanableBytes()).put("last_stable_offset", log.lastStableOffset())
            .put("high_watermark", log.highWatermark()).put("active_segment", log.activeSegment().baseOffset())
            .put("log_start_offset", log.logStartOffset()).put("log_end_offset", log.logEndOffset());
    }

    /** As a broker that is told to stop; since 4.4 its log manager trims the active segment's indexes first. */
    static void stop(UnifiedLog log) throws Exception {
        for (Method method : UnifiedLog.class.getMethods())
            if (method.getName().equals("prepareActiveSegmentForClose")) method.invoke(log);
        log.close();
    }

    static Properties settings(JsonNode asked) {
        long segment = number(asked, "segment_bytes", 100 << 20);
        Properties settings = new Properties();
        settings.put("cleanup.policy", "compact");
        settings.put(segment < SMALLEST_SEGMENT ? "internal.segment.bytes" : "segment.bytes", String.valueOf(segment));
        for (String name : List.of("segment.index.bytes", "index.interval.bytes", "max.message.bytes", "delete.retention.ms", "min.compaction.lag.ms")) {
            JsonNode value = asked.get(name.replace('.', '_'));
            if (value != null && !value.isNull()) settings.put(name, value.asText());
        }
        return settings;
    }

    static long number(JsonNode asked, String name, long otherwise) { return asked.hasNonNull(name) ? asked.get(name).asLong() : otherwise; }

    static List<Path> listed(Path folder) throws IOException {
        try (Stream<Path> paths = Files.list(folder)) { return paths.sorted().toList(); }
    }

    record Clock(long now) implements Time {
        @Override public long milliseconds() { return now; }
        @Override public long hiResClockMs() { return now; }
        @Override public long nanoseconds() { return TimeUnit.MILLISECONDS.toNanos(now); }
        @Override public void sleep(long ms) { }
        @Override public void waitObject(Object object, Supplier<Boolean> condition, long deadline) { throw new UnsupportedOperationException(); }
    }

    /** Runs what has no delay, keeps what has one for later, and passes over what is periodic. */
    static class AtOnce implements Scheduler {
        final ArrayDeque<Runnable> later = new ArrayDeque<>();
        @Override public void startup() { }
        @Override public void shutdown() { }
        @Override public void resizeThreadPool(int size) { }
        @Override public ScheduledFuture<?> schedule(String name, Runnable task, long delayMs, long periodMs) {
            if (periodMs < 0 && delayMs <= 0) task.run();
            else if (periodMs < 0) later.add(task);
            return new Done();
        }
        void runLater() { while (!later.isEmpty()) later.poll().run(); }
    }

    static class Done extends CompletableFuture<Void> implements ScheduledFuture<Void> {
        Done() { complete(null); }
        @Override public long getDelay(TimeUnit unit) { return 0; }
        @Override public int compareTo(Delayed other) { return 0; }
    }
}
