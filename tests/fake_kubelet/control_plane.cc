#include "tests/fake_kubelet/control_plane.h"

#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <future>
#include <sstream>

#include "lib/base/file.h"
#include "lib/client/transport.h"

namespace keelson::fake_kubelet {
namespace {

client::RestClient ClientOf(const apiserver::TestCluster& cluster, const char* user, const char* agent) {
  auto config = client::LoadKubeconfig(cluster.pki().dir() + "/" + user + ".conf");
  if (!config) std::abort();
  config->user_agent = agent;
  auto transport = client::NewHttpTransport(*config);
  if (!transport) std::abort();
  return client::RestClient(*transport);
}

double CpuOf(pid_t pid) {
  const std::string stat = ReadFile("/proc/" + std::to_string(pid) + "/stat").value_or("");
  const size_t end = stat.rfind(')');
  if (end == std::string::npos) return 0;
  std::istringstream fields(stat.substr(end + 1));
  std::string skipped;
  for (int i = 0; i < 11; ++i) fields >> skipped;
  double user = 0, system = 0;
  fields >> user >> system;
  return (user + system) / static_cast<double>(sysconf(_SC_CLK_TCK));
}

std::string Label(const std::string& line, const std::string& name) {
  const size_t at = line.find(name + "=\"");
  if (at == std::string::npos) return "";
  const size_t begin = at + name.size() + 2;
  return line.substr(begin, line.find('"', begin) - begin);
}

}  // namespace

ControlPlane::ControlPlane(const std::vector<std::string>& flags, const Options& options)
    : cluster_(flags), api_(ClientOf(cluster_, "admin", "load")) {
  cluster_.AddUser("fake-kubelets", {"system:masters"});
  kubelets_ = std::make_unique<FakeKubelets>(ClientOf(cluster_, "fake-kubelets", "kubelet"), options);
  std::promise<void> ready;
  runner_ =
      std::jthread([&](std::stop_token stop) { (void)kubelets_->Run(stop, [&] { ready.set_value(); }); });
  ready.get_future().wait();
}

ControlPlane::~ControlPlane() = default;

ControlPlane::Writes ControlPlane::CountWrites() {
  http::ClientRequest request;
  request.target = "/metrics";
  std::istringstream lines(cluster_.Do(request).body);
  Writes out;
  for (std::string line; std::getline(lines, line);) {
    if (!line.starts_with("apiserver_request_total{")) continue;
    const std::string verb = Label(line, "verb"), resource = Label(line, "resource"),
                      part = Label(line, "subresource");
    const bool write = verb == "POST" || verb == "PUT" || verb == "PATCH" || verb == "APPLY" ||
                       verb == "DELETE" || verb == "DELETECOLLECTION";
    if (!write || resource == "leases" || !Label(line, "code").starts_with("2")) continue;
    if (!Label(line, "dry_run").empty() || resource.empty()) continue;
    out[verb + " " + resource + (part.empty() ? "" : "/" + part)] +=
        static_cast<int64_t>(std::atof(line.c_str() + line.rfind(' ')));
  }
  return out;
}

ControlPlane::Writes ControlPlane::Difference(const Writes& after, const Writes& before) {
  Writes out;
  for (const auto& [what, count] : after) {
    auto it = before.find(what);
    const int64_t more = count - (it == before.end() ? 0 : it->second);
    if (more != 0) out[what] = more;
  }
  return out;
}

int64_t ControlPlane::Sum(const Writes& writes) {
  int64_t sum = 0;
  for (const auto& [what, count] : writes) sum += count;
  return sum;
}

double ControlPlane::CpuSeconds() const { return CpuOf(cluster_.pid()); }
double ControlPlane::EtcdCpuSeconds() const { return CpuOf(cluster_.etcd_pid()); }

}  // namespace keelson::fake_kubelet
