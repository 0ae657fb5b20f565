// Gives one folder after the other to Kafka's own code, in one process.
// usage: java -cp "LIBS/*" Hostile.java load PROPERTIES CASES ANSWERS   (a broker starts over it, and is asked)
//        java -cp "LIBS/*" Hostile.java dump CASES ANSWERS              (DumpLogSegments reads all its files)
// CASES: JSON, a list of {data, groups} or of {folder, files, indexes}; ANSWERS: the same, answered, a line each.
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.ByteArrayOutputStream;
import java.io.DataInputStream;
import java.io.DataOutputStream;
import java.io.FileReader;
import java.io.OutputStream;
import java.io.PrintStream;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.net.Socket;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.Set;
import kafka.server.KafkaConfig;
import kafka.server.KafkaRaftServer;
import org.apache.kafka.common.message.FindCoordinatorRequestData;
import org.apache.kafka.common.message.ListGroupsRequestData;
import org.apache.kafka.common.message.ListGroupsResponseData;
import org.apache.kafka.common.message.OffsetFetchRequestData;
import org.apache.kafka.common.message.OffsetFetchRequestData.OffsetFetchRequestGroup;
import org.apache.kafka.common.message.OffsetFetchResponseData;
import org.apache.kafka.common.message.RequestHeaderData;
import org.apache.kafka.common.protocol.ApiKeys;
import org.apache.kafka.common.protocol.ByteBufferAccessor;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.common.protocol.Message;
import org.apache.kafka.common.protocol.ObjectSerializationCache;
import org.apache.kafka.common.utils.Time;

public class Hostile {
    static final ObjectMapper JSON = new ObjectMapper();
    static final Set<Errors> NOT_YET =
        Set.of(Errors.COORDINATOR_LOAD_IN_PROGRESS, Errors.COORDINATOR_NOT_AVAILABLE, Errors.NOT_COORDINATOR);
    /** After the last answer, for groups of partitions that do not load; then all are asked once more. */
    static final long PATIENCE_MS = 4000;
    static final long STARTING_MS = 60_000;

    public static void main(String[] args) throws Exception {
        boolean isLoad = args[0].equals("load");
        Properties settings = new Properties();
        if (isLoad) {
            try (FileReader reader = new FileReader(args[1])) {
                settings.load(reader);
            }
        }
        try (var answers = Files.newBufferedWriter(Path.of(args[args.length - 1]))) {
            for (JsonNode given : JSON.readTree(Path.of(args[args.length - 2]).toFile())) {
                ObjectNode one = (ObjectNode) given;
                if (isLoad) load(settings, one);
                else dump(one);
                answers.write(JSON.writeValueAsString(one) + "\n");
                answers.flush();
            }
        }
        System.exit(0);
    }

    // ------------------------------------------------------------------------------------- brokers

    static void load(Properties settings, ObjectNode one) throws Exception {
        settings.setProperty("log.dirs", one.get("data").asText());
        KafkaRaftServer server = new KafkaRaftServer(KafkaConfig.fromProps(settings), Time.SYSTEM);
        server.startup();
        String listener = settings.getProperty("advertised.listeners");
        int port = Integer.parseInt(listener.substring(listener.lastIndexOf(':') + 1));
        try (Socket socket = new Socket("127.0.0.1", port)) {
            findCoordinator(socket);
            fetchOffsets(socket, one, STARTING_MS); // 3.9 may answer for a group while another partition loads that has it
            fetchOffsets(socket, one, 0);
            listGroups(socket, one);
        } finally {
            server.shutdown();
            server.awaitShutdown();
        }
    }

    /** Makes the topic where there is none. */
    static void findCoordinator(Socket socket) throws Exception {
        asked(socket, ApiKeys.FIND_COORDINATOR, (short) 4, new FindCoordinatorRequestData().setCoordinatorKeys(List.of("nobody")));
    }

    static void fetchOffsets(Socket socket, ObjectNode one, long patience) throws Exception {
        Deque<String> groups = new ArrayDeque<>();
        one.get("groups").forEach(name -> groups.add(name.asText()));
        ArrayNode offsets = one.putArray("offsets"), failed = one.putArray("failed");
        long deadline = System.currentTimeMillis() + patience;
        for (int without = 0; !groups.isEmpty(); ) {
            String group = groups.remove();
            var found = fetched(socket, group);
            Errors error = Errors.forCode(found.errorCode());
            if (NOT_YET.contains(error) && System.currentTimeMillis() < deadline) {
                groups.add(group);
                if (++without >= groups.size()) {
                    Thread.sleep(50);
                    without = 0;
                }
                continue;
            }
            if (!NOT_YET.contains(error)) deadline = System.currentTimeMillis() + Math.min(patience, PATIENCE_MS);
            if (error != Errors.NONE) failed.addArray().add(group).add(error.toString());
            for (var topic : found.topics()) {
                for (var row : topic.partitions()) {
                    ArrayNode told = offsets.addArray().add(group).add(topic.name()).add(row.partitionIndex());
                    told.add(row.committedOffset()).add(row.metadata()).add(row.committedLeaderEpoch());
                    if (row.errorCode() != 0) failed.addArray().add(group).add(Errors.forCode(row.errorCode()).toString());
                }
            }
        }
    }

