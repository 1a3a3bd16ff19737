/*
 * Fault (uneven-work): each thread gets a range of the items of the same length, but the items of
 * the last range cost several times as much. Its thread works long after the others ended.
 * fixed: the threads take the next item from a shared counter, so all of them end together.
 * twin: the same static division with items that cost all the same. The threads end together as
 * well, and both CPUs are busy until then.
 */
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicLong;

public final class StaticSplit {
    private static final int TIME_LIMIT_MS = 30_000;
    private static final int ROUNDS_PER_US = 280;
    private static final int STRAGGLER_WORK_US = 3_700_000;
    private static final int TWIN_THREADS = 2;
    private static final int TWIN_WORK_US = 3_600_000;

    private interface Body {
        void run(int index) throws Exception;
    }

    /** Draws sizes that depend on the seed only. */
    private static final class Sizes {
        private long state;

        Sizes(long seed) {
            state = (seed + 1) * 0x9E3779B97F4A7C15L;
        }

        int between(int low, int high) {
            state = state * 6364136223846793005L + 1442695040888963407L;
            return low + (int) ((state >>> 33) % (high - low + 1));
        }
    }

    /** Mixes x; each round depends on the round before it. */
    private static long work(long x, int rounds) {
        for (int i = 0; i < rounds; i++) {
            x ^= x << 13;
            x ^= x >>> 7;
            x ^= x << 17;
            x = x * 0x2545F4914F6CDD1DL + i;
        }
        return x;
    }

    /** Runs the body in `count` threads and waits for all of them. */
    private static void inThreads(int count, Body body) throws InterruptedException {
        Thread[] threads = new Thread[count];
        for (int t = 0; t < count; t++) {
            int index = t;
            threads[t] = new Thread(() -> {
                try {
                    body.run(index);
                } catch (Exception e) {
                    e.printStackTrace();
                    Runtime.getRuntime().halt(1);
                }
            }, "worker-" + t);
            threads[t].start();
        }
        for (Thread thread : threads) {
            thread.join();
        }
    }

    private static void startWatchdog() {
        Thread dog = new Thread(() -> {
            try {
                Thread.sleep(TIME_LIMIT_MS);
            } catch (InterruptedException e) {
                return;
            }
            Runtime.getRuntime().halt(3);
        }, "watchdog");
        dog.setDaemon(true);
        dog.start();
    }

    /** The items and what they cost. */
    private record Plan(int threads, int perThread, int lightUs, int heavyUs) {
        int items() {
            return threads * perThread;
        }

        long compute(int item) {
            int costUs = item < items() - perThread ? lightUs : heavyUs;
            return work(item + 1, costUs * ROUNDS_PER_US);
        }
    }

    private static Plan unevenPlan(Sizes sizes) {
        int threads = sizes.between(2, 4);
        int lightUs = sizes.between(450, 700);
        int heavyUs = lightUs * sizes.between(50, 80) / 10;
        int perThread = STRAGGLER_WORK_US / 100 * sizes.between(90, 110) / heavyUs;
        return new Plan(threads, perThread, lightUs, heavyUs);
    }

    private static Plan evenPlan(Sizes sizes) {
        int costUs = sizes.between(450, 1_050);
        return new Plan(TWIN_THREADS, TWIN_WORK_US / costUs, costUs, costUs);
    }

    /** Thread t computes range t and nothing else. */
    private static long staticSplit(Plan plan) throws InterruptedException {
        AtomicLong total = new AtomicLong();
        inThreads(plan.threads(), t -> {
            long sum = 0;
            int first = t * plan.perThread();
            for (int item = first; item < first + plan.perThread(); item++) {
                sum += plan.compute(item);
            }
            total.addAndGet(sum);
        });
        return total.get();
    }

    /** Each thread takes the next item until none is left; the heavy items go first. */
    private static long dynamicSplit(Plan plan) throws InterruptedException {
        AtomicLong total = new AtomicLong();
        AtomicInteger left = new AtomicInteger(plan.items());
        inThreads(plan.threads(), t -> {
            long sum = 0;
            for (int n = left.decrementAndGet(); n >= 0; n = left.decrementAndGet()) {
                sum += plan.compute(n);
            }
            total.addAndGet(sum);
        });
        return total.get();
    }

    public static void main(String[] args) throws Exception {
        if (args.length != 2 || !args[0].matches("sick|fixed|twin")
                || !args[1].matches("[0-9]{1,9}")) {
            System.err.println("usage: StaticSplit sick|fixed|twin SEED");
            System.exit(2);
        }
        startWatchdog();
        Sizes sizes = new Sizes(Long.parseLong(args[1]));
        long result = switch (args[0]) {
            case "sick" -> staticSplit(unevenPlan(sizes));
            case "fixed" -> dynamicSplit(unevenPlan(sizes));
            default -> staticSplit(evenPlan(sizes));
        };
        System.out.println("checksum " + Long.toHexString(result));
    }
}
