/* LuceneUpdates DIR STREAM QUERIES BASE RATE REFRESH_MS COMMIT_MS
 *
 * Lucene's part of updates.py, for Lucene 10: does and prints what updates.c does and prints, by a writer whose readers
 * are opened near real time. Merges run in Lucene's own threads. */
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.concurrent.atomic.AtomicBoolean;
import org.apache.lucene.analysis.core.WhitespaceAnalyzer;
import org.apache.lucene.document.Document;
import org.apache.lucene.document.Field;
import org.apache.lucene.document.FieldType;
import org.apache.lucene.document.StringField;
import org.apache.lucene.index.IndexOptions;
import org.apache.lucene.index.IndexWriter;
import org.apache.lucene.index.IndexWriterConfig;
import org.apache.lucene.index.Term;
import org.apache.lucene.search.BooleanClause;
import org.apache.lucene.search.BooleanQuery;
import org.apache.lucene.search.IndexSearcher;
import org.apache.lucene.search.Query;
import org.apache.lucene.search.SearcherFactory;
import org.apache.lucene.search.SearcherManager;
import org.apache.lucene.search.TermQuery;
import org.apache.lucene.search.TopScoreDocCollectorManager;
import org.apache.lucene.search.similarities.BM25Similarity;
import org.apache.lucene.store.MMapDirectory;

public final class LuceneUpdates {
  private static final BM25Similarity BM25 = new BM25Similarity(0.9f, 0.4f);
  private static final FieldType TYPE = new FieldType();

  private static Query query(String line) {
    BooleanQuery.Builder builder = new BooleanQuery.Builder();
    for (String word : line.split(" ")) builder.add(new TermQuery(new Term("body", word)), BooleanClause.Occur.MUST);
    return builder.build();
  }

  private static void play(IndexWriter writer, String line) throws Exception {
    String[] part = line.split("\t", 3);
    Term name = new Term("name", part[1]);
    if (part[0].equals("D")) {
      writer.deleteDocuments(name);
      return;
    }
    Document document = new Document();
    document.add(new StringField("name", part[1], Field.Store.YES));
    document.add(new Field("body", part[2], TYPE));
    if (part[0].equals("A")) writer.addDocument(document);
    else writer.updateDocument(name, document);
  }

  /* Asks the queries until it is stopped; the latencies in microseconds, as lines. */
  private static Thread asker(SearcherManager manager, List<String> queries, AtomicBoolean stop, StringBuilder out) {
    return new Thread(() -> {
      try {
        for (int i = 0; !stop.get(); i = (i + 1) % queries.size()) {
          IndexSearcher searcher = manager.acquire();
          long start = System.nanoTime();
          searcher.search(query(queries.get(i)), new TopScoreDocCollectorManager(10, 10).newCollector());
          out.append("q ").append((System.nanoTime() - start) / 1e3).append('\n');
          manager.release(searcher);
        }
      } catch (Exception e) {
        e.printStackTrace();
        System.exit(1);
      }
    });
  }

  /* Plays the lines at their times. */
  private static void stream(IndexWriter writer, SearcherManager manager, List<String> lines, double rate, long refresh,
      long commit) throws Exception {
    StringBuilder out = new StringBuilder();
    long begin = System.nanoTime(), refreshed = begin, committed = begin;
    int done = 0, seen = 0, n = lines.size();
    while (seen < n) {
      while (done < n && begin + (long)(done * 1e9 / rate) <= System.nanoTime()) play(writer, lines.get(done++));
      if (done > seen && (System.nanoTime() - refreshed >= refresh || done == n)) {
        refreshed = System.nanoTime();
        manager.maybeRefreshBlocking();
        long visible = System.nanoTime();
        for (; seen < done; seen++) out.append("v ").append((visible - begin - seen * 1e9 / rate) / 1e6).append('\n');
      }
      if (System.nanoTime() - committed >= commit) {
        committed = System.nanoTime();
        writer.commit();
      }
      long due = done < n ? begin + (long)(done * 1e9 / rate) : refreshed + refresh;
      if (done > seen) due = Math.min(due, refreshed + refresh);
      long left = due - System.nanoTime();
      if (left > 0) Thread.sleep(left / 1000000, (int)(left % 1000000));
    }
    System.out.print(out);
  }

  public static void main(String[] a) throws Exception {
    List<String> lines = Files.readAllLines(Path.of(a[1])), queries = Files.readAllLines(Path.of(a[2]));
    int base = Integer.parseInt(a[3]);
    TYPE.setTokenized(true);
    TYPE.setIndexOptions(IndexOptions.DOCS_AND_FREQS);
    TYPE.freeze();
    IndexWriterConfig config =
        new IndexWriterConfig(new WhitespaceAnalyzer()).setSimilarity(BM25).setRAMBufferSizeMB(64).setMaxBufferedDocs(
            IndexWriterConfig.DISABLE_AUTO_FLUSH);
    try (IndexWriter writer = new IndexWriter(new MMapDirectory(Path.of(a[0])), config)) {
      for (String line : lines.subList(0, base)) play(writer, line);
      writer.commit();
      SearcherManager manager = new SearcherManager(writer, new SearcherFactory() {
        @Override
        public IndexSearcher newSearcher(org.apache.lucene.index.IndexReader reader, org.apache.lucene.index.IndexReader old) {
          IndexSearcher searcher = new IndexSearcher(reader);
          searcher.setSimilarity(BM25);
          searcher.setQueryCache(null);
          return searcher;
        }
      });
      AtomicBoolean stop = new AtomicBoolean();
      StringBuilder latencies = new StringBuilder();
      Thread asking = asker(manager, queries, stop, latencies);
      asking.start();
      stream(writer, manager, lines.subList(base, lines.size()), Double.parseDouble(a[4]), Long.parseLong(a[5]) * 1000000,
          Long.parseLong(a[6]) * 1000000);
      stop.set(true);
      asking.join();
      writer.commit();
      for (String line : Files.readAllLines(Path.of("/proc/self/io")))
        if (line.startsWith("wchar") || line.startsWith("write_bytes")) System.out.println(line);
      System.out.print(latencies);
      IndexSearcher searcher = manager.acquire();
      long matches = 0;
      for (String line : queries) matches += searcher.count(query(line));
      System.out.println("documents " + searcher.getIndexReader().numDocs() + "\nmatches " + matches);
      manager.release(searcher);
      manager.close();
    }
  }
}
