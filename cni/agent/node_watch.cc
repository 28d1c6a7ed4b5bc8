#include "cni/agent/node_watch.h"

#include "cni/agent/resources/follow_resource.h"

namespace keelson::cni::agent {

NodeWatch::NodeWatch(NodeSource source, std::function<void()> on_change, Clock& clock)
    : source_(std::move(source)), on_change_(std::move(on_change)), clock_(clock) {}

std::shared_ptr<const NodeMap> NodeWatch::Nodes() const {
  MutexLock lock(mutex_);
  if (!nodes_) return nullptr;
  if (!copy_) copy_ = std::make_shared<const NodeMap>(*nodes_);
  return copy_;
}

void NodeWatch::Replace(NodeMap found) {
  {
    MutexLock lock(mutex_);
    if (nodes_ && *nodes_ == found) return;
    nodes_ = std::move(found);
    copy_.reset();
  }
  on_change_();
}

Result<std::string> NodeWatch::Handle(const client::WatchEvent& event) {
  KEELSON_ASSIGN_OR_RETURN(ParsedNode node, ParseNode(event.raw));
  if (event.type == client::WatchEvent::Type::kBookmark) return std::move(node.resource_version);
  {
    MutexLock lock(mutex_);
    auto known = nodes_->find(node.info.name);
    if (event.type == client::WatchEvent::Type::kDeleted) {
      if (known == nodes_->end()) return std::move(node.resource_version);
      nodes_->erase(known);
    } else {
      if (known != nodes_->end() && known->second == node.info) return std::move(node.resource_version);
      nodes_->insert_or_assign(node.info.name, std::move(node.info));
    }
    copy_.reset();
  }
  on_change_();
  return std::move(node.resource_version);
}

Result<> NodeWatch::Run(std::stop_token stop) {
  NodeMap found;
  ResourceHandlers handlers;
  handlers.begin_list = [&] { found.clear(); };
  handlers.listed = [&](std::string_view raw) -> Result<> {
    KEELSON_ASSIGN_OR_RETURN(ParsedNode node, ParseNode(raw));
    found[node.info.name] = std::move(node.info);
    return {};
  };
  handlers.end_list = [&] { Replace(std::exchange(found, {})); };
  handlers.event = [this](const client::WatchEvent& event) { return Handle(event); };
  return FollowResource(source_, handlers, stop, clock_);
}

}  // namespace keelson::cni::agent
