/* LuceneFilters index DIR TSV | search DIR REQUESTS N [cache]
 *
 * Lucene's part of filters.py, for Lucene 10: indexes the lines that `filters index` reads, and answers requests, a line
 * each: and, or, count, sort or facet; a filter (field:low:high, field:value or nothing); words, parted by tabs. Prints
 * hits or matches and the least processor time of N in nanoseconds. Filters are points and keys in FILTER clauses; with
 * `cache` the query cache of an IndexSearcher is left as it is, otherwise there is none. */
import java.io.BufferedReader;
import java.lang.management.ManagementFactory;
import java.lang.management.ThreadMXBean;
import java.nio.file.Files;
import java.nio.file.Path;
import org.apache.lucene.analysis.core.WhitespaceAnalyzer;
import org.apache.lucene.document.Document;
import org.apache.lucene.document.Field;
import org.apache.lucene.document.FieldType;
import org.apache.lucene.document.LongField;
import org.apache.lucene.document.StringField;
import org.apache.lucene.index.DirectoryReader;
import org.apache.lucene.index.IndexOptions;
import org.apache.lucene.index.IndexWriter;
import org.apache.lucene.index.IndexWriterConfig;
import org.apache.lucene.index.LogDocMergePolicy;
import org.apache.lucene.index.Term;
import org.apache.lucene.search.BooleanClause;
import org.apache.lucene.search.BooleanQuery;
import org.apache.lucene.search.IndexSearcher;
import org.apache.lucene.search.Query;
import org.apache.lucene.search.Sort;
import org.apache.lucene.search.SortField;
import org.apache.lucene.search.TermQuery;
import org.apache.lucene.search.TopFieldCollectorManager;
import org.apache.lucene.search.TopScoreDocCollectorManager;
import org.apache.lucene.search.similarities.BM25Similarity;
import org.apache.lucene.store.MMapDirectory;

public final class LuceneFilters {
  private static final BM25Similarity BM25 = new BM25Similarity(0.9f, 0.4f);

  private static void index(String dir, String text) throws Exception {
    FieldType type = new FieldType();
    type.setTokenized(true);
    type.setIndexOptions(IndexOptions.DOCS_AND_FREQS);
    type.freeze();
    IndexWriterConfig config = new IndexWriterConfig(new WhitespaceAnalyzer()).setSimilarity(BM25).setRAMBufferSizeMB(512);
    config.setMergePolicy(new LogDocMergePolicy()); /* neighbours are merged: the order of the documents stays */
    try (IndexWriter writer = new IndexWriter(new MMapDirectory(Path.of(dir)), config);
        BufferedReader lines = Files.newBufferedReader(Path.of(text))) {
      for (String line; (line = lines.readLine()) != null; ) {
        String[] part = line.split("\t", 6);
        Document document = new Document();
        for (int at = part[0].length(); at > 0; at = part[0].lastIndexOf('/', at - 1)) /* a folder, and those above */
          document.add(new StringField("dir", part[0].substring(0, at), Field.Store.NO));
        document.add(new StringField("ext", part[1], Field.Store.NO));
        document.add(new StringField("key", "k" + part[4], Field.Store.NO));
        document.add(new LongField("size", Long.parseLong(part[2]), Field.Store.NO));
        document.add(new LongField("mtime", Long.parseLong(part[3]), Field.Store.NO));
        document.add(new LongField("rand", Long.parseLong(part[4]), Field.Store.NO));
        document.add(new Field("body", part[5], type));
        writer.addDocument(document);
      }
      writer.forceMerge(1);
    }
  }

  private static Query parse(String command, String filter, String text) {
    BooleanClause.Occur occur = command.equals("and") ? BooleanClause.Occur.MUST : BooleanClause.Occur.SHOULD;
    BooleanQuery.Builder words = new BooleanQuery.Builder(), all = new BooleanQuery.Builder();
    for (String word : text.split(" ")) words.add(new TermQuery(new Term("body", word)), occur);
    if (filter.isEmpty()) return words.build();
    String[] part = filter.split(":");
    Query only = part.length == 2 ? new TermQuery(new Term(part[0], part[1]))
                                  : LongField.newRangeQuery(part[0], Long.parseLong(part[1]), Long.parseLong(part[2]));
    return all.add(words.build(), BooleanClause.Occur.MUST).add(only, BooleanClause.Occur.FILTER).build();
  }

  private static long answer(IndexSearcher searcher, String command, Query query) throws Exception {
    if (command.equals("count")) return searcher.count(query);
    if (command.equals("sort")) {
      Sort sort = new Sort(LongField.newSortField("mtime", true, org.apache.lucene.search.SortedNumericSelector.Type.MIN));
      return searcher.search(query, new TopFieldCollectorManager(sort, 10, 10)).scoreDocs.length;
    }
    return searcher.search(query, new TopScoreDocCollectorManager(10, 10)).scoreDocs.length;
  }

  private static void search(String dir, String requests, int n, boolean cache) throws Exception {
    ThreadMXBean threads = ManagementFactory.getThreadMXBean();
    try (DirectoryReader reader = DirectoryReader.open(new MMapDirectory(Path.of(dir)))) {
      IndexSearcher searcher = new IndexSearcher(reader);
      searcher.setSimilarity(BM25);
      if (!cache) searcher.setQueryCache(null);
      StringBuilder out = new StringBuilder();
      for (int warm = 1; warm >= 0; warm--) {
        out.setLength(0);
        for (String line : Files.readAllLines(Path.of(requests))) {
          String[] part = line.split("\t", 3);
          Query query = parse(part[0], part[1], part[2]);
          long least = Long.MAX_VALUE, found = 0;
          for (int i = 0; i < n; i++) {
            long start = threads.getCurrentThreadCpuTime();
            found = answer(searcher, part[0], query);
            least = Math.min(least, threads.getCurrentThreadCpuTime() - start);
          }
          out.append(found).append('\t').append(least).append('\n');
        }
      }
      System.out.print(out);
    }
  }

  public static void main(String[] a) throws Exception {
    if (a[0].equals("index")) index(a[1], a[2]);
    else search(a[1], a[2], Integer.parseInt(a[3]), a.length > 4);
  }
}
