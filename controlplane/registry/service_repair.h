// Keeps allocations and Services consistent after a write that was interrupted between its two steps:
// checks everything at start and every three minutes, and a Service at once when its address vanishes.
#pragma once

#include <functional>
#include <memory>
#include <stop_token>
#include <string>

#include "controlplane/registry/service_allocator.h"
#include "lib/api/proto/networking_v1.pb.h"

namespace keelson::registry {

class ServiceRepair {
 public:
  // Records a warning event about `about`, a Service or an IPAddress.
  using Warn = std::function<void(const Message& about, std::string_view reason, std::string note)>;
  ServiceRepair(ServiceAllocator& allocator, Clock& clock, Warn warn);
  ~ServiceRepair();

  // Checks everything once; call it before the first write. What is too young to judge waits for the next check.
  Result<> RunOnce(const storage::Limits& limits);
  // Runs the checks until `stop`.
  void Run(std::stop_token stop);

 private:
  struct Vanished;  // Services whose address objects were deleted
  Result<> RepairService(const corev1::Service& service, const storage::Limits& limits);
  Result<> RepairIp(const corev1::Service& service, const std::string& text,
                    const std::vector<IpPrefix>& ranges, const storage::Limits& limits);
  Result<> RepairAddress(const ObjectPtr& object, const storage::Limits& limits);
  bool HeldByService(const api::networking::v1::ParentReference& parent, std::string_view ip) const;
  Result<> RepairPorts(const storage::Limits& limits);
  // False: the address has changed in the meantime.
  Result<bool> Remove(const ObjectPtr& address, const storage::Limits& limits);

  ServiceAllocator& allocator_;
  storage::Store& store_;
  Clock& clock_;
  const Warn warn_;
  const std::shared_ptr<Vanished> vanished_;
};

}  // namespace keelson::registry
