// Vectors of the records of __transaction_state, __share_group_state and __cluster_metadata, and of the control records of
// the latter, made and read again by Kafka's generated message classes and MetadataRecordSerde.
// usage: java -cp "LIBS/*" Vectors.java KAFKA_VERSION SEED COUNT_PER_VERSION OUT_FILE
import com.fasterxml.jackson.core.JsonParser;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.*;
import java.io.*;
import java.lang.reflect.*;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.nio.file.*;
import java.util.*;
import java.util.jar.*;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.protocol.*;
import org.apache.kafka.common.protocol.types.RawTaggedField;

public class Vectors {
    static final ObjectMapper JSON = new ObjectMapper().configure(JsonParser.Feature.ALLOW_COMMENTS, true);
    static Random rnd;
    static boolean bigLeft;

    record Range(int lo, int hi) {
        boolean has(int v) { return v >= lo && v <= hi; }
        static Range of(String s) {
            if (s == null || s.equals("none")) return new Range(1, 0);
            if (s.endsWith("+")) return new Range(Integer.parseInt(s.substring(0, s.length() - 1)), Short.MAX_VALUE);
            int dash = s.indexOf('-');
            if (dash < 0) return new Range(Integer.parseInt(s), Integer.parseInt(s));
            return new Range(Integer.parseInt(s.substring(0, dash)), Integer.parseInt(s.substring(dash + 1)));
        }
    }

    static Range range(JsonNode n, String name) { return Range.of(n.has(name) ? n.get(name).asText() : null); }

    // a tagged field may leave "versions" out: then its tagged versions are meant
    static Range versions(JsonNode f) { return range(f, f.has("versions") ? "versions" : "taggedVersions"); }

    static String camel(String s) { return Character.toLowerCase(s.charAt(0)) + s.substring(1); }

    // ------------------------------------------------------------------ random values

    static final String[] WORDS = {"orders", "payments", "t", "topic-1", "a.b_c", "__internal", "group", "consumer-1-5f6e", "/10.0.0.1", "range",
        "Größe", "漢字トピック", "тест", "émoji😀", "𝒳𝒴", "a\u0000b", "tab\tnew\nline", "\"quoted\\\"", "\u007f\u0080\uffff", "e\u0301", "\u202eabc", " lead trail "};

    static String string() {
        int k = rnd.nextInt(100);
        if (k < 8) return "";
        if (k < 60) return WORDS[rnd.nextInt(WORDS.length)];
        if (k < 63 && bigLeft) {
            bigLeft = false;
            StringBuilder b = new StringBuilder();
            while (b.toString().getBytes(StandardCharsets.UTF_8).length < 4096) b.append(WORDS[rnd.nextInt(8)]).append(rnd.nextInt(100));
            return b.toString();
        }
        StringBuilder b = new StringBuilder();
        for (int i = 1 + rnd.nextInt(k < 70 ? 140 : 14); i > 0; i--) {
            int c = switch (rnd.nextInt(6)) {
                case 0 -> 0x80 + rnd.nextInt(0x700);
                case 1 -> 0x3040 + rnd.nextInt(0x5000);
                case 2 -> rnd.nextInt(4) == 0 ? 0x1F300 + rnd.nextInt(0x300) : 'x';
                default -> 0x20 + rnd.nextInt(0x5f);
            };
            b.appendCodePoint(c);
        }
        return b.toString();
    }

    static long number(int bits) {
        long max = bits == 64 ? Long.MAX_VALUE : (1L << (bits - 1)) - 1, min = -max - 1;
        return switch (rnd.nextInt(12)) {
            case 0 -> max;
            case 1 -> min;
            case 2 -> -1;
            case 3 -> 0;
            case 4, 5 -> bits == 64 ? rnd.nextLong() : min + (long) (rnd.nextDouble() * (max - (double) min));
            case 6 -> bits == 64 ? 1700000000000L + rnd.nextInt(100000000) : Math.min(max, 45000);
            default -> rnd.nextInt((int) Math.min(max, 1000)) + 1;
        };
    }

