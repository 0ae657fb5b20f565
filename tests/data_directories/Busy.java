import java.io.*;
import java.nio.file.*;
import java.time.Duration;
import java.util.*;
import java.util.concurrent.*;
import java.util.concurrent.atomic.AtomicLong;
import com.fasterxml.jackson.databind.*;
import org.apache.kafka.clients.admin.*;
import org.apache.kafka.clients.consumer.*;
import org.apache.kafka.clients.producer.*;
import org.apache.kafka.common.*;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.serialization.*;

/**
 * Clients that write without pause while a data directory is copied.
 *   Busy BOOTSTRAP modern|classic PAUSE_MS
 * Prints "ready" when all go; then for each line of the standard input: a file is written with what AdminClient says at
 * that moment ("asked" is printed), "hold" ends all work but leaves members and what they have fetched ("held").
 */
public class Busy {
    static Admin admin;
    static String bootstrap;
    static boolean modern;
    static long pause;
    static volatile boolean goes = true;
    static final List<Thread> threads = new ArrayList<>();
    static final AtomicLong written = new AtomicLong(), ended = new AtomicLong(), committed = new AtomicLong(), reborn = new AtomicLong();

    interface Work { void run() throws Exception; }

    public static void main(String[] args) throws Exception {
        bootstrap = Clients.bootstrap = args[0];
        modern = args[1].equals("modern");
        pause = Long.parseLong(args[2]);
        admin = Clients.admin = Admin.create(Map.of("bootstrap.servers", bootstrap));
        Clients.topic("plain", 3, 1, Map.of());
        Clients.topic("paid", 2, 1, Map.of());
        Clients.topic("table", 1, 1, Map.of("cleanup.policy", "compact", "segment.ms", "300", "min.cleanable.dirty.ratio", "0.001", "delete.retention.ms", "1"));
        Clients.topic("cut", 2, 1, Map.of());
        Clients.topic("rolled", 1, 1, Map.of("segment.ms", "400", "retention.ms", "1500"));
        Clients.topic("hot", 2, 1, Map.of());
        if (modern) for (String group : List.of("s-busy", "s-paid"))
            Clients.configure(ConfigResource.Type.GROUP, group, Map.of("share.auto.offset.reset", "earliest", "share.record.lock.duration.ms", "15000", "share.delivery.count.limit", "3"));
        repeat("plain", pause, 1, Busy::plain);
        repeat("table", pause, 1, Busy::table);
        repeat("cut", pause, 4, Busy::cut);
        repeat("rolled", pause, 2, () -> Clients.send("rolled", 0, 3));
        for (int i = 0; i < 4; i++) { int n = i; start("tx-" + i, () -> transactions("busy-tx-" + n, "g-tx-" + n, n)); }
        start("fresh", Busy::fresh);
        for (int i = 0; i < 3; i++) { int n = i; start("commit-" + i, () -> commits("g-commit-" + n, n)); }
        start("g-classic", () -> consume("g-classic", "classic", List.of("plain", "paid")));
        if (modern) start("g-modern", () -> consume("g-modern", "consumer", List.of("plain", "cut")));
        start("hot", Busy::hot);
        if (modern) for (int i = 0; i < 2; i++) { int n = i; start("share-" + i, () -> share("s-busy", "plain", n)); start("share-paid-" + i, () -> share("s-paid", "paid", n)); }
        System.out.println("ready");
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        for (String line; (line = in.readLine()) != null; ) {
            if (line.equals("hold")) {
                goes = false;
                for (Thread thread : threads) thread.join(20000);
                System.out.println("held");
            } else {
                Files.writeString(Path.of(line), new ObjectMapper().configure(SerializationFeature.ORDER_MAP_ENTRIES_BY_KEYS, true)
                    .writerWithDefaultPrettyPrinter().writeValueAsString(words()) + "\n");
                System.out.println("asked");
            }
            System.out.flush();
        }
        System.exit(0);
    }

    static void start(String name, Work work) {
        Thread thread = new Thread(() -> {
            while (goes) try { work.run(); } catch (Exception e) { if (goes) System.err.println(name + ": " + e); sleep(100); }
        }, name);
        thread.setDaemon(true);
        threads.add(thread);
        thread.start();
    }

    static void repeat(String name, long pause, int times, Work work) { start(name, () -> { work.run(); sleep(pause * times); }); }

