/* help.c - what gpuir help and --help print. The manual pages in man/ say more. */
#include "cli.h"

#include <string.h>

static const char overview[] =
    "usage: gpuir COMMAND [OPTION...] ...\n"
    "\n"
    "Ranked text search: builds an index file from text and ranks its documents with BM25.\n"
    "\n"
    "  index    build an index from files, folders or standard input\n"
    "  query    rank the documents for a query, or for many\n"
    "  count    count the documents that match a query\n"
    "  stats    show what an index holds\n"
    "  terms    list terms and their statistics\n"
    "  verify   check every byte of an index\n"
    "  explain  show how the score of a document is computed\n"
    "  reorder  write an index again with its documents in another order\n"
    "  import   build an index from the files of another engine: CIFF, PISA\n"
    "  export   write an index as such files\n"
    "  bench    measure latency and throughput\n"
    "  lab      repeat the experiments of papers on an index; draw charts\n"
    "  serve    answer queries, one a line, for a benchmark's driver\n"
    "  help     show this text, or the help of a command\n"
    "\n"
    "  gpuir --version   version, SIMD level and analyzers of this build\n"
    "\n"
    "Exit status: 0 done; 1 nothing found, or a failure, which standard error explains; 2 misuse;\n"
    "128 + N after signal N. Only data is written to standard output.\n"
    "\n"
    "  gpuir index ~/notes -o notes.gpuir\n"
    "  gpuir query notes.gpuir green tea\n";

static const char help_index[] =
    "usage: gpuir index [OPTION...] INPUT... -o INDEX\n"
    "\n"
    "Builds INDEX from files, folders (in byte order of path) and, as '-', standard input.\n"
    "A previous INDEX stays until the new one is whole.\n"
    "\n"
    "What is a document (default: each file, named by its path)\n"
    "  --chunk-lines N    each N lines of a file, named PATH:FIRST-LAST\n"
    "  --lines            each line, named PATH:LINE\n"
    "  --tsv              each line: id, tab, text\n"
    "  --jsonl            each line: a JSON object with \"id\" and \"contents\"\n"
    "  --trec             each <DOC> with its <DOCNO>; tags are no text\n"
    "\n"
    "What is a term\n"
    "  --analyzer NAME    ascii (default) or unicode\n"
    "  --stem LANG        stem with Snowball: porter, english, german, ...\n"
    "  --stop LIST        leave out stop words: english, or a file of words\n"
    "\n"
    "The index\n"
    "  -o, --output INDEX the file to write\n"
    "  --store            keep the text of the documents in the index\n"
    "  --description TEXT of the collection, kept in the index\n"
    "  --codec NAME       of docIDs: bp128 (default), vbyte, pfd, newpfd, optpfd, ef, rice,\n"
    "                     qs[:C], pfd-list[:LEVELS], parapfor, lrc, lrcseg, seglrc or\n"
    "                     hslrc[:[SIZE][,EXCEPTIONS]]; auto[:W] takes for each list the\n"
    "                     smallest or, with W up to 1, the best of size and speed\n"
    "  --freq-codec NAME  of frequencies: bp128 (default), vbyte, newpfd, optpfd or auto[:W]\n"
    "  --k1 X             BM25's k1, 0 to 1000 (default 0.9)\n"
    "  --b X              BM25's b, 0 to 1 (default 0.4)\n"
    "\n"
    "The work\n"
    "  --memory MB        budget for memory (default 512)\n"
    "  --threads N        threads (default 0: one a processor)\n"
    "  --hidden           read hidden files and folders too\n"
    "  --follow           follow symbolic links within folders\n"
    "  --skip-errors      leave malformed records out instead of stopping\n"
    "  -q, --quiet        no progress bar and no summary\n"
    "  --json             print the summary as JSON on standard output\n"
    "  -h, --help         show this text\n"
    "\n"
    "Within folders, binary files (a NUL byte in the first 8 KiB) are left out, unreadable ones are\n"
    "warned of, and both are counted. An INPUT that cannot be read, is binary, or has text of which\n"
    "no document could be made ends the command: nothing is written, and an old index stays.\n"
    "Exit status: 0 written; 1 failed; 2 misuse; 128 + N after signal N.\n";

