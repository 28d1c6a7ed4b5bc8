// What a node sees of its API servers: writes one after the other through the client of Keelson's programs, until it is killed.
//
//   steady_writes KUBECONFIG NAME
//
// Patches the ConfigMap default/NAME, which has to exist. Prints a line after each answer: CLOCK_MONOTONIC in ns, and "ok" or the error.
#include <chrono>
#include <cstdio>
#include <string>
#include <thread>

#include "lib/client/transport.h"

namespace keelson {
namespace {

// As kubelets have it for most requests.
constexpr std::chrono::seconds kTimeout{30};
constexpr std::chrono::milliseconds kPause{10};

Result<> Run(const std::string& kubeconfig, const std::string& name) {
  KEELSON_ASSIGN_OR_RETURN(const client::RestConfig config, client::LoadKubeconfig(kubeconfig));
  KEELSON_ASSIGN_OR_RETURN(const std::shared_ptr<client::Transport> transport,
                           client::NewHttpTransport(config));
  for (int count = 0;; ++count) {
    client::ApiRequest request;
    request.method = "PATCH";
    request.target = "/api/v1/namespaces/default/configmaps/" + name;
    request.content_type = "application/merge-patch+json";
    request.body = R"({"data":{"count":")" + std::to_string(count) + R"("}})";
    const Result<client::ApiResponse> answer = transport->Do(request, kTimeout, {});
    const auto now = std::chrono::steady_clock::now().time_since_epoch();
    std::string outcome = "ok";
    if (!answer) {
      outcome = answer.error().message();
    } else if (answer->status != 200) {
      outcome = std::to_string(answer->status) + " " + answer->body.substr(0, 200);
    }
    std::printf("%lld %s\n",
                static_cast<long long>(std::chrono::duration_cast<std::chrono::nanoseconds>(now).count()),
                outcome.c_str());
    std::fflush(stdout);
    std::this_thread::sleep_for(kPause);
  }
}

}  // namespace
}  // namespace keelson

int main(int argc, char** argv) {
  if (argc != 3) {
    std::fprintf(stderr, "usage: steady_writes KUBECONFIG NAME\n");
    return 2;
  }
  const keelson::Result<> done = keelson::Run(argv[1], argv[2]);
  std::fprintf(stderr, "steady_writes: %s\n", done.error().message().c_str());
  return 1;
}
