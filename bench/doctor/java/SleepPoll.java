/*
 * Fault (sleep-polling): main opens a round, two workers compute their piece of it, main collects.
 * Both sides wait for the other one with while (!done) Thread.sleep(1), so each round loses
 * the rest of the sleeps although the partner was ready long before.
 * fixed: main and the workers pass requests and answers through blocking queues.
 * twin: a ScheduledExecutorService does periodic work of its own. It wakes up as often as the
 * pollers, but no partner waits for it: the clock decides, not an event.
 */
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.ArrayBlockingQueue;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.Executors;
import java.util.concurrent.ScheduledExecutorService;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;

public final class SleepPoll {
    private static final int TIME_LIMIT_MS = 30_000;
    private static final int ROUNDS_PER_US = 280;
    private static final int WORKERS = 2;
    private static final int POLL_MS = 1;
    private static final int TOTAL_PIECES_US = 1_600_000;
    private static final int TWIN_TIME_MS = 4_000;
    private static final long STOP = 0;

    private static long input;
    private static volatile int openRound;
    private static final long[] results = new long[WORKERS];
    private static final AtomicInteger done = new AtomicInteger();

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

    private interface Body {
        void run(int index) throws Exception;
    }

    /** Starts the workers; they end by themselves. */
    private static List<Thread> startWorkers(Body body) {
        List<Thread> threads = new ArrayList<>();
        for (int w = 0; w < WORKERS; w++) {
            int index = w;
            Thread thread = new Thread(() -> {
                try {
                    body.run(index);
                } catch (Exception e) {
                    e.printStackTrace();
                    Runtime.getRuntime().halt(1);
                }
            }, "worker-" + w);
            thread.start();
            threads.add(thread);
        }
        return threads;
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

    /** The next request depends on all answers of the round before. Zero means stop. */
    private static long nextInput(long sum) {
        long next = work(sum, 8);
        return next == STOP ? 1 : next;
    }

    /** Both sides poll: the workers for the next round, main for the end of the round. */
    private static long polling(int turns, int pieceRounds) throws InterruptedException {
        List<Thread> workers = startWorkers(w -> {
            for (int turn = 1; turn <= turns; turn++) {
                while (openRound < turn) {
                    Thread.sleep(POLL_MS);
                }
                results[w] = work(input + w, pieceRounds);
                done.incrementAndGet();
            }
        });
        input = 1;
        for (int turn = 1; turn <= turns; turn++) {
            done.set(0);
            openRound = turn;
            while (done.get() < WORKERS) {
                Thread.sleep(POLL_MS);
            }
            long sum = 0;
            for (long result : results) {
                sum += result;
            }
            input = nextInput(sum);
        }
        for (Thread worker : workers) {
            worker.join();
        }
        return input;
    }

    /** The same rounds; each side blocks until the other one has something for it. */
    private static long queueing(int turns, int pieceRounds) throws InterruptedException {
        List<BlockingQueue<Long>> requests = new ArrayList<>();
        for (int w = 0; w < WORKERS; w++) {
            requests.add(new ArrayBlockingQueue<>(1));
        }
        BlockingQueue<Long> answers = new ArrayBlockingQueue<>(WORKERS);
        List<Thread> workers = startWorkers(w -> {
            BlockingQueue<Long> inbox = requests.get(w);
            for (long request = inbox.take(); request != STOP; request = inbox.take()) {
                answers.put(work(request + w, pieceRounds));
            }
        });
        long request = 1;
        for (int turn = 1; turn <= turns; turn++) {
            for (BlockingQueue<Long> inbox : requests) {
                inbox.put(request);
            }
            long sum = 0;
            for (int w = 0; w < WORKERS; w++) {
                sum += answers.take();
            }
            request = nextInput(sum);
        }
        for (int w = 0; w < WORKERS; w++) {
            requests.get(w).put(STOP);
            workers.get(w).join();
        }
        return request;
    }

    private static long periodicWork(Sizes sizes) throws InterruptedException {
        int periodMs = sizes.between(3, 6);
        int tickRounds = sizes.between(400, 900) * ROUNDS_PER_US;
        CountDownLatch ticks = new CountDownLatch(TWIN_TIME_MS / periodMs);
        long[] state = {1};
        ScheduledExecutorService timer = Executors.newScheduledThreadPool(1);
        timer.scheduleAtFixedRate(() -> {
            if (ticks.getCount() > 0) {
                state[0] = work(state[0], tickRounds);
                ticks.countDown();
            }
        }, periodMs, periodMs, TimeUnit.MILLISECONDS);
        ticks.await();
        timer.shutdownNow();
        timer.awaitTermination(TIME_LIMIT_MS, TimeUnit.MILLISECONDS);
        return state[0];
    }

    public static void main(String[] args) throws Exception {
        if (args.length != 2 || !args[0].matches("sick|fixed|twin")
                || !args[1].matches("[0-9]{1,9}")) {
            System.err.println("usage: SleepPoll sick|fixed|twin SEED");
            System.exit(2);
        }
        startWatchdog();
        Sizes sizes = new Sizes(Long.parseLong(args[1]));
        long result;
        if (args[0].equals("twin")) {
            result = periodicWork(sizes);
        } else {
            int pieceUs = sizes.between(700, 1_300);
            int turns = TOTAL_PIECES_US / pieceUs;
            int pieceRounds = pieceUs * ROUNDS_PER_US;
            result = args[0].equals("sick") ? polling(turns, pieceRounds)
                    : queueing(turns, pieceRounds);
        }
        System.out.println("checksum " + Long.toHexString(result));
    }
}
