// For benchmarks: a client on pod1, a server on pod2, and ways to come from one to the other. Or a client
// outside and a server on another node, by way of a NodePort.
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
};  // the last one: past the rules, for the outside

struct PathBench {
  std::unique_ptr<ServiceWorld> world;
  std::unique_ptr<ServicePlane> plane;
  Question question;   // asks who answers, over TCP or UDP
  Question sink;       // reads what comes, over TCP
  double load_ms = 0;  // until the kernel had all of it
  std::string client = "pod1", server = "pod2";
};

inline constexpr uint16_t kSinkPort = 8081;

// The Service that is asked, among `size - 1` others of three endpoints.
std::vector<proxy::ResolvedPort> BenchServices(int size, const std::string& server = "pod2");
Result<> Load(Path path, int size, PathBench& out);
Result<PathBench> PreparePath(Path path, int size, bool outside = false);

}  // namespace keelson::netns
