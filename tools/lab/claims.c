/* claims.c - five papers: their tables and figures, what they found, and how the same is computed from our charts.
 *
 * A place without a chart in any log is listed in the report with its reason. A test says what counts as holding: where
 * a paper says "much faster", 1.5 times, and where it says "about as fast", less than twice either way. verdict.c has
 * the rule by which a test is applied. A new log decides a claim once the claim names it; it needs a label as well.
 */
#include "claims.h"

const claims_paper claims_papers[] = {{"ding", "Ding 2009",
                                          "Shuai Ding, Jinru He, Hao Yan, Torsten Suel: Using Graphics Processors for "
                                          "High Performance IR Query Processing. "
                                          "WWW 2009"},
    {"ao", "Ao 2011",
        "Naiyong Ao, Fan Zhang, Di Wu, Douglas S. Stones, Gang Wang, Xiaoguang Liu, Jing Liu, Sheng Lin: Efficient "
        "Parallel Lists Intersection and Index Compression Algorithms using Graphics Processing Units. PVLDB 4(8), "
        "2011"},
    {"griffin", "Griffin 2018",
        "Yang Liu, Jianguo Wang, Steven Swanson: Griffin: Uniting CPU and GPU in Information Retrieval Systems for "
        "Intra-Query Parallelism. PPoPP 2018"},
    {"qs", "Li 2014",
        "Shi Li: Decompressing Inverted Indexes using a GPU-based Parallel-QS Method. Master's thesis, Polytechnic "
        "Institute of New York University, 2014"},
    {"tatikonda", "Tatikonda 2011",
        "Shirish Tatikonda, B. Barla Cambazoglu, Flavio P. Junqueira: Posting List Intersection on Multicore "
        "Architectures. SIGIR 2011"},
    {NULL, NULL, NULL}};

#define DRAWING "it explains a method and shows no measurement"
#define BY_LAB(command) "not measured yet: `gpuir lab " command "` measures it"
#define BY_CORES "not measured yet: `tools/scripts/tatikonda.sh` measures it on 8 cores"
#define BY_BOTH "not measured yet: it needs a load on a CPU and a GPU together"

const claims_place claims_places[] = {
    {"ding-fig3", "ding", "Figure 3", "Compression by levels of recursion", "ding-fig3", BY_LAB("codecs")},
    {"ding-table1", "ding", "Table 1", "Speed of decompression", "ding-table1", BY_LAB("codecs")},
    {"ding-fig4", "ding", "Figure 4", "Speed of decompression by length of list", "ding-fig4", BY_LAB("codecs")},
    {"ding-fig6", "ding", "Figure 6", "Intersection of two lists of like length", "ding-fig6", BY_LAB("intersect")},
    {"ding-7.3", "ding", "Section 7.3", "Lists of different lengths", "ratio-arrays", BY_LAB("intersect")},
    {"ding-table2", "ding", "Table 2", "Time of a query", "ding-table2", BY_LAB("search")},
    {"ding-table3", "ding", "Table 3", "Shares of the steps of a query", "ding-table3", BY_LAB("search")},
    {"ding-8.4", "ding", "Section 8.4", "Effects of the properties of queries", "ding-8.4*,ding-84*", BY_BOTH},
    {"ding-fig7", "ding", "Figure 7", "Delay by rate of arrival, on both processors", "ding-fig7*,ding-9*", BY_BOTH},
    {"ding-drawings", "ding", "Figures 1, 2, 5", "Architecture of a search engine, of a node; splitters", "", DRAWING},

    {"ao-fig1", "ao", "Figure 1", "DocIDs by their place in the list", "ao-fig1", BY_LAB("linearity")},
    {"ao-table1", "ao", "Table 1", "How well a line fits the lists", "ao-table1", BY_LAB("linearity")},
    {"ao-fig3", "ao", "Figure 3", "Sizes of hash buckets", "ao-fig3", BY_LAB("linearity --figures ao-fig3")},
    {"ao-fig5", "ao", "Figure 5", "Throughput by threshold", "ao-fig5*,ao-throughput,ao-batch,ao-response,ao-parts",
        BY_LAB("intersect")},
    {"ao-fig6", "ao", "Figure 6", "Response time by threshold", "ao-fig6*,ao-response,ao-parts", BY_LAB("intersect")},
    {"ao-fig7", "ao", "Figure 7", "Compression by proportion of exceptions", "ao-fig7", BY_LAB("codecs")},
    {"ao-fig8", "ao", "Figure 8", "Speed of decompression by proportion of exceptions", "ao-fig8", BY_LAB("codecs")},
    {"ao-table2", "ao", "Table 2", "Compression by order of the documents", "ao-table2", BY_LAB("codecs")},
    {"ao-fig9a", "ao", "Figure 9a", "Speed-up by multiprocessors", "ao-fig9a*", BY_BOTH},
    {"ao-fig9b", "ao", "Figure 9b", "Share of the GPU in the time of a batch", "ao-fig9b*", BY_BOTH},
    {"ao-table3", "ao", "Table 3", "Speed-up over a core's skip list", "ao-table3,ao-table3-core,query-time",
        BY_LAB("intersect")},
    {"ao-table4", "ao", "Table 4", "What is left of a list as the intersection proceeds", "ao-table4",
        BY_LAB("intersect --figures ao-table4")},
    {"ao-table5", "ao", "Table 5", "Bits that theory expects, and those measured", "ao-table5", BY_LAB("codecs")},
    {"ao-table6", "ao", "Table 6", "Platform", "",
        "the machines of our logs stand under Logs, each with its commit and command"},
    {"ao-table7", "ao", "Table 7", "Throughput and response time on compressed lists", "ao-table7*",
        BY_LAB("intersect")},
    {"ao-memory", "ao", "Section 6.1", "Memory that hash segmentation needs", "prepared", BY_LAB("intersect")},
    {"ao-drawings", "ao", "Figures 2, 4, 10", "Regression lines, segments, decompression", "", DRAWING},

    {"griffin-fig7", "griffin", "Figure 7", "Ranking the candidates of a query", "griffin-fig7", BY_LAB("search")},
    {"griffin-fig8", "griffin", "Figure 8", "Where CPU and GPU cross over", "griffin-fig8", BY_LAB("intersect")},
    {"griffin-fig10", "griffin", "Figure 10", "Lengths of the lists", "griffin-fig10", BY_LAB("intersect")},
    {"griffin-fig11", "griffin", "Figure 11", "Numbers of terms of the queries", "griffin-fig11*,griffin-moves",
        BY_BOTH},
    {"griffin-table1", "griffin", "Table 1", "Compression ratio", "griffin-table1", BY_LAB("intersect")},
    {"griffin-fig12", "griffin", "Figure 12", "Time of decompression", "griffin-fig12", BY_LAB("intersect")},
    {"griffin-fig13", "griffin", "Figure 13", "Time of an intersection", "griffin-fig13", BY_LAB("intersect")},
    {"griffin-fig14", "griffin", "Figure 14", "Latency of whole queries", "griffin-fig14*", BY_BOTH},
    {"griffin-fig15", "griffin", "Figure 15", "Tail latency", "griffin-fig15*", BY_BOTH},
    {"griffin-drawings", "griffin", "Figures 1 to 6, 9", "Schemes, codes, partitions, paths, an example", "", DRAWING},

    {"qs-table1", "qs", "Table 1", "Compressed size", "qs-table1", BY_LAB("codecs")},
    {"qs-table2", "qs", "Table 2", "Speed of decompression", "qs-table2", BY_LAB("codecs")},
    {"qs-fig6", "qs", "Figure 6", "Speed by the bits of the lower halves", "qs-fig6",
        BY_LAB("codecs --figures qs-fig6")},
    {"qs-fig8", "qs", "Figure 8", "Steps of the naive method", "qs-fig8", BY_LAB("codecs") ", on a GPU"},
    {"qs-fig10", "qs", "Figure 10", "Steps of the method by words", "qs-fig10", BY_LAB("codecs") ", on a GPU"},
    {"qs-fig11", "qs", "Figure 11", "Before and after optimising", "qs-fig11", BY_LAB("codecs") ", on a GPU"},
    {"qs-fig12", "qs", "Figure 12", "Size by the parameter c", "qs-fig12", BY_LAB("codecs")},
    {"qs-fig13", "qs", "Figure 13", "Speed by the parameter c", "qs-fig13", BY_LAB("codecs")},
    {"qs-fig14", "qs", "Figure 14", "Threads of a block", "qs-fig14", BY_LAB("codecs") ", on a GPU"},
    {"qs-drawings", "qs", "Figures 1 to 5, 7, 9", "A GPU, codes and gathers by example", "", DRAWING},

    {"tatikonda-fig4a", "tatikonda", "Figure 4a", "Throughput by cores", "tatikonda-fig4a", BY_CORES},
    {"tatikonda-fig4b", "tatikonda", "Figure 4b", "Latency by cores", "tatikonda-fig4b", BY_CORES},
    {"tatikonda-fig4c", "tatikonda", "Figure 4c", "What \xce\xb2 gains and costs", "tatikonda-fig4c*", BY_CORES},
    {"tatikonda-uneven", "tatikonda", "Figure 4, balance", "Ranges of docIDs that are uneven",
        "tatikonda-uneven,tatikonda-uneven-latency,tatikonda-balance,tatikonda-balance-latency",
        "not measured yet: `FIGURES=uneven tools/scripts/tatikonda.sh` measures it"},
    {"tatikonda-fig5a", "tatikonda", "Figure 5a", "Latency by rate of arrival", "tatikonda-fig5a", BY_CORES},
    {"tatikonda-fig5b", "tatikonda", "Figure 5b", "Latency by number of terms", "tatikonda-fig5b", BY_CORES},
    {"tatikonda-fig5c", "tatikonda", "Figure 5c", "Throughput by number of terms", "tatikonda-fig5c", BY_CORES},
    {"tatikonda-fig6", "tatikonda", "Figure 6", "Latency by rate, of 4 and 6 terms", "tatikonda-fig6*", BY_CORES},
    {"tatikonda-fig7", "tatikonda", "Figure 7", "Effects of the size of skip blocks",
        "tatikonda-fig7,tatikonda-fig7-values", BY_CORES},
    {"tatikonda-drawings", "tatikonda", "Figures 1 to 3", "Models of parallelism, a framework, skip lists", "",
        DRAWING},
    {NULL, NULL, NULL, NULL, NULL, NULL}};

