import java.io.*;
import java.nio.charset.StandardCharsets;
import java.nio.file.*;
import java.util.*;
import org.apache.kafka.common.DirectoryId;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.metadata.*;
import org.apache.kafka.metadata.bootstrap.BootstrapMetadata;
import org.apache.kafka.metadata.util.BatchFileWriter;
import org.apache.kafka.server.common.ApiMessageAndVersion;

/** Gives a formatted data directory topics with ids of one's own choice: argument is its bootstrap checkpoint, each line of the standard input is a topic, its id and how many partitions it has, tabs between. Broker 1 leads all. */
public class Topics {
    public static void main(String[] args) throws Exception {
        Path file = Path.of(args[0]);
        List<ApiMessageAndVersion> records = new ArrayList<>(BootstrapMetadata.fromCheckpointFile(file).records());
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line; (line = in.readLine()) != null; ) {
            String[] words = line.split("\t");
            Uuid id = Uuid.fromString(words[1]);
            records.add(new ApiMessageAndVersion(new TopicRecord().setName(words[0]).setTopicId(id), (short) 0));
            for (int number = 0; number < Integer.parseInt(words[2]); number++)
                records.add(new ApiMessageAndVersion(new PartitionRecord().setTopicId(id).setPartitionId(number).setReplicas(List.of(1)).setIsr(List.of(1))
                    .setLeader(1).setLeaderEpoch(0).setPartitionEpoch(0).setDirectories(List.of(DirectoryId.UNASSIGNED)), (short) 1));
        }
        Files.delete(file);
        try (BatchFileWriter writer = BatchFileWriter.open(file)) { writer.append(records); }
    }
}
