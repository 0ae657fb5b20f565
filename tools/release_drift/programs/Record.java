// Clients of a release at work against its broker, and what that broker answers at known ends of its log.
// usage: java -cp "JARS/*" Record.java PORT ANSWERS work|ask
// "work": classic groups, groups of consumers, share and streams groups, transactions, deletions, step by step. "ask": one
// step of answers alone. ANSWERS: JSON with topics (name -> id) and steps (what, end_offsets, groups, offsets).
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.File;
import java.time.Duration;
import java.util.*;
import java.util.concurrent.*;
import java.util.regex.Pattern;
import java.util.stream.*;
import org.apache.kafka.clients.admin.*;
import org.apache.kafka.clients.consumer.*;
import org.apache.kafka.clients.producer.*;
import org.apache.kafka.common.*;
import org.apache.kafka.common.serialization.*;
import org.apache.kafka.streams.*;

public class Record {
    static final ObjectMapper JSON = new ObjectMapper();
    static final ObjectNode FOUND = JSON.createObjectNode();
    static final ArrayNode STEPS = FOUND.putArray("steps");
    static final List<Member> MEMBERS = new ArrayList<>();
    static final int OFFSETS_PARTITIONS = 4;
    static final Duration SOON = Duration.ofMillis(200);
    static String address;
    static Admin admin;

    public static void main(String[] args) throws Exception {
        address = "127.0.0.1:" + args[0];
        admin = Admin.create(Map.of("bootstrap.servers", address));
        if (args[2].equals("work")) work();
        else step("after a restart");
        ObjectNode topics = FOUND.putObject("topics");
        for (TopicDescription topic : admin.describeTopics(admin.listTopics().names().get()).allTopicNames().get().values())
            topics.putObject(topic.name()).put("id", topic.topicId().toString());
        JSON.writeValue(new File(args[1]), FOUND);
        Runtime.getRuntime().halt(0);
    }

    static void work() throws Exception {
        admin.createTopics(List.of(new NewTopic("orders", 4, (short) 1), new NewTopic("clicks", 3, (short) 1), new NewTopic("late", 2, (short) 1), new NewTopic("gone", 1, (short) 1))).all().get();
        classicGroups();
        groupsOfConsumers();
        shareGroups();
        streamsGroups();
        transactions();
        deletions();
    }

    // ---------------------------------------------------------------------------------------------- scenarios

    static void classicGroups() throws Exception {
        for (String assignor : List.of("Range", "RoundRobin", "Sticky", "CooperativeSticky")) {
            Map<String, Object> settings = Map.of("partition.assignment.strategy", "org.apache.kafka.clients.consumer." + assignor + "Assignor");
            Member first = join("classic-" + assignor, "one", settings), second = join("classic-" + assignor, "two", settings);
            await(() -> first.owned() + second.owned() == 7 && second.owned() > 0);
            first.commit(3, "");
            second.commit(4, "größe " + assignor);
            step("two members of a classic group: " + assignor);
            if (assignor.equals("Sticky")) {
                second.close();
                await(() -> first.owned() == 7);
                first.commit(9, "alone");
                step("one of them left");
            }
        }
        Map<String, Object> fixed = Map.of("group.instance.id", "fixed-1", "session.timeout.ms", 300_000);
        Member static1 = join("classic-static", "s1", fixed);
        await(() -> static1.owned() == 7);
        static1.commit(5, "");
        static1.close();
        step("a static member went away and is still one");
        try (KafkaConsumer<byte[], byte[]> simple = consumer("simple", "nobody", Map.of())) {
            simple.assign(List.of(new TopicPartition("orders", 0)));
            simple.commitSync(Map.of(new TopicPartition("orders", 0), new OffsetAndMetadata(7, Optional.of(2), "simple"), new TopicPartition("clicks", 2), new OffsetAndMetadata(0)));
        }
        step("commits without a member");
    }

