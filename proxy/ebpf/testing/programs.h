// For tests: the programs on devices, loaded, and run on packets. Needs root.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "lib/bpf/object.h"
#include "lib/dataplane/ebpf_layout.h"
#include "lib/linux/netns.h"
#include "proxy/ebpf/plan.h"
#include "proxy/ebpf/testing/packet.h"

namespace keelson::proxy::ebpf {

// Where packets of tests come in.
constexpr uint32_t kLoopback = 1;

// Addresses of the tests, in either family.
struct Names {
  IpAddress client, node, external, balancer, pod, elsewhere, router, other_pod;
};
Names NamesOf(bool v4);

struct Seen {
  uint32_t verdict = 0, mark = 0;
  std::string packet;
};

class Kernel {
 public:
  // `place`: whose devices and routes there are; null: this process's. `dsr`: as with --ebpf-dsr.
  explicit Kernel(bool v4, const linux::NetNs* place = nullptr, bool dsr = false);
  Result<> Load();
  bpf::Map Map(const std::string& name) const { return *object_->GetMap(name); }

  // At a NodePort, an external and a load balancer address; as `make` has changed it.
  void Set(const std::string& key, const std::function<void(ResolvedPort&)>& make);
  Seen Run(const char* program, const std::string& frame, uint32_t device = kLoopback) const;
  Seen In(const WirePacket& packet) const { return Run(dataplane::kIngressFilter, packet.Frame()); }
  Seen Out(const WirePacket& packet) const { return Run(dataplane::kEgressFilter, packet.Frame()); }
  // What drivers run, before there is a packet of the kernel's.
  Seen RunXdp(const std::string& frame, uint32_t device = kLoopback) const;

  const Names names;

 private:
  Result<bpf::Program::Output> TestRun(const char* program, const std::string& frame,
                                       std::string_view context) const;
  const bool v4_, dsr_;
  const linux::NetNs* const place_;
  Plan plan_;
  std::optional<bpf::Object> object_;
};

// `packet` on its way to an endpoint, and what an endpoint answers.
WirePacket At(WirePacket packet, const IpAddress& endpoint, uint16_t port);
WirePacket Answer(const WirePacket& packet, uint8_t flags = kAck);

}  // namespace keelson::proxy::ebpf
