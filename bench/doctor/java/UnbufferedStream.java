/*
 * Fault (tiny-io): the program copies a file byte by byte with FileInputStream.read() and
 * FileOutputStream.write(int). Each byte costs two system calls, so the kernel takes most of
 * the CPU time.
 * fixed: the same copy through a BufferedInputStream and a BufferedOutputStream.
 * twin: small messages over a pipe to a child process and back, with think time in between. The
 * messages are tiny as well, but the think time decides how long it takes.
 */
import java.io.BufferedInputStream;
import java.io.BufferedOutputStream;
import java.io.DataInputStream;
import java.io.DataOutputStream;
import java.io.FileInputStream;
import java.io.FileOutputStream;
import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.nio.file.Files;
import java.nio.file.Path;

public final class UnbufferedStream {
    private static final int TIME_LIMIT_MS = 30_000;
    private static final int TOTAL_BYTES = 3_000_000;
    private static final int BUFFER_BYTES = 65_536;
    private static final int TWIN_TIME_MS = 4_000;
    private static final int ROUNDS_PER_US = 280;

    private static volatile Path source;
    private static volatile Path target;

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

    private static void removeFiles() {
        try {
            if (source != null) {
                Files.deleteIfExists(source);
            }
            if (target != null) {
                Files.deleteIfExists(target);
            }
        } catch (IOException e) {
            e.printStackTrace();
        }
    }

    private static void startWatchdog() {
        Thread dog = new Thread(() -> {
            try {
                Thread.sleep(TIME_LIMIT_MS);
            } catch (InterruptedException e) {
                return;
            }
            removeFiles();
            Runtime.getRuntime().halt(3);
        }, "watchdog");
        dog.setDaemon(true);
        dog.start();
    }

    private static InputStream openSource(boolean buffered) throws IOException {
        InputStream file = new FileInputStream(source.toFile());
        return buffered ? new BufferedInputStream(file, BUFFER_BYTES) : file;
    }

    private static OutputStream openTarget(boolean buffered) throws IOException {
        OutputStream file = new FileOutputStream(target.toFile());
        return buffered ? new BufferedOutputStream(file, BUFFER_BYTES) : file;
    }

    /** Copies the source once; each byte is mixed with all bytes before it. */
    private static long copyOnce(long state, boolean buffered, int rounds) throws IOException {
        try (InputStream in = openSource(buffered); OutputStream out = openTarget(buffered)) {
            for (int b = in.read(); b >= 0; b = in.read()) {
                state = work(state + b, rounds);
                out.write((int) (state >>> 56));
            }
        }
        return state;
    }

    private static long copyAll(Sizes sizes, boolean buffered) throws IOException {
        byte[] content = new byte[sizes.between(180_000, 420_000)];
        int rounds = sizes.between(60, 100);
        int passes = TOTAL_BYTES / 100 * sizes.between(90, 110) / content.length;
        for (int i = 0; i < content.length; i++) {
            content[i] = (byte) work(i + 1, 4);
        }
        try {
            source = Files.createTempFile("unbuffered", ".in");
            target = Files.createTempFile("unbuffered", ".out");
            Files.write(source, content);
            long state = 1;
            for (int pass = 0; pass < passes; pass++) {
                state = copyOnce(state, buffered, rounds);
            }
            return state;
        } finally {
            removeFiles();
        }
    }

    /** The child echoes each message. It ends when the pipe closes. */
    private static long thinkingClient(Sizes sizes) throws Exception {
        int thinkMs = sizes.between(3, 7);
        int thinkRounds = sizes.between(100, 200) * ROUNDS_PER_US;
        Process child = new ProcessBuilder("cat")
                .redirectError(ProcessBuilder.Redirect.INHERIT).start();
        long state = 1;
        try (DataOutputStream out = new DataOutputStream(child.getOutputStream());
                DataInputStream in = new DataInputStream(child.getInputStream())) {
            for (int i = 0; i < TWIN_TIME_MS / thinkMs; i++) {
                Thread.sleep(thinkMs);
                out.writeLong(work(state, thinkRounds));
                out.flush();
                state = in.readLong();
            }
        }
        child.waitFor();
        return state;
    }

    public static void main(String[] args) throws Exception {
        if (args.length != 2 || !args[0].matches("sick|fixed|twin")
                || !args[1].matches("[0-9]{1,9}")) {
            System.err.println("usage: UnbufferedStream sick|fixed|twin SEED");
            System.exit(2);
        }
        startWatchdog();
        Sizes sizes = new Sizes(Long.parseLong(args[1]));
        long result = args[0].equals("twin") ? thinkingClient(sizes)
                : copyAll(sizes, args[0].equals("fixed"));
        System.out.println("checksum " + Long.toHexString(result));
    }
}
