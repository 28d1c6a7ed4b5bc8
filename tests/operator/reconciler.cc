#include "tests/operator/reconciler.h"

#include <algorithm>
#include <filesystem>
#include <vector>

#include <fmt/format.h>

#include "lib/base/file.h"
#include "tests/operator/manifests.h"

namespace keelson::test_operator {
namespace {

namespace json = boost::json;

constexpr char kFinalizer[] = "fleets.example.com/register";

std::string Text(const json::value& value) { return std::string(value.as_string()); }

std::string PathOf(const std::string& ns, const std::string& name) {
  return "/apis/fleets.example.com/v2/namespaces/" + ns + "/fleets/" + name;
}

bool HasFinalizer(const json::object& meta) {
  const json::value* finalizers = meta.if_contains("finalizers");
  if (!finalizers) return false;
  const json::array& all = finalizers->as_array();
  return std::find(all.begin(), all.end(), json::value(kFinalizer)) != all.end();
}

// Somebody else has written meanwhile, or the object is gone: what comes next shows in an event.
Result<> Passed(const Result<json::value>& result) {
  if (result || result.error().Is(Code::kConflict) || result.error().Is(Code::kNotFound)) return {};
  return result.error();
}

json::object Ship(const json::object& fleet, const std::string& name) {
  const json::value& meta = fleet.at("metadata");
  const json::object owner{{"apiVersion", fleet.at("apiVersion")},
                           {"kind", "Fleet"},
                           {"name", meta.at("name")},
                           {"uid", meta.at("uid")},
                           {"controller", true},
                           {"blockOwnerDeletion", true}};
  return {{"apiVersion", "v1"},
          {"kind", "ConfigMap"},
          {"metadata", json::object{{"name", name},
                                    {"labels", json::object{{"fleet", meta.at("name")}}},
                                    {"ownerReferences", json::array{owner}}}}};
}

}  // namespace

Result<> Reconciler::Run(std::stop_token stop) {
  KEELSON_ASSIGN_OR_RETURN(const json::value list, api_.Get(kFleets));
  auto reconcile = [this](const json::value& fleet) {
    const json::value& meta = fleet.at("metadata");
    return Reconcile(Text(meta.at("namespace")), Text(meta.at("name")));
  };
  for (const json::value& fleet : list.at("items").as_array()) KEELSON_RETURN_IF_ERROR(reconcile(fleet));
  Result<> failed;
  std::stop_source over;
  std::stop_callback forward(stop, [&] { over.request_stop(); });
  const std::string since = Text(list.at("metadata").at("resourceVersion"));
  Result<> watched = api_.Watch(std::string(kFleets) + "?watch=1&resourceVersion=" + since, over.get_token(),
                                [&](const json::value& event) {
                                  if (!failed) return;
                                  const std::string type = Text(event.at("type"));
                                  if (type != "ADDED" && type != "MODIFIED") return;
                                  failed = reconcile(event.at("object"));
                                  if (!failed) over.request_stop();
                                });
  if (!failed) return failed;
  return stop.stop_requested() ? Result<>() : watched;
}

Result<> Reconciler::Reconcile(const std::string& ns, const std::string& name) {
  const std::string path = PathOf(ns, name);
  Result<json::value> got = api_.Get(path);
  if (!got) return got.error().Is(Code::kNotFound) ? Result<>() : got.error();
  json::object fleet = got->as_object();
  json::object& meta = fleet.at("metadata").as_object();
  if (meta.contains("deletionTimestamp")) return Finalize(std::move(fleet), path);
  if (!HasFinalizer(meta)) {
    // Before anything that it has to take away.
    json::value& finalizers = meta["finalizers"];
    if (!finalizers.is_array()) finalizers = json::array();
    finalizers.as_array().push_back(kFinalizer);
    return Passed(api_.Replace(path, fleet));
  }
  KEELSON_RETURN_IF_ERROR(Register(register_dir_ + "/" + ns + "." + name, true));
  KEELSON_ASSIGN_OR_RETURN(const int64_t ships, BringShips(fleet, ns));
  const json::object status{{"ready", ships}, {"observedGeneration", meta.at("generation")}};
  if (const json::value* known = fleet.if_contains("status"); known && *known == status) return {};
  fleet["status"] = status;
  return Passed(api_.Replace(path + "/status", fleet));
}

Result<> Reconciler::Finalize(json::object fleet, const std::string& path) {
  json::object& meta = fleet.at("metadata").as_object();
  if (!HasFinalizer(meta)) return {};
  KEELSON_RETURN_IF_ERROR(
      Register(register_dir_ + "/" + Text(meta.at("namespace")) + "." + Text(meta.at("name")), false));
  json::array& finalizers = meta.at("finalizers").as_array();
  finalizers.erase(std::find(finalizers.begin(), finalizers.end(), json::value(kFinalizer)));
  return Passed(api_.Replace(path, fleet));
}

Result<int64_t> Reconciler::BringShips(const json::object& fleet, const std::string& ns) {
  const std::string maps = "/api/v1/namespaces/" + ns + "/configmaps";
  const std::string name = Text(fleet.at("metadata").at("name"));
  const int64_t wanted = fleet.at("spec").at("ships").as_int64();
  KEELSON_ASSIGN_OR_RETURN(const json::value list, api_.Get(maps + "?labelSelector=fleet%3D" + name));
  std::vector<std::string> present;
  for (const json::value& item : list.at("items").as_array()) {
    present.push_back(Text(item.at("metadata").at("name")));
  }
  for (int64_t i = 0; i < wanted; ++i) {
    const std::string ship = fmt::format("{}-{}", name, i);
    if (auto found = std::find(present.begin(), present.end(), ship); found != present.end()) {
      present.erase(found);
      continue;
    }
    Result<json::value> created = api_.Create(maps, Ship(fleet, ship));
    if (!created && !created.error().Is(Code::kAlreadyExists)) return created.error();
  }
  for (const std::string& surplus : present) KEELSON_RETURN_IF_ERROR(api_.Delete(maps + "/" + surplus));
  return wanted;
}

Result<> Reconciler::Register(const std::string& file, bool there) {
  if (std::filesystem::exists(file) == there) return {};
  return writes_.Do([&]() -> Result<> {
    if (there) return WriteFile(file, "a fleet\n");
    std::filesystem::remove(file);
    return {};
  });
}

}  // namespace keelson::test_operator
