import java.io.*;
import java.net.Socket;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.nio.file.*;
import java.time.Duration;
import java.util.*;
import java.util.concurrent.TimeUnit;
import java.util.stream.Collectors;
import com.fasterxml.jackson.databind.*;
import org.apache.kafka.clients.admin.*;
import org.apache.kafka.clients.consumer.*;
import org.apache.kafka.clients.producer.*;
import org.apache.kafka.common.*;
import org.apache.kafka.common.acl.*;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.message.*;
import org.apache.kafka.common.protocol.*;
import org.apache.kafka.common.quota.*;
import org.apache.kafka.common.resource.*;
import org.apache.kafka.common.serialization.*;

/**
 * What record.py has clients do, and what they ask.
 *   Clients work SCENARIO BOOTSTRAP          does a scenario; after each step prints a line and waits for one
 *   Clients ask BOOTSTRAP FILE               writes what AdminClient says as JSON
 *   Clients unblock BOOTSTRAP                takes min.insync.replicas=2 from __consumer_offsets again
 * Runs with the client of 4.3.0, against older brokers too.
 */
public class Clients {
    static final String OFFSETS = "__consumer_offsets";
    static String bootstrap;
    static Admin admin;
    static BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
    static final List<AutoCloseable> held = new ArrayList<>();

    public static void main(String[] args) throws Exception {
        bootstrap = args[args[0].equals("work") ? 2 : 1];
        admin = Admin.create(Map.of("bootstrap.servers", bootstrap));
        switch (args[0]) {
            case "work" -> {
                if (args[1].equals("replicas")) replicas(); else one(args[1].startsWith("modern"), args[1].endsWith("blocked"));
            }
            case "ask" -> Files.writeString(Path.of(args[2]), new ObjectMapper().configure(SerializationFeature.ORDER_MAP_ENTRIES_BY_KEYS, true)
                .writerWithDefaultPrettyPrinter().writeValueAsString(words()) + "\n");
            case "unblock" -> configure(ConfigResource.Type.TOPIC, OFFSETS, Map.of("min.insync.replicas", "1"));
            default -> throw new IllegalArgumentException(args[0]);
        }
        System.out.println("done");
        System.exit(0);
    }

    static void step(String name) throws IOException {
        System.out.println(name);
        System.out.flush();
        if (in.readLine() == null) System.exit(0);
    }

    // ------------------------------------------------------------------------------------------- scenarios

