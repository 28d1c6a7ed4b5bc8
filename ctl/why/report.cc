#include "ctl/why/report.h"

#include <fmt/format.h>
#include <boost/json/object.hpp>
#include <boost/json/serialize.hpp>

#include "ctl/output.h"

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
  return rows.size() == 1 ? "" : TextTable(rows, 2);
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
    rows.push_back({Text(node, "name"), json::serialize(node.get_object().at("total"))});
    for (const auto& [plugin, score] : scores->get_object()) rows.back().push_back(json::serialize(score));
  }
  return rows.empty() ? "" : TextTable(rows, 2);
}

}  // namespace

bool HasNowhereToGo(const json::value& answer) {
  if (!Text(answer, "node").empty()) return false;
  for (const json::value& node : List(answer, "nodes")) {
    if (Text(node, "refusedBy").empty()) return false;
  }
  return true;
}

std::string WhyPodText(const json::value& answer) {
  const std::string pod = Text(answer, "pod");
  if (const std::string node = Text(answer, "node"); !node.empty()) {
    return fmt::format("Pod {} is on node {}\n", pod, node);
  }
  std::string out = fmt::format("Pod {} has no node; {} has it as {}", pod, Text(answer, "scheduler"),
                                Text(answer, "queue").empty() ? "not its own" : Text(answer, "queue"));
  const std::string by = Joined(List(answer, "rejectedBy"), ", ");
  out += by.empty() ? "\n" : fmt::format(", last ruled out by {}\n", by);
  if (const json::value* refused = answer.as_object().if_contains("refused")) {
    return out + fmt::format("\n  {}: {}\n", Text(*refused, "plugin"), Text(*refused, "message"));
  }
  const json::array& nodes = List(answer, "nodes");
  if (nodes.empty()) return out + "\n  no nodes available to schedule pods\n";
  for (const std::string& table : {Scored(nodes), Refused(nodes)}) {
    if (!table.empty()) out += "\n" + table;
  }
  return out;
}

}  // namespace keelson::ctl
