#include <utility>

#include "lib/api/codec/codec.h"
#include "lib/api/meta.h"
#include "lib/client/testing/fake_api_impl.h"
#include "lib/client/watch.h"

namespace keelson::client {

using google::protobuf::Message;
using Object = FakeStore::Object;

FakeApi::Stream::Stream(std::shared_ptr<Impl> impl, const api::ResourceInfo* info, std::string ns,
                        FakeSelection selection)
    : impl_(std::move(impl)), info_(info), ns_(std::move(ns)), selection_(std::move(selection)) {
  MutexLock lock(impl_->mutex);
  epoch_ = impl_->watch_epoch;
  bookmark_epoch_ = impl_->bookmark_epoch;
  impl_->streams.insert(this);
}

FakeApi::Stream::~Stream() {
  MutexLock lock(impl_->mutex);
  impl_->streams.erase(this);
  impl_->waiting.notify_all();
}

Result<std::string> FakeApi::Stream::Read(std::stop_token stop, std::chrono::milliseconds idle) {
  std::stop_callback wake(stop, [this] {
    MutexLock lock(impl_->mutex);
    impl_->changed[info_].notify_all();
  });
  const auto deadline = std::chrono::steady_clock::now() + idle;
  MutexLock lock(impl_->mutex);
  waiting_ = false;
  for (;;) {
    if (stop.stop_requested()) return Error(Code::kCancelled, "watch stopped");
    if (!ended_ && epoch_ == impl_->watch_epoch) Collect();
    if (!pending_.empty()) return std::exchange(pending_, {});
    if (ended_ || epoch_ != impl_->watch_epoch) return std::string();
    if (std::chrono::steady_clock::now() >= deadline) {
      // Another reader than one that blocks will be told.
      waiting_ = readable_ != nullptr;
      impl_->waiting.notify_all();
      return Error(Code::kTimeout, "watch idle");
    }
    waiting_ = true;
    impl_->waiting.notify_all();
    impl_->changed[info_].wait_until(impl_->mutex, deadline);
    waiting_ = false;
  }
}

void FakeApi::Stream::OnReadable(std::function<void()> readable) {
  {
    MutexLock lock(impl_->mutex);
    readable_ = readable;
  }
  if (readable) readable();
}

void FakeApi::Stream::EndIf(std::string_view group, std::string_view resource) {
  if (info_->group != group || info_->resource != resource || ended_) return;
  Collect();
  ended_ = true;
  Tell(nullptr);
}

void FakeApi::Stream::SkipOthers() const {
  if (position_ < impl_->store.log_start()) return;
  while (position_ < impl_->store.log_end() && impl_->store.At(position_).info != info_) ++position_;
}

bool FakeApi::Stream::CaughtUp() const {
  SkipOthers();
  return waiting_ && position_ == impl_->store.log_end() && epoch_ == impl_->watch_epoch &&
         bookmark_epoch_ == impl_->bookmark_epoch;
}

bool FakeApi::Stream::Selects(const Object& object) const {
  return object && (ns_.empty() || api::Meta(*object).namespace_() == ns_) && selection_.Matches(*object);
}

void FakeApi::Stream::Collect() {
  if (position_ < impl_->store.log_start()) {
    metav1::Status status = api::ToStatus(Error(Code::kGone, "the watch was too slow"));
    pending_ += EncodeWatchFrame("ERROR", api::EncodeProtobuf(status, {"", "v1", "Status"}));
    ended_ = true;
    return;
  }
  for (; position_ < impl_->store.log_end(); ++position_) {
    const FakeStore::LogEntry& entry = impl_->store.At(position_);
    if (entry.info != info_) continue;
    bool was = Selects(entry.before), is = Selects(entry.after);
    if (!was && !is) continue;
    std::string_view type = !was ? "ADDED" : is ? "MODIFIED" : "DELETED";
    // An object that no longer matches is shown in its last matching state, with the version of the
    // change.
    std::unique_ptr<Message> shown(info_->prototype().New());
    shown->CopyFrom(is ? *entry.after : *entry.before);
    api::MutableMeta(*shown).set_resource_version(std::to_string(entry.version));
    pending_ += EncodeEvent(type, *info_, *shown, selection_.metadata_only);
  }
  if (bookmark_epoch_ != impl_->bookmark_epoch) {
    bookmark_epoch_ = impl_->bookmark_epoch;
    std::unique_ptr<Message> mark(info_->prototype().New());
    api::MutableMeta(*mark).set_resource_version(std::to_string(impl_->store.version()));
    pending_ += EncodeEvent("BOOKMARK", *info_, *mark, selection_.metadata_only);
  }
}

// Each stream's impl_ is this one, which the analysis cannot know.
void FakeApi::Impl::WakeSince(size_t position) KEELSON_NO_THREAD_SAFETY_ANALYSIS {
  const api::ResourceInfo* last = nullptr;
  for (; position < store.log_end(); ++position) {
    const api::ResourceInfo* info = store.At(position).info;
    if (info == last) continue;
    changed[info].notify_all();
    for (const Stream* stream : streams) stream->Tell(info);
    last = info;
  }
}

void FakeApi::Impl::WakeAll() KEELSON_NO_THREAD_SAFETY_ANALYSIS {
  for (auto& [info, readers] : changed) readers.notify_all();
  for (const Stream* stream : streams) stream->Tell(nullptr);
}

}  // namespace keelson::client