    static JsonNode value(String type, JsonNode field, Map<String, JsonNode> structs, int version, boolean nullable) {
        if (nullable && rnd.nextInt(4) == 0) return NullNode.instance;
        if (type.startsWith("[]")) {
            ArrayNode out = JSON.createArrayNode();
            String element = type.substring(2);
            int k = rnd.nextInt(10), n;
            boolean primitive = Character.isLowerCase(element.charAt(0));
            if (k < 2) n = 0;
            else if (k < 9) n = 1 + rnd.nextInt(primitive ? 6 : 3);
            else if (bigLeft) { bigLeft = false; n = primitive ? (element.equals("string") ? 40 : 130 + rnd.nextInt(200)) : 20; }
            else n = 4;
            for (int i = 0; i < n; i++) out.add(value(element, field, structs, version, false));
            return out;
        }
        switch (type) {
            case "string": return TextNode.valueOf(string());
            case "bytes": {
                int k = rnd.nextInt(10);
                byte[] b = new byte[k < 2 ? 0 : k < 9 || !bigLeft ? 1 + rnd.nextInt(60) : 1500];
                if (b.length == 1500) bigLeft = false;
                rnd.nextBytes(b);
                return BinaryNode.valueOf(b);
            }
            case "bool": return BooleanNode.valueOf(rnd.nextBoolean());
            case "float64": return DoubleNode.valueOf(rnd.nextInt(4) == 0 ? number(64) : rnd.nextGaussian() * 1e6);
            case "int8": return ShortNode.valueOf((short) number(8));
            case "int16": return ShortNode.valueOf((short) number(16));
            case "uint16": return IntNode.valueOf((int) (number(16) & 0xffff));
            case "int32": return IntNode.valueOf((int) number(32));
            case "int64": return LongNode.valueOf(number(64));
            case "uuid": return TextNode.valueOf(rnd.nextInt(6) == 0 ? Uuid.ZERO_UUID.toString() : new Uuid(rnd.nextLong(), rnd.nextLong()).toString());
            default:
                JsonNode fields = field.has("fields") ? field.get("fields") : structs.get(type);
                if (fields == null) throw new IllegalStateException("unknown type " + type);
                return struct(fields, structs, version);
        }
    }

    static ObjectNode struct(JsonNode fields, Map<String, JsonNode> structs, int version) {
        ObjectNode out = JSON.createObjectNode();
        for (JsonNode f : fields) {
            if (!versions(f).has(version)) continue;
            if (range(f, "taggedVersions").has(version) && rnd.nextInt(2) == 0) continue;
            out.set(camel(f.get("name").asText()), value(f.get("type").asText(), f, structs, version, range(f, "nullableVersions").has(version)));
        }
        return out;
    }

    // ------------------------------------------------------------------ messages

