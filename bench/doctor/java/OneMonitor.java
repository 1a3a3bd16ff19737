/*
 * Fault (lock-contention): several threads compute inside `synchronized` on one object.
 * About one thread runs at any time, the others wait for the monitor.
 * fixed: each thread has a shard of its own, and the shards are merged at the end.
 * twin: a pool of worker threads waits for tasks that come rarely. Its threads also wait on a
 * condition for most of the time, but there is no work they could do, so nothing is lost.
 */
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;

public final class OneMonitor {
    private static final int TIME_LIMIT_MS = 30_000;
    private static final int ROUNDS_PER_US = 280;
    private static final int TOTAL_WORK_US = 4_200_000;
    private static final int TWIN_TIME_MS = 4_000;
    private static final int BUCKETS = 64;

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

    /** Sums of the results, grouped by their lowest bits. */
    private static final class Shard {
        final long[] sums = new long[BUCKETS];

        synchronized void add(long key, int rounds) {
            long value = work(key, rounds);
            sums[(int) (value & (BUCKETS - 1))] += value;
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

    /** Adds the same items with one shared shard (sick) or with one shard per thread (fixed). */
    private static long addAll(Sizes sizes, boolean shared) throws InterruptedException {
        int threads = sizes.between(3, 5);
        int holdUs = sizes.between(180, 420);
        int totalUs = TOTAL_WORK_US / 100 * sizes.between(88, 112);
        int items = totalUs / holdUs / threads;
        Shard[] shards = new Shard[shared ? 1 : threads];
        for (int s = 0; s < shards.length; s++) {
            shards[s] = new Shard();
        }
        inThreads(threads, t -> {
            Shard shard = shards[t % shards.length];
            for (int i = 0; i < items; i++) {
                shard.add((long) t << 32 | i + 1, holdUs * ROUNDS_PER_US);
            }
        });
        return merge(shards);
    }

    private static long merge(Shard[] shards) {
        long result = 0;
        for (int b = 0; b < BUCKETS; b++) {
            long sum = 0;
            for (Shard shard : shards) {
                sum += shard.sums[b];
            }
            result = result * 31 + sum;
        }
        return result;
    }

    /** Submits a short task now and then; the pool is idle in between. */
    private static long idlePool(Sizes sizes) throws InterruptedException {
        int threads = sizes.between(3, 5);
        int pauseMs = sizes.between(12, 28);
        int taskUs = sizes.between(400, 900);
        AtomicLong sum = new AtomicLong();
        ExecutorService pool = Executors.newFixedThreadPool(threads);
        for (int i = 0; i < TWIN_TIME_MS / pauseMs; i++) {
            Thread.sleep(pauseMs);
            long key = i + 1;
            pool.execute(() -> sum.addAndGet(work(key, taskUs * ROUNDS_PER_US)));
        }
        pool.shutdown();
        pool.awaitTermination(TIME_LIMIT_MS, TimeUnit.MILLISECONDS);
        return sum.get();
    }

    public static void main(String[] args) throws Exception {
        if (args.length != 2 || !args[0].matches("sick|fixed|twin")
                || !args[1].matches("[0-9]{1,9}")) {
            System.err.println("usage: OneMonitor sick|fixed|twin SEED");
            System.exit(2);
        }
        startWatchdog();
        Sizes sizes = new Sizes(Long.parseLong(args[1]));
        long result = args[0].equals("twin") ? idlePool(sizes)
                : addAll(sizes, args[0].equals("sick"));
        System.out.println("checksum " + Long.toHexString(result));
    }
}
