#include "lib/client/followed_resource.h"

#include "lib/api/meta.h"
#include "lib/base/log.h"
#include "lib/client/wire.h"

namespace keelson::client {
namespace {

using Object = InformerBase::Object;
using metav1::PartialObjectMetadata;

constexpr char kByNamespace[] = "namespace";
// Servers send a bookmark about once a minute; a connection that is silent for longer is dead.
constexpr std::chrono::seconds kSilence{150};

}  // namespace

FollowedResource::FollowedResource(const api::ResourceInfo& info, Clock& clock,
                                   DiscoveredInformers::Handler notify, std::function<void()> wake)
    : clock_(clock),
      notify_(std::move(notify)),
      wake_(std::move(wake)),
      store_(PartialObjectMetadata::default_instance()),
      wanted_(&info),
      backoff_(clock) {
  store_.AddIndex(kByNamespace, [](const google::protobuf::Message& object) {
    return std::vector{api::Meta(object).namespace_()};
  });
}

size_t FollowedResource::CountIn(std::string_view ns) const {
  return store_.ByIndex(kByNamespace, ns).size();
}

void FollowedResource::Notify(const std::string& key, const Object& before, const Object& after) {
  notify_(*read_as_, {key, std::static_pointer_cast<const PartialObjectMetadata>(before),
                      std::static_pointer_cast<const PartialObjectMetadata>(after)});
}

Result<Object> FollowedResource::Apply(std::string_view raw, bool always) {
  KEELSON_ASSIGN_OR_RETURN(std::string kept, TrimObject(raw, true));
  Object object = store_.Decode(kept);
  if (!object) return Error(Code::kInternal, "undecodable object from the API server");
  const std::string key = api::KeyOf(*object);
  if (!always && store_.Holds(key, kept)) return object;
  const Object before = store_.Put(key, std::move(kept), object);
  Notify(key, before, object);
  return object;
}

void FollowedResource::Forget(const std::string& key, Object last) {
  const Object before = store_.Remove(key);
  if (before) Notify(key, last ? last : before, nullptr);
}

Result<> FollowedResource::Relist(const RestClient& api) {
  const bool other_row = read_as_ != wanted_ && listed_;
  read_as_ = wanted_;
  std::unordered_set<std::string> seen;
  std::string version;
  KEELSON_RETURN_IF_ERROR(
      api.ListEach(*read_as_, "", {.metadata_only = true}, &version, [&](std::string_view raw) -> Result<> {
        KEELSON_ASSIGN_OR_RETURN(Object object, Apply(raw, other_row));
        seen.insert(api::KeyOf(*object));
        return {};
      }));
  for (const std::string& key : store_.Keys()) {
    if (!seen.contains(key)) Forget(key, nullptr);
  }
  resource_version_ = version;
  return {};
}

Result<> FollowedResource::Handle(const WatchEvent& event) {
  Object object;
  if (event.type == WatchEvent::Type::kAdded || event.type == WatchEvent::Type::kModified) {
    KEELSON_ASSIGN_OR_RETURN(object, Apply(event.raw, false));
  } else {
    KEELSON_ASSIGN_OR_RETURN(std::string kept, TrimObject(event.raw, true));
    object = store_.Decode(kept);
    if (!object) return Error(Code::kInternal, "undecodable object from the API server");
  }
  resource_version_ = api::Meta(*object).resource_version();
  if (event.type == WatchEvent::Type::kDeleted) Forget(api::KeyOf(*object), object);
  return {};
}

Result<> FollowedResource::Pump(std::stop_token stop) {
  for (;;) {
    Result<std::string> bytes = stream_->Read(stop, std::chrono::milliseconds(0));
    if (!bytes && bytes.error().Is(Code::kTimeout)) {
      if (clock_.SteadyNow() - heard_ < kSilence) return {};
      return Error(Code::kUnavailable, "watch: the server is silent");
    }
    if (!bytes && bytes.error().Is(Code::kCancelled)) return bytes.error();
    if (!bytes) return Error(Code::kUnavailable, bytes.error().Wrap("watch").message());
    if (bytes->empty()) return Error(Code::kUnavailable, "watch: stream ended");
    heard_ = clock_.SteadyNow();
    frames_.Append(*bytes);
    for (;;) {
      KEELSON_ASSIGN_OR_RETURN(std::optional<std::string_view> frame, frames_.Next());
      if (!frame) break;
      KEELSON_ASSIGN_OR_RETURN(WatchEvent event, DecodeWatchEvent(*frame));
      fruitful_ = true;
      KEELSON_RETURN_IF_ERROR(Handle(event));
    }
  }
}

FollowedResource::Next FollowedResource::Fail(const Error& error, std::string_view what) {
  if (error.Is(Code::kCancelled)) return {backoff_.Next()};
  const bool missing = error.Is(Code::kNotFound);
  // Resources come and go: discovery tells whether this one is still there.
  log::Write(missing ? log::Level::kDebug : log::Level::kWarn, what,
             {{"resource", read_as_->GroupResource()}, {"err", error}});
  return {backoff_.Next(), missing};
}

FollowedResource::Next FollowedResource::Step(const RestClient& api, std::stop_token stop) {
  if (read_as_ != wanted_) {
    relist_ = true;
    stream_.reset();
  }
  if (relist_) {
    stream_.reset();
    Result<> result = Relist(api);
    tried_ = true;
    if (!result) return Fail(result.error(), "Listing a discovered resource failed, will be retried");
    listed_ = true;
    relist_ = false;
  }
  if (!stream_) {
    Result<std::unique_ptr<ApiStream>> opened =
        MetadataClient(api).With(stop).Watch(*read_as_, resource_version_);
    if (!opened) {
      const Code code = opened.error().code();
      relist_ = code != Code::kUnavailable && code != Code::kTimeout && code != Code::kTooManyRequests;
      return Fail(opened.error(), "Watching a discovered resource failed, will be retried");
    }
    stream_ = std::move(*opened);
    frames_ = {};
    fruitful_ = false;
    heard_ = clock_.SteadyNow();
    stream_->OnReadable(wake_);
  }
  Result<> result = Pump(stop);
  if (result) {
    const std::chrono::nanoseconds left = kSilence - (clock_.SteadyNow() - heard_);
    return {std::max<std::chrono::nanoseconds>(left, std::chrono::seconds(1))};
  }
  stream_.reset();
  relist_ = !result.error().Is(Code::kUnavailable);
  if (fruitful_) {
    // The server has ended a stream that worked, or has forgotten old events: both are usual.
    backoff_.Reset();
    return {};
  }
  if (result.error().Is(Code::kUnavailable) || result.error().Is(Code::kGone)) return {backoff_.Next()};
  return Fail(result.error(), "Watching a discovered resource failed, will be retried");
}

void FollowedResource::Drop() {
  stream_.reset();
  if (!read_as_) return;
  for (const std::string& key : store_.Keys()) Forget(key, nullptr);
}

}  // namespace keelson::client