    static class Schema {
        String name, pack;
        JsonNode node;
        Range valid, flexible;
        Map<String, JsonNode> structs = new HashMap<>();
        Class<?> type, converter;
        Schema(String pack, JsonNode node) throws Exception {
            this.node = node;
            this.pack = pack;
            name = node.get("name").asText();
            valid = range(node, "validVersions");
            flexible = range(node, "flexibleVersions");
            if (node.has("commonStructs")) for (JsonNode s : node.get("commonStructs")) structs.put(s.get("name").asText(), s.get("fields"));
            collect(node.get("fields"));
            type = Class.forName(pack + "." + name);
            Class<?> c = null;
            try { c = Class.forName(pack + "." + name + "JsonConverter"); } catch (ClassNotFoundException e) { } // 3.x has none for most records
            converter = c;
        }
        void collect(JsonNode fields) {
            for (JsonNode f : fields) if (f.has("fields")) { structs.put(f.get("type").asText().replace("[]", ""), f.get("fields")); collect(f.get("fields")); }
        }
        Message random(int version) throws Exception {
            bigLeft = rnd.nextInt(4) == 0;
            ObjectNode json = struct(node.get("fields"), structs, version);
            Message m = (Message) (converter == null ? bind(type, json, node.get("fields"), version)
                : call("read", new Class<?>[] {JsonNode.class, short.class}, json, (short) version));
            if (flexible.has(version) && rnd.nextInt(3) == 0) addUnknownTags(m, true);
            return m;
        }
        JsonNode json(Message m, int version) throws Exception { if (converter == null) return unbind(m, node.get("fields"), version); return (JsonNode) call("write", new Class<?>[] {type, short.class}, m, (short) version); }
        Object call(String name, Class<?>[] types, Object... args) throws Exception { return converter.getMethod(name, types).invoke(null, args); }
        // without a converter: setters and getters of the generated class, in the converters' form (tagged fields always shown)
        Object bind(Class<?> c, JsonNode json, JsonNode fields, int version) throws Exception {
            Object m = c.getConstructor().newInstance();
            for (JsonNode f : fields) {
                String fn = camel(f.get("name").asText());
                if (!json.has(fn)) continue;
                Object v = plain(f.get("type").asText(), json.get(fn), f, version);
                for (Method x : c.getMethods()) if (x.getName().equals("set" + Character.toUpperCase(fn.charAt(0)) + fn.substring(1))) x.invoke(m, v);
            }
            return m;
        }
        JsonNode sub(String t, JsonNode f) { return f.has("fields") ? f.get("fields") : structs.get(t); }
        Object plain(String t, JsonNode v, JsonNode f, int version) throws Exception {
            if (v.isNull()) return null;
            if (t.startsWith("[]")) { List<Object> l = new ArrayList<>(); for (JsonNode x : v) l.add(plain(t.substring(2), x, f, version)); return l; }
            return switch (t) {
                case "string" -> v.asText();
                case "bytes" -> v.binaryValue();
                case "bool" -> v.asBoolean();
                case "int8" -> (byte) v.asInt();
                case "int16" -> (short) v.asInt();
                case "int32" -> v.asInt();
                case "int64" -> v.asLong();
                case "uuid" -> Uuid.fromString(v.asText());
                default -> bind(Class.forName(type.getName() + "$" + t), v, sub(t, f), version);
            };
        }
        ObjectNode unbind(Object m, JsonNode fields, int version) throws Exception {
            ObjectNode o = JSON.createObjectNode();
            for (JsonNode f : fields) if (versions(f).has(version)) {
                String fn = camel(f.get("name").asText());
                o.set(fn, node(f.get("type").asText(), m.getClass().getMethod(fn).invoke(m), f, version));
            }
            return o;
        }
        JsonNode node(String t, Object v, JsonNode f, int version) throws Exception {
            if (v == null) return NullNode.instance;
            if (v instanceof Collection<?> c) { ArrayNode a = JSON.createArrayNode(); for (Object x : c) a.add(node(t.substring(2), x, f, version)); return a; }
            if (v instanceof String x) return TextNode.valueOf(x);
            if (v instanceof byte[] x) return BinaryNode.valueOf(x);
            if (v instanceof Boolean x) return BooleanNode.valueOf(x);
            if (v instanceof Byte || v instanceof Short || v instanceof Integer) return IntNode.valueOf(((Number) v).intValue());
            if (v instanceof Long x) return LongNode.valueOf(x);
            if (v instanceof Uuid x) return TextNode.valueOf(x.toString());
            return unbind(v, sub(t, f), version);
        }
        Message parse(ByteBuffer b, int version) throws Exception {
            Message m = (Message) type.getConstructor().newInstance();
            m.read(new ByteBufferAccessor(b), (short) version);
            return m;
        }
    }

    static void addUnknownTags(Object m, boolean top) throws Exception {
        if (top || rnd.nextInt(2) == 0) {
            @SuppressWarnings("unchecked") List<RawTaggedField> tags = (List<RawTaggedField>) m.getClass().getMethod("unknownTaggedFields").invoke(m);
            int tag = 9 + rnd.nextInt(3);
            for (int i = rnd.nextInt(3); i >= 0; i--) {
                byte[] data = new byte[rnd.nextInt(5) == 0 ? 0 : rnd.nextInt(4) == 0 ? 150 : rnd.nextInt(12)];
                rnd.nextBytes(data);
                tags.add(new RawTaggedField(tag, data));
                tag += 1 + rnd.nextInt(rnd.nextInt(3) == 0 ? 100000 : 5);
            }
        }
        for (Field f : m.getClass().getDeclaredFields()) {
            if (Modifier.isStatic(f.getModifiers()) || f.getName().equals("_unknownTaggedFields")) continue;
            Method getter;
            try { getter = m.getClass().getMethod(f.getName()); } catch (NoSuchMethodException e) { continue; }
            Object v = getter.invoke(m);
            if (v instanceof Message) addUnknownTags(v, false);
            else if (v instanceof Collection<?> c) for (Object e : c) if (e instanceof Message) addUnknownTags(e, false);
        }
    }