    static void groupsOfConsumers() throws Exception {
        Map<String, Object> modern = Map.of("group.protocol", "consumer");
        Member first = join("modern", "m1", modern), second = join("modern", "m2", modern);
        await(() -> first.owned() + second.owned() == 7 && second.owned() > 0);
        first.commit(1, "by the newer protocol");
        step("two members of a group of consumers");
        second.close();
        await(() -> first.owned() == 7);
        step("one of them left");
        Member fixed = join("modern-static", "m3", Map.of("group.protocol", "consumer", "group.instance.id", "i-1"));
        await(() -> fixed.owned() == 7);
        fixed.commit(2, "");
        fixed.close();
        step("a static member that is away");
        Member regex = join("modern-regex", "m4", modern, consumer -> consumer.subscribe(new SubscriptionPattern("(orders|late).*")));
        await(() -> regex.owned() == 6);
        step("a subscription by a regular expression");
        Member old = join("migrated", "old", Map.of()), fresh = join("migrated", "new", modern);
        await(() -> old.owned() + fresh.owned() == 7 && old.owned() > 0 && fresh.owned() > 0);
        step("a classic group that is upgraded while it runs");
    }

    static void shareGroups() throws Exception {
        KafkaShareConsumer<byte[], byte[]> consumer = new KafkaShareConsumer<>(settings("sharing", "sh1", Map.of()), new ByteArrayDeserializer(), new ByteArrayDeserializer());
        consumer.subscribe(List.of("orders", "late"));
        Thread polling = new Thread(() -> { while (true) consumer.poll(SOON); });
        polling.setDaemon(true);
        polling.start();
        await(() -> admin.describeShareGroups(List.of("sharing")).all().get().get("sharing").members().stream().anyMatch(member -> member.assignment().topicPartitions().size() == 6));
        Thread.sleep(2000);
        step("a member of a share group");
    }

    static void streamsGroups() throws Exception {
        StreamsBuilder builder = new StreamsBuilder();
        builder.stream("orders").to("late");
        Properties settings = new Properties();
        settings.putAll(Map.of("bootstrap.servers", address, "application.id", "streaming", "client.id", "st1", "group.protocol", "streams", "commit.interval.ms", 3_600_000L,
            "state.dir", System.getProperty("java.io.tmpdir") + "/record-" + ProcessHandle.current().pid(),
            "default.key.serde", Serdes.ByteArraySerde.class, "default.value.serde", Serdes.ByteArraySerde.class));
        KafkaStreams streams = new KafkaStreams(builder.build(), settings);
        streams.start();
        await(() -> streams.state() == KafkaStreams.State.RUNNING);
        Thread.sleep(2000);
        step("a member of a streams group");
        admin.alterStreamsGroupOffsets("streaming-later", Map.of(new TopicPartition("orders", 1), new OffsetAndMetadata(3))).all().get();
        step("offsets for a streams group that is to come");
    }

    static void transactions() throws Exception {
        for (String end : List.of("committed", "aborted", "open")) {
            KafkaProducer<byte[], byte[]> producer = new KafkaProducer<>(Map.of("bootstrap.servers", address, "transactional.id", "tx-" + end), new ByteArraySerializer(), new ByteArraySerializer());
            producer.initTransactions();
            producer.beginTransaction();
            producer.send(new ProducerRecord<>("orders", "value".getBytes()));
            producer.sendOffsetsToTransaction(Map.of(new TopicPartition("orders", 1), new OffsetAndMetadata(11, end), new TopicPartition("late", 0), new OffsetAndMetadata(12)), new ConsumerGroupMetadata("tx-" + end));
            producer.flush();
            step("offsets in a transaction");
            if (end.equals("committed")) producer.commitTransaction();
            if (end.equals("aborted")) producer.abortTransaction();
            step("offsets in a transaction: " + end);
        }
    }

    static void deletions() throws Exception {
        admin.deleteConsumerGroupOffsets("simple", Set.of(new TopicPartition("clicks", 2))).all().get();
        step("an offset was deleted");
        admin.alterConsumerGroupOffsets("classic-to-go", Map.of(new TopicPartition("orders", 3), new OffsetAndMetadata(30))).all().get();
        step("a group that only has offsets");
        admin.deleteConsumerGroups(List.of("classic-to-go")).all().get();
        step("it was deleted");
        admin.alterConsumerGroupOffsets("classic-gone", Map.of(new TopicPartition("gone", 0), new OffsetAndMetadata(1), new TopicPartition("late", 1), new OffsetAndMetadata(2))).all().get();
        step("offsets of a topic that is to go");
        admin.deleteTopics(List.of("gone")).all().get();
        Thread.sleep(2000);
        step("a topic was deleted");
    }

