import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.*;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.HexFormat;
import org.apache.kafka.common.protocol.*;

/** Standard input: MESSAGE, version and Kafka's JSON a line, tabs between; standard output: the bytes that Kafka's own class of each writes. With "errors" as argument: code and name of each error. */
public class Messages {
    public static void main(String[] args) throws Exception {
        PrintStream out = new PrintStream(System.out, false, StandardCharsets.UTF_8);
        if (args.length > 0)
            for (Errors error : Errors.values()) out.println(error.code() + "\t" + error);
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line; args.length == 0 && (line = in.readLine()) != null; ) {
            String[] words = line.split("\t", 3);
            short version = Short.parseShort(words[1]);
            Class<?> converter = Class.forName("org.apache.kafka.common.message." + words[0] + "DataJsonConverter");
            Message message = (Message) converter.getMethod("read", JsonNode.class, short.class).invoke(null, new ObjectMapper().readTree(words[2]), version);
            ObjectSerializationCache sizes = new ObjectSerializationCache();
            ByteBuffer bytes = ByteBuffer.allocate(message.size(sizes, version));
            message.write(new ByteBufferAccessor(bytes), sizes, version);
            out.println(HexFormat.of().formatHex(bytes.array()));
        }
        out.flush();
    }
}