    static int countUnknownTags(Object m) throws Exception {
        int n = ((List<?>) m.getClass().getMethod("unknownTaggedFields").invoke(m)).size();
        for (Field f : m.getClass().getDeclaredFields()) {
            if (Modifier.isStatic(f.getModifiers()) || f.getName().equals("_unknownTaggedFields")) continue;
            Method getter;
            try { getter = m.getClass().getMethod(f.getName()); } catch (NoSuchMethodException e) { continue; }
            Object v = getter.invoke(m);
            if (v instanceof Message) n += countUnknownTags(v);
            else if (v instanceof Collection<?> c) for (Object e : c) if (e instanceof Message) n += countUnknownTags(e);
        }
        return n;
    }

    static byte[] bytes(int prefix, int version, Message m) {
        ObjectSerializationCache cache = new ObjectSerializationCache();
        MessageSizeAccumulator size = new MessageSizeAccumulator();
        m.addSize(size, cache, (short) version);
        ByteBuffer b = ByteBuffer.allocate(2 + size.totalSize());
        b.putShort((short) prefix);
        m.write(new ByteBufferAccessor(b), cache, (short) version);
        if (b.hasRemaining()) throw new IllegalStateException("size");
        return b.array();
    }

    static void check(Schema s, byte[] raw, int prefix, int version, JsonNode json) throws Exception {
        ByteBuffer b = ByteBuffer.wrap(raw, 2, raw.length - 2).slice();
        Message again = s.parse(b, version);
        if (b.hasRemaining()) throw new IllegalStateException(s.name + ": bytes left");
        if (!Arrays.equals(raw, bytes(prefix, version, again))) throw new IllegalStateException(s.name + ": not the same bytes again");
        if (!s.json(again, version).equals(json)) throw new IllegalStateException(s.name + ": not the same json again");
    }

    static String hex(byte[] b) { return HexFormat.of().formatHex(b); }

    static List<JsonNode> schemas(Class<?> inJar) throws Exception {
        List<JsonNode> out = new ArrayList<>();
        Path jar = Path.of(inJar.getProtectionDomain().getCodeSource().getLocation().toURI());
        try (JarFile j = new JarFile(jar.toFile())) {
            for (JarEntry e : Collections.list(j.entries()))
                if ((e.getName().startsWith("common/message/") || e.getName().startsWith("common/metadata/")) && e.getName().endsWith(".json")) out.add(JSON.readTree(j.getInputStream(e)));
        }
        return out;
    }

    static void line(BufferedWriter w, ObjectNode line) throws IOException { w.write(JSON.writeValueAsString(line)); w.write('\n'); }

    /** A message behind its version as int16, as keys and values of coordinators are. */
    static void coordinator(BufferedWriter w, String kafka, String topic, Map<String, Schema> byName, String base, long seed, int count) throws Exception {
        Schema ks = byName.get(base + "Key"), vs = byName.get(base + "Value");
        int type = ks.node.get("apiKey").asInt();
        for (int v = vs.valid.lo; v <= vs.valid.hi; v++) {
            rnd = new Random(seed * 1000003 + base.hashCode() + v);
            for (int i = 0; i < count; i++) {
                Message key = ks.random(0);
                byte[] kb = bytes(type, 0, key);
                JsonNode kj = ks.json(key, 0);
                check(ks, kb, type, 0, kj);
                ObjectNode line = JSON.createObjectNode();
                line.put("log", topic).put("name", base).put("kafka", kafka).put("record_type", type).put("key_hex", hex(kb)).set("key_json", kj);
                if (i % 12 == 11) line.putNull("value_hex").putNull("value_version").putNull("value_json").put("unknown_tags", 0);
                else {
                    Message value = vs.random(v);
                    byte[] vb = bytes(v, v, value);
                    JsonNode vj = vs.json(value, v);
                    check(vs, vb, v, v, vj);
                    line.put("value_hex", hex(vb)).put("value_version", v).put("unknown_tags", countUnknownTags(value)).set("value_json", vj);
                }
                line(w, line);
            }
        }
    }

