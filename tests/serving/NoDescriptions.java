import java.util.Map;
import java.util.concurrent.CompletableFuture;
import org.apache.kafka.common.errors.UnknownServerException;
import org.apache.kafka.coordinator.group.api.streams.*;

/** A plugin for topologies' descriptions that has lost all of them. */
public class NoDescriptions implements StreamsGroupTopologyDescriptionPlugin {
    @Override public void configure(Map<String, ?> configs) { }
    @Override public CompletableFuture<Void> setTopology(String group, int epoch, StreamsGroupTopologyDescription description) { return lost(); }
    @Override public CompletableFuture<Void> deleteTopology(String group) { return lost(); }
    @Override public CompletableFuture<StreamsGroupTopologyDescription> getTopology(String group, int epoch) { return lost(); }
    @Override public void close() { }
    private static <T> CompletableFuture<T> lost() { return CompletableFuture.failedFuture(new UnknownServerException("lost")); }
}
