/*
 * Fault (serial-section): main computes every item and puts the result on a BlockingQueue.
 * The workers only add it up, so main is near 100 % of a CPU and the workers wait for it (Amdahl).
 * fixed: main puts the numbers of the items on the queue, and the workers compute them.
 * twin: a single-threaded program that computes a chain, each link from the one before. It uses
 * one CPU only as well, but it has nothing to share.
 */
import java.util.concurrent.ArrayBlockingQueue;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.atomic.AtomicLong;

public final class OneProducer {
    private static final int TIME_LIMIT_MS = 30_000;
    private static final int ROUNDS_PER_US = 280;
    private static final int TOTAL_WORK_US = 4_200_000;
    private static final int FINISH_ROUNDS = 500;
    private static final int QUEUE_ITEMS = 256;
    private static final long STOP = -1;

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

    private static Thread[] startThreads(int count, Body body) {
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
        return threads;
    }

    /** Clears the top bit, so that a value is never STOP. */
    private static long computeItem(long number, int rounds) {
        return work(number, rounds) & Long.MAX_VALUE;
    }

    /** Main (sick) or the workers (fixed) compute the items; the workers add them up. */
    private static long produce(Sizes sizes, boolean mainComputes) throws InterruptedException {
        int workers = sizes.between(2, 4);
        int itemUs = sizes.between(450, 1_050);
        int rounds = itemUs * ROUNDS_PER_US;
        int items = TOTAL_WORK_US / 100 * sizes.between(88, 112) / itemUs;
        BlockingQueue<Long> queue = new ArrayBlockingQueue<>(QUEUE_ITEMS);
        AtomicLong total = new AtomicLong();
        Thread[] threads = startThreads(workers, t -> {
            long sum = 0;
            for (long item = queue.take(); item != STOP; item = queue.take()) {
                long value = mainComputes ? item : computeItem(item, rounds);
                sum += work(value, FINISH_ROUNDS);
            }
            total.addAndGet(sum);
        });
        for (int i = 1; i <= items; i++) {
            queue.put(mainComputes ? computeItem(i, rounds) : (long) i);
        }
        for (int t = 0; t < workers; t++) {
            queue.put(STOP);
        }
        for (Thread thread : threads) {
            thread.join();
        }
        return total.get();
    }

    private static long chain(Sizes sizes) {
        int linkUs = sizes.between(450, 1_050);
        int links = TOTAL_WORK_US / 100 * sizes.between(88, 112) / linkUs;
        long value = 1;
        for (int i = 0; i < links; i++) {
            value = computeItem(value, linkUs * ROUNDS_PER_US);
        }
        return value;
    }

    public static void main(String[] args) throws Exception {
        if (args.length != 2 || !args[0].matches("sick|fixed|twin")
                || !args[1].matches("[0-9]{1,9}")) {
            System.err.println("usage: OneProducer sick|fixed|twin SEED");
            System.exit(2);
        }
        startWatchdog();
        Sizes sizes = new Sizes(Long.parseLong(args[1]));
        long result = args[0].equals("twin") ? chain(sizes)
                : produce(sizes, args[0].equals("sick"));
        System.out.println("checksum " + Long.toHexString(result));
    }
}
