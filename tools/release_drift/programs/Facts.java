// Prints what a release's enums and configuration definitions hold, as one JSON object.
// usage: java -cp "JARS/*" Facts.java
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.Map;
import java.util.TreeMap;
import org.apache.kafka.common.config.ConfigDef;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.coordinator.group.GroupConfig;
import org.apache.kafka.coordinator.transaction.TransactionState;
import org.apache.kafka.server.common.Feature;
import org.apache.kafka.server.common.FeatureVersion;
import org.apache.kafka.server.common.MetadataVersion;
import org.apache.kafka.server.config.DynamicBrokerConfig;
import org.apache.kafka.server.metrics.ClientMetricsConfigs;
import org.apache.kafka.storage.internals.log.LogConfig;

public class Facts {
    static final ObjectNode ALL = new ObjectMapper().createObjectNode();

    public static void main(String[] args) throws Exception {
        ObjectNode errors = ALL.putObject("errors");
        for (Errors error : Errors.values()) errors.put(error.name(), error.code());
        ObjectNode states = ALL.putObject("transaction_states");
        for (TransactionState state : TransactionState.values()) states.put(state.stateName(), state.id());
        ObjectNode types = ALL.putObject("control_record_types");
        for (Object type : controlRecordTypes().getEnumConstants())
            types.put(((Enum<?>) type).name(), (Short) type.getClass().getMethod("type").invoke(type));
        ObjectNode levels = ALL.putObject("metadata_versions");
        for (MetadataVersion version : MetadataVersion.values()) levels.put(version.version(), version.featureLevel());
        features(ALL.putObject("features"));
        settings("topic", LogConfig.configDefCopy());
        settings("group", GroupConfig.CONFIG_DEF);
        settings("client_metrics", ClientMetricsConfigs.configDef());
        ObjectNode broker = settings("broker", kafka.server.KafkaConfig.configDef());
        broker.properties().forEach(each ->
            ((ObjectNode) each.getValue()).put("is_dynamic", DynamicBrokerConfig.ALL_DYNAMIC_CONFIGS.contains(each.getKey())));
        System.out.println(ALL);
    }

    static Class<?> controlRecordTypes() throws ClassNotFoundException {
        try {
            return Class.forName("org.apache.kafka.common.record.internal.ControlRecordType");
        } catch (ClassNotFoundException upTo42) {
            return Class.forName("org.apache.kafka.common.record.ControlRecordType");
        }
    }

    /** The level that a new cluster of this release starts with, and those that it supports. */
    static void features(ObjectNode features) {
        MetadataVersion newest = MetadataVersion.latestProduction();
        features.putObject(MetadataVersion.FEATURE_NAME).put("default", newest.featureLevel()).put("last", newest.featureLevel());
        for (Feature feature : Feature.PRODUCTION_FEATURES)
            features.putObject(feature.featureName()).put("default", feature.defaultLevel(newest)).put("last", feature.latestProduction());
    }

    static ObjectNode settings(String of, ConfigDef definition) {
        ObjectNode settings = ALL.withObject("/settings").putObject(of);
        for (Map.Entry<String, ConfigDef.ConfigKey> each : new TreeMap<>(definition.configKeys()).entrySet()) {
            ConfigDef.ConfigKey key = each.getValue();
            Object value = key.hasDefault() ? key.defaultValue : null;
            settings.putObject(each.getKey()).put("type", key.type().name())
                .put("default", value == null ? null : ConfigDef.convertToString(value, key.type));
        }
        return settings;
    }
}
