/* embed INDEX MODE QUERY...: gpuir in a C++17 program, with handles that close themselves.
 *
 *     c++ -std=c++17 -DGPUIR_WITH_UTF8PROC -DGPUIR_WITH_STEMMER -I. examples/embed.cc -lutf8proc -lstemmer -lm \
 *       -pthread -o embed && ./embed wordnet.gpuir or wolf "computer memory"
 *
 * Without the two macros and their libraries it reads indexes of the ascii analyzer without stems. MODE is and, or,
 * andor. The index is shared by one thread for each query; each has its own searcher.
 */
#define GPUIR_IMPLEMENTATION
#include "gpuir.h"

#include <iostream>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

namespace {

// unique_ptr calls the handle's own function to release it.
template <auto release>
struct Release {
  template <class T>
  void operator()(T *handle) const {
    release(handle);
  }
};
using Index = std::unique_ptr<gpuir_index, Release<gpuir_close>>;
using Query = std::unique_ptr<gpuir_query, Release<gpuir_query_destroy>>;
using Searcher = std::unique_ptr<gpuir_searcher, Release<gpuir_searcher_destroy>>;

void check(int status, const gpuir_error &err) {
  if (status != GPUIR_OK) throw std::runtime_error(err.code ? err.msg : gpuir_strerror(status));
}

Index open(const char *path) {
  gpuir_index *index = nullptr;
  gpuir_error err = {};
  check(gpuir_open(path, nullptr, &index, &err), err);
  return Index(index);
}

struct Result {
  std::string name;
  double score;
};

std::vector<Result> search(gpuir_index *index, int mode, std::string_view text, size_t k) {
  gpuir_error err = {};
  gpuir_query_desc desc = {};
  desc.mode = mode;
  gpuir_query *query = nullptr;
  check(gpuir_query_parse(index, &desc, text.data(), text.size(), &query, &err), err);
  Query query_owner(query);
  gpuir_searcher *searcher = nullptr;
  check(gpuir_searcher_create(index, nullptr, &searcher, &err), err);
  Searcher searcher_owner(searcher);

  std::vector<gpuir_hit> hits(k);
  size_t n = 0;
  check(gpuir_search(searcher, query, hits.data(), k, &n), err);
  std::vector<Result> results;
  for (size_t i = 0; i < n; i++) {
    gpuir_doc doc;
    check(gpuir_doc_get(index, hits[i].docid, &doc), err);
    std::string name(doc.name_len + 1, '\0'); // one more for the NUL that gpuir_doc_name writes
    gpuir_doc_name(&doc, &name[0], name.size());
    name.pop_back();
    results.push_back({std::move(name), gpuir_score(hits[i])});
  }
  return results;
}

} // namespace

int main(int argc, char **argv) {
  if (argc < 4) {
    std::cerr << "usage: embed INDEX and|or|andor QUERY...\n";
    return 2;
  }
  const std::string_view mode = argv[2];
  const int code = mode == "or" ? GPUIR_OR : mode == "andor" ? GPUIR_ANDOR : GPUIR_AND;
  try {
    const Index index = open(argv[1]);
    const size_t n = static_cast<size_t>(argc) - 3;
    std::vector<std::vector<Result>> results(n);
    std::vector<std::string> errors(n);
    std::vector<std::thread> threads;
    for (size_t i = 0; i < n; i++)
      threads.emplace_back([&, i] {
        try {
          results[i] = search(index.get(), code, argv[i + 3], 3);
        } catch (const std::exception &e) {
          errors[i] = e.what();
        }
      });
    for (std::thread &thread : threads) thread.join();

    bool failed = false;
    for (size_t i = 0; i < n; i++) {
      std::cout << argv[i + 3] << '\n';
      if (!errors[i].empty()) {
        std::cerr << "embed: " << argv[i + 3] << ": " << errors[i] << '\n';
        failed = true;
      }
      for (const Result &result : results[i]) std::cout << "  " << result.score << "  " << result.name << '\n';
    }
    return failed ? 1 : 0;
  } catch (const std::exception &e) {
    std::cerr << "embed: " << e.what() << '\n';
    return 1;
  }
}
