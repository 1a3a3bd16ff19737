import java.io.BufferedReader;
import java.io.File;
import java.io.InputStreamReader;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.hdfs.MiniDFSCluster;

/**
 * A Hadoop file system of two data nodes on this machine, for tests.
 *
 * Usage: MiniHdfs FOLDER FILE...
 *
 * Keeps its data in FOLDER, copies the files to /data, and prints its URL. Then, for each line of standard input, prints the paths and
 * permissions of all files and directories but /data, and an empty line. Ends at the end of standard input.
 */
public class MiniHdfs {
    public static void main(String[] arguments) throws Exception {
        Configuration configuration = new Configuration();
        // Small files have several blocks.
        configuration.set("dfs.namenode.fs-limits.min-block-size", "4096");
        configuration.set("dfs.blocksize", "1048576");
        MiniDFSCluster cluster =
            new MiniDFSCluster.Builder(configuration, new File(arguments[0])).numDataNodes(2).build();
        cluster.waitActive();
        FileSystem files = cluster.getFileSystem();
        files.mkdirs(new Path("/data"));
        for (int i = 1; i < arguments.length; i++) {
            files.copyFromLocalFile(new Path(arguments[i]), new Path("/data/"));
        }
        System.out.println(cluster.getURI());
        BufferedReader requests = new BufferedReader(new InputStreamReader(System.in));
        while (requests.readLine() != null) {
            list(files, new Path("/"));
            System.out.println();
        }
        cluster.shutdown(true);
    }

    private static void list(FileSystem files, Path folder) throws Exception {
        for (var found : files.listStatus(folder)) {
            String path = found.getPath().toUri().getPath();
            if (!path.equals("/data")) {
                System.out.println(path + " " + found.getPermission());
                if (found.isDirectory()) {
                    list(files, found.getPath());
                }
            }
        }
    }
}
