package org.apache.kafka.connect.mirror;

import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.HexFormat;
import java.util.Random;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.common.TopicPartition;

/** Prints records of MirrorMaker 2's own topics, and what its classes read of changed ones: mirror-maker-*.jsonl. */
public class MirrorMakerVectors {
    static final Random RANDOM = new Random(21);
    static final String[] NAMES = {"", "orders", "us.orders", "a\"b\\c", "größe", "日本", "𝒳𝓎", "x".repeat(300), "\u0000"};
    static final long[] NUMBERS = {0, 1, -1, 100, 1L << 31, 1L << 40, Long.MAX_VALUE, Long.MIN_VALUE};
    static final PrintStream OUT = new PrintStream(System.out, false, StandardCharsets.UTF_8);

    public static void main(String[] args) {
        for (int i = 0; i < 120; i++) {
            OffsetSync sync = new OffsetSync(new TopicPartition(name(), partition()), number(), number());
            print("OffsetSync", sync.recordKey(), sync.recordValue());
            Checkpoint point = new Checkpoint(name(), new TopicPartition(name(), partition()), number(), number(), name());
            print("Checkpoint", point.recordKey(), point.recordValue());
            Heartbeat beat = new Heartbeat(name(), name(), number());
            print("Heartbeat", beat.recordKey(), beat.recordValue());
        }
        OUT.flush();
    }

    static void print(String kind, byte[] key, byte[] value) {
        one(kind, key, value);
        one(kind, changed(key), value);
        one(kind, key, changed(value));
    }

    static void one(String kind, byte[] key, byte[] value) {
        OUT.printf("{\"name\":\"%s\",\"key_hex\":\"%s\",\"value_hex\":\"%s\",\"read\":%s}%n", kind,
            HexFormat.of().formatHex(key), HexFormat.of().formatHex(value), read(kind, key, value));
    }

    static String read(String kind, byte[] key, byte[] value) {
        ConsumerRecord<byte[], byte[]> record = new ConsumerRecord<>("t", 0, 0, key, value);
        try {
            switch (kind) {
                case "OffsetSync":
                    OffsetSync sync = OffsetSync.deserializeRecord(record);
                    return list(sync.topicPartition().topic(), sync.topicPartition().partition(), sync.upstreamOffset(),
                        sync.downstreamOffset());
                case "Checkpoint":
                    Checkpoint point = Checkpoint.deserializeRecord(record);
                    return list(point.consumerGroupId(), point.topicPartition().topic(), point.topicPartition().partition(),
                        point.upstreamOffset(), point.downstreamOffset(), point.metadata());
                default:
                    Heartbeat beat = Heartbeat.deserializeRecord(record);
                    return list(beat.sourceClusterAlias(), beat.targetClusterAlias(), beat.timestamp());
            }
        } catch (RuntimeException | AssertionError e) {
            return "null";
        }
    }

    static String list(Object... parts) {
        StringBuilder out = new StringBuilder("[");
        for (Object part : parts) {
            if (out.length() > 1) out.append(",");
            if (!(part instanceof String)) {
                out.append(part);
                continue;
            }
            out.append('"');
            for (char c : ((String) part).toCharArray()) out.append(String.format("\\u%04x", (int) c));
            out.append('"');
        }
        return out.append("]").toString();
    }

    static byte[] changed(byte[] bytes) {
        byte[] copy = java.util.Arrays.copyOf(bytes, Math.max(0, bytes.length + RANDOM.nextInt(8) - 5));
        if (copy.length > 0 && RANDOM.nextBoolean()) copy[RANDOM.nextInt(copy.length)] = (byte) RANDOM.nextInt();
        return copy;
    }

    static String name() {
        return NAMES[RANDOM.nextInt(NAMES.length)];
    }

    static int partition() {
        return RANDOM.nextBoolean() ? RANDOM.nextInt(50) : RANDOM.nextInt();
    }

    static long number() {
        return RANDOM.nextBoolean() ? NUMBERS[RANDOM.nextInt(NUMBERS.length)] : RANDOM.nextLong();
    }
}
