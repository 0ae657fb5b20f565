// Writes messages with a release's own generated classes.
// usage: java -cp "JARS/*" Encode.java < LINES; a line is JSON: class, version, json. Prints for each its bytes as hex, a
// space, and the message as its JSON converter writes it once the bytes were read again; or "!" and why it cannot.
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.lang.reflect.InvocationTargetException;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.HexFormat;
import org.apache.kafka.common.errors.UnsupportedVersionException;
import org.apache.kafka.common.protocol.ByteBufferAccessor;
import org.apache.kafka.common.protocol.Message;
import org.apache.kafka.common.protocol.ObjectSerializationCache;

public class Encode {
    static final ObjectMapper MAPPER = new ObjectMapper();

    public static void main(String[] args) throws Exception {
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        PrintStream out = new PrintStream(System.out, false, StandardCharsets.UTF_8);
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            try {
                out.println(written(MAPPER.readTree(line)));
            } catch (InvocationTargetException failed) {
                out.println("!" + failed.getCause());
            } catch (Exception failed) {
                out.println("!" + failed);
            }
        }
        out.flush();
    }

    static String written(JsonNode asked) throws Exception {
        Class<?> type = Class.forName(asked.get("class").asText());
        Class<?> converter = Class.forName(type.getName() + "JsonConverter");
        short version = (short) asked.get("version").asInt();
        Message message = (Message) converter.getMethod("read", JsonNode.class, short.class).invoke(null, asked.get("json"), version);
        if (version > message.highestSupportedVersion()) throw new UnsupportedVersionException("its newest version is " + message.highestSupportedVersion());
        ObjectSerializationCache cache = new ObjectSerializationCache();
        ByteBuffer bytes = ByteBuffer.allocate(message.size(cache, version));
        message.write(new ByteBufferAccessor(bytes), cache, version);
        bytes.flip();
        String hex = HexFormat.of().formatHex(bytes.array(), 0, bytes.limit());
        Message again = (Message) type.getConstructor().newInstance();
        again.read(new ByteBufferAccessor(bytes), version);
        return hex + " " + converter.getMethod("write", type, short.class).invoke(null, again, version);
    }
}
