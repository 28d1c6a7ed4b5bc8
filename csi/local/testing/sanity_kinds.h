// For sanity_test.cc: the kinds of volumes that a test program runs the table with.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <ostream>
#include <string>
#include <vector>

namespace keelson::csi::local {

struct VolumeKind {
  std::string name;
  bool block = false;
  std::string type;                  // parameter "type"; empty: none
  std::vector<std::string> flags;    // of the driver
  int64_t size = int64_t{10} << 30;  // csi-sanity's
  // What the driver needs beside its data directory, below a directory of the test's.
  std::function<std::shared_ptr<void>(const std::string& dir)> disk = [](const std::string&) {
    return nullptr;
  };
};

inline void PrintTo(const VolumeKind& kind, std::ostream* out) { *out << kind.name; }

// Each program has its own.
std::vector<VolumeKind> SanityKinds();

}  // namespace keelson::csi::local
