#include "lib/client/testing/fake_api.h"

#include <fmt/format.h>

#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>

#include "lib/api/codec/codec.h"
#include "lib/api/patch/patch.h"
#include "lib/api/selector.h"
#include "lib/client/testing/fake_custom.h"
#include "lib/client/testing/fake_request.h"
#include "lib/client/testing/fake_store.h"
#include "lib/client/watch.h"

namespace keelson::client {
namespace {

using google::protobuf::Message;
using Object = FakeStore::Object;

constexpr char kProtobuf[] = "application/vnd.kubernetes.protobuf";

struct Selection {
  api::LabelSelector labels;
  api::FieldSelector fields;
  bool metadata_only = false;

  static Result<Selection> From(const FakeRequest& parsed, const ApiRequest& request) {
    Selection selection;
    auto text = [&](const char* name) {
      auto it = parsed.query.find(name);
      return it == parsed.query.end() ? std::string() : it->second;
    };
    KEELSON_ASSIGN_OR_RETURN(selection.labels, api::LabelSelector::Parse(text("labelSelector")));
    KEELSON_ASSIGN_OR_RETURN(selection.fields, api::FieldSelector::Parse(text("fieldSelector")));
    selection.metadata_only = request.accept.find("as=PartialObjectMetadata") != std::string::npos;
    return selection;
  }
  bool Matches(const Message& object) const {
    return labels.Matches(api::Meta(object).labels()) && api::Matches(fields, object);
  }
};

metav1::PartialObjectMetadata MetadataOf(const Message& object) {
  metav1::PartialObjectMetadata out;
  *out.mutable_metadata() = api::Meta(object);
  return out;
}

std::string Encode(const Message& object, bool metadata_only) {
  if (metadata_only) {
    return api::EncodeProtobuf(MetadataOf(object), {"meta.k8s.io", "v1", "PartialObjectMetadata"});
  }
  return api::EncodeProtobuf(object, api::GvkOf(object.GetDescriptor()));
}

bool WantsMetadata(const ApiRequest& request) {
  return request.accept.find("as=PartialObjectMetadata") != std::string::npos;
}

// The object alone, or what of it the request asks for.
ApiResponse AnswerTo(const ApiRequest& request, const Message& object) {
  const bool metadata =
      WantsMetadata(request) || object.GetDescriptor() == metav1::PartialObjectMetadata::descriptor();
  return {200, kProtobuf, Encode(object, metadata)};
}

Result<std::unique_ptr<Message>> DecodeBody(const api::Descriptor* type, const std::string& body) {
  std::unique_ptr<Message> object = api::NewObject(type);
  KEELSON_RETURN_IF_ERROR(api::DecodeProtobuf(body, *object));
  return object;
}

Result<std::unique_ptr<Message>> Patched(const Message& object, const ApiRequest& request) {
  boost::json::value document = boost::json::parse(api::EncodeJson(object));
  boost::system::error_code malformed;
  boost::json::value patch = boost::json::parse(request.body, malformed);
  if (malformed) return Error(Code::kBadRequest, "malformed patch: " + malformed.message());
  if (request.content_type == "application/json-patch+json") {
    KEELSON_ASSIGN_OR_RETURN(document, api::ApplyJsonPatch(std::move(document), patch));
  } else if (request.content_type == "application/merge-patch+json") {
    document = api::ApplyMergePatch(std::move(document), patch);
  } else if (request.content_type == "application/strategic-merge-patch+json") {
    KEELSON_ASSIGN_OR_RETURN(
        document,
        api::ApplyStrategicMergePatch(std::move(document), patch, api::TypeViewOf(object.GetDescriptor())));
  } else {
    return Error(Code::kUnsupportedMediaType, "unsupported patch type " + request.content_type);
  }
  std::unique_ptr<Message> out(object.New());
  KEELSON_RETURN_IF_ERROR(api::DecodeJson(boost::json::serialize(document), *out));
  return out;
}

}  // namespace

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