#define SATURATED "All queries are submitted at once, and times are those of processing."
#define FROM_DUE "Latency counts from when a query is due, so it has the wait."

/* The logs that decide most claims: three collections. */
#define TEXTS "lab-web/*,lab-dict/*,lab/*"
/* What is counted was counted on a fourth, which came by CIFF. */
#define COUNTED TEXTS ",lab-manuals/*"
/* Ding's policy by arrivals: runs of ten deadlines, five seeds. */
#define DING_HOLDS \
  "schedulers/ding-hold,schedulers-more/ding-hold-1,schedulers-more/ding-hold-1-500,schedulers-more/ding-hold-paper," \
  "schedulers-more/ding-hold-dict"
/* One core, with nothing beside it, on two machines. */
#define CORES_ALONE "lab-alone/web-codecs,lab-alone/dict-codecs,lab-alone/web-codecs-h100,lab-alone/dict-codecs-h100"
#define TASKS "tatikonda-rounds,tatikonda-large/tatikonda"
/* Three collections in the orders that they have a sense in. */
#define UNEVEN "tatikonda-uneven/*"

const char claims_counted[] =
    "ding-fig3,ding-9-cache,ao-fig1,ao-fig3,ao-fig7,ao-table1,ao-table2,ao-table4,ao-table5,"
    "ao-batch,prepared,pairs,sizes,griffin-fig10,griffin-fig11*,griffin-table1,qs-table1,qs-fig12";

const claims_label claims_labels[] = {{"lab-web/*", "Web"}, {"lab-dict/*", "Dictionary"}, {"lab/*", "Linux"},
    {"lab-pagerank/*", "Linux by PageRank"}, {"lab-ao/*", "Dictionary, the whole log of queries"},
    {"lab-ao-large/*", "Web, 1,000 queries"}, {"tatikonda-uneven/manuals", "Manuals in five orders"},
    {"tatikonda-uneven/linux", "Linux files in four orders"}, {"tatikonda-uneven/dict", "Dictionary in three orders"},
    {"lab-manuals/*", "Manuals, by CIFF"}, {"lab-manuals-gpu/*", "Manuals, by CIFF, with a GPU"},
    {"lab-chunks/*", "Linux, by CIFF"}, {"schedulers/ding-tables", "Web, scores after each round"},
    {"lab-alone/web-codecs", "Web, a core alone"}, {"lab-alone/dict-codecs", "Dictionary, a core alone"},
    {"lab-alone/web-codecs-fast", "Web, a core at 3.94 GHz"}, {"lab-alone/dict-search", "Dictionary, a core alone"},
    {"lab-alone/web-search", "Web, alone"}, {"lab-alone/web-table2", "Web, a core alone"},
    {"lab-alone/web-table2-h100", "Web, an H100 and its machine's core"},
    {"lab-alone/web-codecs-h100", "Web, an H100 and its machine's core"},
    {"lab-alone/dict-codecs-h100", "Dictionary, an H100 and its machine's core"},
    {"lab-cache/or-1", "OR, 1 million documents"}, {"lab-cache/or-8", "OR, 8 million documents"},
    {"lab-cache/or-40", "OR, 40 million documents"}, {"lab-cache/pairs-4", "Lists of 2 million docIDs"},
    {"lab-cache/pairs-24", "Lists of 12 million docIDs"}, {"lab-alone/web-table3", "Web, a core alone"},
    {"lab-alone/dict-table3", "Dictionary, a core alone"}, {"lab-cache/long", "25.2 million documents"},
    {"lab-cache/long-cold", "25.2 million documents, cold cache"}, {"lab-cache/web", "Web, warm cache"},
    {"lab-cache/web-cold", "Web, cold cache"}, {"lab-cache/small", "1 million documents"},
    {"schedulers/ding-hold", "Ding by arrivals, 12 cores"}, {"schedulers-more/ding-hold-1", "Ding by arrivals, 1 core"},
    {"schedulers-more/ding-hold-1-500", "Ding by arrivals, 1 core, 500 ms"},
    {"schedulers-more/ding-hold-paper", "Ding by arrivals, 12 cores, the paper's methods"},
    {"schedulers-more/ding-hold-dict", "Ding by arrivals on Dictionary"},
    {"schedulers-more/ding-over-dict", "Ding on Dictionary, overload"}, {"schedulers-more/ding-over", "Ding, overload"},
    {"schedulers/ao-documents", "Ao, whole logs, documents alone"},
    {"schedulers/ao-small", "Ao, whole logs, 1 million documents"}, {"schedulers/ding-web", "Ding, 12 cores"},
    {"schedulers-more/ding-web-1", "Ding, 1 core"},
    {"schedulers-more/ding-web-57", "Ding, a deadline of 57 times the mean"},
    {"schedulers-more/ding-dict", "Ding on Dictionary"}, {"schedulers-more/ding-chunks", "Ding on Linux"},
    {"schedulers-more/ding-part", "Ding, device memory for a sixth"},
    {"schedulers-more/ding-web-adaptive", "Ding, \xce\xb8 by what waits"},
    {"schedulers-more/ding-web-batch-64", "Ding, batches of 64"},
    {"schedulers-more/ding-web-steal-plain", "Ding, whoever idles steals"},
    {"schedulers-more/ding-web-streams-4", "Ding, four drivers"},
    {"schedulers/griffin-transfer", "Griffin, lists sent"}, {"schedulers/griffin-resident", "Griffin, lists resident"},
    {"schedulers-more/griffin-live", "Griffin, open loop"}, {"schedulers-more/griffin-ratios", "Griffin, other ratios"},
    {"schedulers-more/griffin-ratio-128", "Griffin, a ratio of 128"}, {"schedulers/ao", "Ao, whole logs"},
    {"schedulers/ao-hslrc", "Ao, compressed lists"}, {"schedulers/ao-live", "Ao, arrivals"},
    {"schedulers/ao-part", "Ao, parts of the device"}, {"schedulers/beside-core", "A core of the library"},
    {"schedulers/beside-auto", "The library's auto"}, {"schedulers/beside-gpu", "The library's device alone"},
    {"schedulers/beside-inter", "The library's inter"}, {"schedulers/mixed-auto", "Mixed load on Web, auto"},
    {"schedulers/mixed-ding", "Mixed load on Web, Ding"}, {"schedulers/mixed-gpu", "Mixed load on Web, device alone"},
    {"schedulers/mixed-inter", "Mixed load on Web, inter"},
    {"schedulers-more/mixed-dict-auto", "Mixed load on Dictionary, auto"},
    {"schedulers-more/mixed-dict-ding", "Mixed load on Dictionary, Ding"},
    {"schedulers-more/mixed-dict-gpu", "Mixed load on Dictionary, device alone"},
    {"schedulers-more/mixed-dict-inter", "Mixed load on Dictionary, inter"},
    {"schedulers-more/mixed-chunks-auto", "Mixed load on Linux, auto"},
    {"schedulers-more/mixed-chunks-ding", "Mixed load on Linux, Ding"},
    {"schedulers-more/mixed-chunks-gpu", "Mixed load on Linux, device alone"},
    {"schedulers-more/mixed-chunks-inter", "Mixed load on Linux, inter"}, {"schedulers-more/and-auto", "ANDs, auto"},
    {"schedulers-more/and-ding", "ANDs, Ding"}, {"schedulers-more/and-gpu", "ANDs, device alone"},
    {"schedulers-more/and-inter", "ANDs, inter"}, {"schedulers-more/and-griffin", "ANDs, Griffin"},
    {"schedulers-more/and-ao", "ANDs, Ao"}, {"tatikonda", "4 million documents"},
    {"tatikonda-rounds", "4 million documents, in rounds"},
    {"tatikonda-uneven/manuals-8", "Manuals on 8 idle processors"}, {"tatikonda-large/*", "25.2 million documents"},
    {NULL, NULL}};

