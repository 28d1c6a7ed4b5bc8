#include "controlplane/controllers/endpoints/slice_tracker.h"

#include <charconv>

namespace keelson::controllers {
namespace {

uint64_t VersionOf(const metav1::ObjectMeta& meta) {
  uint64_t version = 0;
  const std::string& text = meta.resource_version();
  std::from_chars(text.data(), text.data() + text.size(), version);
  return version;
}

}  // namespace

bool SliceTracker::IsBehind(const std::string& service, const Slices& slices) {
  std::map<std::string, uint64_t> shown;
  for (const auto& slice : slices) shown[slice->metadata().name()] = VersionOf(slice->metadata());
  MutexLock lock(mutex_);
  auto it = written_.find(service);
  if (it == written_.end()) return false;
  std::erase_if(it->second, [&](const auto& entry) {
    auto there = shown.find(entry.first);
    return there != shown.end() && there->second >= entry.second;
  });
  if (!it->second.empty()) return true;
  written_.erase(it);
  return false;
}

void SliceTracker::NoteWritten(const std::string& service, const discoveryv1::EndpointSlice& slice) {
  MutexLock lock(mutex_);
  written_[service][slice.metadata().name()] = VersionOf(slice.metadata());
}

void SliceTracker::NoteGone(const std::string& service, const std::string& slice) {
  MutexLock lock(mutex_);
  auto it = written_.find(service);
  if (it != written_.end()) it->second.erase(slice);
}

void SliceTracker::Forget(const std::string& service) {
  MutexLock lock(mutex_);
  written_.erase(service);
}

}  // namespace keelson::controllers
