#include "kubelet/cm/memory/memory_state.h"

#include <algorithm>

#include <boost/json.hpp>

#include "lib/base/file.h"

namespace keelson::kubelet {

namespace json = boost::json;

MemoryTable::MemoryTable(std::map<int, MemoryAmounts> allocatable, const MemoryGrants& grants)
    : allocatable_(std::move(allocatable)) {
  for (const auto& [uid, containers] : grants.pods) {
    // Init containers make room for those after them: of each group the pod has the larger of both uses.
    std::map<unsigned long long, MemoryAmounts> passing, lasting;
    for (const auto& [name, grant] : containers) {
      MemoryAmounts& amounts = (grant.passing ? passing : lasting)[grant.nodes.to_ullong()];
      for (const auto& [type, bytes] : grant.amounts) {
        amounts[type] = grant.passing ? std::max(amounts[type], bytes) : amounts[type] + bytes;
      }
    }
    for (const auto& [group, amounts] : passing) {
      for (const auto& [type, bytes] : amounts) lasting[group][type] = std::max(lasting[group][type], bytes);
    }
    for (const auto& [group, amounts] : lasting) {
      for (const auto& [type, bytes] : amounts) used_[group][type] += bytes;
    }
  }
}

bool MemoryTable::Allowed(const NumaMask& nodes) const {
  return std::all_of(used_.begin(), used_.end(), [&](const auto& entry) {
    return entry.first == nodes.to_ullong() || (NumaMask(entry.first) & nodes).none();
  });
}

int64_t MemoryTable::Total(const NumaMask& nodes, const std::string& type) const {
  int64_t sum = 0;
  for (const auto& [id, amounts] : allocatable_) {
    auto it = amounts.find(type);
    if (nodes.test(id) && it != amounts.end()) sum += it->second;
  }
  return sum;
}

bool MemoryTable::LargeEnough(const NumaMask& nodes, const MemoryAmounts& wanted) const {
  return std::all_of(wanted.begin(), wanted.end(),
                     [&](const auto& item) { return Total(nodes, item.first) >= item.second; });
}

bool MemoryTable::Fits(const NumaMask& nodes, const MemoryAmounts& wanted) const {
  if (!Allowed(nodes)) return false;
  auto group = used_.find(nodes.to_ullong());
  return std::all_of(wanted.begin(), wanted.end(), [&](const auto& item) {
    int64_t used = 0;
    if (group != used_.end()) {
      if (auto it = group->second.find(item.first); it != group->second.end()) used = it->second;
    }
    return Total(nodes, item.first) - used >= item.second;
  });
}

Result<MemoryGrants> LoadMemoryGrants(const std::string& path) {
  auto text = ReadFile(path);
  if (!text) return text.error().Is(Code::kNotFound) ? Result<MemoryGrants>(MemoryGrants()) : text.error();
  MemoryGrants out;
  try {
    const json::value root = json::parse(*text);
    for (const auto& [uid, containers] : root.at("pods").as_object()) {
      for (const auto& [name, value] : containers.as_object()) {
        MemoryGrant grant;
        for (const json::value& node : value.at("nodes").as_array()) {
          grant.nodes.set(static_cast<size_t>(node.as_int64()));
        }
        for (const auto& [type, bytes] : value.at("amounts").as_object()) {
          grant.amounts[std::string(type)] = bytes.as_int64();
        }
        grant.passing = value.at("passing").as_bool();
        out.pods[std::string(uid)][std::string(name)] = std::move(grant);
      }
    }
  } catch (const std::exception& problem) {
    return Error(Code::kInvalid, path + ": not a checkpoint of the memory manager: " + problem.what());
  }
  return out;
}

Result<> SaveMemoryGrants(const std::string& path, const MemoryGrants& grants) {
  json::object pods;
  for (const auto& [uid, containers] : grants.pods) {
    json::object inside;
    for (const auto& [name, grant] : containers) {
      json::array nodes;
      for (size_t node = 0; node < grant.nodes.size(); ++node) {
        if (grant.nodes.test(node)) nodes.push_back(static_cast<int64_t>(node));
      }
      json::object amounts;
      for (const auto& [type, bytes] : grant.amounts) amounts[type] = bytes;
      inside[name] = {{"nodes", nodes}, {"amounts", amounts}, {"passing", grant.passing}};
    }
    pods[uid] = std::move(inside);
  }
  return WriteFileAtomic(path, json::serialize(json::object{{"policyName", "Static"}, {"pods", pods}}), 0600);
}

}  // namespace keelson::kubelet
