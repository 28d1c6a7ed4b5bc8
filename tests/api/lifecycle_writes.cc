#include <gtest/gtest.h>

#include <algorithm>

#include "tests/api/lifecycle.h"

namespace keelson::apitest {
namespace {

// The operation of a step, and its content type.
struct Verb {
  const char* key;
  const char* method;
  const char* content_type;
};
constexpr Verb kVerbs[] = {
    {"json", "PATCH", "application/json-patch+json"},
    {"merge", "PATCH", "application/merge-patch+json"},
    {"strategic", "PATCH", "application/strategic-merge-patch+json"},
    {"apply", "PATCH", "application/apply-patch+yaml"},
    {"update", "PUT", kJson},
    {"post", "POST", kJson},
};

const Verb& VerbOf(const json::object& step) {
  for (const Verb& verb : kVerbs) {
    if (step.contains(verb.key)) return verb;
  }
  fprintf(stderr, "a step without a verb: %s\n", json::serialize(step).c_str());
  abort();
}

// The part of an object that generation counts: all except metadata and status.
json::object Counted(const json::value& object) {
  json::object out = object.as_object();
  out.erase("metadata");
  out.erase("status");
  return out;
}

std::string CauseReason(std::string_view message) {
  static const std::pair<std::string_view, const char*> kReasons[] = {
      {"Required value", "FieldValueRequired"},
      {"Invalid value", "FieldValueInvalid"},
      {"Unsupported value", "FieldValueNotSupported"},
      {"Forbidden", "FieldValueForbidden"},
      {"Duplicate value", "FieldValueDuplicate"},
      {"Not found", "FieldValueNotFound"},
      {"Too long", "FieldValueTooLong"},
      {"Too many", "FieldValueTooMany"},
      {"Internal error", "InternalError"}};
  for (const auto& [start, reason] : kReasons) {
    if (message.starts_with(start)) return reason;
  }
  return "<any>";
}

}  // namespace

json::value Lifecycle::Live() { return client_.Get(Path(name_)).value; }

void Lifecycle::BadRequests() {
  json::object bogus = Copy("-b");
  bogus["bogus"] = 1;
  std::string body = json::serialize(bogus), target = Path() + "?dryRun=All&fieldValidation=";
  Reply reply = client_.Do("POST", target + "Strict", body);
  ExpectStatus(reply, 400, "create with an unknown field, Strict");
  EXPECT_EQ(reply.message(), std::string(info_.kind) + " in version \"" + std::string(info_.version) +
                                 "\" cannot be handled as a " + std::string(info_.kind) +
                                 ": strict decoding error: unknown field \"bogus\"");
  reply = client_.Do("POST", target + "Warn", body);
  ExpectStatus(reply, 201, "create with an unknown field, Warn");
  EXPECT_TRUE(std::count(reply.warnings.begin(), reply.warnings.end(), "unknown field \"bogus\""))
      << "warning of an unknown field";
  reply = client_.Do("POST", target + "Ignore", body);
  ExpectStatus(reply, 201, "create with an unknown field, Ignore");
  reply = client_.Do("POST", Path(), "{\"a\":", kJson);
  ExpectStatus(reply, 400, "create from half an object");
  reply = client_.Do("POST", Path(), "a", "text/plain");
  ExpectStatus(reply, 415, "create from text");
  reply = client_.Do("POST", Path(), R"({"apiVersion":"v9","kind":"Other","metadata":{"name":"x"}})");
  ExpectStatus(reply, 400, "create of another kind");
  reply = client_.Do("PATCH", Path(name_), "{}", kJson);
  ExpectStatus(reply, 415, "patch of no known type");
  if (fixture_.Find("copies")) return;
  json::value generated =
      Overlay(Copy("-b"), json::object{{"metadata", {{"name", nullptr}, {"generateName", "made-"}}}});
  reply = client_.Do("POST", Path() + "?dryRun=All", json::serialize(generated));
  ExpectStatus(reply, 201, "create with generateName");
  std::string name = StringAt(reply.value, {"metadata", "name"});
  EXPECT_TRUE(name.starts_with("made-") && name.size() == 10) << name;
}

Reply Lifecycle::Send(const json::object& step) {
  const Verb& verb = VerbOf(step);
  std::string on = StringAt(step, {"on"}), key = verb.key;
  json::value body = step.at(key);
  std::string target = Path(name_, on) + "?fieldManager=" +
                       (step.contains("manager") ? StringAt(step, {"manager"}) : "by-" + key);
  if (step.contains("force")) target += "&force=true";
  if (key == "update") {
    Reply current = client_.Get(Path(name_, on));  // not every subresource can be read
    body = Overlay(current.status == 200 ? current.value : live_, body);
  }
  if (key == "apply") {  // who it is for goes without saying
    json::object identity = {
        {"apiVersion", live_.at("apiVersion")}, {"kind", live_.at("kind")}, {"metadata", {{"name", name_}}}};
    body = Overlay(identity, body);
  }
  return client_.Do(verb.method, target, json::serialize(body), verb.content_type);
}

void Lifecycle::Steps() {
  size_t number = 0;
  const json::value* steps = fixture_.Find("steps");
  if (!steps) return;
  for (const json::value& step : steps->as_array()) {
    const json::object& one = step.as_object();
    std::string on = StringAt(one, {"on"});
    std::string where =
        "step " + std::to_string(++number) + ", " + VerbOf(one).key + (on.empty() ? "" : " on " + on);
    Step(one, where);
  }
}

// Sends the step, then checks the response and a read against the expected object.
void Lifecycle::Step(const json::object& step, const std::string& where) {
  const Verb& verb = VerbOf(step);
  Reply reply = Send(step);
  int status = step.contains("status")           ? static_cast<int>(step.at("status").as_int64())
               : verb.key == std::string("post") ? 201
                                                 : 200;
  ExpectStatus(reply, status, where);
  if (const json::value* message = step.if_contains("message")) {
    EXPECT_EQ(reply.message(), std::string(message->as_string())) << where;
  }
  if (reply.status != status) return;
  Expected before = expected_;
  bool same = verb.key == std::string("update") || verb.key == std::string("merge");
  if (step.contains("diff")) {
    expected_.object = Overlay(expected_.object, step.at("diff")).as_object();
  } else if (same && status == 200 && !step.contains("reply")) {
    expected_.object = Overlay(expected_.object, step.at(verb.key)).as_object();
  }
  bool counts = Counted(before.object) != Counted(expected_.object);
  if (fixture_.Flag("generation_by_labels", false)) {
    counts |= *At(before.object, {"metadata", "labels"}) != *At(expected_.object, {"metadata", "labels"});
  }
  if (fixture_.Flag("generation", false) && counts) ++expected_.generation;
  if (status >= 300) return;
  json::value now = reply.value;
  if (const json::value* answer = step.if_contains("reply")) {
    json::object got = reply.value.is_object() ? reply.value.as_object() : json::object();
    if (At(got, {"metadata", "managedFields"}) && !At(*answer, {"metadata", "managedFields"})) {
      got["metadata"].as_object().erase("managedFields");
    }
    Report(where + ", answer", Differences(*answer, got));
    now = Live();
  }
  CheckObject(expected_, now, where);
  if (verb.key == std::string("apply")) CheckApplier(step, now, where);
  Report(where + ", read", Differences(now, Live()));
  bool changed = before.object != expected_.object;
  if (changed &&
      StringAt(now, {"metadata", "resourceVersion"}) == StringAt(live_, {"metadata", "resourceVersion"})) {
    ADD_FAILURE() << where << ": the resourceVersion stayed the same";
  }
  Note("MODIFIED", now);
}

// The applier has a managedFields entry, even if nothing changed.
void Lifecycle::CheckApplier(const json::object& step, const json::value& now, const std::string& where) {
  std::string manager = step.contains("manager") ? StringAt(step, {"manager"}) : "by-apply";
  if (const json::value* managers = At(now, {"metadata", "managedFields"});
      managers && managers->is_array()) {
    for (const json::value& one : managers->as_array()) {
      if (StringAt(one, {"manager"}) == manager && StringAt(one, {"operation"}) == "Apply" &&
          StringAt(one, {"subresource"}) == StringAt(step, {"on"})) {
        return;
      }
    }
  }
  ADD_FAILURE() << where << ": no managedFields of " << manager;
}

// A write without changes is not stored.
void Lifecycle::Unchanged() {
  std::string version = StringAt(live_, {"metadata", "resourceVersion"});
  Reply reply;
  const std::pair<const char*, std::string> bodies[] = {
      {kJson, json::serialize(live_)},
      {kYaml, client_.Get(Path(name_), kYaml).body},
      {kProtobuf, client_.Get(Path(name_), kProtobuf).body}};
  for (const auto& [type, body] : bodies) {
    reply = client_.Do("PUT", Path(name_) + "?fieldManager=by-update", body, type);
    std::string where = std::string("update without a change from ") + type;
    ExpectStatus(reply, 200, where);
    EXPECT_EQ(StringAt(reply.value, {"metadata", "resourceVersion"}), version) << where;
  }
  for (const char* type : {"application/merge-patch+json", "application/strategic-merge-patch+json"}) {
    reply = client_.Do("PATCH", Path(name_) + "?fieldManager=by-merge", "{}", type);
    ExpectStatus(reply, 200, std::string("empty ") + type);
    EXPECT_EQ(StringAt(reply.value, {"metadata", "resourceVersion"}), version) << "empty " << type;
  }
  reply = client_.Do("PATCH", Path(name_), "[]", "application/json-patch+json");
  ExpectStatus(reply, 200, "empty JSON patch");
  EXPECT_EQ(StringAt(reply.value, {"metadata", "resourceVersion"}), version) << "empty JSON patch";
  std::string body = R"({"metadata":{"annotations":{"dry":"run"}}})";
  reply = client_.Do("PATCH", Path(name_) + "?dryRun=All", body, "application/merge-patch+json");
  ExpectStatus(reply, 200, "dry run of patch");
  EXPECT_EQ(StringAt(reply.value, {"metadata", "annotations", "dry"}), "run") << "dry run of patch";
  EXPECT_EQ(StringAt(Live(), {"metadata", "resourceVersion"}), version) << "get after a dry run of patch";
}

void Lifecycle::Conflicts() {
  std::string prefix = "Operation cannot be fulfilled on " + info_.GroupResource() + " \"" + name_ + "\": ";
  std::string modified =
      prefix + "the object has been modified; please apply your changes to the latest version and try again";
  json::value change = json::object{{"metadata", {{"resourceVersion", "1"}, {"annotations", {{"x", "y"}}}}}};
  Reply reply = client_.Do("PUT", Path(name_), json::serialize(Overlay(live_, change)));
  ExpectStatus(reply, 409, "update of an old version");
  EXPECT_EQ(reply.message(), modified);
  reply = client_.Do("PATCH", Path(name_), json::serialize(change), "application/merge-patch+json");
  ExpectStatus(reply, 409, "patch of an old version");
  EXPECT_EQ(reply.message(), modified);
  change = json::object{
      {"metadata", {{"uid", "a4bbf4a6-cd6c-4f2c-96d4-5b5f0a2a53fd"}, {"annotations", {{"x", "y"}}}}}};
  reply = client_.Do("PUT", Path(name_), json::serialize(Overlay(live_, change)));
  ExpectStatus(reply, 409, "update of another uid");
  EXPECT_NE(reply.message().find("Precondition failed: UID in precondition: "
                                 "a4bbf4a6-cd6c-4f2c-96d4-5b5f0a2a53fd, UID in object meta: "),
            std::string::npos)
      << reply.message();
  change = json::object{{"metadata", {{"resourceVersion", nullptr}}}};
  reply = client_.Do("PUT", Path(name_) + "?dryRun=All", json::serialize(Overlay(live_, change)));
  if (fixture_.Flag("unconditional", true)) {
    ExpectStatus(reply, 200, "update without a version");
  } else {
    ExpectStatus(reply, 422, "update without a version");
    EXPECT_EQ(
        reply.message(),
        info_.GroupResource() + " \"" + name_ +
            "\" is invalid: metadata.resourceVersion: Invalid value: 0: must be specified for an update");
  }
  change = json::object{{"metadata", {{"name", "other"}}}};
  reply = client_.Do("PUT", Path(name_), json::serialize(Overlay(live_, change)));
  ExpectStatus(reply, 400, "update under another name");
  EXPECT_EQ(reply.message(),
            "the name of the object (other) does not match the name on the URL (" + name_ + ")");
  json::value missing = Overlay(Copy("-b"), json::object{{"metadata", {{"name", "missing"}}}});
  bool creates = fixture_.Flag("create_on_update", false);
  if (creates || !fixture_.Find("copies")) {
    reply = client_.Do("PUT", Path("missing") + "?dryRun=All", json::serialize(missing));
    ExpectStatus(reply, creates ? 201 : 404, "update of what is not there");
  }
  reply = client_.Do("PATCH", Path("missing"), "{}", "application/merge-patch+json");
  ExpectStatus(reply, 404, "patch of what is not there");
  EXPECT_EQ(reply.message(), info_.GroupResource() + " \"missing\" not found");
}

void Lifecycle::Invalid() {
  const json::value* invalid = fixture_.Find("invalid");
  if (!invalid) return;
  size_t number = 0;
  for (const json::value& one : invalid->as_array()) {
    InvalidCase(one.as_object(), "invalid " + std::to_string(++number));
  }
}

// {create or update: change, on: subresource, errors: [path: message...]}, or {..., status, message}.
void Lifecycle::InvalidCase(const json::object& one, const std::string& where) {
  bool update = one.contains("update");
  std::string on = StringAt(one, {"on"});
  const json::value& change = one.at(update ? "update" : "create");
  json::value object = Overlay(update ? live_ : json::value(fixture_.Create()), change);
  Reply reply = update ? client_.Do("PUT", Path(name_, on) + "?dryRun=All", json::serialize(object))
                       : client_.Do("POST", Path() + "?dryRun=All", json::serialize(object));
  std::string what = where + ", " + json::serialize(change);
  if (const json::value* message = one.if_contains("message")) {
    ExpectStatus(reply, static_cast<int>(one.at("status").as_int64()), what);
    if (message->as_string() == "<any>") return;
    EXPECT_EQ(reply.message(), std::string(message->as_string())) << what;
    return;
  }
  const json::array& errors = one.at("errors").as_array();
  if (reply.status != 422) {
    ADD_FAILURE() << what << ": accepted (" << reply.status << ")\n" << errors.front();
    return;
  }
  std::string all;
  json::array causes;
  for (const json::value& error : errors) {
    std::string text(error.as_string());
    all += (all.empty() ? "" : ", ") + text;
    size_t colon = text.find(": ");
    std::string message = text.substr(colon + 2);
    causes.push_back(json::object{
        {"reason", CauseReason(message)}, {"message", message}, {"field", text.substr(0, colon)}});
  }
  std::string kind = std::string(info_.kind) + (info_.group.empty() ? "" : "." + std::string(info_.group));
  std::string name = StringAt(object, {"metadata", "name"});
  EXPECT_EQ(reply.message(),
            kind + " \"" + name + "\" is invalid: " + (errors.size() == 1 ? all : "[" + all + "]"))
      << what;
  json::object details = {{"name", name}, {"kind", json::string(info_.kind)}, {"causes", causes}};
  if (name.empty()) details.erase("name");
  if (!info_.group.empty()) details["group"] = json::string(info_.group);
  if (const json::value* got = At(reply.value, {"details"})) {
    Report(what + ": details", Differences(details, *got));
  }
}

}  // namespace keelson::apitest