    // ------------------------------------------------------------------------------------------------ clients

    static Map<String, Object> settings(String group, String client, Map<String, Object> more) {
        Map<String, Object> settings = new HashMap<>(Map.of("bootstrap.servers", address, "group.id", group, "client.id", client));
        settings.putAll(more);
        return settings;
    }

    static KafkaConsumer<byte[], byte[]> consumer(String group, String client, Map<String, Object> more) {
        Map<String, Object> settings = settings(group, client, more);
        settings.put("enable.auto.commit", "false");
        return new KafkaConsumer<>(settings, new ByteArrayDeserializer(), new ByteArrayDeserializer());
    }

    static Member join(String group, String client, Map<String, Object> more) { return join(group, client, more, consumer -> consumer.subscribe(List.of("orders", "clicks"))); }

    static Member join(String group, String client, Map<String, Object> more, java.util.function.Consumer<KafkaConsumer<byte[], byte[]>> subscribe) {
        Member member = new Member(consumer(group, client, more));
        subscribe.accept(member.consumer);
        member.setDaemon(true);
        member.start();
        MEMBERS.add(member);
        return member;
    }

    /** A consumer that polls in a thread of its own, and does there what it is told. */
    static class Member extends Thread {
        final KafkaConsumer<byte[], byte[]> consumer;
        final BlockingQueue<FutureTask<Void>> told = new LinkedBlockingQueue<>();
        volatile int owned;
        volatile boolean isOver;

        Member(KafkaConsumer<byte[], byte[]> consumer) { this.consumer = consumer; }

        @Override public void run() {
            while (!isOver) {
                consumer.poll(SOON);
                owned = consumer.assignment().size();
                for (FutureTask<Void> task = told.poll(); task != null; task = told.poll()) task.run();
            }
        }

        int owned() { return owned; }

        void commit(long offset, String metadata) throws Exception {
            tell(() -> consumer.commitSync(consumer.assignment().stream().collect(Collectors.toMap(partition -> partition, partition -> new OffsetAndMetadata(offset + partition.partition(), metadata)))));
        }

        void close() throws Exception { tell(() -> { isOver = true; consumer.close(); }); }

        void tell(Runnable what) throws Exception {
            FutureTask<Void> task = new FutureTask<>(what, null);
            told.add(task);
            task.get(60, TimeUnit.SECONDS);
        }
    }

    /** What is asked for too early, such as a group that is not there yet, has not come either. */
    static void await(Callable<Boolean> condition) throws Exception {
        Exception last = null;
        for (long end = System.nanoTime() + TimeUnit.SECONDS.toNanos(120); System.nanoTime() < end; Thread.sleep(100)) {
            try {
                if (condition.call()) return;
            } catch (ExecutionException early) {
                last = early;
            }
        }
        throw new IllegalStateException("what was waited for did not come", last);
    }

    // ------------------------------------------------------------------------------------------------ answers

    /** Notes what the broker answers, once no classic group is between two generations and nothing was written meanwhile. */
    static void step(String what) throws Exception {
        for (int tries = 0; tries < 300; tries++) {
            Map<Integer, Long> before = ends();
            ObjectNode answer = JSON.createObjectNode().put("what", what);
            ObjectNode ends = answer.putObject("end_offsets");
            before.forEach((partition, end) -> ends.put(String.valueOf(partition), end));
            ArrayNode groups = answer.putArray("groups"), offsets = answer.putArray("offsets");
            for (GroupListing group : new TreeMap<>(admin.listGroups().all().get().stream().collect(Collectors.toMap(GroupListing::groupId, each -> each))).values()) {
                groups.add(group(group));
                if (group.type().get() != GroupType.SHARE) offsets(group.groupId(), offsets);
            }
            boolean rests = groups.findValuesAsText("state").stream().noneMatch(state -> state.endsWith("Rebalance"));
            if (rests && before.equals(ends())) {
                STEPS.add(answer);
                return;
            }
            Thread.sleep(200);
        }
        throw new IllegalStateException("the log never rests: " + what);
    }

