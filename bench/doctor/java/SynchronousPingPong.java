/*
 * Fault (lock-step): an item goes round a ring of stages, one thread per stage. The ring holds
 * one item only, and each stage hands it over through a SynchronousQueue after microseconds of
 * work. So never more than one thread runs, and the hand-over costs as much as the work.
 * fixed: the stages hand over batches, and several batches are on the way at a time.
 * twin: clients ask a server through SynchronousQueues and think between two requests. The
 * threads also hand over after little work, but the think time decides how long it takes.
 */
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.ArrayBlockingQueue;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.SynchronousQueue;

public final class SynchronousPingPong {
    private static final int TIME_LIMIT_MS = 30_000;
    private static final int ROUNDS_PER_US = 280;
    private static final int TOTAL_STEPS = 170_000;
    private static final int BATCH_ITEMS = 200;
    private static final int BATCHES_ON_THE_WAY = 8;
    private static final int TWIN_TIME_MS = 4_000;
    private static final long[] END = new long[0];

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

    private static void compute(long[] batch, int stage, int rounds) {
        for (int i = 0; i < batch.length; i++) {
            batch[i] = work(batch[i] + stage, rounds);
        }
    }

    /** A stage in the middle: it takes a batch, computes and passes the batch on. */
    private static void passOn(BlockingQueue<long[]> in, BlockingQueue<long[]> out, int stage,
            int rounds) throws InterruptedException {
        while (true) {
            long[] batch = in.take();
            compute(batch, stage, rounds);
            out.put(batch);
            if (batch.length == 0) {
                return;
            }
        }
    }

    /** The first stage: it makes the batches and collects them when they come back. */
    private static long drive(BlockingQueue<long[]> in, BlockingQueue<long[]> out, int items,
            int batchItems, int onTheWay, int rounds) throws InterruptedException {
        long sum = 0;
        int sent = 0;
        int open = 0;
        while (sent < items || open > 0) {
            if (sent < items && open < onTheWay) {
                long[] batch = new long[Math.min(batchItems, items - sent)];
                for (int i = 0; i < batch.length; i++) {
                    batch[i] = ++sent;
                }
                compute(batch, 0, rounds);
                out.put(batch);
                open++;
            } else {
                for (long value : in.take()) {
                    sum += value;
                }
                open--;
            }
        }
        out.put(END);
        in.take();
        return sum;
    }

    /** Sends all items round the ring, one by one (sick) or in batches (fixed). */
    private static long ring(Sizes sizes, boolean oneByOne) throws InterruptedException {
        int stages = sizes.between(2, 4);
        int rounds = sizes.between(9, 18) * ROUNDS_PER_US;
        int items = TOTAL_STEPS / 100 * sizes.between(90, 110) / stages;
        int batchItems = oneByOne ? 1 : BATCH_ITEMS;
        int onTheWay = oneByOne ? 1 : BATCHES_ON_THE_WAY;
        List<BlockingQueue<long[]>> links = new ArrayList<>();
        for (int s = 0; s < stages; s++) {
            links.add(oneByOne ? new SynchronousQueue<>() : new ArrayBlockingQueue<>(onTheWay));
        }
        long[] result = new long[1];
        inThreads(stages, s -> {
            BlockingQueue<long[]> in = links.get(s);
            BlockingQueue<long[]> out = links.get((s + 1) % stages);
            if (s == 0) {
                result[0] = drive(in, out, items, batchItems, onTheWay, rounds);
            } else {
                passOn(in, out, s, rounds);
            }
        });
        return result[0];
    }

    /** Clients think, ask and wait for the answer; thread 0 is the server. */
    private static long thinkingClients(Sizes sizes) throws InterruptedException {
        int clients = sizes.between(2, 4);
        int thinkMs = sizes.between(4, 9);
        int rounds = sizes.between(9, 18) * ROUNDS_PER_US;
        int requests = TWIN_TIME_MS / thinkMs;
        SynchronousQueue<long[]> inbox = new SynchronousQueue<>();
        List<SynchronousQueue<Long>> answers = new ArrayList<>();
        for (int c = 0; c < clients; c++) {
            answers.add(new SynchronousQueue<>());
        }
        long[] sums = new long[clients + 1];
        inThreads(clients + 1, t -> {
            if (t == 0) {
                for (int i = 0; i < clients * requests; i++) {
                    long[] request = inbox.take();
                    answers.get((int) request[0]).put(work(request[1], rounds));
                }
                return;
            }
            for (int i = 0; i < requests; i++) {
                Thread.sleep(thinkMs);
                inbox.put(new long[] {t - 1, sums[t] + i + t});
                sums[t] += answers.get(t - 1).take();
            }
        });
        long result = 0;
        for (long sum : sums) {
            result += sum;
        }
        return result;
    }

    public static void main(String[] args) throws Exception {
        if (args.length != 2 || !args[0].matches("sick|fixed|twin")
                || !args[1].matches("[0-9]{1,9}")) {
            System.err.println("usage: SynchronousPingPong sick|fixed|twin SEED");
            System.exit(2);
        }
        startWatchdog();
        Sizes sizes = new Sizes(Long.parseLong(args[1]));
        long result = args[0].equals("twin") ? thinkingClients(sizes)
                : ring(sizes, args[0].equals("sick"));
        System.out.println("checksum " + Long.toHexString(result));
    }
}