    static void one(boolean modern, boolean blocked) throws Exception {
        topic("orders", 3, blocked ? 2 : 1, Map.of());
        topic("payments.v1", 2, blocked ? 2 : 1, Map.of("retention.ms", "86400000", "max.message.bytes", "262144"));
        topic("table", 1, blocked ? 2 : 1, Map.of("cleanup.policy", "compact", "segment.ms", "200", "min.cleanable.dirty.ratio", "0.001", "delete.retention.ms", "1"));
        topic("short", 2, blocked ? 2 : 1, Map.of());
        topic("reborn", 2, blocked ? 2 : 1, Map.of());
        topic("gone", 1, blocked ? 2 : 1, Map.of());
        topic("empty", 1, blocked ? 2 : 1, Map.of());
        Map<TopicPartition, Integer> counts = new LinkedHashMap<>();
        for (int p = 0; p < 3; p++) send("orders", p, 100 + 10 * p);
        for (int p = 0; p < 2; p++) { send("payments.v1", p, 60); send("short", p, 80); send("reborn", p, 40); }
        send("gone", 0, 30);
        for (int round = 0; round < 6; round++) { for (int k = 0; k < 10; k++) send("table", 0, "k" + k, "round " + round); Thread.sleep(300); }

        commit("g-done", "classic", tp("orders", 0), 100, tp("orders", 1), 110, tp("orders", 2), 120);
        commit("g-behind", "classic", tp("orders", 0), 7, tp("orders", 1), 0, tp("payments.v1", 1), 13);
        commit("g-short", "classic", tp("short", 0), 5, tp("short", 1), 77);
        commit("g-table", "classic", tp("table", 0), 12);
        commit("g-gone", "classic", tp("gone", 0), 3, tp("orders", 0), 1);
        commit("g-reborn", modern ? "consumer" : "classic", tp("reborn", 0), 11, tp("reborn", 1), 22, tp("orders", 2), 2);
        commit("g-ünïcode", "classic", tp("orders", 1), 9);
        admin.alterConsumerGroupOffsets("g-beyond", Map.of(tp("orders", 0), new OffsetAndMetadata(5000), tp("empty", 0), new OffsetAndMetadata(3))).all().get();
        admin.deleteRecords(Map.of(tp("short", 0), RecordsToDelete.beforeOffset(20), tp("short", 1), RecordsToDelete.beforeOffset(50))).all().get();
        member("g-live-classic", "classic", "orders");
        if (modern) {
            member("g-live-consumer", "consumer", "orders");
            configure(ConfigResource.Type.GROUP, "s-half", Map.of("share.auto.offset.reset", "earliest", "share.record.lock.duration.ms", "600000"));
            configure(ConfigResource.Type.GROUP, "s-all", Map.of("share.auto.offset.reset", "earliest"));
            configure(ConfigResource.Type.GROUP, "g-live-consumer", Map.of("consumer.session.timeout.ms", "50000"));
            shareAll("s-all", "payments.v1");
            shareHalf("s-half", "orders");
        }
        configure(ConfigResource.Type.TOPIC, "orders", Map.of("retention.ms", "172800000"));
        configure(ConfigResource.Type.TOPIC, "orders", Map.of("retention.bytes", "1000000000"));
        configure(ConfigResource.Type.BROKER, "1", Map.of("log.cleaner.threads", "2", "listener.name.external.ssl.keystore.password", "invented-secret"));
        configure(ConfigResource.Type.BROKER, "", Map.of("background.threads", "8"));
        admin.alterUserScramCredentials(List.of(
            new UserScramCredentialUpsertion("alice", new ScramCredentialInfo(ScramMechanism.SCRAM_SHA_256, 4096), "invented-secret"),
            new UserScramCredentialUpsertion("bob", new ScramCredentialInfo(ScramMechanism.SCRAM_SHA_512, 4096), "invented-secret"))).all().get();
        admin.alterUserScramCredentials(List.of(new UserScramCredentialDeletion("bob", ScramMechanism.SCRAM_SHA_512))).all().get();
        admin.alterClientQuotas(List.of(new ClientQuotaAlteration(new ClientQuotaEntity(Map.of("user", "alice")), List.of(new ClientQuotaAlteration.Op("producer_byte_rate", 1e6))))).all().get();
        AclBinding acl = new AclBinding(new ResourcePattern(ResourceType.TOPIC, "orders", PatternType.LITERAL), new AccessControlEntry("User:alice", "*", AclOperation.READ, AclPermissionType.ALLOW));
        AclBinding other = new AclBinding(new ResourcePattern(ResourceType.GROUP, "g-", PatternType.PREFIXED), new AccessControlEntry("User:alice", "*", AclOperation.READ, AclPermissionType.ALLOW));
        admin.createAcls(List.of(acl, other)).all().get();
        admin.deleteAcls(List.of(other.toFilter())).all().get();
        admin.createPartitions(Map.of("payments.v1", NewPartitions.increaseTo(3))).all().get();
        admin.deleteTopics(List.of("gone")).all().get();
        if (!blocked) {
            admin.deleteTopics(List.of("reborn")).all().get();
            TimeUnit.SECONDS.sleep(2);
            topic("reborn", 1, 1, Map.of());
            send("reborn", 0, 4);
        }
        step("settled");
        transactions(true);
        if (!blocked) { step("ready"); return; }
        // From here on nothing can be written to the offsets topic: the markers of ended transactions and the
        // tombstones for a deleted topic's offsets do not get there.
        prepared();
        admin.deleteTopics(List.of("reborn")).all().get();
        TimeUnit.SECONDS.sleep(2);
        topic("reborn", 1, 1, Map.of());
        send("reborn", 0, 4);
        send("orders", 0, 5);
        step("ready");
    }

    static void replicas() throws Exception {
        topic("orders", 3, 3, Map.of());
        topic("payments.v1", 2, 2, Map.of());
        for (int p = 0; p < 3; p++) send("orders", p, 50 + p);
        for (int p = 0; p < 2; p++) send("payments.v1", p, 30);
        for (int i = 0; i < 12; i++) commit("g-" + i, i % 2 == 0 ? "classic" : "consumer", tp("orders", i % 3), 10 + i, tp("payments.v1", i % 2), i);
        member("g-live", "consumer", "orders");
        configure(ConfigResource.Type.GROUP, "s-half", Map.of("share.auto.offset.reset", "earliest", "share.record.lock.duration.ms", "600000"));
        shareHalf("s-half", "orders");
        transactions(false);
        step("settled");
        // One broker is dead now.
        for (int p = 0; p < 3; p++) send("orders", p, 20);
        for (int i = 0; i < 6; i++) commit("g-" + i, i % 2 == 0 ? "classic" : "consumer", tp("orders", i % 3), 30 + i);
        transaction("tx-later", "g-tx-later", tp("orders", 1), 41);
        topic("late", 1, 2, Map.of());
        send("late", 0, 9);
        admin.deleteRecords(Map.of(tp("orders", 0), RecordsToDelete.beforeOffset(35))).all().get();
        step("ready");
    }

