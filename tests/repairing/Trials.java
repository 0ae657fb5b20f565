// Starts a broker over one data directory after the other, asks it, appends, lets its cleaner run, starts it again.
// The properties must hold the cleaner back (log.cleaner.min.compaction.lag.ms): it runs between the two answers only.
// usage: java -cp "LIBS/*" Trials.java PROPERTIES CASES ANSWERS
// CASES: JSON, a list of {data, groups, commits: [group, ...], ends: {partition: offset}}; ANSWERS: the same, answered.
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.FileReader;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.concurrent.TimeUnit;
import kafka.server.KafkaConfig;
import kafka.server.KafkaRaftServer;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.AlterConfigOp;
import org.apache.kafka.clients.admin.ConfigEntry;
import org.apache.kafka.clients.admin.ListConsumerGroupOffsetsSpec;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.utils.Time;

public class Trials {
    static final ObjectMapper JSON = new ObjectMapper();
    static final TopicPartition COMMITTED = new TopicPartition("__consumer_offsets", 0);
    static final long ROLL_MS = 300;
    static final long CLEANING_MS = 6000;

    public static void main(String[] args) throws Exception {
        Properties settings = new Properties();
        try (FileReader reader = new FileReader(args[0])) {
            settings.load(reader);
        }
        try (var answers = Files.newBufferedWriter(Path.of(args[2]))) {
            for (JsonNode given : JSON.readTree(Path.of(args[1]).toFile())) {
                answers.write(JSON.writeValueAsString(answered(settings, (ObjectNode) given)) + "\n");
                answers.flush();
            }
        }
        System.exit(0);
    }

    static ObjectNode answered(Properties settings, ObjectNode one) throws Exception {
        Path data = Path.of(one.get("data").asText());
        settings.setProperty("log.dirs", data.toString());
        KafkaRaftServer server = started(settings);
        try (Admin admin = admin(settings)) {
            ask(admin, one, "first");
            letClean(admin, AlterConfigOp.OpType.SET);
            commit(admin, one, 16);
            for (int round = 1; round <= 2; round++) { // the first sets horizons of tombstones, the second drops them
                Thread.sleep(2 * ROLL_MS);
                commit(admin, one, 16 + round); // what came before is in a closed segment
                one.put("cleaned", cleaned(data, one.get("ends"), round));
            }
            letClean(admin, AlterConfigOp.OpType.DELETE);
        } finally {
            stop(server);
        }
        server = started(settings);
        try (Admin admin = admin(settings)) {
            ask(admin, one, "second");
        } finally {
            stop(server);
        }
        return one;
    }

    static KafkaRaftServer started(Properties settings) {
        KafkaRaftServer server = new KafkaRaftServer(KafkaConfig.fromProps(settings), Time.SYSTEM);
        server.startup();
        return server;
    }

    static void stop(KafkaRaftServer server) {
        server.shutdown();
        server.awaitShutdown();
    }

    static Admin admin(Properties settings) {
        String listener = settings.getProperty("advertised.listeners").replace("PLAINTEXT://", "");
        return Admin.create(Map.of("bootstrap.servers", listener, "default.api.timeout.ms", 20000,
            "request.timeout.ms", 15000, "retry.backoff.ms", 20));
    }

    static void ask(Admin admin, ObjectNode one, String name) throws Exception {
        ArrayNode offsets = one.putArray(name);
        ArrayNode failed = one.putArray(name + "_failed");
        List<String> groups = names(one.get("groups"));
        var asked = new ArrayList<Map.Entry<String, org.apache.kafka.common.KafkaFuture<Map<TopicPartition, OffsetAndMetadata>>>>();
        for (String group : groups) {
            asked.add(Map.entry(group, admin.listConsumerGroupOffsets(Map.of(group, new ListConsumerGroupOffsetsSpec()))
                .partitionsToOffsetAndMetadata(group)));
        }
        for (var answer : asked) {
            try {
                answer.getValue().get(60, TimeUnit.SECONDS).forEach((key, value) -> {
                    if (value == null) return; // a committed offset below 0
                    ArrayNode row = offsets.addArray().add(answer.getKey()).add(key.topic()).add(key.partition());
                    row.add(value.offset()).add(value.metadata());
                    value.leaderEpoch().ifPresentOrElse(row::add, row::addNull);
                });
            } catch (Exception error) {
                failed.addArray().add(answer.getKey()).add(String.valueOf(error.getCause()));
            }
        }
    }

    static void commit(Admin admin, ObjectNode one, long offset) throws Exception {
        for (String group : names(one.get("commits"))) {
            admin.alterConsumerGroupOffsets(group, Map.of(COMMITTED, new OffsetAndMetadata(offset)))
                .all().get(60, TimeUnit.SECONDS);
        }
    }

    /** Sets or deletes the topic's own permission to be cleaned. */
    static void letClean(Admin admin, AlterConfigOp.OpType type) throws Exception {
        var topic = new ConfigResource(ConfigResource.Type.TOPIC, COMMITTED.topic());
        var operation = new AlterConfigOp(new ConfigEntry("min.compaction.lag.ms", "0"), type);
        admin.incrementalAlterConfigs(Map.of(topic, List.of(operation))).all().get(60, TimeUnit.SECONDS);
    }

    /** How many partitions the cleaner has come to the end of that they had, and so many records further. */
    static int cleaned(Path data, JsonNode ends, int further) throws Exception {
        long deadline = System.currentTimeMillis() + CLEANING_MS;
        int found = 0;
        while (found < ends.size() && System.currentTimeMillis() < deadline) {
            Thread.sleep(100);
            found = 0;
            Path checkpoint = data.resolve("cleaner-offset-checkpoint");
            for (String line : Files.exists(checkpoint) ? Files.readAllLines(checkpoint) : List.<String>of()) {
                String[] words = line.split(" ");
                if (words.length == 3 && words[0].equals("__consumer_offsets") && ends.has(words[1])) {
                    found += Long.parseLong(words[2]) >= ends.get(words[1]).asLong() + further ? 1 : 0;
                }
            }
        }
        return found;
    }

    static List<String> names(JsonNode array) {
        List<String> names = new ArrayList<>();
        array.forEach(name -> names.add(name.asText()));
        return names;
    }
}
