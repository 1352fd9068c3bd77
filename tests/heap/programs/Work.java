// Threads, direct buffers, compression and garbage collection: the virtual machine's own memory is malloc's.
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.zip.CRC32;
import java.util.zip.Deflater;

public class Work {
  static String work(int seed) throws Exception {
    HashMap<String, List<Integer>> map = new HashMap<>();
    for (int i = 0; i < 100_000; i++) {
      map.computeIfAbsent("key" + (i * 7919 + seed) % 4999, key -> new ArrayList<>()).add(i);
    }
    CRC32 sum = new CRC32();
    for (int i = 0; i < 200; i++) {
      ByteBuffer direct = ByteBuffer.allocateDirect(1000 + i * 100);
      while (direct.hasRemaining()) {
        direct.put((byte) (i + seed));
      }
      direct.flip();
      sum.update(direct);
    }
    Deflater deflater = new Deflater();
    deflater.setInput(map.toString().getBytes());
    deflater.finish();
    byte[] packed = new byte[8 << 20];
    int length = deflater.deflate(packed);
    deflater.end();
    sum.update(packed, 0, length);
    return seed + " " + map.size() + " " + sum.getValue();
  }

  public static void main(String[] arguments) throws Exception {
    var pool = Executors.newFixedThreadPool(4);
    List<Future<String>> results = new ArrayList<>();
    for (int seed = 0; seed < 8; seed++) {
      int own = seed;
      results.add(pool.submit(() -> work(own)));
    }
    for (Future<String> result : results) {
      System.out.println(result.get());
    }
    pool.shutdown();
  }
}
