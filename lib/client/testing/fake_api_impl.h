// The state of a FakeApi and its watches; for the files of FakeApi alone.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "lib/base/mutex.h"
#include "lib/client/testing/fake_api.h"
#include "lib/client/testing/fake_custom.h"
#include "lib/client/testing/fake_request.h"
#include "lib/client/testing/fake_selection.h"
#include "lib/client/testing/fake_store.h"

namespace keelson::client {

struct FakeApi::Impl {
  explicit Impl(Clock& clock) : clock(clock), store(clock) {}

  Clock& clock;
  Mutex mutex;
  // One per resource, so that a change wakes only the readers that follow it.
  std::map<const api::ResourceInfo*, CondVar> changed KEELSON_GUARDED_BY(mutex);
  CondVar waiting;  // for AwaitIdle(): a reader has begun to wait, or a stream was opened or closed
  FakeStore store KEELSON_GUARDED_BY(mutex);
  Interceptor interceptor KEELSON_GUARDED_BY(mutex);
  std::vector<std::string> requests KEELSON_GUARDED_BY(mutex);
  uint64_t watch_epoch KEELSON_GUARDED_BY(mutex) = 0;     // EndWatches() ends streams of older epochs
  uint64_t bookmark_epoch KEELSON_GUARDED_BY(mutex) = 0;  // SendBookmarks()
  std::set<Stream*> streams KEELSON_GUARDED_BY(mutex);
  FakeCustom custom KEELSON_GUARDED_BY(mutex);

  // Wakes the readers of everything logged since `position`.
  void WakeSince(size_t position) KEELSON_REQUIRES(mutex);
  void WakeAll() KEELSON_REQUIRES(mutex);

  // Notes the request, and asks the interceptor.
  std::optional<Result<ApiResponse>> Intercept(const ApiRequest& request);

  // fake_verbs.cc
  Result<ApiResponse> Serve(const ApiRequest& request) KEELSON_REQUIRES(mutex);
  Result<ApiResponse> Post(const FakeRequest& at, const ApiRequest& request) KEELSON_REQUIRES(mutex);
  Result<ApiResponse> PostSub(const FakeRequest& at, const ApiRequest& request) KEELSON_REQUIRES(mutex);
  Result<ApiResponse> Put(const FakeRequest& at, const ApiRequest& request) KEELSON_REQUIRES(mutex);
  Result<ApiResponse> Patch(const FakeRequest& at, const ApiRequest& request) KEELSON_REQUIRES(mutex);
  Result<ApiResponse> Delete(const FakeRequest& at, const ApiRequest& request) KEELSON_REQUIRES(mutex);
  Result<ApiResponse> List(const FakeRequest& at, const ApiRequest& request) KEELSON_REQUIRES(mutex);
};

// A watch: a position in the store's log, and a filter.
class FakeApi::Stream : public ApiStream {
 public:
  Stream(std::shared_ptr<Impl> impl, const api::ResourceInfo* info, std::string ns, FakeSelection selection);
  ~Stream() override;

  void StartAt(size_t position) { position_ = position; }
  void Queue(const std::string& frame) { pending_ += frame; }
  void EndAfterPending() { ended_ = true; }

  Result<std::string> Read(std::stop_token stop, std::chrono::milliseconds idle) override;
  void OnReadable(std::function<void()> readable) override;
  void Tell(const api::ResourceInfo* info) const KEELSON_REQUIRES(impl_->mutex) {
    if (readable_ && (!info || info == info_)) readable_();
  }
  // Ends the stream after the changes so far, if it is of that resource.
  void EndIf(std::string_view group, std::string_view resource) KEELSON_REQUIRES(impl_->mutex);
  // Skips entries of other resources, which do not wake this reader.
  void SkipOthers() const KEELSON_REQUIRES(impl_->mutex);
  // The reader has received everything, and waits for more.
  bool CaughtUp() const KEELSON_REQUIRES(impl_->mutex);

 private:
  bool Selects(const FakeStore::Object& object) const;
  void Collect() KEELSON_REQUIRES(impl_->mutex);

  std::shared_ptr<Impl> impl_;
  const api::ResourceInfo* info_;
  const std::string ns_;
  const FakeSelection selection_;
  mutable size_t position_ = 0;
  uint64_t epoch_ = 0, bookmark_epoch_ = 0;
  std::string pending_;
  bool ended_ = false;
  bool waiting_ = false;
  std::function<void()> readable_;
};

}  // namespace keelson::client
