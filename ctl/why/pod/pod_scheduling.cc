#include "ctl/why/pod/pod_scheduling.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <string_view>

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/serialize.hpp>

#include "ctl/output.h"
#include "lib/base/text.h"

namespace keelson::ctl {

namespace json = boost::json;

namespace {

std::string Text(const json::value& value, const char* field) {
  const json::value* found = value.is_object() ? value.get_object().if_contains(field) : nullptr;
  return found && found->is_string() ? std::string(found->get_string()) : "";
}

const json::array& List(const json::value& value, const char* field) {
  static const json::array kNone;
  const json::value* found = value.is_object() ? value.get_object().if_contains(field) : nullptr;
  return found && found->is_array() ? found->get_array() : kNone;
}

std::string Joined(const json::array& items, const char* separator) {
  std::string out;
  for (const json::value& item : items) {
    if (!item.is_string()) continue;
    if (!out.empty()) out += separator;
    out += std::string(item.get_string());
  }
  return out;
}

std::string Refused(const json::array& nodes) {
  std::vector<std::vector<std::string>> rows = {{"NODE", "REFUSED BY", "WHY"}};
  for (const json::value& node : nodes) {
    if (Text(node, "refusedBy").empty()) continue;
    std::string why = Joined(List(node, "reasons"), ", ");
    if (const std::string numbers = Text(node, "numbers"); !numbers.empty()) why += " (" + numbers + ")";
    rows.push_back({Text(node, "name"), Text(node, "refusedBy"), why});
  }
  return rows.size() == 1 ? "" : TextTable(rows);
}

std::string Scored(const json::array& nodes) {
  std::vector<std::vector<std::string>> rows;
  for (const json::value& node : nodes) {
    const json::value* scores = node.is_object() ? node.get_object().if_contains("scores") : nullptr;
    if (!scores || !scores->is_object()) continue;
    if (rows.empty()) {
      rows.push_back({"NODE", "SCORE"});
      for (const auto& [plugin, score] : scores->get_object()) rows[0].emplace_back(plugin);
    }
    const json::value* total = node.get_object().if_contains("total");
    rows.push_back({Text(node, "name"), total ? json::serialize(*total) : ""});
    for (const auto& [plugin, score] : scores->get_object()) rows.back().push_back(json::serialize(score));
  }
  return rows.empty() ? "" : TextTable(rows);
}

std::vector<std::string> Lines(const std::string& table) {
  std::vector<std::string> out;
  for (const std::string_view line : Split(TrimRight(table), '\n')) out.emplace_back(line);
  return out;
}

// What a reason contains, and what shows more of it.
struct Step {
  const char* words;
  const char* command;
};
constexpr std::array<Step, 13> kSteps{{
    {"Insufficient ", "kubectl describe nodes | grep -A 9 'Allocated resources'"},
    {"Too many pods",
     "kubectl get nodes -o custom-columns=NAME:.metadata.name,PODS:.status.allocatable.pods"},
    {"untolerated taint",
     "kubectl get nodes -o custom-columns=NAME:.metadata.name,TAINTS:.spec.taints[*].key"},
    {"node affinity/selector", "kubectl get nodes --show-labels"},
    {"were unschedulable", "kubectl get nodes"},
    {"not ready", "kubectl get nodes"},
    {"free ports for the requested pod ports", "kubectl get pods -A -o wide"},
    {"pod affinity", "kubectl get pods -A -o wide --show-labels"},
    {"anti-affinity", "kubectl get pods -A -o wide --show-labels"},
    {"topology spread", "kubectl get nodes --show-labels"},
    {"max volume count", "kubectl get csinodes -o yaml"},
    {"cannot allocate all claims", "kubectl get resourceclaims,resourceslices -A"},
    {"resourceclaim", "kubectl get resourceclaims -A"},
}};

constexpr std::string_view kAvailable = " nodes are available: ";
constexpr std::string_view kPreemption = " preemption: ";

// Where the next reason of the list begins: after ", " and before a number. npos: there is none.
size_t NextReason(std::string_view text, size_t from) {
  for (size_t at = text.find(", ", from); at != std::string_view::npos; at = text.find(", ", at + 1)) {
    const size_t digits = text.find_first_not_of("0123456789", at + 2);
    if (digits != std::string_view::npos && digits > at + 2 && text[digits] == ' ') return at;
  }
  return std::string_view::npos;
}

}  // namespace

int NodesOf(const std::string& message) {
  const size_t words = message.find(kAvailable), slash = message.find('/');
  if (words == std::string::npos || slash == std::string::npos || slash > words) return -1;
  int out = -1;
  const char* begin = message.data() + slash + 1;
  const auto [end, error] = std::from_chars(begin, message.data() + words, out);
  return error == std::errc() && end == message.data() + words ? out : -1;
}

std::vector<std::string> SchedulingReasons(const std::string& message) {
  const size_t words = message.find(kAvailable);
  if (words == std::string::npos) return {message};
  std::string_view reasons = std::string_view(message).substr(words + kAvailable.size());
  std::string preemption;
  if (const size_t at = reasons.find(kPreemption); at != std::string_view::npos) {
    preemption = TrimLeft(reasons.substr(at));
    reasons = reasons.substr(0, at);
  }
  reasons = TrimRight(reasons, ".");
  std::vector<std::string> out;
  for (size_t begin = 0; begin < reasons.size();) {
    const size_t end = NextReason(reasons, begin);
    out.emplace_back(reasons.substr(begin, end == std::string_view::npos ? end : end - begin));
    begin = end == std::string_view::npos ? reasons.size() : end + 2;
  }
  if (!preemption.empty()) out.push_back(preemption);
  return out;
}

std::vector<std::string> NextForScheduling(const std::string& message) {
  std::vector<std::string> out;
  for (const Step& one : kSteps) {
    if (message.find(one.words) == std::string::npos) continue;
    if (std::find(out.begin(), out.end(), one.command) == out.end()) out.emplace_back(one.command);
  }
  return out;
}

std::vector<std::string> SchedulingLines(const json::value& answer) {
  std::vector<std::string> out;
  const json::array& nodes = List(answer, "nodes");
  for (const std::string& table : {Scored(nodes), Refused(nodes)}) {
    if (table.empty()) continue;
    for (std::string& line : Lines(table)) out.push_back(std::move(line));
  }
  return out;
}

Problem JudgeSchedulingAnswer(const json::value& answer) {
  const std::string queue = Text(answer, "queue"), scheduler = Text(answer, "scheduler");
  const std::string state = queue.empty() ? "does not have the pod in its queue" : "has the pod as " + queue;
  Problem out{"Unschedulable", "", {scheduler + " " + state}};
  if (const std::string by = Joined(List(answer, "rejectedBy"), ", "); !by.empty()) {
    out.evidence.back() += ", last ruled out by " + by;
  }
  const json::array& nodes = List(answer, "nodes");
  const auto refusing = std::count_if(
      nodes.begin(), nodes.end(), [](const json::value& node) { return !Text(node, "refusedBy").empty(); });
  if (const json::value* refused = answer.as_object().if_contains("refused")) {
    out.message = Text(*refused, "plugin") + ": " + Text(*refused, "message");
  } else if (nodes.empty()) {
    out = {"NoNodes",
           "the cluster has no node that the scheduler could choose",
           out.evidence,
           {"kubectl get nodes"}};
  } else if (refusing < static_cast<std::ptrdiff_t>(nodes.size())) {
    out.reason = "SchedulingPending";
    out.message = fmt::format("{} of {} nodes would take the pod now; the scheduler has yet to try again",
                              static_cast<std::ptrdiff_t>(nodes.size()) - refusing, nodes.size());
  } else {
    out.message = fmt::format("none of the {} nodes takes the pod", nodes.size());
  }
  for (std::string& line : SchedulingLines(answer)) out.evidence.push_back(std::move(line));
  return out;
}

}  // namespace keelson::ctl
