import java.io.IOException;
import java.net.ServerSocket;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.CyclicBarrier;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.Semaphore;
import java.util.concurrent.SynchronousQueue;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;
import java.util.concurrent.locks.ReentrantLock;
import java.util.concurrent.locks.ReentrantReadWriteLock;

/** Makes a thread wait for each primitive. The thread's name says which. Ends with its standard input. */
final class Waits {
    private static final long HOUR_MS = 3_600_000;

    private interface Wait {
        void run() throws Exception;
    }

    private static Thread start(String name, Wait wait) {
        Thread thread = new Thread(() -> {
            try {
                wait.run();
            } catch (Exception error) {
                error.printStackTrace();
            }
            Runtime.getRuntime().halt(1);
        }, name);
        thread.start();
        return thread;
    }

    public static void main(String[] arguments) throws Exception {
        Object monitor = new Object();
        ReentrantLock lock = new ReentrantLock();
        ReentrantReadWriteLock readWrite = new ReentrantReadWriteLock();
        lock.lock();
        readWrite.writeLock().lock();
        synchronized (monitor) {
            // The second thread waits in another way than the first, in some versions.
            Thread first = start("monitor", () -> enter(monitor));
            while (first.getState() != Thread.State.BLOCKED) {
                Thread.yield();
            }
            start("monitor_next", () -> enter(monitor));
            start("reentrant", lock::lock);
            start("read_lock", readWrite.readLock()::lock);
            start("write_lock", readWrite.writeLock()::lock);
            start("lock_timed", () -> lock.tryLock(1, TimeUnit.HOURS));
            start("wait", () -> waitFor(0));
            start("wait_timed", () -> waitFor(HOUR_MS));
            start("park", LockSupport::park);
            start("park_timed", () -> LockSupport.parkNanos(HOUR_MS * 1_000_000));
            Thread sleeper = start("sleep", () -> Thread.sleep(HOUR_MS));
            start("join", sleeper::join);
            start("semaphore", new Semaphore(0)::acquire);
            start("latch", new CountDownLatch(1)::await);
            start("barrier", new CyclicBarrier(2)::await);
            start("take", new LinkedBlockingQueue<Integer>()::take);
            start("hand_over", () -> new SynchronousQueue<Integer>().put(1));
            start("accept", () -> new ServerSocket(0).accept());
            ProcessBuilder cat = new ProcessBuilder("cat");
            cat.redirectInput(ProcessBuilder.Redirect.INHERIT);
            Process child = cat.start();
            start("child", child::waitFor);
            start("pipe", Waits::readToEnd).join();
        }
    }

    private static void enter(Object monitor) {
        synchronized (monitor) {
            monitor.notifyAll();
        }
    }

    private static void waitFor(long time) throws InterruptedException {
        Object own = new Object();
        synchronized (own) {
            own.wait(time);
        }
    }

    private static void readToEnd() throws IOException {
        while (System.in.read() >= 0) {
            continue;
        }
    }
}