    static OffsetFetchResponseData.OffsetFetchResponseGroup fetched(Socket socket, String group) throws Exception {
        var asked = List.of(new OffsetFetchRequestGroup().setGroupId(group).setTopics(null));
        short version = 8;
        ByteBuffer answer = asked(socket, ApiKeys.OFFSET_FETCH, version, new OffsetFetchRequestData().setGroups(asked));
        return new OffsetFetchResponseData(new ByteBufferAccessor(answer), version).groups().get(0);
    }

    static void listGroups(Socket socket, ObjectNode one) throws Exception {
        short version = 5;
        ByteBuffer answer = asked(socket, ApiKeys.LIST_GROUPS, version, new ListGroupsRequestData());
        var listed = new ListGroupsResponseData(new ByteBufferAccessor(answer), version);
        one.put("listing", Errors.forCode(listed.errorCode()).toString());
        ArrayNode rows = one.putArray("listed");
        for (var group : listed.groups()) {
            rows.addArray().add(group.groupId()).add(group.groupType().toLowerCase()).add(group.protocolType())
                .add(group.groupState());
        }
    }

    static ByteBuffer asked(Socket socket, ApiKeys api, short version, Message request) throws Exception {
        var head = new RequestHeaderData().setRequestApiKey(api.id).setRequestApiVersion(version)
            .setCorrelationId(0).setClientId("hostile");
        byte[] header = bytes(head, api.requestHeaderVersion(version)), body = bytes(request, version);
        var frame = ByteBuffer.allocate(4 + header.length + body.length).putInt(header.length + body.length);
        new DataOutputStream(socket.getOutputStream()).write(frame.put(header).put(body).array());
        DataInputStream in = new DataInputStream(socket.getInputStream());
        byte[] response = new byte[in.readInt()];
        in.readFully(response);
        return ByteBuffer.wrap(response).position(5); // the correlation id, and no tags
    }

    static byte[] bytes(Message message, short version) {
        var cache = new ObjectSerializationCache();
        var buffer = ByteBuffer.allocate(message.size(cache, version));
        message.write(new ByteBufferAccessor(buffer), cache, version);
        return buffer.array();
    }

    // ------------------------------------------------------------------------------------- DumpLogSegments

    /** The tool of 3.9 keeps the first stream that it sees. */
    static final Into OUTPUT = new Into(), ERRORS = new Into();

    static class Into extends OutputStream {
        ByteArrayOutputStream place = new ByteArrayOutputStream();

        @Override
        public void write(int one) {
            place.write(one);
        }

        @Override
        public void write(byte[] some, int from, int count) {
            place.write(some, from, count);
        }

        String taken() {
            String text = place.toString(StandardCharsets.UTF_8);
            place.reset();
            return text;
        }
    }

    static void dump(ObjectNode one) throws Exception {
        System.setOut(new PrintStream(OUTPUT, true));
        System.setErr(new PrintStream(ERRORS, true));
        Method main = tool().getMethod("main", String[].class);
        for (var how : Map.of("files", "--deep-iteration", "indexes", "--index-sanity-check").entrySet()) {
            List<String> files = new ArrayList<>();
            one.get(how.getKey()).forEach(file -> files.add(file.asText()));
            ObjectNode told = one.putObject(how.getKey());
            try {
                if (!files.isEmpty()) {
                    main.invoke(null, (Object) new String[] {"--files", String.join(",", files), how.getValue()});
                }
            } catch (InvocationTargetException error) {
                told.put("failure", String.valueOf(error.getCause()));
            }
            System.out.flush();
            told.put("output", OUTPUT.taken()).put("errors", ERRORS.taken());
        }
    }

    static Class<?> tool() throws ClassNotFoundException {
        try {
            return Class.forName("org.apache.kafka.tools.DumpLogSegments");
        } catch (ClassNotFoundException older) {
            return Class.forName("kafka.tools.DumpLogSegments");
        }
    }
}