    static Map<Integer, Long> ends() throws Exception {
        Map<TopicPartition, OffsetSpec> asked = IntStream.range(0, OFFSETS_PARTITIONS).boxed()
            .collect(Collectors.toMap(number -> new TopicPartition("__consumer_offsets", number), number -> OffsetSpec.latest()));
        Map<Integer, Long> ends = new TreeMap<>();
        admin.listOffsets(asked).all().get().forEach((partition, end) -> ends.put(partition.partition(), end.offset()));
        return ends;
    }

    static void offsets(String group, ArrayNode offsets) throws Exception {
        admin.listConsumerGroupOffsets(group).partitionsToOffsetAndMetadata().get().forEach((partition, value) -> {
            ObjectNode row = offsets.addObject().put("group", group).put("topic", partition.topic()).put("partition", partition.partition())
                .put("committed_offset", value.offset()).put("metadata", value.metadata());
            row.put("leader_epoch", value.leaderEpoch().orElse(null));
        });
    }

    static ObjectNode group(GroupListing listed) throws Exception {
        String id = listed.groupId();
        ObjectNode row = JSON.createObjectNode().put("group", id).put("type", listed.type().get().toString().toLowerCase(Locale.ROOT));
        ArrayNode members = row.putArray("members");
        switch (listed.type().get()) {
            case CLASSIC -> {
                ClassicGroupDescription found = admin.describeClassicGroups(List.of(id)).all().get().get(id);
                row.put("state", found.state().toString()).put("protocol_type", found.protocol()).put("protocol", found.protocolData());
                found.members().forEach(each -> partitions("assignment", each.assignment().topicPartitions(), member(members, each)));
            }
            case CONSUMER -> {
                ConsumerGroupDescription found = admin.describeConsumerGroups(List.of(id)).all().get().get(id);
                row.put("state", found.groupState().toString()).put("protocol", found.partitionAssignor());
                row.put("group_epoch", found.groupEpoch().get()).put("assignment_epoch", found.targetAssignmentEpoch().get());
                for (MemberDescription each : found.members()) {
                    ObjectNode member = member(members, each).put("member_epoch", each.memberEpoch().get()).put("rack_id", each.rackId().orElse(null));
                    partitions("assignment", each.assignment().topicPartitions(), member);
                    partitions("target_assignment", each.targetAssignment().get().topicPartitions(), member);
                }
            }
            case SHARE -> {
                ShareGroupDescription found = admin.describeShareGroups(List.of(id)).all().get().get(id);
                row.put("state", found.groupState().toString()).put("group_epoch", found.groupEpoch()).put("assignment_epoch", found.targetAssignmentEpoch());
                found.members().forEach(each -> partitions("assignment", each.assignment().topicPartitions(), members.addObject()
                    .put("member_id", each.consumerId()).put("client_id", each.clientId()).put("host", each.host()).put("member_epoch", each.memberEpoch())));
            }
            case STREAMS -> {
                StreamsGroupDescription found = admin.describeStreamsGroups(List.of(id)).all().get().get(id);
                row.put("state", found.groupState().toString()).put("group_epoch", found.groupEpoch()).put("assignment_epoch", found.targetAssignmentEpoch());
                row.put("topology_epoch", found.topologyEpoch());
                for (StreamsGroupMemberDescription each : found.members())
                    members.addObject().put("member_id", each.memberId()).put("client_id", each.clientId()).put("host", each.clientHost())
                        .put("member_epoch", each.memberEpoch()).put("process_id", each.processId()).put("topology_epoch", each.topologyEpoch())
                        .put("group_instance_id", each.instanceId().orElse(null));
            }
            default -> throw new IllegalStateException("groups of type " + listed.type().get() + " are new");
        }
        return row;
    }

    static ObjectNode member(ArrayNode members, MemberDescription each) {
        return members.addObject().put("member_id", each.consumerId()).put("group_instance_id", each.groupInstanceId().orElse(null)).put("client_id", each.clientId()).put("host", each.host());
    }

    static void partitions(String name, Collection<TopicPartition> partitions, ObjectNode row) {
        ArrayNode found = row.putArray(name);
        partitions.stream().sorted(Comparator.comparing(TopicPartition::topic).thenComparing(TopicPartition::partition))
            .forEach(partition -> found.addArray().add(partition.topic()).add(partition.partition()));
    }
}
