// The extenders' part in preemption.
#include <algorithm>

#include <fmt/format.h>
#include <boost/json/array.hpp>
#include <boost/json/object.hpp>

#include "controlplane/scheduler/extender/extender.h"
#include "controlplane/scheduler/preemption/victims.h"
#include "lib/base/log.h"

namespace keelson::scheduler {

namespace json = boost::json;

namespace {

// ExtenderPreemptionArgs: with uids for an extender that is nodeCacheCapable, else with whole pods.
Result<json::value> Arguments(const ExtenderClient& one, const PodInfo& pod, const Snapshot& snapshot,
                              const NodeToVictims& victims) {
  json::object by_node;
  for (const auto& [slot, of_node] : victims) {
    json::array pods;
    for (const PodPtr& victim : of_node.pods) {
      json::value told = json::object{{"UID", victim->uid}};
      if (!one.config().node_cache_capable) {
        Result<json::value> object = one.PodObject(*victim);
        if (!object) continue;  // it is gone already
        told = *std::move(object);
      }
      pods.push_back(std::move(told));
    }
    by_node[snapshot.nodes[slot].facts->name] =
        json::object{{"Pods", std::move(pods)}, {"NumPDBViolations", of_node.cost.num_pdb_violations}};
  }
  json::object args{{"NodeNameToVictims", nullptr}, {"NodeNameToMetaVictims", nullptr}};
  KEELSON_ASSIGN_OR_RETURN(args["Pod"], one.PodObject(pod));
  args[one.config().node_cache_capable ? "NodeNameToMetaVictims" : "NodeNameToVictims"] = std::move(by_node);
  return args;
}

// MetaVictims of one node.
Result<Victims> VictimsOn(const ExtenderClient& one, const NodeInfo& node, const json::value& told) {
  std::vector<PodPtr> pods;
  const json::value* list = Field(told, "Pods");
  for (size_t i = 0; list && list->is_array() && i < list->get_array().size(); ++i) {
    const std::string uid = TextField(list->get_array()[i], "UID");
    const auto pod = std::find_if(node.pods.begin(), node.pods.end(),
                                  [&](const PodPtr& other) { return other->uid == uid; });
    if (pod == node.pods.end()) {
      return Error(Code::kUnavailable,
                   fmt::format("extender: {} claims to preempt pod (UID: {}) on node: {}, "
                               "but the pod is not found on that node",
                               one.config().url_prefix, uid, node.facts->name));
    }
    pods.push_back(*pod);
  }
  if (pods.empty() && !one.config().ignorable) {
    return Error(Code::kUnavailable,
                 fmt::format("expected at least one victim pod on node \"{}\"", node.facts->name));
  }
  const json::value* num_pdb_violations = Field(told, "NumPDBViolations");
  boost::system::error_code malformed;
  const auto broken = num_pdb_violations ? num_pdb_violations->to_number<int64_t>(malformed) : 0;
  return MakeVictims(std::move(pods), malformed || broken < 0 ? 0 : static_cast<size_t>(broken));
}

// ExtenderPreemptionResult: always MetaVictims.
Result<NodeToVictims> Ask(const ExtenderClient& one, const PodInfo& pod, const Snapshot& snapshot,
                          const NodeToVictims& victims) {
  KEELSON_ASSIGN_OR_RETURN(const json::value args, Arguments(one, pod, snapshot, victims));
  KEELSON_ASSIGN_OR_RETURN(const json::value answer, one.Call(one.config().preempt_verb, args));
  NodeToVictims left;
  const json::value* by_node = Field(answer, "NodeNameToMetaVictims");
  if (!by_node || !by_node->is_object()) return left;
  for (const auto& [name, told] : by_node->get_object()) {
    const NodeInfo* node = snapshot.Find(name);
    if (!node) {
      return Error(Code::kNotFound,
                   fmt::format("nodeinfo not found for node name \"{}\"", std::string_view(name)));
    }
    KEELSON_ASSIGN_OR_RETURN(Victims of_node, VictimsOn(one, *node, told));
    if (!of_node.pods.empty()) left.emplace(node->slot, std::move(of_node));
  }
  return left;
}

}  // namespace

bool HttpExtenders::SupportsPreemption(const PodInfo& pod) const {
  return std::any_of(all_.begin(), all_.end(), [&](const auto& one) {
    return !one->config().preempt_verb.empty() && one->IsInterested(pod);
  });
}

Result<> HttpExtenders::ProcessPreemption(const PodInfo& pod, const Snapshot& snapshot,
                                          NodeToVictims& victims) const {
  for (const auto& one : all_) {
    if (one->config().preempt_verb.empty() || !one->IsInterested(pod) || victims.empty()) continue;
    Result<NodeToVictims> left = Ask(*one, pod, snapshot, victims);
    if (left) {
      victims = *std::move(left);
    } else if (one->config().ignorable) {
      log::Warn("Extender is not asked whom to evict",
                {{"extender", one->config().url_prefix}, {"err", left.error()}});
    } else {
      return left.error();
    }
  }
  return {};
}

}  // namespace keelson::scheduler
