#include "controlplane/controllers/mirroring/metrics.h"

#include "controlplane/controllers/common/metrics.h"
#include "lib/api/codec/codec.h"

namespace keelson::controllers {
namespace {

// By address and the names of the ports it serves.
using Endpoints = std::map<std::string, std::string>;

void Add(const discoveryv1::EndpointSlice& slice, Endpoints& out) {
  std::string ports;
  for (const auto& port : slice.ports()) ports += "|" + port.name();
  for (const auto& endpoint : slice.endpoints()) {
    std::string address;
    for (const std::string& one : endpoint.addresses()) address += one + ports;
    out[address] = api::EncodeRaw(endpoint);
  }
}

}  // namespace

void MirrorMeters::Count(const std::string& key, const std::vector<SlicePointer>& before,
                         const MirrorPlan& plan, std::chrono::duration<double> took) {
  Endpoints had, has;
  std::map<std::string, const discoveryv1::EndpointSlice*> kept;
  for (const SlicePointer& slice : before) {
    Add(*slice, had);
    kept[slice->metadata().name()] = slice.get();
  }
  for (const SlicePointer& slice : plan.remove) kept.erase(slice->metadata().name());
  for (const auto& slice : plan.update) kept[slice.metadata().name()] = &slice;
  for (const auto& [name, slice] : kept) Add(*slice, has);
  for (const auto& slice : plan.create) Add(slice, has);
  int added = 0, removed = 0, updated = 0;
  for (const auto& [address, content] : has) {
    const auto it = had.find(address);
    added += it == had.end();
    updated += it != had.end() && it->second != content;
  }
  for (const auto& [address, content] : had) removed += !has.contains(address);

  Metrics& all = TheMetrics();
  all.mirroring_changes.With({"create"}).Add(static_cast<double>(plan.create.size()));
  all.mirroring_changes.With({"update"}).Add(static_cast<double>(plan.update.size()));
  all.mirroring_changes.With({"delete"}).Add(static_cast<double>(plan.remove.size()));
  all.mirroring_endpoints_added_per_sync.HistogramWith().Observe(added);
  all.mirroring_endpoints_removed_per_sync.HistogramWith().Observe(removed);
  all.mirroring_endpoints_updated_per_sync.HistogramWith().Observe(updated);
  all.mirroring_addresses_skipped_per_sync.HistogramWith().Observe(plan.skipped);
  all.mirroring_endpoints_sync_duration.HistogramWith().Observe(took.count());

  const Totals now{has.size(), kept.size() + plan.create.size()};
  MutexLock lock(mutex_);
  Totals& known = of_[key];
  const auto by = [](size_t from, size_t to) { return static_cast<double>(to) - static_cast<double>(from); };
  all.mirroring_endpoints_desired.With().Add(by(known.endpoints, now.endpoints));
  all.mirroring_num_endpoint_slices.With().Add(by(known.slices, now.slices));
  // Each list of ports and family is one slice of any size, so this is the minimum.
  all.mirroring_desired_endpoint_slices.With().Add(by(known.slices, now.slices));
  known = now;
  if (now.slices == 0) of_.erase(key);
}

}  // namespace keelson::controllers