const claims_sentence claims_sentences[] = {
    {"ding-fig3/level",
        "One level of recursion makes Ding's list-wide PForDelta smaller than the block-wise one, "
        "{[size@pfd-list:0];2} to "
        "{[size@pfd-list:1];2} bytes a docID on Web, as the paper found.",
        "One level of recursion makes Ding's list-wide PForDelta smaller than the block-wise one, "
        "{[size@pfd-list:0];2} "
        "to {[size@pfd-list:1];2} bytes a docID on Web, but not on every collection: where pages of a manual stand "
        "together, the block-wise one is as small.",
        "One level of recursion does not make Ding's list-wide PForDelta smaller than the block-wise one.", NULL},
    {"ding-fig6/gpu", NULL, NULL,
        "Recursion makes Parallel Merge Find slower on a GPU of today, not faster: {[pmf0/GPU@last];3} ns a docID "
        "without, "
        "{[pmf3/GPU@last];3} with three levels.",
        NULL},
    {"ding-table2/or",
        "OR that scores every match gains {[CPU/exhaustive@OR] / [GPU/pmf3+tree/alone@OR];1} times on the GPU by "
        "the paper's methods on Dictionary, and more on Web, where the paper has 7; over a core that prunes it is "
        "{[CPU@OR] / [GPU/pmf3+tree/alone@OR];1} on Dictionary.",
        NULL, "OR that scores every match does not gain on the GPU by the paper's methods.", NULL},
    {"ding-fig7/both",
        "With both processors Ding's scheduler holds more arrivals than one holds and the other adds, in every log.",
        "With both processors Ding's scheduler holds more arrivals than one holds and the other adds on Web, with one "
        "core and with twelve, {[ding-fig7-held#held@parallel];0} a second beside {[ding-fig7-held#held@cpu] + "
        "[ding-fig7-held#held@gpu];0}; on Dictionary, whose queries a core answers in microseconds, cores alone hold "
        "more.",
        "Both processors do not hold more arrivals than one holds and the other adds.",
        "Whether both processors hold more arrivals than one holds and the other adds is open."},
    {"ao-table2/order", "Regression codes gain in a random order, and PForDelta stays smaller, as Ao found.",
        "Regression codes gain in a random order, but not on every collection.",
        "Regression codes do not gain in a random order, or are smaller than PForDelta.", NULL},
    {"ao-fig5/hs16-whole", "Hash segmentation answers 60 % more than binary search in batches of a million docIDs.",
        NULL,
        "Hash segmentation answers {100 * [ao-response#binary@1048576] / [ao-response#hs16@1048576] - 100;0} % more "
        "than "
        "binary search in batches of a million docIDs, not 60.",
        "Hash segmentation answers {100 * [ao-response#binary@1048576] / [ao-response#hs16@1048576] - 100;0} % more "
        "than "
        "binary search in batches of a million docIDs; whether that can be the paper's 60 is open."},
    {"ao-table7/hslrc", "HS256.LRC has the highest throughput on compressed lists, as Ao found.", NULL,
        "HS256.LRC is not the fastest on compressed lists: `{most [ao-table7#GPU@*]}` is, by "
        "{max([ao-table7#GPU@*]) / [ao-table7#GPU@hslrc:256,0/algorithm1];2} times.",
        NULL},
    {"griffin-fig14/speed", "Griffin is ten times as fast as its CPU and 1.5 times as fast as its GPU alone.", NULL,
        "Griffin is {[CPU/transfer@all] / [Griffin/transfer@all];1} times as fast as its CPU and "
        "{[Griffin-GPU/transfer@all] / [Griffin/transfer@all];2} times as its GPU alone, not 10 and 1.5.",
        "Griffin is {[CPU/transfer@all] / [Griffin/transfer@all];1} times as fast as its CPU and "
        "{[Griffin-GPU/transfer@all] / [Griffin/transfer@all];2} times as its GPU alone, of queries of two words or "
        "more; whether that counts as the paper's 1.5 is open."},
    {"qs-fig12/c", "c = 1 gives Li's quasi-succinct codes their smallest size, on every collection.",
        "c = 1 gives Li's quasi-succinct codes their smallest size on some collections.",
        "c = 1 does not give Li's quasi-succinct codes their smallest size.", NULL},
    {"tatikonda-uneven/ranges",
        "Ranges of docIDs leave cores idle where ranges are uneven, and tasks of skip blocks do not, as Tatikonda "
        "found: "
        "with manuals in the order of their paths 8 cores gain at most {[DOCP-UI-8@path];1} times by ranges, and "
        "{[FGQP-8@path];1} by tasks.",
        NULL, "Ranges of docIDs divide queries as well as tasks of skip blocks do.", NULL},
    {NULL, NULL, NULL, NULL, NULL}};

