// What a broker has made of its offsets partitions: asked at once, for one that does not load is asked until the time is over.
// usage: java -cp "JARS/*" AskLoads.java PORT SECONDS QUESTIONS ANSWERS
// QUESTIONS: JSON, partition -> groups. ANSWERS: JSON, partition -> log_end_offset, ok (whether its groups are answered),
// offsets (group, topic, partition, offset, leader epoch, metadata).
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.File;
import java.util.HashMap;
import java.util.Map;
import java.util.concurrent.ExecutionException;
import org.apache.kafka.clients.admin.*;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.common.KafkaFuture;
import org.apache.kafka.common.TopicPartition;

public class AskLoads {
    record Asked(String partition, String group, KafkaFuture<Map<TopicPartition, OffsetAndMetadata>> answer) { }

    public static void main(String[] args) throws Exception {
        ObjectMapper mapper = new ObjectMapper();
        JsonNode questions = mapper.readTree(new File(args[2]));
        ObjectNode answers = mapper.createObjectNode();
        int timeout = 1000 * Integer.parseInt(args[1]);
        try (Admin admin = Admin.create(Map.of("bootstrap.servers", "127.0.0.1:" + args[0], "default.api.timeout.ms", timeout))) {
            var asked = new java.util.ArrayList<Asked>();
            var ends = new HashMap<String, KafkaFuture<ListOffsetsResult.ListOffsetsResultInfo>>();
            for (Map.Entry<String, JsonNode> each : questions.properties()) {
                TopicPartition partition = new TopicPartition("__consumer_offsets", Integer.parseInt(each.getKey()));
                ends.put(each.getKey(), admin.listOffsets(Map.of(partition, OffsetSpec.latest())).partitionResult(partition));
                for (JsonNode group : each.getValue())
                    asked.add(new Asked(each.getKey(), group.asText(), admin.listConsumerGroupOffsets(group.asText()).partitionsToOffsetAndMetadata()));
            }
            for (Map.Entry<String, KafkaFuture<ListOffsetsResult.ListOffsetsResultInfo>> each : ends.entrySet())
                answers.putObject(each.getKey()).put("log_end_offset", each.getValue().get().offset()).put("ok", true).putArray("offsets");
            for (Asked one : asked) {
                ObjectNode row = (ObjectNode) answers.get(one.partition());
                try {
                    one.answer().get().forEach((key, value) -> {
                        if (value == null) return; // a committed offset below 0
                        ArrayNode offset = ((ArrayNode) row.get("offsets")).addArray().add(one.group()).add(key.topic()).add(key.partition()).add(value.offset());
                        value.leaderEpoch().ifPresentOrElse(offset::add, offset::addNull);
                        offset.add(value.metadata());
                    });
                } catch (ExecutionException failed) {
                    row.put("ok", false).put("error", failed.getCause().toString());
                }
            }
        }
        mapper.writeValue(new File(args[3]), answers);
        Runtime.getRuntime().halt(0);
    }
}
