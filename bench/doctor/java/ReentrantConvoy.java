/*
 * Fault (lock-contention): several threads take one fair ReentrantLock for a very short section
 * after each small piece of work. A fair lock hands over at every acquisition, so each one costs
 * a park and a wake-up, and the threads queue in a convoy.
 * fixed: each thread counts on its own and merges its counts once, at the end.
 * twin: two threads compute long pieces and take the same fair lock rarely and shortly. The lock
 * is nearly always free, and both CPUs are busy.
 */
import java.util.concurrent.locks.ReentrantLock;

public final class ReentrantConvoy {
    private static final int TIME_LIMIT_MS = 30_000;
    private static final int ROUNDS_PER_US = 280;
    private static final int TOTAL_OPERATIONS = 400_000;
    private static final int INSIDE_ROUNDS = 200;
    private static final int TWIN_THREADS = 2;
    private static final int TWIN_WORK_US = 3_600_000;
    private static final int BUCKETS = 64;

    private interface Body {
        void run(int index) throws Exception;
    }

    /** Counts that belong to all threads; the lock guards them. */
    private static final class Counts {
        final ReentrantLock lock = new ReentrantLock(true);
        final long[] sums = new long[BUCKETS];

        void add(long value) {
            lock.lock();
            try {
                count(sums, value);
            } finally {
                lock.unlock();
            }
        }

        void merge(long[] other) {
            lock.lock();
            try {
                for (int b = 0; b < BUCKETS; b++) {
                    sums[b] += other[b];
                }
            } finally {
                lock.unlock();
            }
        }

        long checksum() {
            long result = 0;
            for (long sum : sums) {
                result = result * 31 + sum;
            }
            return result;
        }
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

    private static void count(long[] sums, long value) {
        sums[(int) (value & (BUCKETS - 1))] += work(value, INSIDE_ROUNDS);
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

    /** Counts the same values under the lock (sick) or in each thread alone (fixed). */
    private static long countAll(Sizes sizes, boolean shared) throws InterruptedException {
        int threads = sizes.between(3, 5);
        int outsideRounds = sizes.between(1_000, 2_000);
        int items = TOTAL_OPERATIONS / 100 * sizes.between(90, 110) / threads;
        Counts counts = new Counts();
        inThreads(threads, t -> {
            long[] own = new long[BUCKETS];
            for (int i = 0; i < items; i++) {
                long value = work((long) t << 32 | i + 1, outsideRounds);
                if (shared) {
                    counts.add(value);
                } else {
                    count(own, value);
                }
            }
            counts.merge(own);
        });
        return counts.checksum();
    }

    /** Two threads compute long pieces and lock shortly after each of them. */
    private static long rareLocking(Sizes sizes) throws InterruptedException {
        int pieceUs = sizes.between(1_500, 3_500);
        Counts counts = new Counts();
        inThreads(TWIN_THREADS, t -> {
            for (int i = 0; i < TWIN_WORK_US / pieceUs; i++) {
                counts.add(work((long) t << 32 | i + 1, pieceUs * ROUNDS_PER_US));
            }
        });
        return counts.checksum();
    }

    public static void main(String[] args) throws Exception {
        if (args.length != 2 || !args[0].matches("sick|fixed|twin")
                || !args[1].matches("[0-9]{1,9}")) {
            System.err.println("usage: ReentrantConvoy sick|fixed|twin SEED");
            System.exit(2);
        }
        startWatchdog();
        Sizes sizes = new Sizes(Long.parseLong(args[1]));
        long result = args[0].equals("twin") ? rareLocking(sizes)
                : countAll(sizes, args[0].equals("sick"));
        System.out.println("checksum " + Long.toHexString(result));
    }
}
