// Asks a broker what it has loaded, with Kafka's own clients.
// usage: java -cp "LIBS/*" Ask.java PORT QUESTIONS ANSWERS
// QUESTIONS: JSON, group -> [[topic, partition], ...]; ANSWERS: JSON with groups, offsets, unstable.
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.DataInputStream;
import java.io.DataOutputStream;
import java.net.Socket;
import java.nio.ByteBuffer;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.GroupListing;
import org.apache.kafka.clients.admin.ListConsumerGroupOffsetsSpec;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.message.OffsetFetchRequestData;
import org.apache.kafka.common.message.OffsetFetchRequestData.OffsetFetchRequestGroup;
import org.apache.kafka.common.message.OffsetFetchRequestData.OffsetFetchRequestTopics;
import org.apache.kafka.common.message.OffsetFetchResponseData;
import org.apache.kafka.common.message.RequestHeaderData;
import org.apache.kafka.common.protocol.ApiKeys;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.common.protocol.MessageUtil;

public class Ask {
    static final ObjectMapper JSON = new ObjectMapper();
    static final short VERSION = 8;

    public static void main(String[] args) throws Exception {
        int port = Integer.parseInt(args[0]);
        JsonNode questions = JSON.readTree(Path.of(args[1]).toFile());
        ObjectNode answers = JSON.createObjectNode();
        try (Admin admin = Admin.create(Map.of("bootstrap.servers", "127.0.0.1:" + port))) {
            for (int at = 3; at + 1 < args.length; at += 2) {
                var committed = Map.of(
                    new TopicPartition("__consumer_offsets", 0), new OffsetAndMetadata(Long.parseLong(args[at + 1])));
                admin.alterConsumerGroupOffsets(args[at], committed).all().get(60, TimeUnit.SECONDS);
            }
            ArrayNode offsets = answers.putArray("offsets");
            // Offsets first: a client waits until the partition of a group is loaded, a listing does not.
            for (String group : (Iterable<String>) questions::fieldNames) {
                Map<TopicPartition, OffsetAndMetadata> all = admin
                    .listConsumerGroupOffsets(Map.of(group, new ListConsumerGroupOffsetsSpec()))
                    .partitionsToOffsetAndMetadata(group).get(60, TimeUnit.SECONDS);
                all.forEach((key, value) -> {
                    if (value == null) return; // a committed offset below 0
                    ArrayNode row = offsets.addArray().add(group).add(key.topic()).add(key.partition());
                    row.add(value.offset()).add(value.metadata());
                    value.leaderEpoch().ifPresentOrElse(row::add, row::addNull);
                });
            }
            ArrayNode groups = answers.putArray("groups");
            for (GroupListing row : admin.listGroups().all().get(60, TimeUnit.SECONDS)) {
                groups.addArray().add(row.groupId()).add(row.type().get().toString().toLowerCase()).add(row.protocol())
                    .add(row.groupState().get().toString());
            }
        }
        ArrayNode unstable = answers.putArray("unstable");
        try (Socket socket = new Socket("127.0.0.1", port)) {
            for (String group : (Iterable<String>) questions::fieldNames) {
                for (var topic : fetchStable(socket, group, questions.get(group)).topics()) {
                    for (var row : topic.partitions()) {
                        if (row.errorCode() == Errors.UNSTABLE_OFFSET_COMMIT.code()) {
                            unstable.addArray().add(group).add(topic.name()).add(row.partitionIndex());
                        } else if (row.errorCode() != 0) {
                            throw new IllegalStateException(group + ": " + Errors.forCode(row.errorCode()));
                        }
                    }
                }
            }
        }
        JSON.writeValue(Path.of(args[2]).toFile(), answers);
    }

    /** OffsetFetch with requireStable, once: the client itself would ask again until it is stable. */
    static OffsetFetchResponseData.OffsetFetchResponseGroup fetchStable(Socket socket, String group, JsonNode keys)
        throws Exception {
        Map<String, List<Integer>> partitions = new HashMap<>();
        for (JsonNode key : keys) {
            partitions.computeIfAbsent(key.get(0).asText(), __ -> new ArrayList<>()).add(key.get(1).asInt());
        }
        OffsetFetchRequestGroup asked = new OffsetFetchRequestGroup().setGroupId(group).setTopics(new ArrayList<>());
        partitions.forEach((topic, numbers) ->
            asked.topics().add(new OffsetFetchRequestTopics().setName(topic).setPartitionIndexes(numbers)));
        short headerVersion = ApiKeys.OFFSET_FETCH.requestHeaderVersion(VERSION);
        ByteBuffer header = MessageUtil.toByteBufferAccessor(
            new RequestHeaderData().setRequestApiKey(ApiKeys.OFFSET_FETCH.id).setRequestApiVersion(VERSION)
                .setCorrelationId(0).setClientId("ask"), headerVersion).buffer();
        ByteBuffer body = MessageUtil.toByteBufferAccessor(
            new OffsetFetchRequestData().setRequireStable(true).setGroups(List.of(asked)), VERSION).buffer();
        DataOutputStream out = new DataOutputStream(socket.getOutputStream());
        ByteBuffer request = ByteBuffer.allocate(4 + header.remaining() + body.remaining());
        request.putInt(header.remaining() + body.remaining()).put(header).put(body);
        out.write(request.array());
        out.flush();
        DataInputStream in = new DataInputStream(socket.getInputStream());
        byte[] response = new byte[in.readInt()];
        in.readFully(response);
        ByteBuffer buffer = ByteBuffer.wrap(response);
        buffer.getInt(); // correlation id
        buffer.get(); // no tags in the header
        var data = new OffsetFetchResponseData(
            new org.apache.kafka.common.protocol.ByteBufferAccessor(buffer), VERSION);
        return data.groups().get(0);
    }
}
