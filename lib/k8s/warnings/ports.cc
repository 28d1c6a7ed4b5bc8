// Warnings about container ports that are equal, or nearly.
#include <map>
#include <vector>

#include <fmt/format.h>

#include "lib/k8s/validation/pod/internal.h"
#include "lib/k8s/warnings/internal.h"

namespace keelson::k8s {

namespace {

struct Seen {
  std::string path;
  const corev1::ContainerPort* port;
};

// Empty: the two do not conflict.
std::string_view Conflict(const corev1::ContainerPort& a, const corev1::ContainerPort& b) {
  if (a.host_ip() == b.host_ip() && a.host_port() == b.host_port()) return "duplicate";
  if (a.host_port() == 0 || b.host_port() == 0) return "overlapping";
  if (a.host_port() == b.host_port() && a.host_ip().empty() != b.host_ip().empty()) {
    return "dangerously ambiguous";
  }
  return {};
}

}  // namespace

void WarnOfPorts(const corev1::PodSpec& spec, const Path& path, Warnings& out) {
  std::map<std::pair<int32_t, std::string>, std::vector<Seen>> all;
  VisitContainers(spec, path, [&](const auto& container, const Path& here) {
    const Path ports = here.Child("ports");
    for (int i = 0; i < container.ports_size(); ++i) {
      const corev1::ContainerPort& port = container.ports(i);
      const Path item = ports.Index(i);
      if (!port.host_ip().empty() && port.host_port() == 0) {
        Warn(item,
             fmt::format("hostIP set without hostPort: {{Name:{} HostPort:0 ContainerPort:{} Protocol:{} "
                         "HostIP:{}}}",
                         port.name(), port.container_port(), port.protocol(), port.host_ip()),
             out);
      }
      std::vector<Seen>& others = all[{port.container_port(), port.protocol()}];
      for (const Seen& other : others) {
        const std::string_view kind = Conflict(port, *other.port);
        if (!kind.empty()) Warn(item, fmt::format("{} port definition with {}", kind, other.path), out);
      }
      others.push_back({item.ToString(), &port});
    }
  });
}

}  // namespace keelson::k8s