  std::optional<Result<ApiResponse>> Intercept(const ApiRequest& request) {
    Interceptor intercept;
    {
      MutexLock lock(mutex);
      requests.push_back(request.method + " " + request.target);
      intercept = interceptor;
    }
    if (!intercept) return std::nullopt;
    return intercept(request);
  }

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
  Stream(std::shared_ptr<Impl> impl, const api::ResourceInfo* info, std::string ns, Selection selection)
      : impl_(std::move(impl)), info_(info), ns_(std::move(ns)), selection_(std::move(selection)) {
    MutexLock lock(impl_->mutex);
    epoch_ = impl_->watch_epoch;
    bookmark_epoch_ = impl_->bookmark_epoch;
    impl_->streams.insert(this);
  }
  ~Stream() override {
    MutexLock lock(impl_->mutex);
    impl_->streams.erase(this);
    impl_->waiting.notify_all();
  }

  void StartAt(size_t position) { position_ = position; }
  void Queue(std::string frame) { pending_ += frame; }
  void EndAfterPending() { ended_ = true; }

  Result<std::string> Read(std::stop_token stop, std::chrono::milliseconds idle) override {
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

  void OnReadable(std::function<void()> readable) override {
    {
      MutexLock lock(impl_->mutex);
      readable_ = readable;
    }
    if (readable) readable();
  }
  void Tell(const api::ResourceInfo* info) const KEELSON_REQUIRES(impl_->mutex) {
    if (readable_ && (!info || info == info_)) readable_();
  }

  // Ends the stream after the changes so far, if it is of that resource.
  void EndIf(std::string_view group, std::string_view resource) KEELSON_REQUIRES(impl_->mutex) {
    if (info_->group != group || info_->resource != resource || ended_) return;
    Collect();
    ended_ = true;
    Tell(nullptr);
  }

  // Skips entries of other resources, for which nobody wakes this reader.
  void SkipOthers() const KEELSON_REQUIRES(impl_->mutex) {
    if (position_ < impl_->store.log_start()) return;
    while (position_ < impl_->store.log_end() && impl_->store.At(position_).info != info_) ++position_;
  }

  // The reader has received everything, and waits for more.
  bool CaughtUp() const KEELSON_REQUIRES(impl_->mutex) {
    SkipOthers();
    return waiting_ && position_ == impl_->store.log_end() && epoch_ == impl_->watch_epoch &&
           bookmark_epoch_ == impl_->bookmark_epoch;
  }

 private:
  bool Selects(const Object& object) const {
    return object && (ns_.empty() || api::Meta(*object).namespace_() == ns_) && selection_.Matches(*object);
  }

  void Collect() KEELSON_REQUIRES(impl_->mutex) {
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
      pending_ += EncodeWatchFrame(type, Encode(*shown, selection_.metadata_only));
    }
    if (bookmark_epoch_ != impl_->bookmark_epoch) {
      bookmark_epoch_ = impl_->bookmark_epoch;
      std::unique_ptr<Message> mark(info_->prototype().New());
      api::MutableMeta(*mark).set_resource_version(std::to_string(impl_->store.version()));
      pending_ += EncodeWatchFrame("BOOKMARK", Encode(*mark, selection_.metadata_only));
    }
  }

  std::shared_ptr<Impl> impl_;
  const api::ResourceInfo* info_;
  const std::string ns_;
  const Selection selection_;
  mutable size_t position_ = 0;
  uint64_t epoch_ = 0, bookmark_epoch_ = 0;
  std::string pending_;
  bool ended_ = false;
  bool waiting_ = false;
  std::function<void()> readable_;
};

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

FakeApi::FakeApi(Clock& clock) : impl_(std::make_shared<Impl>(clock)) {}
FakeApi::~FakeApi() = default;

ApiResponse FakeApi::Answer(const Message& object, int status) {
  return {status, kProtobuf, api::EncodeProtobuf(object, api::GvkOf(object.GetDescriptor()))};
}

