#include <gtest/gtest.h>

#include "lib/base/percent.h"
#include "tests/api/lifecycle.h"

namespace keelson::apitest {
namespace {

constexpr const char* kTable = "application/json;as=Table;v=v1;g=meta.k8s.io";
constexpr const char* kMetadata = "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io";
constexpr const char* kMetadataList = "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io";

json::object MetadataOf(const json::value& object) {
  return {{"kind", "PartialObjectMetadata"},
          {"apiVersion", "meta.k8s.io/v1"},
          {"metadata", *At(object, {"metadata"})}};
}

const json::array& Items(const Reply& reply, const char* key = "items") {
  static const json::array kNone;
  const json::value* items = At(reply.value, {key});
  return items && items->is_array() ? items->as_array() : kNone;
}

std::string Query(const std::string& selector) { return PercentEncode(selector); }

}  // namespace

void Lifecycle::Reads() {
  Reply reply = client_.Get(Path(name_));
  ExpectStatus(reply, 200, "get");
  EXPECT_EQ(reply.content_type, kJson);
  Report("get", Differences(live_, reply.value));
  reply = client_.Get(Path(name_), kYaml);
  EXPECT_EQ(reply.content_type, kYaml);
  Report("get as YAML", Differences(live_, reply.value));
  reply = client_.Get(Path(name_), kProtobuf);
  EXPECT_EQ(reply.content_type, kProtobuf);
  Report("get as protobuf", Differences(live_, reply.value));
  reply = client_.Get(Path(name_), kMetadata);
  Report("get as PartialObjectMetadata", Differences(MetadataOf(live_), reply.value));
  reply = client_.Get(Path(name_) + "?resourceVersion=0");
  Report("get from the cache", Differences(live_, reply.value));
  if (const json::value* also = fixture_.Find("also")) OtherVersions(also->as_array());
  reply = client_.Get(Path(name_), "text/plain");
  ExpectStatus(reply, 406, "get as text");
}

// One object, served by several group versions.
void Lifecycle::OtherVersions(const json::array& versions) {
  for (const json::value& one : versions) {
    const api::ResourceInfo* info = FindResource(StringAt(one, {"resource"}));
    std::string where = "get as " + StringAt(one, {"resource"});
    if (!info) {
      ADD_FAILURE() << where << ": no such resource";
      continue;
    }
    json::value expected = Overlay(json::object{{"metadata", *At(live_, {"metadata"})}}, one.at("expect"));
    for (const char* format : {kJson, kProtobuf}) {
      Reply reply = client_.Get(PathOf(*info, ns_, name_), format);
      ExpectStatus(reply, 200, where);
      Report(where, Differences(expected, reply.value));
    }
  }
}

void Lifecycle::Lists() {
  std::string only = "?fieldSelector=" + Query("metadata.name=" + name_);
  json::object item = live_.as_object();
  item.erase("kind");
  item.erase("apiVersion");
  for (const char* format : {kJson, kYaml, kProtobuf}) {
    Reply reply = client_.Get(Path() + only, format);
    std::string where = std::string("list as ") + format;
    ExpectStatus(reply, 200, where);
    EXPECT_EQ(StringAt(reply.value, {"kind"}), std::string(info_.kind) + "List") << where;
    EXPECT_EQ(StringAt(reply.value, {"apiVersion"}), info_.ApiVersion()) << where;
    EXPECT_TRUE(Matches("<version>", json::string(StringAt(reply.value, {"metadata", "resourceVersion"}))))
        << where;
    if (Items(reply).size() == 1) {
      Report(where, Differences(item, Items(reply)[0]));
    } else {
      ADD_FAILURE() << where << ": " << Items(reply).size() << " items, expected one\n    "
                    << reply.body.substr(0, 400);
    }
  }
  Reply reply = client_.Get(Path() + only, kMetadataList);
  EXPECT_EQ(StringAt(reply.value, {"kind"}), "PartialObjectMetadataList");
  if (Items(reply).size() == 1) {
    Report("list as PartialObjectMetadataList", Differences(MetadataOf(live_), Items(reply)[0]));
  } else {
    ADD_FAILURE() << "list as PartialObjectMetadataList: " << reply.body.substr(0, 400);
  }
  if (info_.namespaced) {
    reply = client_.Get(PathOf(info_, "") +
                        "?fieldSelector=" + Query("metadata.namespace=" + ns_ + ",metadata.name=" + name_));
    EXPECT_EQ(Items(reply).size(), 1u) << "list of all namespaces";
  }
}

// The fixture has the row as {Column: cell}; columns of priority 1 start with '+'. The column's type is that
// of its cell, or given: {Data: {string: 6}}.
void Lifecycle::TableRows() {
  const json::value* wanted = fixture_.Find("table");
  if (!wanted) {
    ADD_FAILURE() << "the fixture has no table";
    return;
  }
  // Upstream has left the format out of this one kind.
  const std::string_view name_format = info_.kind == "StorageVersionMigration" ? "" : "name";
  json::array columns, cells;
  for (const auto& item : wanted->as_object()) {
    std::string_view name = item.key();
    bool wide = name.front() == '+';
    if (wide) name.remove_prefix(1);
    json::value cell = item.value();
    std::string_view type = cell.is_bool() ? "boolean" : cell.is_number() ? "integer" : "string";
    if (cell.is_object()) {
      type = item.value().as_object().begin()->key();
      cell = item.value().as_object().begin()->value();
    }
    columns.push_back(
        json::object{{"name", json::string(name)},
                     {"type", json::string(type)},
                     {"format", name == "Name" && !wide ? json::string(name_format) : json::string("<any>")},
                     {"description", "<any>"},
                     {"priority", wide ? 1 : 0}});
    cells.push_back(cell);
  }
  for (const std::string& target :
       {Path(name_), Path() + "?fieldSelector=" + Query("metadata.name=" + name_)}) {
    Reply reply = client_.Get(target, kTable);
    std::string where = "Table of " + target;
    ExpectStatus(reply, 200, where);
    json::object row = {{"cells", cells}, {"object", MetadataOf(live_)}};
    json::object table = {{"kind", "Table"},
                          {"apiVersion", "meta.k8s.io/v1"},
                          {"metadata", "<any>"},
                          {"columnDefinitions", columns},
                          {"rows", json::array{row}}};
    Report(where, Differences(table, reply.value));
  }
  Reply whole = client_.Get(Path(name_) + "?includeObject=Object", kTable);
  if (Items(whole, "rows").size() == 1) {
    Report("Table with whole objects", Differences(live_, *At(Items(whole, "rows")[0], {"object"})));
  }
  Reply none = client_.Get(Path(name_) + "?includeObject=None", kTable);
  if (Items(none, "rows").size() == 1) {
    EXPECT_FALSE(At(Items(none, "rows")[0], {"object", "metadata"})) << "Table without objects";
  }
}

void Lifecycle::Selectors() {
  json::object none;
  const json::value* select = fixture_.Find("select");
  const json::object& cases = select ? select->as_object() : none;
  for (const auto& [key, parameter, expected] :
       {std::tuple("labels", "labelSelector", 1u), std::tuple("not_labels", "labelSelector", 0u),
        std::tuple("fields", "fieldSelector", 1u), std::tuple("not_fields", "fieldSelector", 0u)}) {
    const json::value* selectors = cases.if_contains(key);
    if (!selectors) continue;
    for (const json::value& one : selectors->as_array()) {
      std::string selector(one.as_string());
      std::string mine = "metadata.name=" + name_;
      std::string target = Path() + "?" + parameter + "=" + Query(selector);
      if (parameter == std::string("labelSelector")) {
        target += "&fieldSelector=" + Query(mine);
      } else {
        target = Path() + "?fieldSelector=" + Query(mine + "," + selector);
      }
      Reply reply = client_.Get(target);
      ExpectStatus(reply, 200, "list " + selector);
      EXPECT_EQ(Items(reply).size(), expected) << "list " << selector;
    }
  }
  Reply reply = client_.Get(Path() + "?fieldSelector=" + Query("spec.bogus=1"));
  ExpectStatus(reply, 400, "list by an unknown field");
  const json::value* message = fixture_.Find("unknown_field");
  if (message && message->as_string() == "<any>") return;
  EXPECT_EQ(
      reply.message(),
      message ? std::string(message->as_string())
              : R"("spec.bogus" is not a known field selector: only "metadata.name", "metadata.namespace")");
  EXPECT_EQ(StringAt(reply.value, {"reason"}), "BadRequest");
}

// A watch from before the first write sees every write, as it was returned.
void Lifecycle::Replay() {
  std::string target = Path() + "?watch=1&resourceVersion=" + first_version_ +
                       "&fieldSelector=" + Query("metadata.name=" + name_);
  struct Format {
    const char* accept;
    bool metadata;
  };
  for (const Format& format : {Format{kJson, false}, Format{kProtobuf, false}, Format{kMetadata, true}}) {
    std::vector<json::value> events = client_.Watch(target, history_.size(), format.accept);
    std::string where = std::string("watch as ") + format.accept;
    if (events.size() != history_.size()) {
      ADD_FAILURE() << where << ": " << events.size() << " events, expected " << history_.size();
      continue;
    }
    for (size_t i = 0; i < events.size(); ++i) {
      std::string at = where + ", event " + std::to_string(i);
      EXPECT_EQ(StringAt(events[i], {"type"}), history_[i].type) << at;
      const json::value* object = At(events[i], {"object"});
      if (!object) continue;
      if (history_[i].object.is_null()) {
        EXPECT_EQ(StringAt(*object, {"metadata", "name"}), name_) << at;
      } else {
        Report(at,
               Differences(format.metadata ? json::value(MetadataOf(history_[i].object)) : history_[i].object,
                           *object));
      }
    }
  }
  std::vector<json::value> rows = client_.Watch(target, 2, kTable);
  if (rows.size() != 2) {
    ADD_FAILURE() << "watch as Table: " << rows.size() << " events";
    return;
  }
  EXPECT_EQ(StringAt(rows[0], {"object", "kind"}), "Table");
  EXPECT_TRUE(At(rows[0], {"object", "columnDefinitions"}) &&
              At(rows[0], {"object", "columnDefinitions"})->is_array());
  const json::value* later = At(rows[1], {"object", "columnDefinitions"});
  EXPECT_TRUE(later && (later->is_null() || (later->is_array() && later->as_array().empty())))
      << "columns come once";
}

}  // namespace keelson::apitest
