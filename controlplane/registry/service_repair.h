// Keeps what is allocated and what Services hold the same, whatever was cut short between two writes: a look
// at everything at the start and every three minutes, and one at once where an address vanishes under its
// Service.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <stop_token>
#include <string>

#include "controlplane/registry/service_allocator.h"
#include "lib/api/proto/networking_v1.pb.h"

namespace keelson::registry {

class ServiceRepair {
 public:
  // A warning to those who look after `about`, a Service or an IPAddress.
  using Warn = std::function<void(const Message& about, std::string_view reason, std::string note)>;
  ServiceRepair(ServiceAllocator& allocator, Clock& clock, Warn warn);
  ~ServiceRepair();

  // Once, before the first write: node ports are learned here. Nothing is under way, so that all that has no
  // Service goes.
  Result<> Start(const storage::Limits& limits);
  // One look. An address that is younger than `grace` may be waiting for its Service.
  Result<> RunOnce(std::chrono::seconds grace, const storage::Limits& limits);
  void Run(std::stop_token stop);

 private:
  struct Vanished;  // Services whose address objects were deleted
  Result<> RepairService(const corev1::Service& service, const storage::Limits& limits);
  Result<> RepairIp(const corev1::Service& service, const std::string& text,
                    const std::vector<IpPrefix>& ranges, const storage::Limits& limits);
  Result<> RepairAddress(const ObjectPtr& object, std::chrono::seconds grace, const storage::Limits& limits);
  bool HeldByService(const api::networking::v1::ParentReference& parent, std::string_view ip) const;
  void RepairPorts();
  // false: it has changed meanwhile.
  Result<bool> Remove(const ObjectPtr& address, const storage::Limits& limits);

  ServiceAllocator& allocator_;
  storage::Store& store_;
  Clock& clock_;
  const Warn warn_;
  const std::shared_ptr<Vanished> vanished_;
};

}  // namespace keelson::registry