const claims_claim claims_claims[] = {
    /* ---- Ding ---- */
    {"ding-fig3/rice", "Rice codes are smaller than every PForDelta.",
        "bytes a docID: `rice` {[size@rice];3}, smallest `{least [size@*]}` {min([size@*]);3}",
        "[size@rice] <= min([size@*])",
        "Exceptions of list-wide PForDelta are coded again, so one width serves most of a list. Real lists are "
        "clustered "
        "as well, and block-wise PForDelta has a width for each block, where Rice has one parameter.",
        COUNTED, METHOD},
    {"ding-fig3/level", "Without recursion, list-wide PForDelta is larger than block-wise; one level makes it smaller.",
        "`pfd` {[size@pfd];3}, `pfd-list` at level 0 {[size@pfd-list:0];3}, at level 1 {[size@pfd-list:1];3}",
        "[size@pfd-list:0] > [size@pfd] & [size@pfd-list:1] < [size@pfd]",
        "A list's gaps spread more widely than a block's, so one width has many exceptions; a second one has few. "
        "Where "
        "documents on one matter stand together, as in manuals, blocks differ so much that their own widths are as "
        "good.",
        COUNTED, METHOD},
    {"ding-fig3/levels", "More levels than one change little (we say: 5 %).",
        "`pfd-list` at level 1 {[size@pfd-list:1];3}, 2 {[size@pfd-list:2];3}, 4 {[size@pfd-list:4];3}",
        "[size@pfd-list:4] > 0.95 * [size@pfd-list:1]",
        "In a random order, as on web, gaps have few scales. Clustered lists have more of them, and each level serves "
        "one.",
        COUNTED, METHOD},
    {"ding-table1/lists", "List by list, a GPU decodes about as fast as a core.",
        "million values a second, core and GPU: `rice` {[CPU@rice];0} and {[GPU/list@rice];0}, `pfd-list` "
        "{[CPU@pfd-list];0} and {[GPU/list@pfd-list];0}; many lists in one run: {[GPU@rice];0} and {[GPU@pfd-list];0}",
        "[GPU/list@rice] < 2 * [CPU@rice] & 2 * [GPU/list@rice] > [CPU@rice] & [GPU/list@pfd-list] < 2 * "
        "[CPU@pfd-list] & 2 * [GPU/list@pfd-list] > [CPU@pfd-list]",
        "A run of one list is mostly the start of a kernel, and the dictionary's lists are short. Many lists fill the "
        "device. How fast a core is depends on the machine: with nothing beside it, it ran at 2.57 GHz on this one and "
        "at 3.94 on another.",
        CORES_ALONE ",lab-alone/web-codecs-fast", METHOD},
    {"ding-table1/pfd", "PForDelta is decoded much faster than Rice, on either processor.",
        "a core, million values a second: `rice` {[CPU@rice];0}, `pfd-list` {[CPU@pfd-list];0}, `pfd` {[CPU@pfd];0}",
        "[CPU@pfd-list] > 1.5 * [CPU@rice]",
        "Rice is decoded by vectors here, 128 values at a time, and levels of exceptions cost list-wide PForDelta "
        "passes.",
        CORES_ALONE ",lab-alone/web-codecs-fast,lab/*", METHOD},
    {"ding-fig4/short", "On short lists a GPU is slower than a core.",
        "`pfd-list`: the GPU is faster from {below([pfd-list], [pfd-list/GPU]);0} postings on; `rice`: from "
        "{below([rice], [rice/GPU]);0}",
        "[pfd-list/GPU@first] < [pfd-list@first]",
        "A run has at least 6 microseconds, in which a core decodes thousands of values.", CORES_ALONE, METHOD},
    {"ding-fig4/sums", "Without its prefix sums the GPU decodes much faster, about twice as fast.",
        "longest lists, million values a second: {[pfd-list/GPU@last];0} with sums, {[pfd-list/GPU/gaps@last];0} "
        "without",
        "[pfd-list/GPU/gaps@last] > 1.5 * [pfd-list/GPU@last]",
        "A warp sums up in registers while it waits for memory, so the sums cost nothing here.", CORES_ALONE, METHOD},
    {"ding-fig6/core", "Recursion makes Parallel Merge Find much faster, on a core.",
        "longest lists, ns a docID, levels 0 to 4: {[pmf0@last]}, {[pmf1@last]}, {[pmf2@last]}, {[pmf3@last]}, "
        "{[pmf4@last]}",
        "1.5 * [pmf3@last] < [pmf0@last]", "A search within a segment touches fewer cache lines.", TEXTS, METHOD},
    {"ding-fig6/gpu", "The same on a GPU; three levels are best there.",
        "longest lists, ns a docID, levels 0 to 4: {[pmf0/GPU@last];3}, {[pmf1/GPU@last];3}, {[pmf2/GPU@last];3}, "
        "{[pmf3/GPU@last];3}, {[pmf4/GPU@last];3}",
        "1.5 * [pmf3/GPU@last] < [pmf0/GPU@last]",
        "Each level is a launch more, and saves steps that are cheap. It is not the cache: after twice as many bytes "
        "as it has were written before each run, three levels take twice as long as none, as without that, and so they "
        "do on two lists of 12 million docIDs, which it does not hold.",
        TEXTS ",lab-cache/long,lab-cache/long-cold,lab-cache/pairs-4,lab-cache/pairs-24", METHOD},
    {"ding-7.3/ratio",
        "With 200,000 postings in the shorter list, the cost rises moderately, from 4 to 15 ns, as the longer one "
        "grows 64 times.",
        "three levels, ns a posting of the shorter list, ratios 1 and 64: GPU {[pmf3/GPU@1]} and {[pmf3/GPU@64]}, core "
        "{[pmf3@1]} and {[pmf3@64]}",
        NULL, "Our longer lists keep their length and the shorter ones shrink, so the device has less and less to do.",
        TEXTS, METHOD},
    {"ding-table2/and", "AND takes about as long on the GPU as on a core.",
        "ms a query: core {[CPU@AND]}, the paper's methods {[GPU/pmf3+tree/alone@AND]}; gpuir's engine on the GPU "
        "{[GPU/alone@AND]} alone and {[GPU/batch@AND]} in batches",
        "[GPU/pmf3+tree/alone@AND] < 2 * [CPU@AND] & 2 * [GPU/pmf3+tree/alone@AND] > [CPU@AND]",
        "It depends on the lists. Each round of the paper's methods is several launches: on short lists a core wins by "
        "far, on long ones the GPU. In batches the GPU is ahead by any method.",
        "lab-alone/web-table2,lab-alone/web-table2-h100,lab-alone/dict-search", METHOD},
    {"ding-table2/or", "OR that scores every match gains most: 7 times over a core.",
        "ms a query: core, exhaustive {[CPU/exhaustive@OR]}; core, pruned {[CPU@OR]}; the paper's methods "
        "{[GPU/pmf3+tree/alone@OR]}",
        "[CPU/exhaustive@OR] > 1.5 * [GPU/pmf3+tree/alone@OR]",
        "A core that prunes leaves out most of what accumulators add up, and the GPU gains little over it or loses.",
        "lab-alone/web-table2,lab-alone/web-table2-h100,lab-alone/dict-search", METHOD},
    {"ding-table2/andor", "AND, then OR where that has too few hits, gains 2.4 times over a core.",
        "ms a query: core, AND with skipping, then OR that scores every match, {[CPU/skip+exhaustive@AND+OR]}; core, "
        "pruned {[CPU@AND+OR]}; the paper's methods {[GPU/pmf3+tree/alone@AND+OR]}: {[CPU/skip+exhaustive@AND+OR] / "
        "[GPU/pmf3+tree/alone@AND+OR];2} times",
        "[CPU/skip+exhaustive@AND+OR] > 1.5 * [GPU/pmf3+tree/alone@AND+OR]",
        "On Dictionary 95 of 100 queries are asked in OR, on Web 53. A core that scores every posting for the AND as "
        "well, CPU/exhaustive, is no baseline of the paper's.",
        "lab-alone/web-table2,lab-alone/web-table2-h100,lab-alone/dict-search", METHOD},
    {"ding-table3/and", "Of AND, 92 % is decoding and intersecting.",
        "alone: decoding and intersecting {[AND/pmf3+tree/alone@decode] + [AND/pmf3+tree/alone@intersect];0} %, scores "
        "{[AND/pmf3+tree/alone@score];0} %",
        "[AND/pmf3+tree/alone@decode] + [AND/pmf3+tree/alone@intersect] > 80",
        "In the logs of Web and Dictionary, scores are computed once at the end, and every list is looked up again for "
        "that; in that of the schedulers they are added after each intersection, as in the paper. Of a query alone, "
        "each step is a launch and counts more than in a batch.",
        "schedulers/ding-tables,lab-alone/web-search,lab-alone/dict-search", METHOD},
    {"ding-table3/or", "Of OR, about half is computing scores.",
        "alone: scores {[OR/tree/alone@score];0} %, collecting candidates {[OR/tree/alone@collect];0} %, selecting the "
        "best {[OR/tree/alone@select-top-k];0} %",
        "[OR/tree/alone@score] > 40",
        "Collecting reads and clears the accumulators of all documents. It is not the cache that makes scores cheap: "
        "where 40 million documents have nearly three times as many bytes of accumulators as it holds, scores have a "
        "greater share than with 1 and 8 million, which fit, and collecting still takes most. In the logs lab-web and "
        "lab-dict one block of threads selects the best of a query; in these "
        "the whole GPU does, as in the paper.",
        "schedulers/ding-tables,lab-alone/web-search,lab-alone/dict-search,lab-cache/or-1,lab-cache/or-8,"
        "lab-cache/or-40",
        METHOD},
    {"ding-8.4/costs",
        "Costs grow with the terms, of CPU and GPU alike; small queries are faster on the CPU, large ones on the GPU.",
        "ms by all postings, CPU and GPU: fewest {[ding-84-footprint#CPU@first]} and {[ding-84-footprint#GPU@first]}, "
        "most "
        "{[ding-84-footprint#CPU@last]} and {[ding-84-footprint#GPU@last]}",
        "[ding-84-footprint#CPU@first] < [ding-84-footprint#GPU@first] & [ding-84-footprint#GPU@last] < "
        "[ding-84-footprint#CPU@last]",
        "The costs are those that the scheduler learns from: medians of runs by either processor.",
        "schedulers/ding-web,schedulers-more/ding-dict,schedulers-more/ding-chunks", METHOD},
    {"ding-fig7/prediction", "Costs are predicted with an error of 20 % on the CPU and of 22 % on the GPU.",
        "error of other queries: CPU {[ding-9-model#CPU@error/others];1} %, GPU {[ding-9-model#GPU@error/others];1} %; "
        "the cheaper one is found for {[ding-9-model#choice@right];1} %",
        "[ding-9-model#CPU@error/others] < 25 & [ding-9-model#GPU@error/others] < 27",
        "Costs are medians of runs while all processors work. In older logs leaves of the model tree went on beyond "
        "their examples.",
        DING_HOLDS, METHOD},
    {"ding-fig7/memory", "50 to 80 % of the lists are in the device's memory.",
        "{[ding-9-cache#parallel@last];1} % at the highest rate", "[ding-9-cache#parallel@last] >= 50",
        "A device of today holds all of such an index. Where memory is bounded here, a third of it is there.",
        "schedulers-more/ding-part", SETUP},
    {"ding-fig7/both",
        "Both processors together take more queries a second than one alone takes and the other adds: over 300, where "
        "a core takes fewer than 100.",
        "highest rate of arrivals at which no query misses its deadline and no queue grows, the mean of five seeds: "
        "both {[ding-fig7-held#held@parallel];0}, CPU {[ding-fig7-held#held@cpu];0}, GPU "
        "{[ding-fig7-held#held@gpu];0}; both over the sum {[ding-fig7-held#held@parallel] / ([ding-fig7-held#held@cpu] "
        "+ [ding-fig7-held#held@gpu]);2} times",
        "[ding-fig7-held#held@parallel] > [ding-fig7-held#held@cpu] + [ding-fig7-held#held@gpu]",
        "Cores take the queries that they are better at, and the device is spared these. On Dictionary nearly all are "
        "such and take microseconds, and the one lock of the queues, which twelve cores and two drivers share, is held "
        "for half of the time. Deadlines are 500 ms, 141 ms (57 times the mean of a core, as in the paper) with one "
        "core and with the paper's methods, and 50 ms on Dictionary; the GPU answers by the library's engine but where "
        "the paper's methods are named.",
        DING_HOLDS, METHOD},

    /* ---- Ao ---- */
    {"ao-fig1/line", "DocIDs of long lists grow almost linearly.", "see Table 1 for how nearly", NULL,
        "A drawing to look at; Table 1 has its measure.", TEXTS, SETUP},
    {"ao-table1/random", "In a random order a line fits long lists almost exactly (R\xc2\xb2 > 0.99).",
        "R\xc2\xb2 of lists of 100 K to 200 K postings: random {[random/global/R2@[100K,200K)];6}, as indexed "
        "{[index/global/R2@[100K,200K)];3}",
        "[random/global/R2@[100K,200K)] > 0.99", "DocIDs are then order statistics of a uniform distribution.", TEXTS,
        METHOD},
    {"ao-table1/range",
        "A line narrows a search to a small part of a long list, less in a real order than in a random one.",
        "100 K to 200 K postings, range over length: random {100 * [random/global/ratio@[100K,200K)];1} %, "
        "as indexed {100 * [index/global/ratio@[100K,200K)];1} %",
        "[index/global/ratio@[100K,200K)] < 0.5 & [random/global/ratio@[100K,200K)] < "
        "[index/global/ratio@[100K,200K)]",
        "Files of one folder share words, which bends the line.", TEXTS, METHOD},
    {"ao-fig3/buckets", "Buckets of one hash have like sizes; few are large.",
        "as indexed, the most frequent size is up to {most [index@*]} docIDs, with {max([index@*]);0} % of the "
        "buckets; "
        "at random up to {most [random@*]}, with {max([random@*]);0} %",
        NULL, "The paper gives no number that a test could compare.", TEXTS, SETUP},
    {"ao-fig5/threshold", "Throughput rises with the threshold of a batch.",
        "HS16 on the GPU, queries a second: first threshold {[ao-fig5#hs16/GPU@first];0}, last "
        "{[ao-fig5#hs16/GPU@last];0}",
        "[ao-fig5#hs16/GPU@last] > 1.5 * [ao-fig5#hs16/GPU@first]", "Small batches do not fill the device.", TEXTS,
        METHOD},
    {"ao-fig5/hs16", "With batches of 2^20 postings, HS16 answers 60 % more than binary search.",
        "HS16 over binary search: {[ao-fig5#hs16/GPU@1048576] / [ao-fig5#binary/GPU@1048576];2} times",
        "[ao-fig5#hs16/GPU@1048576] > 1.3 * [ao-fig5#binary/GPU@1048576]",
        "The shorter the lists, the fewer steps a binary search has. It is not the cache: a cold one changes the "
        "factor on Web from 1.78 to 1.75, and 1 million documents have 1.55.",
        "lab-alone/web-table3,lab-alone/dict-table3,lab-cache/web,lab-cache/web-cold,lab-cache/small", METHOD},
    {"ao-fig5/hs16-whole", "With c = 1 M, HS16 answers 60 % more than binary search, by whole logs with all transfers.",
        "ms a batch: HS16 {[ao-response#hs16@1048576];3}, binary search {[ao-response#binary@1048576];3}; kernels "
        "alone "
        "{[ao-parts#hs16/GPU@1048576];3} and {[ao-parts#binary/GPU@1048576];3}",
        "[ao-response#binary@1048576] > 1.5 * [ao-response#hs16@1048576]",
        "Kernels alone gain three quarters in the laboratory. Here the CPU, the transfers and queries of one word, "
        "which are not searched, are a part of each batch; what each of these costs was not measured.",
        "schedulers/ao-documents", METHOD},
    {"ao-fig5/rising-whole", "From c = 1 M to 2 M throughput still rises, by whole logs with all transfers.",
        "HS16, ms for a million docIDs of shortest lists, as batches had them: at 2^20 {1000000 * "
        "[ao-response#hs16@1048576] / [ao-batch#hs16@1048576];3}, at 2^21 {1000000 * [ao-response#hs16@2097152] / "
        "[ao-batch#hs16@2097152];3}, at 2^22 {1000000 * [ao-response#hs16@4194304] / [ao-batch#hs16@4194304];3}",
        "[ao-response#hs16@2097152] / [ao-batch#hs16@2097152] < 0.99 * [ao-response#hs16@1048576] / "
        "[ao-batch#hs16@1048576]",
        "A batch is timed from its plan to its results, and closes with the query that passes the threshold.",
        "schedulers/ao-documents", METHOD},
    {"ao-fig5/whole", "Whole logs are answered faster the larger batches are.",
        "HS16, queries a second, documents alone: at 2^17 {[ao-throughput#hs16/documents@131072];0}, 2^20 "
        "{[ao-throughput#hs16/documents@1048576];0}, 2^22 {[ao-throughput#hs16/documents@4194304];0}, 2^24 "
        "{[ao-throughput#hs16/documents@16777216];0}",
        "[ao-throughput#hs16/documents@4194304] > 1.2 * [ao-throughput#hs16/documents@131072]",
        "The paper's answer is the documents. Where cores rank them, as in schedulers/ao, they bound the rate at "
        "10,000 "
        "queries a second. At 2^24 the log has 16 batches, and the device waits for the first of them.",
        "schedulers/ao-documents", METHOD},
    {"ao-fig6/small", "Below 128 K postings, response times of the methods are the same.",
        "ms a batch of 65,536 postings: binary {[ao-fig6#binary/GPU@65536];3}, HS16 {[ao-fig6#hs16/GPU@65536];3}, "
        "regression {[ao-fig6#lr-global/GPU@65536];3}",
        "[ao-fig6#binary/GPU@65536] < 1.5 * [ao-fig6#hs16/GPU@65536]",
        "All threads then work at once, whatever they search by.", TEXTS, METHOD},
    {"ao-fig6/small-whole",
        "Below 128 K docIDs, response times of the methods are the same, by whole logs with all transfers.",
        "ms a batch of {[ao-batch#hs16@8192];0} docIDs (c = 8 K) and of {[ao-batch#hs16@65536];0} (c = 64 K): HS16 "
        "{[ao-response#hs16@8192];3} and {[ao-response#hs16@65536];3}, HS32 {[ao-response#hs32@8192];3} and "
        "{[ao-response#hs32@65536];3}, regression {[ao-response#lr-global@8192];3} and "
        "{[ao-response#lr-global@65536];3}, interpolation {[ao-response#interpolation@8192];3} and "
        "{[ao-response#interpolation@65536];3}, binary search {[ao-response#binary@8192];3} and "
        "{[ao-response#binary@65536];3}",
        "[ao-response#binary@65536] < 1.5 * [ao-response#hs16@65536] & [ao-response#interpolation@65536] < 1.5 * "
        "[ao-response#hs16@65536] & [ao-batch#hs16@65536] < 131072",
        "The CPU, sending and fetching take 40 % of such a batch. On Web batches are larger than their threshold: a "
        "query's shortest list has 44,000 docIDs in the mean.",
        "schedulers/ao-small", METHOD},
    {"ao-table2/order", "PForDelta is smallest, and regression codes gain in a random order.",
        "compression ratio, as indexed and random: `optpfd` {[index@optpfd];2} and {[random@optpfd];2}, `lrc` "
        "{[index@lrc:256];2} and {[random@lrc:256];2}",
        "[index@optpfd] > [index@seglrc:256] & [random@lrc:256] > [index@lrc:256]",
        "A line fits a random order best; widths of blocks profit from clusters. Web is in random order already.",
        COUNTED, METHOD},
    {"ao-table2/pagerank", "Regression codes gain over the indexed order by a random one, and not by PageRank.",
        "`seglrc`, ratio as indexed {[index@seglrc:256];2}, random {[random@seglrc:256];2}; `lrcseg` "
        "{[index@lrcseg:256];2} and {[random@lrcseg:256];2}",
        "[index@seglrc:256] <= 1.01 * [random@seglrc:256] & [index@lrcseg:256] <= 1.01 * [random@lrcseg:256]",
        "Documents of like rank share words, so an order by PageRank is as local as the paths. The collection by "
        "PageRank "
        "has that order as the indexed one.",
        "lab-pagerank/codecs", METHOD},
    {"ao-fig7/exceptions", "Allowing no exceptions compresses almost as well as the best share of them (we say: 5 %).",
        "ratio at 0 and the best: `lrc` {[lrc:256@0];2} and {max([lrc:256@*]);2}, `seglrc` {[seglrc:256@0];2} and "
        "{max([seglrc:256@*]);2}, `parapfor` {[parapfor:64@0];2} and {max([parapfor:64@*]);2}",
        "[lrc:256@0] > 0.95 * max([lrc:256@*]) & [seglrc:256@0] > 0.95 * max([seglrc:256@*]) & [parapfor:64@0] > "
        "0.95 * max([parapfor:64@*])",
        "It holds for regression codes, whose deviations in a segment are alike. ParaPFor's gaps in a clustered list "
        "are "
        "not, and it loses up to a fifth.",
        COUNTED, METHOD},
    {"ao-fig8/speed", "Regression codes are decoded much faster than PForDelta.",
        "without exceptions, million values a second, GPU: `lrc` {[lrc:256/GPU@0];0}, `seglrc` {[seglrc:256/GPU@0];0}, "
        "`pfd` {[pfd/GPU@0];0}, `newpfd` {[newpfd/GPU@0];0}; core: {[lrc:256@0];0}, {[seglrc:256@0];0}, {[pfd@0];0}, "
        "{[newpfd@0];0}",
        "[lrc:256/GPU@0] > 1.5 * [pfd/GPU@0] & [lrc:256/GPU@0] > 1.5 * [newpfd/GPU@0]",
        "Our kernels for PForDelta work by warps, too, and prefix sums are cheap. Regression is ahead on the GPU, by "
        "less than that.",
        TEXTS, METHOD},
    {"ao-table3/arrays",
        "On arrays HS16 is fastest, regression is ahead of binary search, and interpolation is slowest.",
        "times a core's skip list, and times its fastest method: `hs16` {[ao-table3#arrays/GPU@hs16];0} and "
        "{[ao-table3-core#arrays/GPU@hs16];0}, `lr-global` {[ao-table3#arrays/GPU@lr-global];0} and "
        "{[ao-table3-core#arrays/GPU@lr-global];0}, `binary` {[ao-table3#arrays/GPU@binary];0} and "
        "{[ao-table3-core#arrays/GPU@binary];0}, `interpolation` {[ao-table3#arrays/GPU@interpolation];0} and "
        "{[ao-table3-core#arrays/GPU@interpolation];0}",
        "[query-time#arrays/GPU@hs16] < [query-time#arrays/GPU@lr-global] & [query-time#arrays/GPU@lr-global] < "
        "[query-time#arrays/GPU@binary] & [query-time#arrays/GPU@binary] < [query-time#arrays/GPU@interpolation]",
        "HS16 and local regression lead together, by fewer reads of memory for each search. Regression does not gain "
        "on short lists, where a binary search has few steps; interpolation is last where lists are clustered. The "
        "order is by times; factors have the skip list's spread. A core's `simd` is seven times its skip list on Web.",
        "lab-alone/web-table3,lab-alone/dict-table3", METHOD},
    {"ao-table3/local", "Local regression is not better than global.",
        "microseconds a query: `lr-global` {[query-time#arrays/GPU@lr-global];3}, `lr-local` "
        "{[query-time#arrays/GPU@lr-local];3}",
        "[query-time#arrays/GPU@lr-global] <= 1.1 * [query-time#arrays/GPU@lr-local]",
        "A local line leaves a smaller range to search. It is not the cache: in batches of 2^20 it gains a fifth on "
        "Web, on 1 million documents and with a cold cache alike.",
        "lab-alone/web-table3,lab-alone/dict-table3", METHOD},
    {"ao-table3/lists", "On compressed lists HS.LRC is fastest and ParaPFor slowest.",
        "times a core's skip list: `lrc` {[ao-table3#lists/GPU@lrc:256,0/algorithm1];0}, `seglrc` "
        "{[ao-table3#lists/GPU@seglrc:256,0/algorithm1];0}, `hslrc` {[ao-table3#lists/GPU@hslrc:256,0/algorithm1];0}, "
        "`parapfor` "
        "{[ao-table3#lists/GPU@parapfor:64,0/binary];0}",
        "[ao-table3#lists/GPU@hslrc:256,0/algorithm1] > [ao-table3#lists/GPU@seglrc:256,0/algorithm1] & "
        "[ao-table3#lists/GPU@hslrc:256,0/algorithm1] "
        "> "
        "[ao-table3#lists/GPU@parapfor:64,0/binary]",
        "ParaPFor is slowest, since whole lists are decoded first. HS.LRC's buckets have many lengths, so lanes of a "
        "warp "
        "search different ranges.",
        "lab-ao/table3,lab-ao-large/table3", METHOD},
    {"ao-table4/left",
        "What is left shrinks at each stage: with three terms 23.1 and then 0.97 % of the next list, with six terms "
        "34.4 to 0.054 %.",
        "three terms {[R@3/1];1} and {[R@3/2];2} %, six {[R@6/1];1} to {[R@6/5];3} %", "[R@3/2] < 0.2 * [R@3/1]",
        "Each list leaves fewer candidates, and the next list is longer.", TEXTS, SETUP},
    {"ao-table5/theory", "Theory predicts the bits of `lrc` in a random order: 0 to 2 above those measured.",
        "longest lists: theory {[theory@last];0}, measured {[lrc/random@last];1} at random and {[lrc/index@last];1} as "
        "indexed",
        "[theory@last] >= [lrc/random@last] & [theory@last] <= 2 + [lrc/random@last]",
        "It is a bound: widths here adapt to segments, and a class mixes lengths. Our theory takes the 22nd moment of "
        "a "
        "normal distribution and gives all values of the paper's table.",
        COUNTED, METHOD},
    {"ao-table7/hslrc", "HS256.LRC has the highest throughput on compressed lists.",
        "queries a second: `hslrc` {[ao-table7#GPU@hslrc:256,0/algorithm1];0}, best `{most [ao-table7#GPU@*]}` "
        "{max([ao-table7#GPU@*]);0}",
        "[ao-table7#GPU@hslrc:256,0/algorithm1] > [ao-table7#GPU@lrc:256,0/algorithm1] & "
        "[ao-table7#GPU@hslrc:256,0/algorithm1] > [ao-table7#GPU@seglrc:256,0/algorithm1] & "
        "[ao-table7#GPU@hslrc:256,0/algorithm1] > [ao-table7#GPU@lrcseg:256,0/algorithm1]",
        "See Table 3.", "lab-ao/table7,lab-ao-large/table7", METHOD},
    {"ao-table7/h", "Without the auxiliary lists H(t), LRC takes half as long again (they save 33 %).",
        "queries a second: `lrc` with them {[ao-table7#GPU@lrc:256,0/algorithm1];0}, without "
        "{[ao-table7#GPU@lrc:256,0/algorithm1-without-h];0}",
        "[ao-table7#GPU@lrc:256,0/algorithm1] > 1.2 * [ao-table7#GPU@lrc:256,0/algorithm1-without-h]",
        "A step in H(t) reads one number, a step in the list a segment's head and a value.",
        "lab-ao/table7,lab-ao-large/table7", METHOD},
    {"ao-memory/memory", "Hash segmentation by HS16 needs 9 % more memory.", "`hs16` {[arrays@hs16];1} %",
        "[arrays@hs16] < 14 & [arrays@hs16] > 5", "The tables of buckets are counted by lists' lengths.", TEXTS,
        METHOD},
    {"ao-fig9a/processors", "Throughput grows with the multiprocessors, almost linearly.",
        "HS16, billion docIDs a second: fewest multiprocessors {[hs16@first];2}, a quarter {[hs16@33];1}, all "
        "{[hs16@last];1}, {[hs16@last] / [hs16@first];0} times the first; binary search {[binary@first];2} and "
        "{[binary@last];1}",
        "[hs16@last] > 0.8 * 132 * [hs16@1]",
        "Blocks that sleep take the other multiprocessors. Those that work share the memory, whose rate bounds them "
        "all.",
        "schedulers/ao-part", METHOD},
    {"ao-fig9b/share", "At least 20 % of a batch's time is CPU and transfers, whatever its size.",
        "HS16, share of the GPU: smallest batches {[hs16@first];0} %, largest {[hs16@last];0} %", "max([hs16@*]) < 80",
        "The CPU, both transfers and the kernels of each batch are timed apart.",
        "schedulers/ao-documents,schedulers/ao-small", METHOD},

    /* ---- Griffin ---- */
    {"griffin-fig7/rank", "A core ranks candidates faster than the GPU.",
        "most candidates, ms for the best 10: heap {[heap/10@last];2}, bucket selection "
        "{[bucket-select/GPU/10@last];2}; for "
        "1,000: {[heap/1000@last];2} and {[bucket-select/GPU/1000@last];2}. A tree of maxima is faster than the heap "
        "from "
        "{below([tree/GPU/10], [heap/10]);0} candidates on, radix selection of 1,000 from "
        "{below([radix-select/GPU/1000], [heap/1000]);0}",
        "[heap/10@last] < [bucket-select/GPU/10@last] & [heap/1000@last] < [bucket-select/GPU/1000@last]",
        "One block of threads ranks a query here. Methods other than the paper's pass a core where candidates are "
        "many.",
        TEXTS, METHOD},
    {"griffin-fig8/ratio", "The GPU is faster while one list is less than 128 times as long as the other.",
        "the core's skip pointers are faster than `griffin` on the GPU from a ratio of {below([skip], "
        "[griffin/GPU]);0} on; the best of both, `simd` and MergePath, cross at {below([simd], [mergepath/GPU]);0}",
        "below([skip], [griffin/GPU]) >= 64 & below([skip], [griffin/GPU]) <= 256",
        "There is such a ratio, but it is no constant: the shorter the lists, the lower.", TEXTS, METHOD},
    {"griffin-fig8/switch", "Above 128 the GPU should go over from MergePath to binary search.",
        "ratio 256, ms: `griffin` {[griffin/GPU@256];3}, which then searches, MergePath {[mergepath/GPU@256];3}",
        "[griffin/GPU@256] < [mergepath/GPU@256]",
        "A warp decodes the blocks that it needs one after the other, and waits for memory each time. Lists are "
        "resident "
        "here, where Griffin sends them.",
        TEXTS, METHOD},
    {"griffin-fig10/lengths", "Most lists of the queries have 1 K to 1 M postings.",
        "{sum([lists@2048 to 1048576]);0} % have 1,024 to 1,048,575; most frequent: up to {most [lists@*]} postings",
        "sum([lists@2048 to 1048576]) > 50", "A property of the collection, not of a method.", TEXTS, SETUP},
    {"griffin-table1/ef", "Elias-Fano is 1.4 times as small as PForDelta.",
        "ratio: `pfd` {[index@pfd];2}, `ef` {[index@ef];2}, `optpfd` {[index@optpfd];2}; `ef` over `pfd` {[index@ef] / "
        "[index@pfd];2} times",
        "[index@ef] > 1.2 * [index@pfd]",
        "PForDelta chooses the width of each block here by its size. Where lists are clustered, `optpfd` is smaller "
        "than "
        "Elias-Fano.",
        COUNTED, METHOD},
    {"griffin-fig12/speed",
        "The GPU decodes faster than a core at every length: up to twice for short lists, 30 times for long.",
        "`ef` on the GPU over `pfd` on a core: 1,024 to 2,047 postings {[ding-fig4#ef/GPU@2048] / "
        "[ding-fig4#pfd@2048];2} times, 16,384 to 32,767 {[ding-fig4#ef/GPU@32768] / [ding-fig4#pfd@32768];2}, longest "
        "lists {[ding-fig4#ef/GPU@last] / [ding-fig4#pfd@last];1}",
        "[ding-fig4#ef/GPU@2048] > [ding-fig4#pfd@2048] & [ding-fig4#ef/GPU@last] > 10 * [ding-fig4#pfd@last]",
        "The core of these logs decodes by vectors, and passes the GPU on short lists.", CORES_ALONE, METHOD},
    {"griffin-fig13/mergepath", "On the GPU MergePath is faster than binary search, up to 2.3 times.",
        "longest lists, ms: MergePath {[mergepath/GPU@last];3}, binary search {[binary/GPU@last];3}",
        "[mergepath/GPU@last] < [binary/GPU@last]",
        "The cache of a GPU of today holds lists of Web: with a cold one MergePath is ahead, by 5 %. It is not what is "
        "missing to 2.3 times: on two lists of 12 million docIDs, which it does not hold, MergePath is ahead by a "
        "fifth, on lists of 2 million that hold half of the documents as well by an eighth.",
        TEXTS ",lab-cache/long,lab-cache/long-cold,lab-cache/pairs-4,lab-cache/pairs-24", METHOD},
    {"griffin-fig13/merge", "On the GPU, merging is up to 87 times as fast as on a core.",
        "longest lists: {[merge@last] / [mergepath/GPU@last];0} times", "[merge@last] > 30 * [mergepath/GPU@last]",
        "A core merges about a posting a nanosecond; the GPU has thousands of threads.", TEXTS, METHOD},
    {"griffin-fig11/terms", "27 % of the queries have 2 terms, 33 % have 3, 24 % have 4.",
        "{[queries@2];0}, {[queries@3];0} and {[queries@4];0} %", "[queries@2] + [queries@3] + [queries@4] > 75",
        "A property of the queries, not of a method.", "schedulers/griffin-transfer", SETUP},
    {"griffin-fig14/speed", "Griffin is 10 times as fast as its CPU alone and 1.5 times as fast as its GPU alone.",
        "ms, all queries: Griffin {[Griffin/*@all];3}, its GPU alone {[Griffin-GPU/*@all];3}: {[Griffin-GPU/*@all] / "
        "[Griffin/*@all];2} times; its CPU {[CPU/*@all];2}: {[CPU/*@all] / [Griffin/*@all];1} times",
        "3 * [Griffin/transfer@all] < [CPU/*@all] & 1.2 * [Griffin/transfer@all] < [Griffin-GPU/transfer@all]",
        "One client, as in the paper; queries of two words or more, as the rule compares two lists. Its CPU is a loop "
        "without vectors; a core of this library takes a seventh of its time.",
        "schedulers/griffin-transfer", METHOD},
    {"griffin-fig14/every", "Griffin is faster than its GPU alone, whatever the number of terms.",
        "Griffin-GPU over Griffin with 2, 3, 4, 5, 6 and more terms: {[Griffin-GPU/*@2] / [Griffin/*@2];2}, "
        "{[Griffin-GPU/*@3] / [Griffin/*@3];2}, {[Griffin-GPU/*@4] / [Griffin/*@4];2}, {[Griffin-GPU/*@5] / "
        "[Griffin/*@5];2}, {[Griffin-GPU/*@6] / [Griffin/*@6];2}, {[Griffin-GPU/*@>6] / [Griffin/*@>6];2}",
        "[Griffin/*@2] < [Griffin-GPU/*@2] & [Griffin/*@3] < [Griffin-GPU/*@3] & [Griffin/*@4] < [Griffin-GPU/*@4] & "
        "[Griffin/*@5] < [Griffin-GPU/*@5] & [Griffin/*@6] < [Griffin-GPU/*@6] & [Griffin/*@>6] < [Griffin-GPU/*@>6]",
        "One client. Each mean has its 95 % interval over the queries.",
        "schedulers/griffin-transfer,schedulers/griffin-resident", METHOD},
    {"griffin-fig15/tail", "At the 99.9th percentile it is 26.8 times as fast as its CPU.",
        "{[CPU/*@99.9] / [Griffin/*@99.9];1} times; its GPU alone takes {[Griffin-GPU/*@99.9];1} ms there, Griffin "
        "{[Griffin/*@99.9];1}",
        "[CPU/transfer@99.9] > 20 * [Griffin/transfer@99.9]",
        "One client, as in the paper, and as many queries. The longest queries are those that end on a core.",
        "schedulers/griffin-transfer", METHOD},
    {"griffin-fig15/growth",
        "Its gain grows towards the tail: 6.6 times at the 80th percentile, 16.1 at the 99th, 26.8 at the 99.9th.",
        "lists sent: {[CPU/*@80] / [Griffin/transfer@80];1} times at the 80th, {[CPU/*@99] / [Griffin/transfer@99];1} "
        "at the 99th, {[CPU/*@99.9] / [Griffin/transfer@99.9];1} at the 99.9th",
        "[CPU/*@99] / [Griffin/transfer@99] > [CPU/*@80] / [Griffin/transfer@80] & [CPU/*@99.9] / "
        "[Griffin/transfer@99.9] > [CPU/*@99] / [Griffin/transfer@99]",
        "One client, as in the paper.", "schedulers/griffin-transfer", METHOD},

    /* ---- Li ---- */
    {"qs-table1/rice", "Quasi-succinct codes are smaller than Rice.",
        "bits a docID: `rice` {[size@rice];2}, `qs` {[size@qs];2}", "[size@qs] < [size@rice]",
        "Both code a gap's low bits as they are; `qs` chooses their number by the list's exact range.", COUNTED,
        METHOD},
    {"qs-table1/pfd", "They are much smaller than PForDelta.", "bits a docID: `pfd` {[size@pfd];2}, `qs` {[size@qs];2}",
        "1.5 * [size@qs] < [size@pfd]",
        "PForDelta's blocks have widths of their own and profit from clusters; the thesis' version had 7.63 bits where "
        "quasi-succinct codes had 3.13.",
        COUNTED, METHOD},
    {"qs-table2/lists", "On a GPU, list by list, they are decoded faster than PForDelta by a core.",
        "million values a second: `qs` GPU {[ding-table1#GPU/list@qs];0}, `pfd` core {[ding-table1#CPU@pfd];0}; many "
        "lists in one run: `qs` {[ding-table1#GPU@qs];0}, `pfd` {[ding-table1#GPU@pfd];0}",
        "[ding-table1#GPU/list@qs] > [ding-table1#CPU@pfd]",
        "On long lists it turns on the core's clock; a run of a short list is mostly the start of a kernel. With many "
        "lists the GPU passes every core, and `pfd` there is about as fast.",
        CORES_ALONE ",lab-alone/web-codecs-fast", METHOD},
    {"qs-fig6/bits", "Speed depends little on the number of low bits, and much on the length of the list.",
        "GPU, billion values a second, lists of 2^20: {[1048576/GPU@first];2} at 0 bits, {[1048576/GPU@last];2} at 10; "
        "of "
        "2^14: {[16384/GPU@first];2} and {[16384/GPU@last];2}",
        "[1048576/GPU@last] > 0.67 * [1048576/GPU@first] & [1048576/GPU@last] > 1.5 * [16384/GPU@last]",
        "The lists are generated, one for each number of bits.", TEXTS, METHOD},
    {"qs-fig8/naive", "Of the naive method, the prefix sum over single bits takes most of the time.",
        "longest lists, microseconds: counts {[count@last]}, prefix sum {[prefix-sum@last]}, gather {[gather@last]}",
        "[prefix-sum@last] > [count@last] & [prefix-sum@last] > [gather@last]",
        "Our scan is one pass over memory, where the thesis called a library's.", TEXTS, METHOD},
    {"qs-fig10/words", "By words, the prefix sum is cheap and the gather takes most of the time (70 %).",
        "longest lists, microseconds: counts {[count@last]}, prefix sum {[prefix-sum@last]}, gather {[gather@last]}, "
        "all "
        "{[all@last]}",
        "[gather@last] > 0.5 * [all@last]", "The sums are over a 32nd of the numbers.", TEXTS, METHOD},
    {"qs-fig11/words", "Working by words is far faster than by bits.",
        "longest lists, billion values a second: by bits {[naive@last]}, by words {[steps@last]}, in one kernel "
        "{[one-kernel@last]}",
        "[steps@last] > 1.5 * [naive@last]",
        "One kernel for all steps is what helps, and on lists that fill the device.", TEXTS, METHOD},
    {"qs-fig12/c", "c = 1 gives the smallest size.",
        "bits a docID at c = 0.75, 1, 1.25: {[qs@0.75];2}, {[qs@1];2}, {[qs@1.25];2}", "[qs@1] <= min([qs@*])",
        "As theory has it, in every collection.", COUNTED, METHOD},
    {"qs-fig13/c", "c trades size for speed.",
        "billion values a second at c = 0.25, 1, 4: core {[qs@0.25];2}, {[qs@1];2}, {[qs@4];2}; GPU {[qs/GPU@0.25];0}, "
        "{[qs/GPU@1];0}, {[qs/GPU@4];0}",
        "[qs@4] > [qs@0.25]", "The larger c, the shorter the unary part.", TEXTS, METHOD},
    {"qs-fig14/threads", "For long lists 1,024 threads of a block are best.",
        "longest lists, billion values a second with 256, 512, 1,024 threads: {[256@last]}, {[512@last]}, "
        "{[1024@last]}",
        "[1024@last] > [256@last]", "Large blocks wait for their slowest warp, and fewer fit a multiprocessor.", TEXTS,
        METHOD},

    /* ---- Tatikonda ---- */
    {"tatikonda-fig4a/inter", "On 8 cores INTER has 7.9 times the throughput of one core.",
        "{[INTER@last] / [INTER@first];1} times", "[INTER@last] > 7 * [INTER@first]",
        "All queries are submitted at once. A query takes longer while others run, as caches and memory are shared.",
        TASKS, METHOD},
    {"tatikonda-fig4a/fgqp", "FGQP with \xce\xb2 = 150 reaches 7.6 times, ranges of docIDs only 5.1 and 4.8 times.",
        "FGQP(150) {[FGQP(150)@last] / [INTER@first];1}, DOCP-UI {[DOCP-UI@last] / [INTER@first];1}, DOCP-PI "
        "{[DOCP-PI@last] "
        "/ [INTER@first];1} times",
        "[FGQP(150)@last] > 1.2 * [DOCP-UI@last] & [FGQP(150)@last] > 1.2 * [DOCP-PI@last]", SATURATED, TASKS, METHOD},
    {"tatikonda-fig4b/latency", "FGQP divides latency by 5.75 with \xce\xb2 = 5, and by 3.7 with \xce\xb2 = 150.",
        "by {[INTER@first] / [FGQP(5)@last];2} and {[INTER@first] / [FGQP(150)@last];2}",
        "[INTER@first] > 4 * [FGQP(5)@last] & [INTER@first] > 2.6 * [FGQP(150)@last]", SATURATED, TASKS, METHOD},
    {"tatikonda-fig4c/beta", "Throughput lost falls from 16 % with \xce\xb2 = 5 to 3.3 % with \xce\xb2 = 150.",
        "against n times INTER-1 {[PDTP against n times INTER-1@5];1} and {[PDTP against n times INTER-1@150];1} %, "
        "with "
        "\xce\xb2 = 10, 25, 50, 100 {[PDTP against n times INTER-1@10];1}, {[PDTP against n times INTER-1@25];1}, "
        "{[PDTP "
        "against n times INTER-1@50];1} and {[PDTP against n times INTER-1@100];1} %",
        "[PDTP against n times INTER-1@150] < [PDTP against n times INTER-1@5]",
        "Five rounds on 8 of 16 processors that were idle: from one round to the next throughput differs by more than "
        "what "
        "the paper's line falls.",
        "tatikonda-rounds", METHOD},
    {"tatikonda-uneven/ranges",
        "Ranges of docIDs suffer from load imbalance: cores wait for the one with the longest range; tasks balance.",
        "times one core that the division permits on 8, ranges and tasks: by path {[DOCP-UI-8@path];2} and "
        "{[FGQP-8@path];2}, by length {[DOCP-UI-8@length];2} and {[FGQP-8@length];2}, by PageRank "
        "{[DOCP-UI-8@pagerank];2} and {[FGQP-8@pagerank];2}, by date {[DOCP-UI-8@date];2} and {[FGQP-8@date];2}, at "
        "random {[DOCP-UI-8@random];2} and {[FGQP-8@random];2}",
        "[FGQP-8@path] > 1.2 * [DOCP-UI-8@path] & [FGQP-8@length] > 1.2 * [DOCP-UI-8@length]",
        "A query's words stand in some parts of a collection more often than in others, and sorting by length, rank or "
        "date gathers them further. Processor time of each range and task, by one thread; what threads wait for locks "
        "and memory is not in it. Why tasks together take a little less than the whole query, so that 8 cores seem to "
        "gain more than 8 times, was not looked for.",
        UNEVEN, METHOD},
    {"tatikonda-uneven/latency", "Where ranges are uneven, tasks divide a query's latency more than ranges do.",
        "times as fast as on one core, ranges and tasks: by path {[tatikonda-uneven-latency#DOCP-UI-8@path];2} and "
        "{[tatikonda-uneven-latency#FGQP-8@path];2}, by length {[tatikonda-uneven-latency#DOCP-UI-8@length];2} and "
        "{[tatikonda-uneven-latency#FGQP-8@length];2}, at random {[tatikonda-uneven-latency#DOCP-UI-8@random];2} and "
        "{[tatikonda-uneven-latency#FGQP-8@random];2}",
        "[tatikonda-uneven-latency#FGQP-8@path] > 1.2 * [tatikonda-uneven-latency#DOCP-UI-8@path] & "
        "[tatikonda-uneven-latency#FGQP-8@length] > 1.2 * [tatikonda-uneven-latency#DOCP-UI-8@length]",
        "A query that has all threads to itself, each task taken by the thread that is free first. A query of few "
        "skip blocks has few tasks.",
        UNEVEN, METHOD},
    {"tatikonda-uneven/idle", "On real cores as well: tasks keep the throughput of INTER where ranges are uneven.",
        "times INTER on one of 8 idle processors, INTER, ranges and tasks: by path "
        "{[tatikonda-balance#INTER-8@path];1}, "
        "{[tatikonda-balance#DOCP-UI-8@path];1} and {[tatikonda-balance#FGQP(5)-8@path];1}, by length "
        "{[tatikonda-balance#INTER-8@length];1}, {[tatikonda-balance#DOCP-UI-8@length];1} and "
        "{[tatikonda-balance#FGQP(5)-8@length];1}, at random {[tatikonda-balance#INTER-8@random];1}, "
        "{[tatikonda-balance#DOCP-UI-8@random];1} and {[tatikonda-balance#FGQP(5)-8@random];1}",
        "[tatikonda-balance#FGQP(5)-8@path] > 1.2 * [tatikonda-balance#DOCP-UI-8@path] & "
        "[tatikonda-balance#FGQP(5)-8@length] > 1.2 * [tatikonda-balance#DOCP-UI-8@length]",
        SATURATED, UNEVEN, METHOD},
    {"tatikonda-fig5a/rate", "At low rates FGQP answers sooner than INTER on as many cores.",
        "ms at the lowest rate, 8 cores each: FGQP {[FGQP-8@first];2}, INTER {[INTER-8@first];2}, DOCP-UI "
        "{[DOCP-UI-8@first];2}",
        "[FGQP-8@first] < [INTER-8@first]", FROM_DUE, "tatikonda", METHOD},
    {"tatikonda-fig5b/terms", "Latency grows 10 times from 2 to 10 terms, and least with FGQP.",
        "ms with 2 and 10 terms: FGQP(5) {[FGQP(5)@2];2} and {[FGQP(5)@10];2}, INTER {[INTER@2];2} and {[INTER@10];2}, "
        "DOCP-UI {[DOCP-UI@2];2} and {[DOCP-UI@10];2}",
        NULL,
        "Not comparable: the more words of these synthetic queries, the rarer the rarest of them, so longer queries "
        "are "
        "cheaper; in the paper they are dearer.",
        "tatikonda", METHOD},
    {"tatikonda-fig5c/terms",
        "DOCP-UI has less throughput than INTER at every length, and all lose 11 times from 2 to 10.",
        "queries a second with 2, 6 and 10 terms: INTER {[INTER@2];0}, {[INTER@6];0} and {[INTER@10];0}, DOCP-UI "
        "{[DOCP-UI@2];0}, {[DOCP-UI@6];0} and {[DOCP-UI@10];0}",
        NULL, "Not comparable, for the reason of Figure 5b: here throughput grows with the terms.", "tatikonda",
        METHOD},
    {"tatikonda-fig6/terms", "The same with 4 and with 6 terms: at low rates FGQP answers sooner than INTER.",
        "ms at the lowest rate, 4 terms: FGQP {[tatikonda-fig6-4#FGQP-8@first];2}, INTER "
        "{[tatikonda-fig6-4#INTER-8@first];2}; 6 terms: {[tatikonda-fig6-6#FGQP-8@first];2} and "
        "{[tatikonda-fig6-6#INTER-8@first];2}",
        "[tatikonda-fig6-4#FGQP-8@first] < [tatikonda-fig6-4#INTER-8@first] & [tatikonda-fig6-6#FGQP-8@first] < "
        "[tatikonda-fig6-6#INTER-8@first]",
        FROM_DUE, "tatikonda", METHOD},
    {"tatikonda-fig7/tasks",
        "A task has 10.2 skip blocks of a list, shares 0.97 with the one before, and making tasks takes 2 %.",
        "at 512: {[tatikonda-fig7-values#S_avg@512];1}, {[tatikonda-fig7-values#O_avg@512];2} and "
        "{[tatikonda-fig7-values#creation@512];1} %",
        "[tatikonda-fig7-values#O_avg@512] < 1.5 & [tatikonda-fig7-values#creation@512] < 5",
        "Tasks are counted as they are made; making them is timed by the thread that does it.", "tatikonda", METHOD},
    {NULL, NULL, NULL, NULL, NULL, NULL, METHOD}};