    static void transactions(boolean hanging) throws Exception {
        transaction("tx-open", "g-tx-open", tp("orders", 0), 21);
        KafkaProducer<String, String> only = begun("tx-only-data");
        only.send(new ProducerRecord<>("payments.v1", 0, "k", "v")).get();
        KafkaProducer<String, String> committed = transaction("tx-committed", "g-tx-committed", tp("orders", 1), 31);
        committed.commitTransaction();
        KafkaProducer<String, String> aborted = transaction("tx-aborted", "g-tx-aborted", tp("orders", 1), 32);
        aborted.abortTransaction();
        KafkaProducer<String, String> twice = transaction("tx-twice", "g-tx-twice", tp("orders", 2), 33);
        twice.commitTransaction();
        twice.beginTransaction();
        twice.send(new ProducerRecord<>("orders", 2, "k", "again")).get();
        twice.sendOffsetsToTransaction(Map.of(tp("orders", 2), new OffsetAndMetadata(35)), new ConsumerGroupMetadata("g-tx-twice"));
        if (!hanging) return;
        KafkaProducer<String, String> late = transaction("tx-hanging-late", "g-tx-hanging-late", tp("orders", 2), 34);
        late.commitTransaction();
        KafkaProducer<String, String> never = producer("tx-hanging-empty");
        never.initTransactions();
        TimeUnit.SECONDS.sleep(2); // until the markers are written
        hang("tx-hanging-late", "g-tx-hanging-late", tp("orders", 2), 55);
        hang("tx-hanging-empty", "g-tx-hanging-empty", tp("orders", 0), 56);
    }

    static void prepared() throws Exception {
        KafkaProducer<String, String> commit = transaction("tx-prepared-commit", "g-tx-prepared-commit", tp("orders", 0), 61);
        KafkaProducer<String, String> abort = transaction("tx-prepared-abort", "g-tx-prepared-abort", tp("orders", 1), 62);
        configure(ConfigResource.Type.TOPIC, OFFSETS, Map.of("min.insync.replicas", "2"));
        TimeUnit.SECONDS.sleep(2);
        commit.commitTransaction();
        abort.abortTransaction();
    }

    // ------------------------------------------------------------------------------------------------ parts

    static TopicPartition tp(String topic, int partition) { return new TopicPartition(topic, partition); }

    static void topic(String name, int partitions, int replicas, Map<String, String> configs) throws Exception {
        for (int i = 0; ; i++) {
            try {
                admin.createTopics(List.of(new NewTopic(name, partitions, (short) replicas).configs(configs))).all().get();
                break;
            } catch (Exception e) { if (i == 20) throw e; Thread.sleep(500); }
        }
        for (int i = 0; i < 60; i++) {
            try { if (admin.describeTopics(List.of(name)).allTopicNames().get().get(name).partitions().stream().allMatch(p -> p.leader() != null)) return; }
            catch (Exception e) { /* not known yet */ }
            Thread.sleep(200);
        }
    }

    static void configure(ConfigResource.Type type, String name, Map<String, String> configs) throws Exception {
        List<AlterConfigOp> ops = configs.entrySet().stream().map(e -> new AlterConfigOp(new ConfigEntry(e.getKey(), e.getValue()), AlterConfigOp.OpType.SET)).toList();
        admin.incrementalAlterConfigs(Map.of(new ConfigResource(type, name), ops)).all().get();
    }

    static KafkaProducer<String, String> producer(String transactionalId) {
        Map<String, Object> config = new HashMap<>(Map.of("bootstrap.servers", bootstrap, "linger.ms", "0"));
        if (transactionalId != null) { config.put("transactional.id", transactionalId); config.put("transaction.timeout.ms", "900000"); }
        KafkaProducer<String, String> made = new KafkaProducer<>(config, new StringSerializer(), new StringSerializer());
        held.add(made);
        return made;
    }

