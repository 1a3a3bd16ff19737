import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.lang.invoke.MethodHandle;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.MethodType;
import java.util.Locale;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.Semaphore;
import java.util.concurrent.atomic.AtomicInteger;

/**
 * A probe for Java: creates units of concurrency for contend to measure. README.md describes the protocol.
 *
 * <pre>
 * javac -d DIR Units.java
 * java -XX:+UseSerialGC -Xmn16m -Xbatch -Xlog:disable -Xlog:all=warning:stderr -cp DIR Units platform
 * </pre>
 *
 * The memory of the process shows that of a unit only if the rest stays the same. The serial collector has one old
 * generation without holes, and no threads or mark bitmaps of its own; a young generation of fixed size is soon
 * touched entirely. Compiled code has smaller stack frames than interpreted code: with -Xbatch, code is compiled when
 * it is due, not some time later. Warnings of the virtual machine go to standard output unless they are redirected.
 */
public final class Units {
    /** A kind of thread, which is a kind of unit. To add one, add an entry that starts such a thread. */
    private enum Kind {
        PLATFORM {
            @Override
            void start(Runnable unit) {
                Thread thread = new Thread(unit);
                thread.setDaemon(true);
                thread.start();
            }
        },
        VIRTUAL {
            @Override
            void start(Runnable unit) throws Throwable {
                if (START_VIRTUAL == null) {
                    throw new UnsupportedOperationException("virtual threads came with Java 21, this is " + VERSION);
                }
                Thread thread = (Thread) START_VIRTUAL.invokeExact(unit);
            }
        };

        abstract void start(Runnable unit) throws Throwable;
    }

    private static final String VERSION = "Java " + System.getProperty("java.vm.version").split("[+-]")[0];

    /**
     * `Thread.startVirtualThread`, or null if there is no such method. It is looked up by name, so that the probe
     * compiles, and runs with platform threads, before Java 21.
     */
    private static final MethodHandle START_VIRTUAL = startVirtual();

    private static MethodHandle startVirtual() {
        try {
            return MethodHandles.lookup().findStatic(
                    Thread.class, "startVirtualThread", MethodType.methodType(Thread.class, Runnable.class));
        } catch (ReflectiveOperationException absent) {
            return null;
        }
    }

    private final Kind kind;
    private Crowd crowd;

    private Units(Kind kind) {
        this.kind = kind;
    }

    /** The units of one park. All share this object as their code, so a unit owns nothing but its thread. */
    private static final class Crowd implements Runnable {
        final AtomicInteger waiting = new AtomicInteger();
        final AtomicInteger ended = new AtomicInteger();
        final CountDownLatch gate = new CountDownLatch(1);
        final CountDownLatch allWait = new CountDownLatch(1);
        final CountDownLatch haveEnded = new CountDownLatch(1);
        final int total;

        Crowd(int total) {
            this.total = total;
        }

        @Override
        public void run() {
            if (waiting.incrementAndGet() == total) {
                allWait.countDown();
            }
            try {
                gate.await();
            } catch (InterruptedException impossible) {
                throw new AssertionError(impossible);
            }
            if (ended.incrementAndGet() == total) {
                haveEnded.countDown();
            }
        }
    }

    private void make(int n) throws Throwable {
        crowd = new Crowd(n);
        for (int i = 0; i < n; i++) {
            kind.start(crowd);
        }
        crowd.allWait.await();
    }

    private String park(int n) throws Throwable {
        long began = System.nanoTime();
        make(n);
        long took = System.nanoTime() - began;
        return "parked " + crowd.waiting.get() + " " + took + " " + used();
    }

    private String wake() throws InterruptedException {
        long began = System.nanoTime();
        int early = crowd.ended.get();
        crowd.gate.countDown();
        crowd.haveEnded.await();
        return "woken " + early + " " + crowd.ended.get() + " " + (System.nanoTime() - began);
    }

    private String rest() {
        crowd = null;
        return "rested " + used();
    }

    /** Collects garbage and returns the heap in use, in bytes, which excludes the stacks of platform threads. */
    private static long used() {
        System.gc();
        return Runtime.getRuntime().totalMemory() - Runtime.getRuntime().freeMemory();
    }

    /**
     * Exchanges m messages between two threads of the kind, and returns the answer to the command. The main thread
     * does not take part, as it would add the cost of a platform thread.
     */
    private String trips(int m) throws Throwable {
        Exchange exchange = new Exchange();
        CountDownLatch finished = new CountDownLatch(1);
        long[] took = new long[1];
        kind.start(() -> {
            for (int i = 0; i < m; i++) {
                exchange.there.acquireUninterruptibly();
                exchange.answer = exchange.message;
                exchange.back.release();
            }
        });
        kind.start(() -> {
            long began = System.nanoTime();
            for (int i = 0; i < m; i++) {
                exchange.message = i;
                exchange.there.release();
                exchange.back.acquireUninterruptibly();
                if (exchange.answer != i) {
                    exchange.wrong = "message " + i + " was answered by " + exchange.answer;
                    break;
                }
            }
            took[0] = System.nanoTime() - began;
            finished.countDown();
        });
        finished.await();
        return exchange.wrong == null ? "trips " + m + " " + took[0] : "trips none " + exchange.wrong;
    }

    private static final class Exchange {
        final Semaphore there = new Semaphore(0);
        final Semaphore back = new Semaphore(0);
        int message;
        int answer;
        String wrong;
    }

    private String answer(String command) throws Throwable {
        String[] words = command.split(" ");
        switch (words[0]) {
            case "park":
                return park(Integer.parseInt(words[1]));
            case "wake":
                return wake();
            case "rest":
                return rest();
            case "trips":
                return trips(Integer.parseInt(words[1]));
            default:
                throw new IllegalArgumentException("no such command: " + command);
        }
    }

    /**
     * Creates and ends a hundred units 50 times, which has their code compiled: before that, a waiting virtual thread
     * takes five times as much memory, and a platform thread touches five times as much of its stack.
     */
    private void warmUp() throws Throwable {
        for (int i = 0; i < 50; i++) {
            make(100);
            wake();
        }
        rest();
    }

    private void serve() throws Throwable {
        warmUp();
        System.out.println("ready " + VERSION);
        BufferedReader commands = new BufferedReader(new InputStreamReader(System.in));
        for (String command; (command = commands.readLine()) != null; ) {
            System.out.println(answer(command));
        }
    }

    public static void main(String[] arguments) {
        int status = 0;
        try {
            new Units(Kind.valueOf(String.join(" ", arguments).toUpperCase(Locale.ROOT))).serve();
        } catch (UnsupportedOperationException why) {
            System.err.println(why.getMessage());
            status = 1;
        } catch (Throwable why) { // such as an OutOfMemoryError, when the system refuses a thread
            System.err.println(why);
            status = 1;
        }
        Runtime.getRuntime().halt(status); // does not wait for the units
    }
}
