#include "csi/controller/common/topology_nodes.h"

namespace keelson::csi::controller {
namespace {

client::ListOptions Selection(const std::string& only) {
  client::ListOptions out;
  if (!only.empty()) out.field_selector = "metadata.name=" + only;
  return out;
}

}  // namespace

TopologyNodes::TopologyNodes(client::InformerFactory& informers, std::string driver, const std::string& only)
    : driver_(std::move(driver)),
      all_(only.empty() ? &informers.GetMetadata(api::ResourceOf<corev1::Node>()) : nullptr),
      one_(only.empty() ? nullptr : &informers.Get<corev1::Node>(Selection(only))),
      registrations_(informers.Get<storagev1::CSINode>(Selection(only))) {}

void TopologyNodes::OnChange(const std::function<void()>& changed) {
  // Nodes change every few minutes; their labels hardly ever.
  auto look = [changed](const auto& change) {
    auto labels = [](const auto& node) {
      return Segments(node.metadata().labels().begin(), node.metadata().labels().end());
    };
    if (!change.old_object || !change.new_object ||
        labels(*change.old_object) != labels(*change.new_object)) {
      changed();
    }
  };
  if (all_) {
    all_->AddHandler(look);
  } else {
    one_->AddHandler(look);
  }
  registrations_.AddHandler([changed](const client::Change<storagev1::CSINode>&) { changed(); });
}

std::optional<Segments> TopologyNodes::Labels(const std::string& name) const {
  auto labels = [](const auto& node) -> std::optional<Segments> {
    if (!node) return std::nullopt;
    return Segments(node->metadata().labels().begin(), node->metadata().labels().end());
  };
  return all_ ? labels(all_->Get(name)) : labels(one_->Get(name));
}

TopologyNode TopologyNodes::Get(const std::string& name) const {
  TopologyNode out;
  out.name = name;
  if (auto labels = Labels(name)) out.labels = *std::move(labels);
  if (const auto registration = registrations_.Get(name)) {
    for (const auto& driver : registration->spec().drivers()) {
      if (driver.name() == driver_) out.keys = {driver.topology_keys().begin(), driver.topology_keys().end()};
    }
  }
  return out;
}

std::vector<TopologyNode> TopologyNodes::All() const {
  std::vector<TopologyNode> out;
  for (const std::string& name : all_ ? all_->Keys() : one_->Keys()) out.push_back(Get(name));
  return out;
}

}  // namespace keelson::csi::controller
