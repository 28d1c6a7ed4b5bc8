#include "controlplane/scheduler/extender/extender.h"

#include <algorithm>
#include <set>

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>

#include "lib/base/log.h"

namespace keelson::scheduler {

namespace json = boost::json;

namespace {

std::vector<std::string_view> NamesOf(const Snapshot& snapshot, const std::vector<uint32_t>& slots) {
  std::vector<std::string_view> names;
  for (uint32_t slot : slots) names.push_back(snapshot.nodes[slot].facts->name);
  return names;
}

// The nodes that an ExtenderFilterResult accepts, given by name or as objects.
std::set<std::string> Kept(const json::value& answer) {
  std::set<std::string> kept;
  if (const json::value* names = Field(answer, "NodeNames"); names && names->is_array()) {
    for (const json::value& name : names->get_array()) {
      if (name.is_string()) kept.insert(std::string(name.get_string()));
    }
  } else if (const json::value* nodes = Field(answer, "Nodes")) {
    const json::value* items = Field(*nodes, "items");
    for (size_t i = 0; items && items->is_array() && i < items->get_array().size(); ++i) {
      if (const json::value* meta = Field(items->get_array()[i], "metadata")) {
        kept.insert(TextField(*meta, "name"));
      }
    }
  }
  return kept;
}

// The nodes that it rejects.
struct Rejection {
  std::string reason;
  bool resolvable;
};
std::map<std::string, Rejection> Failed(const json::value& answer) {
  std::map<std::string, Rejection> failed;
  for (const auto& [field, resolvable] :
       {std::pair{"FailedNodes", true}, {"FailedAndUnresolvableNodes", false}}) {
    const json::value* nodes = Field(answer, field);
    if (!nodes || !nodes->is_object()) continue;
    for (const auto& [name, reason] : nodes->get_object()) {
      failed[std::string(name)] = {reason.is_string() ? std::string(reason.get_string()) : "", resolvable};
    }
  }
  return failed;
}

}  // namespace

Result<std::unique_ptr<HttpExtenders>> HttpExtenders::Create(const std::vector<ExtenderConfig>& configs,
                                                             ExtenderObjects objects, std::stop_token stop) {
  auto out = std::make_unique<HttpExtenders>();
  for (const ExtenderConfig& config : configs) {
    KEELSON_ASSIGN_OR_RETURN(std::unique_ptr<ExtenderClient> one,
                             ExtenderClient::Create(config, objects, stop));
    out->all_.push_back(std::move(one));
  }
  return out;
}

bool HttpExtenders::IsInterested(const PodInfo& pod) const {
  return std::any_of(all_.begin(), all_.end(), [&](const auto& one) {
    return (!one->config().filter_verb.empty() || !one->config().prioritize_verb.empty()) &&
           one->IsInterested(pod);
  });
}

Result<> HttpExtenders::Filter(const PodInfo& pod, const Snapshot& snapshot, std::vector<uint32_t>& slots,
                               std::vector<FailedNode>& failed_nodes) {
  for (const auto& one : all_) {
    if (one->config().filter_verb.empty() || !one->IsInterested(pod) || slots.empty()) continue;
    Result<json::value> answer = one->NodeArguments(pod, NamesOf(snapshot, slots));
    if (answer) answer = one->Call(one->config().filter_verb, *answer);
    if (answer && !answer->is_object()) answer = Error(Code::kUnavailable, "not an object");
    if (!answer) {
      if (!one->config().ignorable) return answer.error();
      log::Warn("Extender is left out", {{"extender", one->config().url_prefix}, {"err", answer.error()}});
      continue;
    }
    const std::set<std::string> kept = Kept(*answer);
    const std::map<std::string, Rejection> failed = Failed(*answer);
    std::erase_if(slots, [&](uint32_t slot) {
      const std::string& name = snapshot.nodes[slot].facts->name;
      if (kept.contains(name)) return false;
      const auto it = failed.find(name);
      const bool has_reason = it != failed.end() && !it->second.reason.empty();
      failed_nodes.push_back({slot, has_reason ? it->second.reason : "node(s) were refused by an extender",
                              it == failed.end() || it->second.resolvable});
      return true;
    });
  }
  return {};
}

void HttpExtenders::Prioritize(const PodInfo& pod, const Snapshot& snapshot,
                               const std::vector<uint32_t>& slots, std::vector<int64_t>& totals) {
  constexpr int64_t kMaxOfExtenders = 10;
  for (const auto& one : all_) {
    if (one->config().prioritize_verb.empty() || !one->IsInterested(pod)) continue;
    Result<json::value> answer = one->NodeArguments(pod, NamesOf(snapshot, slots));
    if (answer) answer = one->Call(one->config().prioritize_verb, *answer);
    if (!answer) {
      // Its scores are left out.
      log::Warn("Extender gives no scores",
                {{"extender", one->config().url_prefix}, {"err", answer.error()}});
      continue;
    }
    if (!answer->is_array()) continue;
    std::map<std::string, int64_t> scores;
    for (const json::value& item : answer->get_array()) {
      const json::value* score = Field(item, "Score");
      boost::system::error_code malformed;
      const int64_t number = score ? score->to_number<int64_t>(malformed) : 0;
      if (!malformed) scores[TextField(item, "Host")] = number;
    }
    for (size_t i = 0; i < slots.size(); ++i) {
      const auto it = scores.find(snapshot.nodes[slots[i]].facts->name);
      if (it != scores.end()) {
        totals[i] += it->second * one->config().weight * (ScorePlugin::kMaxNodeScore / kMaxOfExtenders);
      }
    }
  }
}

Result<bool> HttpExtenders::Bind(const PodInfo& pod, const std::string& node) const {
  for (const auto& one : all_) {
    if (one->config().bind_verb.empty() || !one->IsInterested(pod)) continue;
    const json::object args{
        {"PodName", pod.name}, {"PodNamespace", pod.ns}, {"PodUID", pod.uid}, {"Node", node}};
    KEELSON_RETURN_IF_ERROR(one->Call(one->config().bind_verb, args));
    return true;
  }
  return false;
}

namespace {

class ExtenderBinder : public BindPlugin {
 public:
  explicit ExtenderBinder(const HttpExtenders& extenders) : extenders_(extenders) {}
  std::string_view name() const override { return "Extender"; }
  Result<bool> Bind(CycleState&, const PodInfo& pod, const std::string& node) override {
    return extenders_.Bind(pod, node);
  }

 private:
  const HttpExtenders& extenders_;
};

}  // namespace

std::unique_ptr<Plugin> NewExtenderBinder(const HttpExtenders& extenders) {
  return std::make_unique<ExtenderBinder>(extenders);
}

}  // namespace keelson::scheduler
