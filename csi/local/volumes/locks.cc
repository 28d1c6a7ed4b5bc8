#include "csi/local/volumes/locks.h"

namespace keelson::csi::local {

namespace {

Error Busy(const std::string& id) {
  return Error(Code::kUnavailable, "another operation on " + id + " is in progress");
}

}  // namespace

Locks::Held& Locks::Held::operator=(Held&& other) noexcept {
  if (this == &other) return *this;
  Release();
  locks_ = std::exchange(other.locks_, nullptr);
  id_ = std::move(other.id_);
  return *this;
}

void Locks::Held::Release() {
  if (locks_) locks_->Release(id_);
  locks_ = nullptr;
}

Result<Locks::Held> Locks::Exclusive(const std::string& id) {
  MutexLock lock(mutex_);
  if (!held_.emplace(id, kExclusive).second) return Busy(id);
  return Held(*this, id);
}

Result<Locks::Held> Locks::Shared(const std::string& id) {
  MutexLock lock(mutex_);
  int& count = held_[id];
  if (count == kExclusive) return Busy(id);
  ++count;
  return Held(*this, id);
}

void Locks::Release(const std::string& id) {
  MutexLock lock(mutex_);
  auto it = held_.find(id);
  if (it->second == kExclusive || --it->second == 0) held_.erase(it);
}

}  // namespace keelson::csi::local
