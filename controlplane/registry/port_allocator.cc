#include "controlplane/registry/port_allocator.h"

#include <fmt/format.h>

#include "controlplane/registry/ip_allocator.h"
#include "lib/metrics/metrics.h"

namespace keelson::registry {
namespace {

constexpr int kLooksBeforeRelease = 3;

metrics::Value& allocated_ports =
    metrics::Gauge("kube_apiserver_nodeport_allocator_allocated_ports",
                   "Gauge measuring the number of allocated NodePorts for Services")
        .With();
metrics::Value& available_ports =
    metrics::Gauge("kube_apiserver_nodeport_allocator_available_ports",
                   "Gauge measuring the number of available NodePorts for Services")
        .With();
metrics::Family& allocations_total = metrics::Counter("kube_apiserver_nodeport_allocator_allocation_total",
                                                      "Number of NodePort allocations", {"scope"});
metrics::Family& errors_total = metrics::Counter("kube_apiserver_nodeport_allocator_allocation_errors_total",
                                                 "Number of errors trying to allocate NodePort", {"scope"});

void Tell(size_t taken, int size) {
  allocated_ports.Set(static_cast<double>(taken));
  available_ports.Set(size - static_cast<double>(taken));
}

}  // namespace

std::string PortAllocator::RangeText() const { return fmt::format("{}-{}", first_, last_); }

Result<int> PortAllocator::Allocate(bool dry_run) {
  const int size = last_ - first_ + 1;
  const int reserved = static_cast<int>(StaticPart(size, 32, 16, 128));
  MutexLock lock(mutex_);
  for (auto [begin, end] : {std::pair(reserved, size), std::pair(0, reserved)}) {
    if (begin >= end) continue;
    const int start = static_cast<int>(RandomBetween(begin, end));
    for (int i = 0; i < end - begin; ++i) {
      const int port = first_ + begin + (start - begin + i) % (end - begin);
      if (taken_.count(port) != 0) continue;
      if (dry_run) return port;
      taken_.insert(port);
      allocations_total.With({"dynamic"}).Increment();
      Tell(taken_.size(), size);
      return port;
    }
  }
  if (!dry_run) errors_total.With({"dynamic"}).Increment();
  return Error(Code::kInvalid, "range is full");
}

Result<> PortAllocator::Claim(int port, bool dry_run) {
  Result<> claimed;
  MutexLock lock(mutex_);
  if (!InRange(port)) {
    claimed = Error(Code::kInvalid,
                    "provided port is not in the valid range. The range of valid ports is " + RangeText());
  } else if (taken_.count(port) != 0) {
    claimed = Error(Code::kInvalid, "provided port is already allocated");
  }
  if (dry_run) return claimed;
  if (claimed) taken_.insert(port);
  (claimed ? allocations_total : errors_total).With({"static"}).Increment();
  Tell(taken_.size(), last_ - first_ + 1);
  return claimed;
}

void PortAllocator::Release(int port) {
  MutexLock lock(mutex_);
  taken_.erase(port);
  unused_.erase(port);
  Tell(taken_.size(), last_ - first_ + 1);
}

void PortAllocator::Reset(std::set<int> used) {
  MutexLock lock(mutex_);
  taken_ = std::move(used);
  unused_.clear();
  Tell(taken_.size(), last_ - first_ + 1);
}

std::set<int> PortAllocator::Reconcile(const std::set<int>& used) {
  std::set<int> unknown;
  MutexLock lock(mutex_);
  for (int port : used) {
    if (InRange(port) && taken_.insert(port).second) unknown.insert(port);
    unused_.erase(port);
  }
  for (auto it = taken_.begin(); it != taken_.end();) {
    if (used.count(*it) == 0 && ++unused_[*it] >= kLooksBeforeRelease) {
      unused_.erase(*it);
      it = taken_.erase(it);
    } else {
      ++it;
    }
  }
  Tell(taken_.size(), last_ - first_ + 1);
  return unknown;
}

}  // namespace keelson::registry
