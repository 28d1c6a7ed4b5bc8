#include "cni/agent/node_watch.h"

#include <malloc.h>

#include "lib/base/log.h"
#include "lib/client/backoff.h"

namespace keelson::cni::agent {
namespace {

constexpr int64_t kPage = 100;  // Nodes are large objects, mostly for the images that they list

const api::ResourceInfo& Resource() { return api::ResourceOf<corev1::Node>(); }

}  // namespace

NodeWatch::NodeWatch(client::RestClient api, std::function<void()> on_change, Clock& clock)
    : api_(std::move(api)), on_change_(std::move(on_change)), clock_(clock) {}

std::shared_ptr<const NodeMap> NodeWatch::Nodes() const {
  MutexLock lock(mutex_);
  if (!nodes_) return nullptr;
  if (!copy_) copy_ = std::make_shared<const NodeMap>(*nodes_);
  return copy_;
}

Result<> NodeWatch::List(const client::RestClient& api) {
  NodeMap found;
  std::string version;
  RETURN_IF_ERROR(
      api.ListEach(Resource(), "", {.limit = kPage}, &version, [&](std::string_view raw) -> Result<> {
        ASSIGN_OR_RETURN(ParsedNode node, ParseNode(raw));
        found[node.info.name] = std::move(node.info);
        return {};
      }));
  resource_version_ = version;
  bool changed;
  {
    MutexLock lock(mutex_);
    changed = !nodes_ || *nodes_ != found;
    if (changed) {
      nodes_ = std::move(found);
      copy_.reset();
    }
  }
  ::malloc_trim(0);  // the pages that the lists were in
  if (changed) on_change_();
  return {};
}

Result<> NodeWatch::Handle(const client::WatchEvent& event) {
  ASSIGN_OR_RETURN(ParsedNode node, ParseNode(event.raw));
  resource_version_ = node.resource_version;
  if (event.type == client::WatchEvent::Type::kBookmark) return {};
  {
    MutexLock lock(mutex_);
    auto known = nodes_->find(node.info.name);
    if (event.type == client::WatchEvent::Type::kDeleted) {
      if (known == nodes_->end()) return {};
      nodes_->erase(known);
    } else {
      if (known != nodes_->end() && known->second == node.info) return {};
      nodes_->insert_or_assign(node.info.name, std::move(node.info));
    }
    copy_.reset();
  }
  on_change_();
  return {};
}

Result<> NodeWatch::WatchOnce(const client::RestClient& api, std::stop_token stop, int& events) {
  ASSIGN_OR_RETURN(std::unique_ptr<client::WatchStream> stream,
                   api.Watch(Resource(), "", {.resource_version = resource_version_}));
  for (;;) {
    ASSIGN_OR_RETURN(client::WatchEvent event, stream->Next(stop));
    ++events;
    RETURN_IF_ERROR(Handle(event));
  }
}

Result<> NodeWatch::Run(std::stop_token stop) {
  const client::RestClient api = api_.With(stop);
  client::ReconnectBackoff backoff(clock_);
  bool listed = false;
  while (!stop.stop_requested()) {
    int events = 0;
    Result<> result = listed ? WatchOnce(api, stop, events) : List(api);
    if (stop.stop_requested()) break;
    if (result) {
      listed = true;
      continue;
    }
    Code code = result.error().code();
    bool goes_on = code == Code::kUnavailable || code == Code::kTimeout || code == Code::kTooManyRequests;
    if (listed && !goes_on) listed = false;
    if (events > 0) {
      backoff.Reset();
      continue;
    }
    bool usual = listed || code == Code::kGone;
    log::Write(usual ? log::Level::kDebug : log::Level::kWarn, "Nodes cannot be followed, will be retried",
               {{"err", result.error()}});
    if (!client::SleepFor(clock_, backoff.Next(), stop)) break;
  }
  return {};
}

}  // namespace keelson::cni::agent