static const char help_query[] =
    "usage: gpuir query [OPTION...] INDEX [QUERY...]\n"
    "\n"
    "Prints rank, score, docID and name of the best documents. Without QUERY, queries are read one\n"
    "a line from standard input; digits and a colon before one are its id. A '-' before a word of\n"
    "QUERY excludes the documents that have it. Options stand before INDEX.\n"
    "\n"
    "  -m, --mode MODE    and (default): documents with all words; or: with any; andor: with\n"
    "                     all, or with any if fewer than k have all\n"
    "  -k, --k N          hits at most (default 10)\n"
    "  --k1 X, --b X      BM25 parameters (default: those of the index)\n"
    "  --topics FILE      queries from a file: TREC topics, or one a line; '-' is standard input\n"
    "  --ids              each line of queries has an id, up to its first colon\n"
    "  --no-ids           no line has one\n"
    "  --no-operators     a leading '-' has no meaning; so it is with --topics and --trec\n"
    "  --trec             print a TREC run: topic Q0 docno rank score tag\n"
    "  --tag TAG          the run's tag (default gpuir)\n"
    "  --tsv              print rank, docID, score, name; for many queries the id first\n"
    "  --json             print one JSON object for each query\n"
    "  --threads N        threads for many queries (default 1; 0: one a processor)\n"
    "  --timeout MS       give up a query after so long (default 0: never)\n"
    "  --backend NAME     cpu (default), gpu, or auto: the gpu if it can, else the cpu\n"
    "  --evaluator NAME   auto (default) or exhaustive, which prunes nothing\n"
    "  --intersection M   how AND intersects lists: merge, gallop, binary, interpolation, skip, svs,\n"
    "                     adaptive, pmf0 to pmf4, lr-global, lr-local, hs16, hs32, hs64, hs128, hs256,\n"
    "                     algorithm1, mergepath or simd (default: the engine's choice)\n"
    "  -h, --help         show this text\n"
    "\n"
    "Exit status: 0 done; 1 the one QUERY has no hit, or a query failed; 2 misuse.\n";

static const char help_count[] =
    "usage: gpuir count [OPTION...] INDEX QUERY...\n"
    "\n"
    "Prints how many documents match, without ranking them.\n"
    "\n"
    "  -m, --mode MODE    and (default), or; andor counts as and\n"
    "  --no-operators     a leading '-' has no meaning\n"
    "  --timeout MS       give up after so long (default 0: never)\n"
    "  --evaluator NAME   auto (default) or exhaustive\n"
    "  --intersection M   how AND intersects lists; see gpuir query --help\n"
    "  -h, --help         show this text\n"
    "\n"
    "Exit status: 0 counted, even if none matches; 1 failed; 2 misuse.\n";

static const char help_stats[] =
    "usage: gpuir stats [--json] [--gpu] INDEX\n"
    "\n"
    "Prints what the index holds, how it was built and where its bytes are.\n"
    "\n"
    "  --json             as one JSON object\n"
    "  --gpu              also uploads it, and prints the device and what is resident there\n"
    "  -h, --help         show this text\n"
    "\n"
    "Exit status: 0 done; 1 failed; 2 misuse.\n";

static const char help_terms[] =
    "usage: gpuir terms [OPTION...] INDEX [TERM...]\n"
    "\n"
    "Prints df, cf, idf, codecs, bytes and the term itself, for each TERM (as it stands in the\n"
    "index) or for all terms.\n"
    "\n"
    "  --prefix P         only terms that begin with P\n"
    "  --sort KEY         term (default), or df or cf, the largest first\n"
    "  --limit N          at most N terms\n"
    "  --tsv              term, df, cf, idf, codec, freq_codec, docids_bytes, freqs_bytes,\n"
    "                     directory_bytes, blocks\n"
    "  --json             one JSON object a line\n"
    "  -h, --help         show this text\n"
    "\n"
    "Exit status: 0 done; 1 a TERM or the prefix is not there, or a failure; 2 misuse.\n";

static const char help_verify[] =
    "usage: gpuir verify INDEX...\n"
    "\n"
    "Reads the whole of each index: checksums, order of terms, every list and its bounds.\n"
    "\n"
    "  -h, --help         show this text\n"
    "\n"
    "Exit status: 0 all are sound; 1 one is not, and standard error says where; 2 misuse.\n";

static const char help_explain[] =
    "usage: gpuir explain [OPTION...] INDEX DOCID QUERY...\n"
    "\n"
    "Shows how a document comes to its score: for each term its occurrences in the query (q), df,\n"
    "tf, idf, the weight W, the document's norm K and the contribution c; and how the query is run.\n"
    "\n"
    "  -m, --mode MODE    and (default), or, andor\n"
    "  --k1 X, --b X      BM25 parameters (default: those of the index)\n"
    "  --no-operators     a leading '-' has no meaning\n"
    "  --intersection M   how AND intersects lists; see gpuir query --help\n"
    "  --json             as one JSON object\n"
    "  -h, --help         show this text\n"
    "\n"
    "Exit status: 0 shown, also if the document does not match; 1 failed; 2 misuse.\n";