    static void sleep(long ms) { try { Thread.sleep(ms); } catch (InterruptedException e) { throw new RuntimeException(e); } }

    static KafkaProducer<String, String> plain;

    static synchronized KafkaProducer<String, String> sender() { return plain == null ? plain = Clients.producer(null) : plain; }

    static void plain() throws Exception {
        Future<RecordMetadata> last = null;
        for (int p = 0; p < 3; p++) for (int i = 0; i <= p; i++) { last = sender().send(new ProducerRecord<>("plain", p, "k", "v")); written.incrementAndGet(); }
        last.get();
    }

    static void table() throws Exception {
        for (int k = 0; k < 8; k++) sender().send(new ProducerRecord<>("table", 0, "k" + k, k == 7 ? null : "v")).get();
        written.addAndGet(8);
    }

    static void cut() throws Exception {
        RecordMetadata last = null;
        for (int p = 0; p < 2; p++) for (int i = 0; i < 5; i++) last = sender().send(new ProducerRecord<>("cut", p, "k", "v")).get();
        written.addAndGet(10);
        admin.deleteRecords(Map.of(Clients.tp("cut", 1), RecordsToDelete.beforeOffset(Math.max(0, last.offset() - 20)))).all().get();
    }

    /** One producer, one transaction after the other: data, offsets, both; committed, aborted; short ones and longer ones. */
    static void transactions(String id, String group, int n) throws Exception {
        Random random = new Random(n);
        try (KafkaProducer<String, String> p = producer(id)) {
            p.initTransactions();
            for (long i = 1; goes; i++) transaction(p, group, n, i, random);
        }
    }

    static void transaction(KafkaProducer<String, String> p, String group, int n, long i, Random random) {
        p.beginTransaction();
        if (random.nextInt(3) > 0) for (int k = 0; k < 2; k++) { p.send(new ProducerRecord<>("paid", n % 2, "k", "v")); written.incrementAndGet(); }
        if (random.nextInt(4) > 0) p.sendOffsetsToTransaction(Map.of(Clients.tp("plain", n % 3), new OffsetAndMetadata(i), Clients.tp("paid", 0), new OffsetAndMetadata(i)), new ConsumerGroupMetadata(group));
        if (random.nextInt(3) == 0) sleep(random.nextInt(400));
        if (random.nextInt(4) == 0) p.abortTransaction(); else p.commitTransaction();
        ended.incrementAndGet();
        sleep(random.nextInt((int) (2 * pause)));
    }

    static KafkaProducer<String, String> producer(String id) {
        Map<String, Object> config = Map.of("bootstrap.servers", bootstrap, "linger.ms", "0", "transactional.id", id, "transaction.timeout.ms", "60000");
        return new KafkaProducer<>(config, new StringSerializer(), new StringSerializer());
    }

    /** Ids that nobody has used before, one transaction each. */
    static void fresh() throws Exception {
        long i = System.nanoTime() % 1000000;
        try (KafkaProducer<String, String> p = producer("fresh-" + i)) {
            p.initTransactions();
            p.beginTransaction();
            p.sendOffsetsToTransaction(Map.of(Clients.tp("plain", 0), new OffsetAndMetadata(i)), new ConsumerGroupMetadata("g-fresh-" + i % 5));
            sleep(i % 300);
            if (i % 4 == 0) p.abortTransaction(); else p.commitTransaction();
        }
        ended.incrementAndGet();
        sleep(10 * pause);
    }

    static void commits(String group, int n) throws Exception {
        try (KafkaConsumer<String, String> c = new KafkaConsumer<>(Clients.consuming(group, "classic"), new StringDeserializer(), new StringDeserializer())) {
            c.assign(List.of(Clients.tp("plain", n), Clients.tp("table", 0)));
            while (goes) {
                int seen = c.poll(Duration.ofMillis(100)).count();
                if (seen > 0) { c.commitSync(); committed.incrementAndGet(); }
                sleep(pause * 2);
            }
        }
    }

    static void consume(String group, String protocol, List<String> topics) throws Exception {
        try (KafkaConsumer<String, String> c = new KafkaConsumer<>(Clients.consuming(group, protocol), new StringDeserializer(), new StringDeserializer())) {
            c.subscribe(topics);
            while (goes) {
                if (c.poll(Duration.ofMillis(100)).count() > 0) { c.commitSync(); committed.incrementAndGet(); }
                sleep(pause);
            }
        }
    }

