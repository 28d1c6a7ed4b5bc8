#include "controlplane/registry/port_allocator.h"

#include <fmt/format.h>

#include "controlplane/registry/ip_allocator.h"

namespace keelson::registry {
namespace {

constexpr int kLooksBeforeRelease = 3;

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
      if (!dry_run) taken_.insert(port);
      return port;
    }
  }
  return Error(Code::kInvalid, "range is full");
}

Result<> PortAllocator::Claim(int port, bool dry_run) {
  if (!InRange(port))
    return Error(Code::kInvalid,
                 "provided port is not in the valid range. The range of valid ports is " + RangeText());
  MutexLock lock(mutex_);
  if (taken_.count(port) != 0) return Error(Code::kInvalid, "provided port is already allocated");
  if (!dry_run) taken_.insert(port);
  return {};
}

void PortAllocator::Release(int port) {
  MutexLock lock(mutex_);
  taken_.erase(port);
  unused_.erase(port);
}

void PortAllocator::Reset(std::set<int> used) {
  MutexLock lock(mutex_);
  taken_ = std::move(used);
  unused_.clear();
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
  return unknown;
}

}  // namespace keelson::registry