    static Map<String, Schema> named(String pack, Class<?> inJar, java.util.function.Predicate<String> wanted) throws Exception {
        Map<String, Schema> out = new TreeMap<>();
        for (JsonNode n : schemas(inJar)) if (wanted.test(n.get("name").asText())) out.put(n.get("name").asText(), new Schema(pack, n));
        return out;
    }

    public static void main(String[] args) throws Exception {
        String kafka = args[0];
        long seed = Long.parseLong(args[1]);
        int count = Integer.parseInt(args[2]);
        try (BufferedWriter w = Files.newBufferedWriter(Path.of(args[3]))) {
            String transactions = "org.apache.kafka.coordinator.transaction.generated", shares = "org.apache.kafka.coordinator.share.generated";
            coordinator(w, kafka, "__transaction_state", named(transactions, Class.forName(transactions + ".TransactionLogValue"), n -> n.startsWith("TransactionLog")), "TransactionLog", seed, count);
            Map<String, Schema> share = named(shares, Class.forName(shares + ".ShareSnapshotValue"), n -> n.matches("Share(Snapshot|Update)(Key|Value)"));
            coordinator(w, kafka, "__share_group_state", share, "ShareSnapshot", seed, count);
            coordinator(w, kafka, "__share_group_state", share, "ShareUpdate", seed, count);
            String metadata = "org.apache.kafka.common.metadata";
            org.apache.kafka.metadata.MetadataRecordSerde serde = new org.apache.kafka.metadata.MetadataRecordSerde();
            for (Schema s : named(metadata, Class.forName(metadata + ".TopicRecord"), n -> n.endsWith("Record")).values()) {
                if (!s.node.path("type").asText().equals("metadata")) continue;
                int api = s.node.get("apiKey").asInt();
                for (int v = s.valid.lo; v <= s.valid.hi; v++) {
                    rnd = new Random(seed * 7919 + s.name.hashCode() + v);
                    for (int i = 0; i < (s.node.get("fields").isEmpty() ? Math.min(count, 4) : count); i++) {
                        ApiMessage m = (ApiMessage) s.random(v);
                        org.apache.kafka.server.common.ApiMessageAndVersion with = new org.apache.kafka.server.common.ApiMessageAndVersion(m, (short) v);
                        ObjectSerializationCache cache = new ObjectSerializationCache();
                        ByteBuffer b = ByteBuffer.allocate(serde.recordSize(with, cache));
                        serde.write(with, cache, new ByteBufferAccessor(b));
                        if (b.hasRemaining()) throw new IllegalStateException("size");
                        ByteBufferAccessor again = new ByteBufferAccessor(ByteBuffer.wrap(b.array()));
                        if (!serde.read(again, b.capacity()).equals(with)) throw new IllegalStateException(s.name);
                        ObjectNode line = JSON.createObjectNode();
                        line.put("log", "__cluster_metadata").put("name", s.name).put("kafka", kafka).put("record_type", api).putNull("key_hex").putNull("key_json")
                            .put("value_hex", hex(b.array())).put("value_version", v).put("unknown_tags", countUnknownTags(m)).set("value_json", s.json(m, v));
                        line(w, line);
                    }
                }
            }
            String clients = "org.apache.kafka.common.message";
            Map<String, Integer> control = Map.of("LeaderChangeMessage", 2, "SnapshotHeaderRecord", 3, "SnapshotFooterRecord", 4, "KRaftVersionRecord", 5, "VotersRecord", 6);
            for (Schema s : named(clients, Class.forName(clients + ".LeaderChangeMessage"), control::containsKey).values()) {
                for (int v = s.valid.lo; v <= s.valid.hi; v++) {
                    rnd = new Random(seed * 104729 + s.name.hashCode() + v);
                    for (int i = 0; i < count; i++) {
                        Message m = s.random(v);
                        JsonNode json = s.json(m, v);
                        byte[] raw = bytes(0, v, m);
                        check(s, raw, 0, v, json);
                        ObjectNode line = JSON.createObjectNode();
                        byte[] body = Arrays.copyOfRange(raw, 2, raw.length);
                        line.put("log", "control").put("name", s.name).put("kafka", kafka).put("record_type", control.get(s.name)).putNull("key_hex").putNull("key_json")
                            .put("value_hex", hex(body)).put("value_version", v).put("unknown_tags", countUnknownTags(m)).set("value_json", json);
                        line(w, line);
                    }
                }
            }
        }
    }
}
