import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Collections;
import java.util.HashMap;
import java.util.Map;
import java.util.StringTokenizer;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.Executors;
import java.util.concurrent.TimeUnit;

/** Counts the words of logs, with one thread for each: CountRequests synchronized|concurrent LOG... */
public class CountRequests {
    private static final int PASSES = 2;

    public static void main(String[] args) throws Exception {
        Map<String, Integer> counts = args[0].equals("synchronized")
            ? Collections.synchronizedMap(new HashMap<>())
            : new ConcurrentHashMap<>();
        var threads = Executors.newFixedThreadPool(args.length - 1);
        for (int i = 1; i < args.length; i++) {
            Path log = Path.of(args[i]);
            threads.submit(() -> {
                for (int pass = 0; pass < PASSES; pass++) {
                    try (var lines = Files.lines(log)) {
                        lines.forEach(line -> count(line, counts));
                    }
                }
                return null;
            });
        }
        threads.shutdown();
        threads.awaitTermination(1, TimeUnit.MINUTES);
        System.out.println(counts.values().stream().mapToLong(Integer::longValue).sum());
    }

    private static void count(String line, Map<String, Integer> counts) {
        var words = new StringTokenizer(line, " []\"/?&=");
        while (words.hasMoreTokens()) {
            counts.merge(words.nextToken(), 1, Integer::sum);
        }
    }
}
