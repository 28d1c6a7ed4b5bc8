#include "controlplane/registry/port_allocator.h"

#include <algorithm>

#include <fmt/format.h>

#include "controlplane/registry/ip_allocator.h"
#include "lib/base/log.h"
#include "lib/metrics/metrics.h"

namespace keelson::registry {
namespace {

constexpr int kLooksBeforeRelease = 3;
constexpr std::string_view kName = "servicenodeports";
constexpr std::chrono::seconds kReleasePatience{10};

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

std::string Encode(const std::vector<bool>& bits) {
  std::string data((bits.size() + 7) / 8, '\0');
  for (size_t i = 0; i < bits.size(); ++i) {
    if (bits[i]) data[data.size() - 1 - i / 8] |= static_cast<char>(1 << i % 8);
  }
  return data.substr(std::min(data.find_first_not_of('\0'), data.size()));
}

std::vector<bool> Decode(std::string_view data, size_t size) {
  std::vector<bool> bits(size);
  for (size_t i = 0; i < std::min(size, data.size() * 8); ++i) {
    bits[i] = (static_cast<uint8_t>(data[data.size() - 1 - i / 8]) >> i % 8 & 1) != 0;
  }
  return bits;
}

}  // namespace

std::string PortAllocator::RangeText() const { return fmt::format("{}-{}", first_, last_); }

void PortAllocator::Tell() {
  const auto taken = std::count(bits_.begin(), bits_.end(), true);
  allocated_ports.Set(static_cast<double>(taken));
  available_ports.Set(static_cast<double>(bits_.size()) - static_cast<double>(taken));
}

void PortAllocator::Take(storage::RangeAllocation stored) {
  revision_ = stored.revision;
  // Another range counts as an empty one: the repair adds the ports of Services.
  bits_ = stored.range == RangeText() ? Decode(stored.data, bits_.size()) : Bits(bits_.size());
  loaded_ = true;
  Tell();
}

Result<> PortAllocator::Load(const etcd::Limits& limits) {
  KEELSON_ASSIGN_OR_RETURN(storage::RangeAllocation stored, ranges_.Get(kName, limits));
  Take(std::move(stored));
  return {};
}

Result<> PortAllocator::Update(const std::function<Result<>(Bits&)>& change, const etcd::Limits& limits) {
  if (!loaded_) KEELSON_RETURN_IF_ERROR(Load(limits));
  while (true) {
    Bits wanted = bits_;
    Result<> changed = change(wanted);
    if (changed && wanted == bits_) return {};
    // What refuses may be out of date.
    if (!changed) {
      const int64_t judged = revision_;
      KEELSON_RETURN_IF_ERROR(Load(limits));
      if (revision_ == judged) return changed;
      continue;
    }
    storage::RangeAllocation next{RangeText(), Encode(wanted), revision_};
    loaded_ = false;  // unknown, until etcd has answered
    KEELSON_ASSIGN_OR_RETURN(bool stored, ranges_.Put(kName, next, limits));
    Take(std::move(next));
    if (stored) return {};
  }
}

Result<int> PortAllocator::Allocate(bool dry_run, const etcd::Limits& limits) {
  const int size = last_ - first_ + 1;
  const int reserved = static_cast<int>(StaticPart(size, 32, 16, 128));
  int chosen = 0;
  auto choose = [&](Bits& bits) -> Result<> {
    for (auto [begin, end] : {std::pair(reserved, size), std::pair(0, reserved)}) {
      if (begin >= end) continue;
      const int start = static_cast<int>(RandomBetween(begin, end));
      for (int i = 0; i < end - begin; ++i) {
        const int index = begin + (start - begin + i) % (end - begin);
        if (bits[static_cast<size_t>(index)]) continue;
        chosen = first_ + index;
        if (!dry_run) bits[static_cast<size_t>(index)] = true;
        return {};
      }
    }
    return Error(Code::kInvalid, "range is full");
  };
  MutexLock lock(mutex_);
  Result<> updated = Update(choose, limits);
  if (!dry_run) (updated ? allocations_total : errors_total).With({"dynamic"}).Increment();
  if (!updated) return updated.error();
  return chosen;
}

Result<> PortAllocator::Claim(int port, bool dry_run, const etcd::Limits& limits) {
  auto claim = [&](Bits& bits) -> Result<> {
    if (bits[IndexOf(port)]) return Error(Code::kInvalid, "provided port is already allocated");
    if (!dry_run) bits[IndexOf(port)] = true;
    return {};
  };
  MutexLock lock(mutex_);
  Result<> claimed;
  if (InRange(port)) {
    claimed = Update(claim, limits);
  } else {
    claimed = Error(Code::kInvalid,
                    "provided port is not in the valid range. The range of valid ports is " + RangeText());
  }
  if (!dry_run) (claimed ? allocations_total : errors_total).With({"static"}).Increment();
  return claimed;
}

void PortAllocator::Release(int port) {
  if (!InRange(port)) return;
  MutexLock lock(mutex_);
  unused_.erase(port);
  auto release = [&](Bits& bits) -> Result<> {
    bits[IndexOf(port)] = false;
    return {};
  };
  Result<> released = Update(release, {std::chrono::steady_clock::now() + kReleasePatience, {}});
  if (!released) {
    log::Warn("Cannot release a node port; the repair will", {{"port", port}, {"err", released.error()}});
  }
}

Result<std::set<int>> PortAllocator::Reconcile(const std::set<int>& used, const etcd::Limits& limits) {
  std::set<int> unknown;
  MutexLock lock(mutex_);
  KEELSON_RETURN_IF_ERROR(Load(limits));
  const bool fresh = revision_ == 0;
  std::map<int, int> unused;
  auto reconcile = [&](Bits& bits) KEELSON_REQUIRES(mutex_) -> Result<> {
    unknown.clear();
    unused.clear();
    for (int port : used) {
      if (!InRange(port) || bits[IndexOf(port)]) continue;
      bits[IndexOf(port)] = true;
      unknown.insert(port);
    }
    for (int port = first_; port <= last_; ++port) {
      if (!bits[IndexOf(port)] || used.contains(port)) continue;
      auto before = unused_.find(port);
      const int looks = before == unused_.end() ? 1 : before->second + 1;
      if (looks < kLooksBeforeRelease) {
        unused[port] = looks;
      } else {
        bits[IndexOf(port)] = false;
      }
    }
    return {};
  };
  KEELSON_RETURN_IF_ERROR(Update(reconcile, limits));
  unused_ = std::move(unused);
  if (fresh) unknown.clear();
  return unknown;
}

}  // namespace keelson::registry