static const char help_reorder[] =
    "usage: gpuir reorder --order ORDER [OPTION...] INDEX OUTPUT\n"
    "\n"
    "Writes INDEX anew as OUTPUT, which may be the same file, with its documents in another order:\n"
    "docIDs, and so the bytes and the speed of lists, depend on it. Documents and scores stay.\n"
    "\n"
    "  --order ORDER      random[:SEED]  at random (default seed 1)\n"
    "                     name           by name, in byte order\n"
    "                     file:LIST      as in a file of names, one a line; others behind\n"
    "                     score:FILE     by a static score, the highest first: lines of name, tab,\n"
    "                                    score, or of a score for each document in order of docID\n"
    "                     bisect         alike documents near one another, so that gaps are small\n"
    "  --codec NAME       of docIDs (default: that of INDEX)\n"
    "  --memory MB        budget for memory (default 512)\n"
    "  --threads N        threads (default 0: one a processor)\n"
    "  -q, --quiet        no progress bar and no summary\n"
    "  -h, --help         show this text\n"
    "\n"
    "Exit status: 0 written; 1 failed; 2 misuse; 128 + N after signal N.\n";

static const char help_bench[] =
    "usage: gpuir bench [OPTION...] INDEX\n"
    "\n"
    "Measures searches: latency of each query on one thread, and queries a second in batches.\n"
    "\n"
    "Queries (default: --sample 1000)\n"
    "  --queries FILE     from a file: one a line, or TREC topics; '-' is standard input\n"
    "  --sample N         N queries drawn from the collection: a uniform document, a uniform\n"
    "                     length, that many consecutive distinct tokens\n"
    "  --seed S           of the sample (default 1)\n"
    "  --min-df N         documents that each token is in, at least (default 10)\n"
    "  --min-len N        tokens at least (default 2)\n"
    "  --max-len N        tokens at most (default 5)\n"
    "  --require-and-hit  keep only queries with an AND hit\n"
    "  --ids, --no-ids    each line of FILE has an id and a colon, or none has\n"
    "  --no-operators     a leading '-' has no meaning; so it is with sampled queries\n"
    "  --dump-queries F   write the queries to F\n"
    "\n"
    "Measuring\n"
    "  --modes LIST       of and, or, andor, count (default: all)\n"
    "  -k, --k N          hits (default 10)\n"
    "  --threads LIST     for throughput (default: 1 and the number of processors)\n"
    "  --warmup N         rounds before measuring (default 1)\n"
    "  --repeat N         rounds measured; the median counts (default 3)\n"
    "  --backend NAME     cpu (default), gpu, or auto: the gpu if it can, else the cpu\n"
    "  --evaluator NAME   auto (default) or exhaustive\n"
    "  --intersection M   how AND intersects lists; see gpuir query --help\n"
    "  --tsv FILE         write the report to FILE too, as TSV with comments\n"
    "  -h, --help         show this text\n"
    "\n"
    "Exit status: 0 done; 1 failed; 2 misuse.\n";

static const char help_import[] =
    "usage: gpuir import [OPTION...] IN -o INDEX\n"
    "\n"
    "Builds INDEX from an index of another engine: CIFF if IN ends in .ciff or .ciff.gz, otherwise\n"
    "the PISA (ds2i) collection IN.docs, IN.freqs, IN.sizes and, where they are there, IN.terms and\n"
    "IN.documents. Terms and documents are taken as they are; queries go through the analyzer.\n"
    "\n"
    "  --format NAME      of IN: ciff, which may be packed by gzip, or pisa\n"
    "\n"
    "What turns queries into terms: what made the terms of IN\n"
    "  --analyzer NAME    ascii (default) or unicode\n"
    "  --stem LANG        stem with Snowball: porter, english, german, ...\n"
    "  --stop LIST        leave out stop words: english, or a file of words\n"
    "\n"
    "The index\n"
    "  -o, --output INDEX the file to write\n"
    "  --description TEXT of the collection (default: what IN says)\n"
    "  --codec NAME       of docIDs (default bp128); see gpuir index --help\n"
    "  --freq-codec NAME  of frequencies (default bp128)\n"
    "  --k1 X             BM25's k1, 0 to 1000 (default 0.9)\n"
    "  --b X              BM25's b, 0 to 1 (default 0.4)\n"
    "\n"
    "The work\n"
    "  --memory MB        budget for memory (default 512)\n"
    "  --threads N        threads (default 0: one a processor)\n"
    "  -q, --quiet        no progress and no summary\n"
    "  -h, --help         show this text\n"
    "\n"
    "A file that is damaged is refused, with the offset. Exit status: 0 written; 1 failed; 2 misuse;\n"
    "128 + N after signal N.\n";

