#include "kubelet/objects/object_watch.h"

#include <random>

#include "lib/base/percent.h"
#include "lib/client/wire.h"
#include "lib/http/message.h"

namespace keelson::kubelet {

namespace {

// Servers send a bookmark about once a minute; a watch that is silent for longer is dead.
constexpr std::chrono::seconds kDead(150);

int WatchSeconds() {
  thread_local std::minstd_rand random(std::random_device{}());
  return std::uniform_int_distribution<int>(300, 600)(random);
}

Result<ObjectStore::Object> Decode(const ObjectStoreDependencies& dependencies, std::string_view raw) {
  KEELSON_ASSIGN_OR_RETURN(std::string kept, client::TrimObject(raw, false));
  std::shared_ptr<google::protobuf::Message> object(dependencies.info.prototype().New());
  KEELSON_RETURN_IF_ERROR(client::RestClient::DecodeInto(kept, *object));
  return ObjectStore::Object(std::move(object));
}

}  // namespace

Result<ListedObject> ListObject(const ObjectStoreDependencies& dependencies, const std::string& ns,
                                const std::string& name, const std::string& version) {
  client::ListOptions options;
  options.field_selector = "metadata.name=" + name;
  options.resource_version = version;
  ListedObject out;
  KEELSON_RETURN_IF_ERROR(dependencies.api.ListEach(
      dependencies.info, ns, options, &out.version, [&](std::string_view raw) -> Result<> {
        KEELSON_ASSIGN_OR_RETURN(out.object, Decode(dependencies, raw));
        return {};
      }));
  return out;
}

Result<std::unique_ptr<ObjectWatch>> ObjectWatch::Open(const ObjectStoreDependencies& dependencies,
                                                       const std::string& ns, const std::string& name,
                                                       const std::string& version) {
  client::ApiRequest request;
  request.target = "/api/v1/namespaces/" + PercentEncode(ns) + "/" + std::string(dependencies.info.resource) +
                   "?watch=true&allowWatchBookmarks=true&timeoutSeconds=" + std::to_string(WatchSeconds()) +
                   "&resourceVersion=" + version + "&fieldSelector=" + PercentEncode("metadata.name=" + name);
  KEELSON_ASSIGN_OR_RETURN(auto stream, dependencies.api.transport().Open(request, {}));
  return std::unique_ptr<ObjectWatch>(new ObjectWatch(dependencies, std::move(stream)));
}

ObjectWatch::ObjectWatch(const ObjectStoreDependencies& dependencies,
                         std::unique_ptr<client::ApiStream> stream)
    : deps_(dependencies), stream_(std::move(stream)), heard_(dependencies.clock.SteadyNow()) {}

bool ObjectWatch::Follow(ObjectStore::Object& object) {
  for (;;) {
    auto bytes = stream_->Read({}, std::chrono::milliseconds(0));
    if (!bytes && bytes.error().Is(Code::kTimeout)) return deps_.clock.SteadyNow() - heard_ < kDead;
    if (!bytes || bytes->empty()) return false;
    heard_ = deps_.clock.SteadyNow();
    frames_.Append(*bytes);
    if (!TakeFrames(object)) return false;
  }
}

Result<> ObjectWatch::TakeFrames(ObjectStore::Object& object) {
  for (;;) {
    KEELSON_ASSIGN_OR_RETURN(auto frame, frames_.Next());
    if (!frame) return {};
    KEELSON_ASSIGN_OR_RETURN(client::WatchEvent event, client::DecodeWatchEvent(*frame));
    if (event.type == client::WatchEvent::Type::kBookmark) continue;
    if (event.type == client::WatchEvent::Type::kDeleted) {
      object = nullptr;
    } else {
      KEELSON_ASSIGN_OR_RETURN(object, Decode(deps_, event.raw));
    }
  }
}

}  // namespace keelson::kubelet
