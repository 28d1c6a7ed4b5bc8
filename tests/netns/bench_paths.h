// For benchmarks: a client on pod1, a server on pod2, and the paths between them. Or a client outside and a
// server on another node, through a NodePort.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "tests/netns/service_world.h"

namespace keelson::netns {

enum Path {
  kDirect,
  kKeelson,
  kUpstream,
  kEbpf,
  kEbpfDirect
};  // the last one: bypassing the rules for outside traffic

struct PathBench {
  std::unique_ptr<ServiceWorld> world;
  std::unique_ptr<ServicePlane> plane;
  Question question;   // a request over TCP or UDP
  Question sink;       // a TCP stream to the sink
  double load_ms = 0;  // time to load the kernel
  std::string client = "pod1", server = "pod2";
};

inline constexpr uint16_t kSinkPort = 8081;

// The measured Service among `size - 1` others with three endpoints each.
std::vector<proxy::ResolvedPort> BenchServices(int size, const std::string& server = "pod2");
Result<> Load(Path path, int size, PathBench& out);
Result<PathBench> PreparePath(Path path, int size, bool outside = false);

}  // namespace keelson::netns