    static KafkaProducer<String, String> plain;

    static void send(String topic, int partition, String key, String value) throws Exception {
        if (plain == null) plain = producer(null);
        plain.send(new ProducerRecord<>(topic, partition, key, value)).get();
    }

    static void send(String topic, int partition, int count) throws Exception {
        for (int i = 0; i < count; i++) {
            if (plain == null) plain = producer(null);
            var sent = plain.send(new ProducerRecord<>(topic, partition, "k" + i, "v" + i));
            if (i % 25 == 24 || i == count - 1) sent.get();
        }
    }

    static KafkaProducer<String, String> begun(String id) {
        KafkaProducer<String, String> p = producer(id);
        p.initTransactions();
        p.beginTransaction();
        return p;
    }

    /** A transaction with a record and an offset in it, open. */
    static KafkaProducer<String, String> transaction(String id, String group, TopicPartition read, long offset) throws Exception {
        KafkaProducer<String, String> p = begun(id);
        p.send(new ProducerRecord<>("orders", read.partition(), "k", id)).get();
        p.sendOffsetsToTransaction(Map.of(read, new OffsetAndMetadata(offset)), new ConsumerGroupMetadata(group));
        return p;
    }

    /** An offset of a transaction whose coordinator knows nothing of it. */
    static void hang(String id, String group, TopicPartition read, long offset) throws Exception {
        TransactionDescription known = admin.describeTransactions(List.of(id)).description(id).get();
        TxnOffsetCommitRequestData request = new TxnOffsetCommitRequestData().setTransactionalId(id).setGroupId(group)
            .setProducerId(known.producerId()).setProducerEpoch((short) known.producerEpoch()).setTopics(List.of(
                new TxnOffsetCommitRequestData.TxnOffsetCommitRequestTopic().setName(read.topic()).setPartitions(List.of(
                    new TxnOffsetCommitRequestData.TxnOffsetCommitRequestPartition().setPartitionIndex(read.partition()).setCommittedOffset(offset).setCommittedMetadata("")))));
        TxnOffsetCommitResponseData answer = new TxnOffsetCommitResponseData(call(ApiKeys.TXN_OFFSET_COMMIT, (short) 3, request), (short) 3);
        int error = answer.topics().get(0).partitions().get(0).errorCode();
        if (error != 0) throw new IOException(id + ": " + Errors.forCode((short) error));
    }

    static ByteBufferAccessor call(ApiKeys key, short version, ApiMessage request) throws IOException {
        String[] at = bootstrap.split(":");
        try (Socket socket = new Socket(at[0], Integer.parseInt(at[1]))) {
            ByteBuffer header = MessageUtil.toByteBufferAccessor(new RequestHeaderData().setRequestApiKey(key.id).setRequestApiVersion(version)
                .setCorrelationId(1).setClientId("raw"), key.requestHeaderVersion(version)).buffer();
            ByteBuffer body = MessageUtil.toByteBufferAccessor(request, version).buffer();
            byte[] frame = new byte[4 + header.remaining() + body.remaining()];
            ByteBuffer.wrap(frame).putInt(frame.length - 4).put(header).put(body);
            socket.getOutputStream().write(frame);
            DataInputStream answer = new DataInputStream(socket.getInputStream());
            byte[] bytes = new byte[answer.readInt()];
            answer.readFully(bytes);
            ByteBufferAccessor readable = new ByteBufferAccessor(ByteBuffer.wrap(bytes));
            new ResponseHeaderData(readable, key.responseHeaderVersion(version));
            return readable;
        }
    }

    static Map<String, Object> consuming(String group, String protocol) {
        Map<String, Object> config = new HashMap<>(Map.of("bootstrap.servers", bootstrap, "group.id", group, "enable.auto.commit", "false",
            "auto.offset.reset", "earliest", "group.protocol", protocol, "client.id", group + "-client", "max.poll.records", "10"));
        return config;
    }

    static void commit(String group, String protocol, Object... pairs) {
        Map<TopicPartition, OffsetAndMetadata> offsets = new LinkedHashMap<>();
        for (int i = 0; i < pairs.length; i += 2) offsets.put((TopicPartition) pairs[i], new OffsetAndMetadata((Integer) pairs[i + 1], Optional.of(0), "m" + i));
        try (KafkaConsumer<String, String> c = new KafkaConsumer<>(consuming(group, protocol), new StringDeserializer(), new StringDeserializer())) {
            c.assign(offsets.keySet());
            c.commitSync(offsets);
        }
    }

