import java.io.*;
import java.lang.reflect.Proxy;
import java.nio.charset.StandardCharsets;
import java.nio.file.*;
import java.util.*;

/** Runs Kafka's own tools in one process: each line of the standard input is FILE, then a class and its arguments, tabs between; what the tool prints goes to FILE. */
public class Tools {
    public static void main(String[] args) throws Exception {
        endNotTheProcess();
        PrintStream out = System.out, err = System.err;
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line; (line = in.readLine()) != null; ) {
            String[] words = line.split("\t");
            ByteArrayOutputStream said = new ByteArrayOutputStream();
            PrintStream to = new PrintStream(said, true, StandardCharsets.UTF_8);
            System.setOut(to);
            System.setErr(to);
            try { scala.Console.withOut(to, () -> run(words)); }
            catch (Throwable e) { if (!(cause(e) instanceof Ended)) cause(e).printStackTrace(to); }
            finally { System.setOut(out); System.setErr(err); }
            to.flush();
            Files.createDirectories(Path.of(words[0]).getParent());
            Files.write(Path.of(words[0]), said.toByteArray());
        }
        System.out.println("done");
        Runtime.getRuntime().halt(0);
    }

    /** Exit is in another package since 4.4. */
    static void endNotTheProcess() throws Exception {
        Class<?> exit;
        try { exit = Class.forName("org.apache.kafka.common.utils.internals.Exit"); }
        catch (ClassNotFoundException e) { exit = Class.forName("org.apache.kafka.common.utils.Exit"); }
        Class<?> procedure = Class.forName(exit.getName() + "$Procedure");
        Object ends = Proxy.newProxyInstance(procedure.getClassLoader(), new Class<?>[] {procedure}, (self, method, words) -> { throw new Ended(); });
        for (String name : List.of("setExitProcedure", "setHaltProcedure")) exit.getMethod(name, procedure).invoke(null, ends);
    }

    static Object run(String[] words) {
        try {
            Class<?> tool;
            try { tool = Class.forName("org.apache.kafka.tools." + words[1]); }
            catch (ClassNotFoundException e) { tool = Class.forName("kafka.tools." + words[1]); }
            tool.getMethod("main", String[].class).invoke(null, (Object) Arrays.copyOfRange(words, 2, words.length));
        } catch (Exception e) { throw new RuntimeException(e); }
        return null;
    }

    static Throwable cause(Throwable e) { while (e.getCause() != null) e = e.getCause(); return e; }

    static class Ended extends Error { }
}
