#include "lib/client/testing/fake_api.h"

#include <algorithm>

#include "lib/api/codec/codec.h"
#include "lib/api/proto/custom_object.pb.h"
#include "lib/client/testing/fake_api_impl.h"
#include "lib/client/watch.h"

namespace keelson::client {

using google::protobuf::Message;
using Object = FakeStore::Object;

FakeApi::FakeApi(Clock& clock) : impl_(std::make_shared<Impl>(clock)) {}
FakeApi::~FakeApi() = default;

ApiResponse FakeApi::Answer(const Message& object, int status) {
  return {status, kProtobuf, api::EncodeProtobuf(object, api::GvkOf(object.GetDescriptor()))};
}

ApiResponse FakeApi::Refuse(const Error& error) {
  return {HttpStatus(error.code()), kProtobuf,
          api::EncodeProtobuf(api::ToStatus(error), {"", "v1", "Status"})};
}

std::optional<Result<ApiResponse>> FakeApi::Impl::Intercept(const ApiRequest& request) {
  Interceptor intercept;
  {
    MutexLock lock(mutex);
    requests.push_back(request.method + " " + request.target);
    intercept = interceptor;
  }
  if (!intercept) return std::nullopt;
  return intercept(request);
}

Result<ApiResponse> FakeApi::Do(const ApiRequest& request, std::chrono::milliseconds, std::stop_token stop) {
  if (stop.stop_requested()) return Error(Code::kCancelled, "request cancelled");
  if (auto answer = impl_->Intercept(request)) return *std::move(answer);
  MutexLock lock(impl_->mutex);
  const size_t before = impl_->store.log_end();
  Result<ApiResponse> response = impl_->Serve(request);
  impl_->WakeSince(before);
  return response ? response : Refuse(response.error());
}

Result<std::unique_ptr<ApiStream>> FakeApi::Open(const ApiRequest& request, std::stop_token) {
  if (auto answer = impl_->Intercept(request)) {
    if (!*answer) return answer->error();
    metav1::Status status;
    KEELSON_RETURN_IF_ERROR(api::DecodeProtobuf((*answer)->body, status));
    return api::FromStatus(status);
  }
  FakeRequest at;
  {
    MutexLock lock(impl_->mutex);
    KEELSON_ASSIGN_OR_RETURN(at, FakeRequest::Parse(request.target, impl_->custom.rows()));
  }
  KEELSON_ASSIGN_OR_RETURN(FakeSelection selection, FakeSelection::From(at, request));
  if (!at.name.empty()) return Error(Code::kMethodNotAllowed, "watch of one object by its path");
  const std::string from = at.query["resourceVersion"];
  auto stream = std::make_unique<Stream>(impl_, at.info, at.ns, selection);
  MutexLock lock(impl_->mutex);
  if (from.empty() || from == "0") {
    for (const Object& object : impl_->store.List(*at.info, at.ns)) {
      if (!selection.Matches(*object)) continue;
      stream->Queue(EncodeEvent("ADDED", *at.info, *object, selection.metadata_only));
    }
    stream->StartAt(impl_->store.log_end());
    return std::unique_ptr<ApiStream>(std::move(stream));
  }
  Result<size_t> position = impl_->store.Position(std::stoull(from));
  if (position) {
    stream->StartAt(*position);
  } else {
    metav1::Status status = api::ToStatus(position.error());
    stream->Queue(EncodeWatchFrame("ERROR", api::EncodeProtobuf(status, {"", "v1", "Status"})));
    stream->EndAfterPending();
  }
  return std::unique_ptr<ApiStream>(std::move(stream));
}

void FakeApi::PutInto(const Message& object, Message& stored) {
  MutexLock lock(impl_->mutex);
  const size_t before = impl_->store.log_end();
  stored.CopyFrom(*impl_->store.Put(api::ResourceOf(object.GetDescriptor()), object));
  impl_->WakeSince(before);
}

// Each stream's impl_ is this one, which the analysis cannot know.
void FakeApi::Serve(const Custom& custom) KEELSON_NO_THREAD_SAFETY_ANALYSIS {
  MutexLock lock(impl_->mutex);
  const size_t before = impl_->store.log_end();
  if (custom.versions.empty()) {
    if (const api::ResourceInfo* row = impl_->custom.Find(custom.group, custom.resource)) {
      for (const Object& object : impl_->store.List(*row, "")) {
        [[maybe_unused]] auto gone = impl_->store.Delete(*row, api::KeyOf(*object), metav1::DeleteOptions());
      }
    }
  }
  impl_->WakeSince(before);
  for (Stream* stream : impl_->streams) stream->EndIf(custom.group, custom.resource);
  impl_->custom.Serve(custom);
}

metav1::ObjectMeta FakeApi::PutCustom(std::string_view group, std::string_view resource,
                                      const metav1::ObjectMeta& meta) {
  api::custom::CustomObject object;
  *object.mutable_metadata() = meta;
  MutexLock lock(impl_->mutex);
  const size_t before = impl_->store.log_end();
  const Object stored = impl_->store.Put(*impl_->custom.Find(group, resource), object);
  impl_->WakeSince(before);
  return api::Meta(*stored);
}

void FakeApi::SetInterceptor(Interceptor interceptor) {
  MutexLock lock(impl_->mutex);
  impl_->interceptor = std::move(interceptor);
}

// Each stream's impl_ is this one, which the analysis cannot know.
void FakeApi::Compact() KEELSON_NO_THREAD_SAFETY_ANALYSIS {
  MutexLock lock(impl_->mutex);
  for (const Stream* stream : impl_->streams) stream->SkipOthers();
  impl_->store.Compact();
}

void FakeApi::EndWatches() {
  MutexLock lock(impl_->mutex);
  ++impl_->watch_epoch;
  impl_->WakeAll();
}

void FakeApi::SendBookmarks() {
  MutexLock lock(impl_->mutex);
  ++impl_->bookmark_epoch;
  impl_->WakeAll();
}

std::vector<std::string> FakeApi::Requests() const {
  MutexLock lock(impl_->mutex);
  return impl_->requests;
}

void FakeApi::ForgetRequests() {
  MutexLock lock(impl_->mutex);
  impl_->requests.clear();
}

void FakeApi::AwaitIdle(size_t watches) {
  MutexLock lock(impl_->mutex);
  auto idle = [&]() KEELSON_NO_THREAD_SAFETY_ANALYSIS {
    return impl_->streams.size() == watches &&
           std::all_of(impl_->streams.begin(), impl_->streams.end(),
                       [](const Stream* s) KEELSON_NO_THREAD_SAFETY_ANALYSIS { return s->CaughtUp(); });
  };
  while (!idle()) impl_->waiting.wait(impl_->mutex);
}

}  // namespace keelson::client