    /** A member that stays, behind all ends. */
    static void member(String group, String protocol, String topic) throws Exception {
        KafkaConsumer<String, String> c = new KafkaConsumer<>(consuming(group, protocol), new StringDeserializer(), new StringDeserializer());
        c.subscribe(List.of(topic));
        for (int polls = 0, seen = 0; seen < 30 && polls < 100; polls++) seen += c.poll(Duration.ofMillis(300)).count();
        c.commitSync();
        c.pause(c.assignment());
        Thread keep = new Thread(() -> { while (true) { try { c.poll(Duration.ofMillis(500)); } catch (Exception e) { return; } } });
        keep.setDaemon(true);
        keep.start();
    }

    static KafkaShareConsumer<String, String> sharing(String group) {
        return new KafkaShareConsumer<>(Map.of("bootstrap.servers", bootstrap, "group.id", group, "client.id", group + "-client",
            "share.acknowledgement.mode", "explicit", "max.poll.records", "10"), new StringDeserializer(), new StringDeserializer());
    }

    static void shareAll(String group, String topic) throws Exception {
        try (KafkaShareConsumer<String, String> c = sharing(group)) {
            c.subscribe(List.of(topic));
            for (int polls = 0, seen = 0; seen < 120 && polls < 60; polls++) {
                for (ConsumerRecord<String, String> r : c.poll(Duration.ofMillis(500))) { c.acknowledge(r, AcknowledgeType.ACCEPT); seen++; }
                c.commitSync();
            }
        }
    }

    /** Some accepted, some rejected, some released, the last ones fetched and not acknowledged; the member stays. */
    static void shareHalf(String group, String topic) throws Exception {
        KafkaShareConsumer<String, String> c = sharing(group);
        c.subscribe(List.of(topic));
        for (int polls = 0, rounds = 0; rounds < 8 && polls < 60; polls++) {
            ConsumerRecords<String, String> records = c.poll(Duration.ofMillis(500));
            if (records.isEmpty()) continue;
            rounds++;
            if (rounds == 8) break;
            for (ConsumerRecord<String, String> r : records)
                c.acknowledge(r, r.offset() % 7 == 3 ? AcknowledgeType.RELEASE : r.offset() % 5 == 2 ? AcknowledgeType.REJECT : AcknowledgeType.ACCEPT);
            c.commitSync();
        }
        held.add(c);
    }

    // ------------------------------------------------------------------------------------------------ words

