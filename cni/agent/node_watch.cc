#include "cni/agent/node_watch.h"

#include <malloc.h>

#include "lib/base/log.h"
#include "lib/client/backoff.h"

namespace keelson::cni::agent {

NodeWatch::NodeWatch(NodeSource source, std::function<void()> on_change, Clock& clock)
    : source_(std::move(source)), on_change_(std::move(on_change)), clock_(clock) {}

std::shared_ptr<const NodeMap> NodeWatch::Nodes() const {
  MutexLock lock(mutex_);
  if (!nodes_) return nullptr;
  if (!copy_) copy_ = std::make_shared<const NodeMap>(*nodes_);
  return copy_;
}

Result<> NodeWatch::List(std::stop_token stop) {
  NodeMap found;
  auto take = [&](std::string_view raw) -> Result<> {
    KEELSON_ASSIGN_OR_RETURN(ParsedNode node, ParseNode(raw));
    found[node.info.name] = std::move(node.info);
    return {};
  };
  KEELSON_ASSIGN_OR_RETURN(resource_version_, source_.List(take, stop));
  bool changed;
  {
    MutexLock lock(mutex_);
    changed = !nodes_ || *nodes_ != found;
    if (changed) {
      nodes_ = std::move(found);
      copy_.reset();
    }
  }
  ::malloc_trim(0);  // return the memory of the lists
  if (changed) on_change_();
  return {};
}

Result<> NodeWatch::Handle(const client::WatchEvent& event) {
  KEELSON_ASSIGN_OR_RETURN(ParsedNode node, ParseNode(event.raw));
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

Result<> NodeWatch::WatchOnce(std::stop_token stop, int& events) {
  KEELSON_ASSIGN_OR_RETURN(std::unique_ptr<client::WatchStream> stream,
                           source_.Watch(resource_version_, stop));
  for (;;) {
    KEELSON_ASSIGN_OR_RETURN(client::WatchEvent event, stream->Next(stop));
    ++events;
    KEELSON_RETURN_IF_ERROR(Handle(event));
  }
}

Result<> NodeWatch::Run(std::stop_token stop) {
  client::ReconnectBackoff backoff(clock_);
  bool listed = false;
  while (!stop.stop_requested()) {
    int events = 0;
    Result<> result = listed ? WatchOnce(stop, events) : List(stop);
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