static const char help_export[] =
    "usage: gpuir export [--format NAME] INDEX OUT\n"
    "\n"
    "Writes an index for other engines: as CIFF if OUT ends in .ciff or .ciff.gz, otherwise as the\n"
    "PISA (ds2i) collection OUT.docs, OUT.freqs, OUT.sizes, OUT.terms and OUT.documents. Stored text,\n"
    "paths, the analyzer and BM25's parameters have no place in either.\n"
    "\n"
    "  --format NAME      ciff or pisa, whatever the suffix; .gz packs CIFF by gzip\n"
    "  -h, --help         show this text\n"
    "\n"
    "Exit status: 0 written; 1 failed; 2 misuse; 128 + N after signal N.\n";

static const char help_serve[] =
    "usage: gpuir serve --stdio INDEX\n"
    "\n"
    "Answers requests, one a line on standard input, each with one line on standard output: the\n"
    "protocol of the search benchmark game. A request is a command, a tab and a query:\n"
    "\n"
    "  TOP_10, TOP_100, TOP_1000                    rank so many documents; the answer is 1\n"
    "  TOP_10_COUNT, TOP_100_COUNT, TOP_1000_COUNT  the same; the answer counts the matches\n"
    "  COUNT                                        the answer counts the matches\n"
    "\n"
    "  a b: any word; +a +b: all words; -a: without. The answer is UNSUPPORTED to a phrase, to any\n"
    "  other syntax, and to TOP_ of a query that has words with and words without a plus.\n"
    "\n"
    "  --stdio            standard input and output, which is the one way to serve\n"
    "  -h, --help         show this text\n"
    "\n"
    "Exit status: 0 at the end of the input; 1 failed; 2 misuse; 128 + N after signal N.\n";

static const char help_lab[] =
    "usage: gpuir lab codecs|intersect|search|linearity [OPTION...] INDEX [QUERIES]\n"
    "       gpuir lab plot [-o DIR] [--figures LIST] [FILE.tsv|FOLDER...]\n"
    "\n"
    "Repeats the experiments of the papers on the lists of an index, by a core of the CPU and by the\n"
    "GPU, if there is one. Prints tables, and writes the rows to DIR/codecs.tsv (intersect.tsv,\n"
    "search.tsv, linearity.tsv), with a chart of each figure as FIGURE.svg.\n"
    "\n"
    "  codecs     size and speed of the codecs of docIDs\n"
    "  intersect  speed of the intersection methods, on arrays and on compressed lists\n"
    "  search     speed of ranked queries, and of the ranking alone\n"
    "  linearity  how well a line fits the lists\n"
    "  plot       draw the charts again from TSV files, beside them or into DIR\n"
    "\n"
    "The lists are those of the terms of QUERIES (one a line, or TREC topics), or of all terms.\n"
    "\n"
    "  -o, --output DIR   folder of the results (default build/lab)\n"
    "  --sample N         lists of each class of length (default 16)\n"
    "  --pairs N          pairs of lists at each ratio and length (default 100)\n"
    "  --queries N        queries (default 1000)\n"
    "  --seed N           of the sample (default 1)\n"
    "  --repeat N         measurements of each time; the median counts (default 5)\n"
    "  --codecs LIST      only these codecs, with parameters or without, as in bp128,qs:1.5\n"
    "  --methods LIST     only these intersection methods\n"
    "  --figures LIST     only these tables and figures\n"
    "  --backend NAME     auto (default): the gpu too, if there is one; gpu: it must be there; cpu\n"
    "  -h, --help         show this text\n"
    "\n"
    "Exit status: 0 done; 1 failed; 2 misuse; 128 + N after signal N.\n";

static const char help_help[] =
    "usage: gpuir help [COMMAND]\n"
    "\n"
    "Shows the commands, or the help of one.\n";

int cli_help(const char *command) {
  static const struct {
    const char *name, *text;
  } texts[] = {{"index", help_index},     {"query", help_query},     {"count", help_count},
               {"stats", help_stats},     {"terms", help_terms},     {"verify", help_verify},
               {"explain", help_explain}, {"reorder", help_reorder}, {"import", help_import},
               {"export", help_export},   {"bench", help_bench},     {"serve", help_serve},
               {"lab", help_lab},         {"help", help_help}};
  const char *text = command ? NULL : overview;
  for (size_t i = 0; !text && i < sizeof texts / sizeof *texts; i++)
    if (!strcmp(texts[i].name, command)) text = texts[i].text;
  if (!text) {
    cli_error("there is no command '%s'; try 'gpuir help'", command);
    return CLI_USAGE;
  }
  fputs(text, stdout);
  return cli_finish(CLI_OK);
}
