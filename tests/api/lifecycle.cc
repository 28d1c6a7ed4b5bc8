#include "tests/api/lifecycle.h"

#include <gtest/gtest.h>

namespace keelson::apitest {
namespace {

const json::object kNothing;

const json::object& ObjectOr(const json::value* value) {
  return value && value->is_object() ? value->as_object() : kNothing;
}

}  // namespace

void Report(const std::string& where, const std::vector<std::string>& differences) {
  if (differences.empty()) return;
  std::string text;
  for (const std::string& one : differences) text += "\n    " + one;
  ADD_FAILURE() << where << ":" << text;
}

void ExpectStatus(const Reply& reply, int status, const std::string& where) {
  if (reply.status != status) {
    ADD_FAILURE() << where << ": expected " << status << ", got " << reply.status << "\n    "
                  << reply.body.substr(0, 2000);
  }
}

Lifecycle::Lifecycle(ApiClient& client, const Fixture& fixture)
    : client_(client),
      fixture_(fixture),
      info_(*fixture.info),
      ns_(fixture.Namespace()),
      name_(StringAt(fixture.Create(), {"metadata", "name"})) {}

void Lifecycle::Run() {
  if (!Prepare() || !Create()) return;
  if (fixture_.Find("followed")) {
    // A controller writes the object at moments of its own: later states cannot be foreseen here.
    BadRequests();
    CreateMore();
    return Remove(name_);
  }
  Reads();
  Lists();
  TableRows();
  Selectors();
  BadRequests();
  Steps();
  Unchanged();
  Conflicts();
  Invalid();
  Collection();
  Delete();
  Replay();
  CreateMore();
}

std::string Lifecycle::Path(const std::string& name, const std::string& subresource) const {
  return PathOf(info_, ns_, name, subresource);
}

bool Lifecycle::Prepare() {
  std::vector<json::value> objects = {
      json::object{{"apiVersion", "v1"}, {"kind", "Namespace"}, {"metadata", {{"name", ns_}}}},
      json::object{{"apiVersion", "v1"}, {"kind", "ServiceAccount"}, {"metadata", {{"name", "default"}}}}};
  if (const json::value* setup = fixture_.Find("setup")) {
    for (const json::value& one : setup->as_array()) objects.push_back(one);
  }
  for (const json::value& one : objects) {
    Reply reply = client_.Do("POST", PathOfObject(one.as_object(), ns_), json::serialize(one));
    ExpectStatus(reply, 201, "setup of " + StringAt(one, {"kind"}));
    if (reply.status != 201) return false;
  }
  Reply empty = client_.Get(Path());
  ExpectStatus(empty, 200, "list before");
  first_version_ = StringAt(empty.value, {"metadata", "resourceVersion"});
  return empty.status == 200;
}

Lifecycle::Expected Lifecycle::ExpectedOf(const json::object& fixture, const json::object& create) const {
  Expected out;
  if (const json::value* whole = fixture.if_contains("expect")) {
    out.object = whole->as_object();
  } else {
    out.object = Overlay(create, ObjectOr(fixture.if_contains("defaults"))).as_object();
  }
  json::object metadata = ObjectOr(out.object.if_contains("metadata"));
  if (info_.namespaced) metadata["namespace"] = ns_;
  out.object["metadata"] = metadata;
  out.generation = fixture_.Find("generation") ? 1 : 0;
  return out;
}

json::object Lifecycle::Copy(const std::string& suffix) const {
  json::value copy = fixture_.Create();
  if (const json::value* change = fixture_.Find("copy")) copy = Overlay(std::move(copy), *change);
  if (const json::value* copies = fixture_.Find("copies")) {
    return Overlay(std::move(copy), copies->as_object().at(suffix)).as_object();
  }
  return Overlay(std::move(copy), json::object{{"metadata", {{"name", name_ + suffix}}}}).as_object();
}

bool Lifecycle::Create() {
  expected_ = ExpectedOf(fixture_.text, fixture_.Create());
  const std::string body = json::serialize(fixture_.Create());
  const std::pair<std::string, std::string> bodies[] = {
      {kJson, body}, {kYaml, body}, {kProtobuf, ToProtobuf(fixture_.Create())}};
  for (const auto& [type, text] : bodies) {  // JSON is YAML
    Reply dry = client_.Do("POST", Path() + "?dryRun=All", text, type);
    ExpectStatus(dry, 201, "dry run of create from " + type);
    if (dry.status != 201) return false;
    CheckObject(expected_, dry.value, "dry run of create from " + type);
  }
  ExpectStatus(client_.Get(Path(name_)), 404, "get after a dry run");
  Reply created = client_.Do("POST", Path() + "?fieldManager=creator", body);
  ExpectStatus(created, 201, "create");
  if (created.status != 201) return false;
  CheckObject(expected_, created.value, "create");
  CheckManagers(created.value, "create");
  json::array warnings;
  for (const std::string& one : created.warnings) warnings.push_back(json::string(one));
  const json::value* wanted = fixture_.Find("warnings");
  Report("warnings of create", Differences(wanted ? *wanted : json::array(), warnings));
  Note("ADDED", created.value);
  Reply again = client_.Do("POST", Path(), body);
  const json::value* refusal = fixture_.Find("again");
  ExpectStatus(again, refusal ? 422 : 409, "create again");
  EXPECT_EQ(again.message(), refusal ? std::string(refusal->as_string())
                                     : info_.GroupResource() + " \"" + name_ + "\" already exists");
  return true;
}

// More objects, for mutually exclusive fields.
void Lifecycle::CreateMore() {
  const json::value* more = fixture_.Find("more");
  if (!more) return;
  for (const json::value& item : more->as_array()) {
    const json::object& one = item.as_object();
    // A change of the main object, or a whole one.
    json::value change = one.contains("change") ? one.at("change") : json::value();
    json::object create =
        change.is_null() ? one.at("create").as_object() : Overlay(fixture_.Create(), change).as_object();
    std::string name = StringAt(create, {"metadata", "name"}), where = "more, " + name;
    Reply created = client_.Do("POST", Path(), json::serialize(create));
    ExpectStatus(created, 201, where);
    if (created.status != 201) continue;
    CheckObject(ExpectedOf(one, create), created.value, where);
    if (!fixture_.Find("followed")) {
      Reply read = client_.Get(Path(name), kProtobuf);
      Report(where + " as protobuf", Differences(created.value, read.value));
    }
    Remove(name);
  }
}

// Deletes an object immediately, despite finalizers.
void Lifecycle::Remove(const std::string& name) {
  Reply gone = client_.Do("DELETE", Path(name) + "?gracePeriodSeconds=0&propagationPolicy=Background");
  if (gone.status != 200) ADD_FAILURE() << "delete " << name << ": " << gone.body;
  Reply held = client_.Get(Path(name));
  if (held.status == 404) return;
  if (At(held.value, {"metadata", "finalizers"})) {
    client_.Do("PATCH", Path(name), R"({"metadata":{"finalizers":null}})", "application/merge-patch+json");
  } else {
    json::value let_go = json::object{{"spec", {{"finalizers", nullptr}}}};
    client_.Do("PUT", Path(name, "finalize"), json::serialize(Overlay(held.value, let_go)));
  }
  ExpectStatus(client_.Get(Path(name)), 404, "get " + name + " once its finalizers are gone");
}

void Lifecycle::Collection() {
  if (!info_.HasVerb("deletecollection")) return;
  std::vector<std::string> names;
  for (const char* suffix : {"-b", "-c"}) {
    json::object copy =
        Overlay(Copy(suffix), json::object{{"metadata", {{"labels", {{"collection", ns_}}}}}}).as_object();
    Reply reply = client_.Do("POST", Path(), json::serialize(copy));
    ExpectStatus(reply, 201, "create of a copy");
    if (reply.status != 201) return;
    names.push_back(StringAt(reply.value, {"metadata", "name"}));
  }
  std::string selected =
      Path() + "?gracePeriodSeconds=0&propagationPolicy=Background&labelSelector=collection%3D" + ns_;
  Reply dry = client_.Do("DELETE", selected + "&dryRun=All");
  ExpectStatus(dry, 200, "dry run of deletecollection");
  ExpectStatus(client_.Get(Path(names[0])), 200, "get after a dry run of deletecollection");
  Reply reply = client_.Do("DELETE", selected);
  ExpectStatus(reply, 200, "deletecollection");
  EXPECT_EQ(StringAt(reply.value, {"kind"}), std::string(info_.kind) + "List")
      << "answer of deletecollection";
  const json::value* items = At(reply.value, {"items"});
  EXPECT_TRUE(items && items->is_array() && items->as_array().size() == 2) << reply.body;
  for (const std::string& name : names) {
    if (client_.Get(Path(name)).status == 200) Remove(name);
  }
  ExpectStatus(client_.Get(Path(name_)), 200, "get of what deletecollection did not select");
}

void Lifecycle::Delete() {
  const json::value& live = live_;
  std::string uid = StringAt(live, {"metadata", "uid"}),
              version = StringAt(live, {"metadata", "resourceVersion"});
  std::string kind =
      std::string(info_.kind) +
      (info_.group.empty() || info_.group == "events.k8s.io" ? "" : "." + std::string(info_.group));
  std::string prefix = "Operation cannot be fulfilled on " + kind + " \"" + name_ + "\": ";
  Reply wrong = client_.Do("DELETE", Path(name_), R"({"preconditions":{"uid":"other"}})");
  ExpectStatus(wrong, 409, "delete of another uid");
  EXPECT_EQ(wrong.message(), prefix +
                                 "the UID in the precondition (other) does not match the UID in record (" +
                                 uid + "). The object might have been deleted and then recreated");
  wrong = client_.Do("DELETE", Path(name_), R"({"preconditions":{"resourceVersion":"1"}})");
  ExpectStatus(wrong, 409, "delete of another version");
  EXPECT_EQ(wrong.message(),
            prefix +
                "the ResourceVersion in the precondition (1) does not match the ResourceVersion in record (" +
                version + "). The object might have been modified");
  ExpectStatus(client_.Do("DELETE", Path(name_) + "?dryRun=All"), 200, "dry run of delete");
  ExpectStatus(client_.Get(Path(name_)), 200, "get after a dry run of delete");

  const json::object& wanted = ObjectOr(fixture_.Find("delete"));
  bool whole = wanted.contains("object"), held = wanted.contains("finalizers");
  Reply reply =
      client_.Do("DELETE", Path(name_), R"({"gracePeriodSeconds":0,"propagationPolicy":"Background"})");
  ExpectStatus(reply, 200, "delete");
  if (whole || held) {
    EXPECT_EQ(StringAt(reply.value, {"kind"}), info_.kind) << "answer of delete";
  } else {
    json::object details = {{"name", name_}, {"kind", json::string(info_.resource)}, {"uid", uid}};
    if (!info_.group.empty()) details["group"] = json::string(info_.group);
    Report("answer of delete", Differences(json::object{{"kind", "Status"},
                                                        {"apiVersion", "v1"},
                                                        {"metadata", json::object()},
                                                        {"status", "Success"},
                                                        {"details", details}},
                                           reply.value));
  }
  if (held) {
    Note("MODIFIED", reply.value);
    EXPECT_TRUE(Matches("<time>", json::string(StringAt(reply.value, {"metadata", "deletionTimestamp"}))));
    EXPECT_EQ(client_.Get(Path(name_)).status, 200) << "get while finalizers hold it";
    Remove(name_);
  }
  Reply gone = client_.Get(Path(name_));
  ExpectStatus(gone, 404, "get after delete");
  EXPECT_EQ(gone.message(), info_.GroupResource() + " \"" + name_ + "\" not found");
  ExpectStatus(client_.Do("DELETE", Path(name_)), 404, "delete again");
  // Pods are marked as deleted first, even with grace period 0.
  if (info_.resource == "pods") history_.push_back({"MODIFIED", nullptr});
  history_.push_back({"DELETED", nullptr});
}

void Lifecycle::Note(const std::string& type, const json::value& object) {
  if (StringAt(live_, {"metadata", "resourceVersion"}) != StringAt(object, {"metadata", "resourceVersion"})) {
    history_.push_back({type, object});
  }
  live_ = object;
}

void Lifecycle::CheckManagers(const json::value& got, const std::string& where) {
  const json::value* managers = At(got, {"metadata", "managedFields"});
  if (!managers || !managers->is_array() || managers->as_array().empty()) {
    ADD_FAILURE() << where << ": no managedFields";
    return;
  }
  for (const json::value& one : managers->as_array()) {
    json::object form = {{"manager", "<any>"}, {"operation", "<any>"},     {"apiVersion", "<any>"},
                         {"time", "<time>"},   {"fieldsType", "FieldsV1"}, {"fieldsV1", "<any>"}};
    if (At(one, {"subresource"})) form["subresource"] = "<any>";
    Report(where + ": managedFields", Differences(form, one));
  }
}

void Lifecycle::CheckObject(const Expected& expected, const json::value& got, const std::string& where,
                            bool in_list) {
  json::object wanted = expected.object;
  json::object metadata = wanted["metadata"].as_object();
  metadata["uid"] = "<uuid>";
  metadata["resourceVersion"] = "<version>";
  metadata["creationTimestamp"] = "<time>";
  if (expected.generation) metadata["generation"] = expected.generation;
  if (At(got, {"metadata", "managedFields"})) metadata["managedFields"] = "<any>";
  if (const json::value* version = At(got, {"metadata", "resourceVersion"});
      !version && where.starts_with("dry run of create")) {
    metadata["resourceVersion"] = "<absent>";
  }
  wanted["metadata"] = metadata;
  if (in_list) {
    wanted.erase("kind");
    wanted.erase("apiVersion");
  }
  Report(where, Differences(wanted, got));
}

}  // namespace keelson::apitest