    /** A topic that is deleted and made again, with offsets of a group in each of its lives. */
    static void hot() throws Exception {
        for (int p = 0; p < 2; p++) Clients.send("hot", p, 10 + (int) (reborn.get() % 5));
        Clients.commit("g-hot", modern && reborn.get() % 2 == 1 ? "consumer" : "classic", Clients.tp("hot", 0), 4, Clients.tp("hot", 1), 9);
        sleep(pause * 10);
        admin.deleteTopics(List.of("hot")).all().get();
        sleep(pause);
        Clients.topic("hot", 2, 1, Map.of());
        reborn.incrementAndGet();
    }

    static void share(String group, String topic, int n) throws Exception {
        try (KafkaShareConsumer<String, String> c = Clients.sharing(group)) {
            c.subscribe(List.of(topic));
            ConsumerRecords<String, String> records = null;
            while (goes) {
                records = c.poll(Duration.ofMillis(200));
                if (!goes && n == 0) break;
                for (ConsumerRecord<String, String> r : records)
                    c.acknowledge(r, r.offset() % 7 == 3 ? AcknowledgeType.RELEASE : r.offset() % 5 == 2 ? AcknowledgeType.REJECT : AcknowledgeType.ACCEPT);
                sleep(pause);
                if (n == 1 && records.count() % 3 == 0) c.commitAsync(); else c.commitSync();
            }
            if (n == 1) return;
            records = c.poll(Duration.ofMillis(500)); // the last ones stay acquired
            System.err.println(group + " holds " + records.count());
            Thread.sleep(Long.MAX_VALUE);
        }
    }

    static Map<String, Object> words() throws Exception {
        Map<String, Object> out = new TreeMap<>();
        out.put("from_ms", System.currentTimeMillis());
        out.put("counts", Map.of("records", written.get(), "transactions", ended.get(), "commits", committed.get(), "reborn", reborn.get()));
        Map<String, TopicDescription> topics = new TreeMap<>();
        for (String name : admin.listTopics(new ListTopicsOptions().listInternal(true)).names().get())
            try { topics.putAll(admin.describeTopics(List.of(name)).allTopicNames().get()); } catch (ExecutionException e) { /* deleted by now */ }
        Map<String, Object> ids = new TreeMap<>(), offsets = new TreeMap<>();
        for (TopicDescription topic : topics.values()) {
            ids.put(topic.name(), topic.topicId().toString());
            Map<TopicPartition, OffsetSpec> first = new HashMap<>(), last = new HashMap<>();
            for (TopicPartitionInfo p : topic.partitions()) if (p.leader() != null) { first.put(Clients.tp(topic.name(), p.partition()), OffsetSpec.earliest()); last.put(Clients.tp(topic.name(), p.partition()), OffsetSpec.latest()); }
            try {
                var earliest = admin.listOffsets(first).all().get();
                var latest = admin.listOffsets(last).all().get();
                for (TopicPartition p : first.keySet()) offsets.put(p.toString(), List.of(earliest.get(p).offset(), latest.get(p).offset()));
            } catch (ExecutionException e) { /* deleted by now */ }
        }
        out.put("topic_ids", ids);
        out.put("offsets", offsets);
        Map<String, Object> groups = new TreeMap<>();
        for (ConsumerGroupListing g : admin.listConsumerGroups().all().get()) {
            Map<String, Object> rows = new TreeMap<>();
            admin.listConsumerGroupOffsets(g.groupId()).partitionsToOffsetAndMetadata().get().forEach((p, o) -> rows.put(p.toString(), o == null ? null : o.offset()));
            groups.put(g.groupId(), rows);
        }
        out.put("group_offsets", groups);
        if (modern) {
            Map<String, Object> shared = new TreeMap<>();
            for (String group : List.of("s-busy", "s-paid")) {
                Map<String, Object> rows = new TreeMap<>();
                try {
                    admin.listShareGroupOffsets(Map.of(group, new ListShareGroupOffsetsSpec())).all().get().get(group)
                        .forEach((p, o) -> rows.put(p.toString(), o == null ? null : Arrays.asList(o.startOffset(), o.lag().orElse(null))));
                } catch (ExecutionException e) { rows.put("error", e.toString()); }
                shared.put(group, rows);
            }
            out.put("share_offsets", shared);
        }
        out.put("to_ms", System.currentTimeMillis());
        return out;
    }
}