ApiResponse FakeApi::Refuse(const Error& error) {
  return {HttpStatus(error.code()), kProtobuf,
          api::EncodeProtobuf(api::ToStatus(error), {"", "v1", "Status"})};
}

Result<ApiResponse> FakeApi::Impl::Post(const FakeRequest& at, const ApiRequest& request) {
  KEELSON_ASSIGN_OR_RETURN(std::unique_ptr<Message> object, DecodeBody(at.info->descriptor(), request.body));
  if (at.info->namespaced) api::MutableMeta(*object).set_namespace_(at.ns);
  KEELSON_ASSIGN_OR_RETURN(Object stored, store.Create(*at.info, *object));
  return Answer(*stored, 201);
}

Result<ApiResponse> FakeApi::Impl::PostSub(const FakeRequest& at, const ApiRequest& request) {
  metav1::Status done;
  done.set_status("Success");
  done.set_code(201);
  if (at.subresource == "binding") {
    corev1::Binding binding;
    KEELSON_RETURN_IF_ERROR(api::DecodeProtobuf(request.body, binding));
    KEELSON_RETURN_IF_ERROR(store.Bind(at.Key(), binding));
    return ApiResponse{201, kProtobuf, api::EncodeProtobuf(done, {"", "v1", "Status"})};
  }
  if (at.subresource == "eviction") {
    KEELSON_RETURN_IF_ERROR(store.Delete(*at.info, at.Key(), metav1::DeleteOptions()));
    return ApiResponse{201, kProtobuf, api::EncodeProtobuf(done, {"", "v1", "Status"})};
  }
  if (at.subresource == "token") {
    KEELSON_RETURN_IF_ERROR(store.Get(*at.info, at.Key()));
    authenticationv1::TokenRequest token;
    KEELSON_RETURN_IF_ERROR(api::DecodeProtobuf(request.body, token));
    int64_t seconds = token.spec().has_expiration_seconds() ? token.spec().expiration_seconds() : 3600;
    token.mutable_status()->set_token(fmt::format("token-of-{}-{}", at.name, store.version()));
    *token.mutable_status()->mutable_expiration_timestamp() =
        api::ToTime(clock.Now() + std::chrono::seconds(seconds));
    return Answer(token, 201);
  }
  return Error(Code::kNotFound, "the server could not find the requested resource");
}

Result<ApiResponse> FakeApi::Impl::Put(const FakeRequest& at, const ApiRequest& request) {
  KEELSON_ASSIGN_OR_RETURN(std::unique_ptr<Message> object, DecodeBody(at.info->descriptor(), request.body));
  if (api::KeyOf(*object) != at.Key()) {
    return Error(Code::kBadRequest, "the name of the object does not match the name on the URL");
  }
  KEELSON_ASSIGN_OR_RETURN(Object stored, store.Update(*at.info, at.subresource, *object));
  return Answer(*stored);
}

Result<ApiResponse> FakeApi::Impl::Patch(const FakeRequest& at, const ApiRequest& request) {
  KEELSON_ASSIGN_OR_RETURN(Object before, store.Get(*at.info, at.Key()));
  KEELSON_ASSIGN_OR_RETURN(std::unique_ptr<Message> after, Patched(*before, request));
  KEELSON_ASSIGN_OR_RETURN(Object stored, store.Update(*at.info, at.subresource, *after));
  return AnswerTo(request, *stored);
}

Result<ApiResponse> FakeApi::Impl::Delete(const FakeRequest& at, const ApiRequest& request) {
  metav1::DeleteOptions options;
  if (request.content_type == "application/json") {
    KEELSON_RETURN_IF_ERROR(api::DecodeJson(request.body, options));
  } else if (!request.body.empty()) {
    KEELSON_RETURN_IF_ERROR(api::DecodeProtobuf(request.body, options));
  }
  if (!at.name.empty()) {
    KEELSON_ASSIGN_OR_RETURN(Object last, store.Delete(*at.info, at.Key(), options));
    return AnswerTo(request, *last);
  }
  KEELSON_ASSIGN_OR_RETURN(Selection selection, Selection::From(at, request));
  for (const Object& object : store.List(*at.info, at.ns)) {
    if (selection.Matches(*object)) {
      KEELSON_RETURN_IF_ERROR(store.Delete(*at.info, api::KeyOf(*object), options));
    }
  }
  metav1::Status done;
  done.set_status("Success");
  return ApiResponse{200, kProtobuf, api::EncodeProtobuf(done, {"", "v1", "Status"})};
}

