#include "kubelet/cm/cpu/cpu_state.h"

#include <boost/json.hpp>

#include "lib/base/file.h"

namespace keelson::kubelet {

namespace json = boost::json;

std::string CpuAssignments::Problem(const CpuSet& machine, const CpuSet& reserved, bool strict) const {
  CpuSet all = shared;
  if (!strict && !shared.ContainsAll(reserved)) {
    return "not all reserved cpus: \"" + reserved.Format() + "\" are present in defaultCpuSet: \"" +
           shared.Format() + "\"";
  }
  if (strict && !shared.Intersection(reserved).empty()) {
    return "some of strictly reserved cpus: \"" + reserved.Intersection(shared).Format() +
           "\" are present in defaultCpuSet: \"" + shared.Format() + "\"";
  }
  for (const auto& [uid, containers] : own) {
    for (const auto& [name, cpus] : containers) {
      if (!cpus.Intersection(shared).empty()) {
        return "pod: " + uid + ", container: " + name + " cpuset: \"" + cpus.Format() +
               "\" overlaps with default cpuset \"" + shared.Format() + "\"";
      }
      all.Add(cpus);
    }
  }
  CpuSet usable = strict ? machine.Minus(reserved) : machine;
  if (!(all == usable)) {
    return "current set of available CPUs \"" + usable.Format() + "\" doesn't match with CPUs in state \"" +
           all.Format() + "\"";
  }
  return "";
}

Result<CpuAssignments> LoadCpuAssignments(const std::string& path, const std::string& policy,
                                          const CpuAssignments& nothing) {
  auto text = ReadFile(path);
  if (!text) return text.error().Is(Code::kNotFound) ? Result<CpuAssignments>(nothing) : text.error();
  boost::system::error_code problem;
  json::value root = json::parse(*text, problem);
  if (problem || !root.is_object()) {
    return Error(Code::kInvalid, path + ": not a checkpoint of the CPU manager");
  }
  auto string_at = [](const json::object& object, std::string_view key) {
    const json::value* value = object.if_contains(key);
    return value && value->is_string() ? std::string(value->as_string()) : std::string();
  };
  const json::object& object = root.as_object();
  if (std::string found = string_at(object, "policyName"); found != policy) {
    return Error(Code::kInvalid, "configured policy \"" + policy +
                                     "\" differs from state checkpoint policy \"" + found + "\"");
  }
  CpuAssignments out;
  KEELSON_ASSIGN_OR_RETURN(out.shared, CpuSet::Parse(string_at(object, "defaultCpuSet")));
  const json::value* entries = object.if_contains("entries");
  if (!entries || !entries->is_object()) return out;
  for (const auto& [uid, containers] : entries->as_object()) {
    if (!containers.is_object()) return Error(Code::kInvalid, path + ": entries of a pod are no mapping");
    for (const auto& item : containers.as_object()) {
      std::string name(item.key());
      KEELSON_ASSIGN_OR_RETURN(out.own[std::string(uid)][name],
                               CpuSet::Parse(string_at(containers.as_object(), name)));
    }
  }
  return out;
}

Result<> SaveCpuAssignments(const std::string& path, const std::string& policy, const CpuAssignments& state) {
  json::object root;
  root["policyName"] = policy;
  root["defaultCpuSet"] = state.shared.Format();
  json::object entries;
  for (const auto& [uid, containers] : state.own) {
    json::object inside;
    for (const auto& [name, cpus] : containers) inside[name] = cpus.Format();
    entries[uid] = std::move(inside);
  }
  root["entries"] = std::move(entries);
  root["checksum"] = 0;
  return WriteFileAtomic(path, json::serialize(root), 0600);
}

}  // namespace keelson::kubelet
