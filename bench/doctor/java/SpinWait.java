/*
 * Fault (spinning): two threads compute pieces of about 1 ms turn by turn. The one whose turn it
 * is not waits in a loop with Thread.onSpinWait on a volatile, so it burns a whole CPU for nothing.
 * fixed: the pieces do not need an order, so each thread computes its half without waiting.
 * twin: two threads compute and publish their progress in a volatile after each piece. Both are
 * at 100 % of a CPU as well, but all of it is honest work.
 */
import java.util.concurrent.atomic.AtomicLong;

public final class SpinWait {
    private static final int TIME_LIMIT_MS = 30_000;
    private static final int ROUNDS_PER_US = 280;
    private static final int THREADS = 2;
    private static final int TOTAL_WORK_US = 4_200_000;
    private static final int TWIN_WORK_US = 3_600_000;

    private static volatile int turn;
    private static volatile int progress;

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

    /** Computes the same pieces turn by turn (sick) or in two independent halves (fixed). */
    private static long pieces(Sizes sizes, boolean takeTurns) throws InterruptedException {
        int pieceUs = sizes.between(600, 1_400);
        int pairs = TOTAL_WORK_US / 100 * sizes.between(88, 112) / pieceUs / THREADS;
        AtomicLong total = new AtomicLong();
        inThreads(THREADS, t -> {
            long sum = 0;
            for (int i = 0; i < pairs; i++) {
                while (takeTurns && turn != t) {
                    Thread.onSpinWait();
                }
                sum += work((long) t << 32 | i + 1, pieceUs * ROUNDS_PER_US);
                if (takeTurns) {
                    turn = 1 - t;
                }
            }
            total.addAndGet(sum);
        });
        return total.get();
    }

    private static long honestWork(Sizes sizes) throws InterruptedException {
        int pieceUs = sizes.between(600, 1_400);
        AtomicLong total = new AtomicLong();
        inThreads(THREADS, t -> {
            long value = t + 1;
            for (int i = 0; i < TWIN_WORK_US / pieceUs; i++) {
                value = work(value, pieceUs * ROUNDS_PER_US);
                progress = i;
            }
            total.addAndGet(value);
        });
        return total.get();
    }

    public static void main(String[] args) throws Exception {
        if (args.length != 2 || !args[0].matches("sick|fixed|twin")
                || !args[1].matches("[0-9]{1,9}")) {
            System.err.println("usage: SpinWait sick|fixed|twin SEED");
            System.exit(2);
        }
        startWatchdog();
        Sizes sizes = new Sizes(Long.parseLong(args[1]));
        long result = args[0].equals("twin") ? honestWork(sizes)
                : pieces(sizes, args[0].equals("sick"));
        System.out.println("checksum " + Long.toHexString(result));
    }
}
