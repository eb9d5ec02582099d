/* LuceneBench version | index DIR TEXT positions|"" | search DIR QUERIES MODE K ROUNDS WARMUP | serve DIR
 *
 * Lucene's part of peers.py, phrases.py and game.py, for Lucene 10: indexes one line of words a document, in their
 * order, with positions or without, and prints each query's median latency in microseconds over the rounds. MODE: and,
 * or, phrase: the K best; phrase-count: how many match; phrase-number: the same, of which it prints the number in place
 * of the time. serve answers requests as game.c does. */
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.lang.management.ManagementFactory;
import java.lang.management.ThreadMXBean;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import org.apache.lucene.analysis.core.WhitespaceAnalyzer;
import org.apache.lucene.document.Document;
import org.apache.lucene.document.Field;
import org.apache.lucene.document.FieldType;
import org.apache.lucene.index.DirectoryReader;
import org.apache.lucene.index.IndexOptions;
import org.apache.lucene.index.IndexWriter;
import org.apache.lucene.index.IndexWriterConfig;
import org.apache.lucene.index.LogDocMergePolicy;
import org.apache.lucene.index.Term;
import org.apache.lucene.search.BooleanClause;
import org.apache.lucene.search.BooleanQuery;
import org.apache.lucene.search.IndexSearcher;
import org.apache.lucene.search.PhraseQuery;
import org.apache.lucene.search.Query;
import org.apache.lucene.search.TermQuery;
import org.apache.lucene.search.TopScoreDocCollector;
import org.apache.lucene.search.TopScoreDocCollectorManager;
import org.apache.lucene.search.similarities.BM25Similarity;
import org.apache.lucene.store.MMapDirectory;
import org.apache.lucene.util.Version;

public final class LuceneBench {
  private static final BM25Similarity BM25 = new BM25Similarity(0.9f, 0.4f);

  private static void index(String dir, String text, boolean positions) throws Exception {
    FieldType type = new FieldType();
    type.setTokenized(true);
    type.setIndexOptions(positions ? IndexOptions.DOCS_AND_FREQS_AND_POSITIONS : IndexOptions.DOCS_AND_FREQS);
    type.freeze();
    IndexWriterConfig config = new IndexWriterConfig(new WhitespaceAnalyzer()).setSimilarity(BM25).setRAMBufferSizeMB(512);
    config.setMergePolicy(new LogDocMergePolicy()); /* neighbours are merged: the order of the documents stays */
    try (IndexWriter writer = new IndexWriter(new MMapDirectory(Path.of(dir)), config);
        BufferedReader lines = Files.newBufferedReader(Path.of(text))) {
      for (String line; (line = lines.readLine()) != null; ) {
        Document document = new Document();
        document.add(new Field("body", line, type));
        writer.addDocument(document);
      }
      writer.forceMerge(1);
    }
  }

  private static List<Query> queries(String path, String mode) throws Exception {
    BooleanClause.Occur occur = mode.equals("and") ? BooleanClause.Occur.MUST : BooleanClause.Occur.SHOULD;
    List<Query> queries = new ArrayList<>();
    for (String line : Files.readAllLines(Path.of(path))) {
      if (mode.startsWith("phrase")) {
        queries.add(new PhraseQuery("body", line.split(" ")));
        continue;
      }
      BooleanQuery.Builder builder = new BooleanQuery.Builder();
      for (String word : line.split(" ")) builder.add(new TermQuery(new Term("body", word)), occur);
      queries.add(builder.build());
    }
    return queries;
  }

  /* The number of hits or, of the modes that count, of matches. */
  private static int answer(IndexSearcher searcher, Query query, String mode, int k) throws Exception {
    if (mode.startsWith("phrase-")) return searcher.count(query);
    TopScoreDocCollector collector = new TopScoreDocCollectorManager(k, k).newCollector(); /* counts no further than k */
    searcher.search(query, collector);
    return collector.topDocs().scoreDocs.length;
  }

  private static void search(String dir, String path, String mode, int k, int rounds, int warmup) throws Exception {
    try (DirectoryReader reader = DirectoryReader.open(new MMapDirectory(Path.of(dir)))) {
      IndexSearcher searcher = new IndexSearcher(reader);
      searcher.setSimilarity(BM25);
      searcher.setQueryCache(null);
      List<Query> queries = queries(path, mode);
      double[][] micros = new double[queries.size()][rounds];
      for (int round = -warmup; round < rounds; round++) {
        for (int i = 0; i < queries.size(); i++) {
          long start = System.nanoTime();
          double result = answer(searcher, queries.get(i), mode, k);
          if (round >= 0) micros[i][round] = mode.equals("phrase-number") ? result : (System.nanoTime() - start) / 1e3;
        }
      }
      StringBuilder out = new StringBuilder();
      for (double[] times : micros) {
        Arrays.sort(times);
        out.append(mode.equals("phrase-number") ? Long.toString((long)times[0]) : Double.toString(times[rounds / 2])).append('\n');
      }
      System.out.print(out);
    }
  }

  /* Words and "phrases", of which those with a plus must match. */
  private static Query parse(String text) {
    BooleanQuery.Builder builder = new BooleanQuery.Builder();
    Query query = null;
    int clauses = 0;
    for (int at = 0, end; at < text.length(); at = end + 1) {
      boolean plus = text.charAt(at) == '+';
      if (plus) at++;
      if (text.charAt(at) == '"') {
        end = text.indexOf('"', at + 1) + 1;
        query = new PhraseQuery("body", text.substring(at + 1, end - 1).split(" "));
      } else {
        end = text.indexOf(' ', at);
        if (end < 0) end = text.length();
        query = new TermQuery(new Term("body", text.substring(at, end)));
      }
      builder.add(query, plus ? BooleanClause.Occur.MUST : BooleanClause.Occur.SHOULD);
      clauses++;
    }
    return clauses == 1 ? query : builder.build();
  }

  private static long game(IndexSearcher searcher, String command, String text) throws Exception {
    Query query = parse(text);
    if (command.equals("COUNT")) return searcher.count(query);
    String[] parts = command.split("_");
    int k = Integer.parseInt(parts[1]);
    boolean count = parts.length > 2;
    var found = searcher.search(query, new TopScoreDocCollectorManager(k, count ? Integer.MAX_VALUE : k));
    return count ? found.totalHits.value() : found.scoreDocs.length;
  }

  private static void serve(String dir) throws Exception {
    ThreadMXBean threads = ManagementFactory.getThreadMXBean();
    try (DirectoryReader reader = DirectoryReader.open(new MMapDirectory(Path.of(dir)))) {
      IndexSearcher searcher = new IndexSearcher(reader);
      searcher.setSimilarity(BM25);
      searcher.setQueryCache(null);
      BufferedReader lines = new BufferedReader(new InputStreamReader(System.in));
      for (String line; (line = lines.readLine()) != null; ) {
        String[] request = line.split("\t");
        long clock = System.nanoTime(), thread = threads.getCurrentThreadCpuTime();
        long found = game(searcher, request[0], request[1]);
        thread = threads.getCurrentThreadCpuTime() - thread;
        clock = System.nanoTime() - clock;
        System.out.println(found + "\t" + thread + "\t" + clock);
      }
    }
  }

  public static void main(String[] a) throws Exception {
    if (a[0].equals("version")) System.out.println(Version.LATEST);
    else if (a[0].equals("index")) index(a[1], a[2], a[3].equals("positions"));
    else if (a[0].equals("serve")) serve(a[1]);
    else search(a[1], a[2], a[3], Integer.parseInt(a[4]), Integer.parseInt(a[5]), Integer.parseInt(a[6]));
  }
}
