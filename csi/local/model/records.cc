#include "csi/local/model/records.h"

#include <boost/json.hpp>

namespace keelson::csi::local {

namespace {

namespace json = boost::json;

constexpr int64_t kVersion = 1;

Error Bad(const std::string& id, const std::string& why) {
  return Error(Code::kInternal, "record of " + id + ": " + why);
}

// Reads fields of one document, and remembers the first that is wrong.
class Reader {
 public:
  Reader(std::string_view text, const std::string& id) : id_(id) {
    boost::system::error_code failed;
    json::value value = json::parse(text, failed);
    if (failed) {
      why_ = failed.message();
    } else if (!value.is_object()) {
      why_ = "not an object";
    } else {
      object_ = std::move(value.as_object());
      int64_t version = 0;
      Get("version", version);
      if (why_.empty() && version != kVersion) why_ = "version " + std::to_string(version) + " is unknown";
      std::string own;
      Get("id", own);
      if (why_.empty() && own != id) why_ = "it is of " + own;
    }
  }

  void Get(const char* key, std::string& out) {
    if (const json::value* value = Find(key, json::kind::string)) out = value->get_string();
  }
  void Get(const char* key, int64_t& out) {
    if (const json::value* value = Find(key, json::kind::int64)) out = value->get_int64();
  }
  void Get(const char* key, bool& out) {
    if (const json::value* value = Find(key, json::kind::bool_)) out = value->get_bool();
  }
  // Those that earlier versions did not write.
  template <typename T>
  void GetIfPresent(const char* key, T& out) {
    if (object_.contains(key)) Get(key, out);
  }
  void Get(const char* key, std::vector<std::string>& out) {
    const json::value* value = Find(key, json::kind::array);
    if (!value) return;
    for (const json::value& item : value->get_array()) {
      if (!item.is_string()) {
        why_ = std::string(key) + " holds more than texts";
        return;
      }
      out.emplace_back(item.get_string());
    }
  }
  Result<> Done() const {
    if (!why_.empty()) return Bad(id_, why_);
    return {};
  }

 private:
  const json::value* Find(const char* key, json::kind kind) {
    if (!why_.empty()) return nullptr;
    const json::value* value = object_.if_contains(key);
    if (value && value->kind() == kind) return value;
    why_ = std::string(key) + (value ? " is of another type" : " is missing");
    return nullptr;
  }

  std::string id_, why_;
  json::object object_;
};

json::array Array(const std::vector<std::string>& items) { return json::array(items.begin(), items.end()); }

}  // namespace

std::string ToJson(const VolumeRecord& record) {
  return json::serialize(json::object{{"version", kVersion},
                                      {"id", record.id},
                                      {"name", record.name},
                                      {"capacity", record.capacity},
                                      {"thick", record.thick},
                                      {"directory", record.directory},
                                      {"logical", record.logical},
                                      {"project", record.project},
                                      {"ephemeral", record.ephemeral},
                                      {"target", record.target},
                                      {"sourceSnapshot", record.source_snapshot},
                                      {"sourceVolume", record.source_volume}}) +
         "\n";
}

std::string ToJson(const SnapshotRecord& record) {
  return json::serialize(json::object{{"version", kVersion},
                                      {"id", record.id},
                                      {"name", record.name},
                                      {"sourceVolume", record.source_volume},
                                      {"size", record.size},
                                      {"created", record.created},
                                      {"group", record.group},
                                      {"directory", record.directory},
                                      {"logical", record.logical}}) +
         "\n";
}

std::string ToJson(const GroupRecord& record) {
  return json::serialize(json::object{{"version", kVersion},
                                      {"id", record.id},
                                      {"name", record.name},
                                      {"snapshots", Array(record.snapshots)},
                                      {"sourceVolumes", Array(record.source_volumes)},
                                      {"created", record.created}}) +
         "\n";
}

Result<> FromJson(std::string_view text, const std::string& id, VolumeRecord& out) {
  Reader reader(text, id);
  out.id = id;
  reader.Get("name", out.name);
  reader.Get("capacity", out.capacity);
  reader.Get("thick", out.thick);
  reader.GetIfPresent("directory", out.directory);
  reader.GetIfPresent("logical", out.logical);
  reader.GetIfPresent("project", out.project);
  reader.GetIfPresent("ephemeral", out.ephemeral);
  reader.GetIfPresent("target", out.target);
  reader.Get("sourceSnapshot", out.source_snapshot);
  reader.Get("sourceVolume", out.source_volume);
  return reader.Done();
}

Result<> FromJson(std::string_view text, const std::string& id, SnapshotRecord& out) {
  Reader reader(text, id);
  out.id = id;
  reader.Get("name", out.name);
  reader.Get("sourceVolume", out.source_volume);
  reader.Get("size", out.size);
  reader.Get("created", out.created);
  reader.Get("group", out.group);
  reader.GetIfPresent("directory", out.directory);
  reader.GetIfPresent("logical", out.logical);
  return reader.Done();
}

Result<> FromJson(std::string_view text, const std::string& id, GroupRecord& out) {
  Reader reader(text, id);
  out.id = id;
  reader.Get("name", out.name);
  reader.Get("snapshots", out.snapshots);
  reader.Get("sourceVolumes", out.source_volumes);
  reader.Get("created", out.created);
  return reader.Done();
}

}  // namespace keelson::csi::local
