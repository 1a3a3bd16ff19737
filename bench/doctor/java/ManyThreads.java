/*
 * Fault (oversubscription): about 40 threads compute one cell each, for about 20 us, and then meet
 * at a CyclicBarrier. There are far more threads than CPUs, so wake-ups and switches cost as
 * much as the work.
 * fixed: two threads compute all cells and meet at the same barrier.
 * twin: two threads compute cells of many milliseconds and meet rarely. That is as many threads
 * as CPUs, and the barrier costs nothing to speak of.
 */
import java.util.concurrent.CyclicBarrier;

public final class ManyThreads {
    private static final int TIME_LIMIT_MS = 30_000;
    private static final int ROUNDS_PER_US = 280;
    private static final int FEW_THREADS = 2;
    private static final int TOTAL_CELLS = 120_000;
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

    /** The cells of step n come from the cells of step n - 1, so each step needs the barrier. */
    private static long steps(int threads, int cells, int steps, int rounds)
            throws InterruptedException {
        long[][] grid = new long[2][cells];
        for (int c = 0; c < cells; c++) {
            grid[0][c] = c + 1;
        }
        CyclicBarrier barrier = new CyclicBarrier(threads);
        inThreads(threads, t -> {
            int first = cells * t / threads;
            int last = cells * (t + 1) / threads;
            for (int step = 0; step < steps; step++) {
                long[] old = grid[step % 2];
                long[] next = grid[(step + 1) % 2];
                for (int c = first; c < last; c++) {
                    next[c] = work(old[c] + old[(c + 1) % cells], rounds);
                }
                barrier.await();
            }
        });
        long sum = 0;
        for (long cell : grid[steps % 2]) {
            sum += cell;
        }
        return sum;
    }

    private static long shortCells(Sizes sizes, boolean manyThreads) throws InterruptedException {
        int cells = sizes.between(18, 24) * FEW_THREADS;
        int cellUs = sizes.between(14, 26);
        int steps = TOTAL_CELLS / 100 * sizes.between(90, 110) / cells;
        return steps(manyThreads ? cells : FEW_THREADS, cells, steps, cellUs * ROUNDS_PER_US);
    }

    private static long longCells(Sizes sizes) throws InterruptedException {
        int cellUs = sizes.between(15_000, 35_000);
        return steps(FEW_THREADS, FEW_THREADS, TWIN_WORK_US / cellUs, cellUs * ROUNDS_PER_US);
    }

    public static void main(String[] args) throws Exception {
        if (args.length != 2 || !args[0].matches("sick|fixed|twin")
                || !args[1].matches("[0-9]{1,9}")) {
            System.err.println("usage: ManyThreads sick|fixed|twin SEED");
            System.exit(2);
        }
        startWatchdog();
        Sizes sizes = new Sizes(Long.parseLong(args[1]));
        long result = args[0].equals("twin") ? longCells(sizes)
                : shortCells(sizes, args[0].equals("sick"));
        System.out.println("checksum " + Long.toHexString(result));
    }
}
