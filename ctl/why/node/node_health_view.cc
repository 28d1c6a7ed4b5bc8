#include "ctl/why/node/node_health_view.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <filesystem>

#include "lib/base/file.h"
#include "lib/base/text.h"
#include "lib/crypto/certificates.h"

namespace keelson::ctl {

namespace {

namespace fs = std::filesystem;

constexpr char kCertificate[] = "/var/lib/kubelet/pki/kubelet-client-current.pem";
constexpr char kCniDirectory[] = "/etc/cni/net.d";

std::string HostName() {
  std::array<char, 256> name{};
  return ::gethostname(name.data(), name.size() - 1) == 0 ? Lower(name.data()) : "";
}

bool IsThisMachine(const corev1::Node& node) {
  const std::string here = HostName();
  if (node.metadata().name() == here) return true;
  const auto& addresses = node.status().addresses();
  return std::any_of(addresses.begin(), addresses.end(),
                     [&](const auto& one) { return one.type() == "Hostname" && one.address() == here; });
}

bool Runs(const std::string& root, const std::string& program) {
  std::error_code failed;
  for (const auto& entry : fs::directory_iterator(root + "/proc", failed)) {
    const Result<std::string> name = ReadFile(entry.path().string() + "/comm");
    if (name && TrimRight(*name) == program) return true;
  }
  return false;
}

std::string FirstCniFile(const std::string& root) {
  std::vector<std::string> files;
  std::error_code failed;
  for (const auto& entry : fs::directory_iterator(root + kCniDirectory, failed)) {
    const std::string kind = entry.path().extension().string();
    if (kind == ".conf" || kind == ".conflist" || kind == ".json") {
      files.push_back(entry.path().filename().string());
    }
  }
  const auto first = std::min_element(files.begin(), files.end());
  return first == files.end() ? "" : *first;
}

NodeHealthView::Machine LookAtMachine(const std::string& root) {
  NodeHealthView::Machine out{.certificate = kCertificate,
                              .certificate_problem = {},
                              .not_after = {},
                              .cni_configuration = FirstCniFile(root)};
  out.kubelet_runs = Runs(root, "kubelet");
  const Result<std::string> pem = ReadFile(root + kCertificate);
  if (!pem) {
    out.certificate_problem = pem.error().message();
    return out;
  }
  const Result<crypto::CertificateInfo> info = crypto::InspectCertificate(*pem);
  if (info) {
    out.not_after = info->not_after;
    out.not_before = info->not_before;
  } else {
    out.certificate_problem = info.error().message();
  }
  return out;
}

}  // namespace

Result<NodeHealthView> ReadNodeHealth(const client::RestClient& api, const std::string& name,
                                      const std::string& root, WallTime now) {
  NodeHealthView view;
  view.now = now;
  KEELSON_ASSIGN_OR_RETURN(view.node, api.Get<corev1::Node>("", name));
  Result<coordinationv1::Lease> lease = api.Get<coordinationv1::Lease>("kube-node-lease", name);
  if (!lease && !lease.error().Is(Code::kNotFound)) return lease.error();
  if (lease) view.lease = std::move(*lease);
  // The kubelet's events have the node's name as UID.
  KEELSON_ASSIGN_OR_RETURN(view.events,
                           ReadEvents(api, "", "involvedObject.kind=Node,involvedObject.name=" + name));
  if (IsThisMachine(view.node)) view.machine = LookAtMachine(root);
  return view;
}

}  // namespace keelson::ctl