Result<ApiResponse> FakeApi::Impl::List(const FakeRequest& at, const ApiRequest& request) {
  KEELSON_ASSIGN_OR_RETURN(Selection selection, Selection::From(at, request));
  auto query = [&](const char* name) {
    auto it = at.query.find(name);
    return it == at.query.end() ? std::string() : it->second;
  };
  const size_t limit = query("limit").empty() ? SIZE_MAX : std::stoul(query("limit"));
  const std::string after = query("continue");

  api::GroupVersionKind gvk = at.info->Gvk();
  if (selection.metadata_only) gvk = {"meta.k8s.io", "v1", "PartialObjectMetadata"};
  gvk.kind += "List";
  const api::Descriptor* type = selection.metadata_only ? metav1::PartialObjectMetadataList::descriptor()
                                                        : api::FindMessage(gvk.group, gvk.version, gvk.kind);
  if (!type) return Error(Code::kInternal, "no list type for " + gvk.kind);
  std::unique_ptr<Message> list = api::NewObject(type);
  const auto* items = type->FindFieldByName("items");
  metav1::ListMeta& meta = api::MutableListMeta(*list);
  meta.set_resource_version(std::to_string(store.version()));
  size_t count = 0;
  std::string last;
  for (const Object& object : store.List(*at.info, at.ns)) {
    const std::string key = api::KeyOf(*object);
    if (key <= after || !selection.Matches(*object)) continue;
    if (count++ == limit) {
      meta.set_continue_(last);
      break;
    }
    Message* item = list->GetReflection()->AddMessage(list.get(), items);
    if (selection.metadata_only) {
      item->CopyFrom(MetadataOf(*object));
    } else {
      item->CopyFrom(*object);
    }
    last = key;
  }
  return ApiResponse{200, kProtobuf, api::EncodeProtobuf(*list, gvk)};
}

Result<ApiResponse> FakeApi::Impl::Serve(const ApiRequest& request) {
  if (request.method == "GET" && request.target == "/apis") return custom.Discovery();
  KEELSON_ASSIGN_OR_RETURN(FakeRequest at, FakeRequest::Parse(request.target, custom.rows()));
  if (request.method == "POST") return at.subresource.empty() ? Post(at, request) : PostSub(at, request);
  if (request.method == "PUT") return Put(at, request);
  if (request.method == "PATCH") return Patch(at, request);
  if (request.method == "DELETE") return Delete(at, request);
  if (request.method != "GET") return Error(Code::kMethodNotAllowed, "method not allowed");
  if (at.name.empty()) return List(at, request);
  KEELSON_ASSIGN_OR_RETURN(Object object, store.Get(*at.info, at.Key()));
  return AnswerTo(request, *object);
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
  KEELSON_ASSIGN_OR_RETURN(Selection selection, Selection::From(at, request));
  if (!at.name.empty()) return Error(Code::kMethodNotAllowed, "watch of one object by its path");
  const std::string from = at.query["resourceVersion"];
  auto stream = std::make_unique<Stream>(impl_, at.info, at.ns, selection);
  MutexLock lock(impl_->mutex);
  if (from.empty() || from == "0") {
    for (const Object& object : impl_->store.List(*at.info, at.ns)) {
      if (!selection.Matches(*object)) continue;
      stream->Queue(EncodeWatchFrame("ADDED", Encode(*object, selection.metadata_only)));
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
  metav1::PartialObjectMetadata object;
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