    static Map<String, Object> words() throws Exception {
        Map<String, Object> out = new TreeMap<>();
        out.put("cluster_id", admin.describeCluster().clusterId().get());
        out.put("controller", admin.describeCluster().controller().get().id());
        out.put("brokers", admin.describeCluster().nodes().get().stream().map(n -> n.id()).sorted().toList());
        Map<String, Object> features = new TreeMap<>();
        admin.describeFeatures().featureMetadata().get().finalizedFeatures().forEach((k, v) -> features.put(k, (int) v.maxVersionLevel()));
        out.put("features", features);
        QuorumInfo quorum = admin.describeMetadataQuorum().quorumInfo().get();
        out.put("quorum", Map.of("leader", quorum.leaderId(), "leader_epoch", quorum.leaderEpoch(), "high_watermark", quorum.highWatermark(),
            "voters", quorum.voters().stream().map(v -> v.replicaId()).sorted().toList()));
        Set<String> names = admin.listTopics(new ListTopicsOptions().listInternal(true)).names().get();
        Map<String, Object> topics = new TreeMap<>();
        List<TopicPartition> partitions = new ArrayList<>();
        for (TopicDescription t : admin.describeTopics(names).allTopicNames().get().values()) {
            List<Object> rows = new ArrayList<>();
            for (TopicPartitionInfo p : t.partitions()) {
                Map<String, Object> row = new TreeMap<>();
                row.put("partition", p.partition());
                row.put("leader", p.leader() == null ? -1 : p.leader().id());
                row.put("replicas", p.replicas().stream().map(Node::id).toList());
                row.put("isr", p.isr().stream().map(Node::id).sorted().toList());
                row.put("elr", p.elr() == null ? null : p.elr().stream().map(Node::id).toList());
                rows.add(row);
                if (p.leader() != null) partitions.add(tp(t.name(), p.partition()));
            }
            topics.put(t.name(), Map.of("id", t.topicId().toString(), "internal", t.isInternal(), "partitions", rows));
        }
        out.put("topics", topics);
        List<ConfigResource> resources = new ArrayList<>(names.stream().map(n -> new ConfigResource(ConfigResource.Type.TOPIC, n)).toList());
        for (Node n : admin.describeCluster().nodes().get()) resources.add(new ConfigResource(ConfigResource.Type.BROKER, n.idString()));
        resources.add(new ConfigResource(ConfigResource.Type.BROKER, ""));
        try { for (GroupListing g : admin.listGroups().all().get()) resources.add(new ConfigResource(ConfigResource.Type.GROUP, g.groupId())); }
        catch (Exception e) { /* an older broker */ }
        Map<String, Object> configs = new TreeMap<>();
        for (ConfigResource r : resources) {
            Map<String, Object> set = new TreeMap<>();
            try {
                for (ConfigEntry e : admin.describeConfigs(List.of(r)).all().get().get(r).entries())
                    if (e.source().name().startsWith("DYNAMIC_") && source(r).contains(e.source())) set.put(e.name(), e.value());
            } catch (Exception e) { continue; }
            if (!set.isEmpty()) configs.put(r.type() + " " + r.name(), set);
        }
        out.put("configs", configs);
        Map<String, Object> offsets = new TreeMap<>();
        for (TopicPartition p : partitions) {
            Map<String, Object> row = new TreeMap<>();
            row.put("earliest", admin.listOffsets(Map.of(p, OffsetSpec.earliest())).all().get().get(p).offset());
            row.put("latest", admin.listOffsets(Map.of(p, OffsetSpec.latest())).all().get().get(p).offset());
            row.put("latest_committed", admin.listOffsets(Map.of(p, OffsetSpec.latest()), new ListOffsetsOptions(IsolationLevel.READ_COMMITTED)).all().get().get(p).offset());
            offsets.put(p.toString(), row);
        }
        out.put("offsets", offsets);
        Map<String, Object> transactions = new TreeMap<>();
        List<String> ids = admin.listTransactions().all().get().stream().map(TransactionListing::transactionalId).sorted().toList();
        for (Map.Entry<String, TransactionDescription> e : admin.describeTransactions(ids).all().get().entrySet()) {
            TransactionDescription d = e.getValue();
            Map<String, Object> row = new TreeMap<>();
            row.put("state", d.state().toString());
            row.put("producer_id", d.producerId());
            row.put("producer_epoch", d.producerEpoch());
            row.put("timeout_ms", d.transactionTimeoutMs());
            row.put("start_ms", d.transactionStartTimeMs().isPresent() ? d.transactionStartTimeMs().getAsLong() : null);
            row.put("partitions", d.topicPartitions().stream().map(Object::toString).sorted().toList());
            transactions.put(e.getKey(), row);
        }
        out.put("transactions", transactions);
        Map<String, Object> committed = new TreeMap<>(), shared = new TreeMap<>();
        for (ConsumerGroupListing g : admin.listConsumerGroups().all().get()) {
            Map<String, Object> rows = new TreeMap<>();
            admin.listConsumerGroupOffsets(g.groupId()).partitionsToOffsetAndMetadata().get().forEach((p, o) -> rows.put(p.toString(), o == null ? null : o.offset()));
            committed.put(g.groupId(), rows);
        }
        out.put("group_offsets", committed);
        try {
            for (GroupListing g : admin.listGroups().all().get()) if (g.type().orElse(null) == GroupType.SHARE) {
                Map<String, Object> rows = new TreeMap<>();
                admin.listShareGroupOffsets(Map.of(g.groupId(), new ListShareGroupOffsetsSpec())).all().get().get(g.groupId())
                    .forEach((p, o) -> rows.put(p.toString(), o == null ? null : o.toString()));
                shared.put(g.groupId(), rows);
            }
        } catch (Exception e) { shared.put("error", e.toString()); }
        out.put("share_offsets", shared);
        return out;
    }

    static Set<ConfigEntry.ConfigSource> source(ConfigResource r) {
        return switch (r.type()) {
            case TOPIC -> Set.of(ConfigEntry.ConfigSource.DYNAMIC_TOPIC_CONFIG);
            case GROUP -> Set.of(ConfigEntry.ConfigSource.DYNAMIC_GROUP_CONFIG);
            default -> Set.of(r.name().isEmpty() ? ConfigEntry.ConfigSource.DYNAMIC_DEFAULT_BROKER_CONFIG : ConfigEntry.ConfigSource.DYNAMIC_BROKER_CONFIG);
        };
    }
}
