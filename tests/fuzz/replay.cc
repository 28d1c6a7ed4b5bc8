// Replays a corpus: fuzz TARGET DIRECTORY [MUTATIONS]. Runs every file unchanged, and MUTATIONS times with a
// few bytes changed, deterministically. Leaves a failing input in fuzz-TARGET.bad.
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>
#include <random>
#include <vector>

#include "tests/fuzz/fuzz.h"

namespace keelson::fuzz {
namespace {

namespace fs = std::filesystem;

std::string Read(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

// Bytes with a special meaning for parsers.
constexpr std::string_view kTokens[] = {
    "{",    "}",  "[",     "]",      "\"",   ",",  ":",  "\\u",
    "null", "-",  "1e999", "$patch", "\xff", "\n", "  ", "18446744073709551616",
    "&a",   "*a", "0",     "k8s"};

std::string Mutate(std::string input, const std::string& other, std::mt19937& random) {
  auto below = [&](size_t limit) { return std::uniform_int_distribution<size_t>(0, limit - 1)(random); };
  for (size_t times = 1 + below(4); times > 0; --times) {
    size_t at = below(input.size() + 1);
    switch (below(5)) {
      case 0:
        input.erase(at, 1 + below(16));
        break;
      case 1:
        input.insert(at, kTokens[below(std::size(kTokens))]);
        break;
      case 2:
        if (at < input.size()) input[at] = static_cast<char>(below(256));
        break;
      case 3:
        input.insert(at, input.substr(below(input.size() + 1), below(32)));
        break;
      default:
        if (!other.empty()) input.replace(at, below(32), other.substr(below(other.size()), below(64)));
    }
  }
  return input;
}

// Writes the input to a file before running it, so that a crash leaves it behind. Keeps the file open:
// truncating and closing it each time would write it to the disk each time.
class LastInput {
 public:
  explicit LastInput(fs::path path)
      : path_(std::move(path)), fd_(::open(path_.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0644)) {}
  ~LastInput() {
    ::close(fd_);
    fs::remove(path_);
  }
  void Run(Target target, const std::string& input) const {
    if (::pwrite(fd_, input.data(), input.size(), 0) < 0 ||
        ::ftruncate(fd_, static_cast<off_t>(input.size())) != 0) {
      std::perror(path_.c_str());
      std::exit(2);
    }
    target(input);
  }

 private:
  const fs::path path_;
  const int fd_;
};

int Replay(std::string_view name, const fs::path& directory, int mutations) {
  auto found = Targets().find(name);
  if (found == Targets().end()) {
    std::cerr << "no target " << name << "\n";
    return 2;
  }
  std::vector<fs::path> paths;
  for (const auto& entry : fs::directory_iterator(directory)) paths.push_back(entry.path());
  std::sort(paths.begin(), paths.end());
  std::vector<std::string> corpus;
  for (const fs::path& path : paths) corpus.push_back(Read(path));
  if (corpus.empty()) {
    std::cerr << directory << " is empty\n";
    return 2;
  }
  const LastInput last("fuzz-" + std::string(name) + ".bad");
  std::mt19937 random(20);
  size_t runs = 0;
  for (const std::string& input : corpus) {
    last.Run(found->second, input);
    for (int i = 0; i < mutations; ++i) {
      last.Run(found->second, Mutate(input, corpus[random() % corpus.size()], random));
    }
    runs += 1 + static_cast<size_t>(mutations);
  }
  std::cout << name << ": " << corpus.size() << " inputs, " << runs << " runs\n";
  return 0;
}

}  // namespace
}  // namespace keelson::fuzz

int main(int argc, char** argv) {
  if (argc < 3) {
    std::cerr << "usage: " << argv[0] << " TARGET DIRECTORY [MUTATIONS]\n";
    return 2;
  }
  return keelson::fuzz::Replay(argv[1], argv[2], argc > 3 ? std::atoi(argv[3]) : 0);
}
