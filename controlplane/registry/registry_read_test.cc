// Versions that lists and watches return or refuse, with a real etcd.
#include <gmock/gmock.h>

#include "controlplane/registry/testing/fixture.h"
#include "controlplane/storage/continue_token.h"

namespace keelson::registry {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::vector<std::string> Names(const ObjectList& list) {
  std::vector<std::string> names;
  for (const ObjectPtr& item : list.items) names.emplace_back(item->name());
  return names;
}

// The events of a watch, as lines.
class Lines : public storage::WatchSink {
 public:
  bool OnEvent(const storage::EventPtr& event) override {
    std::string line(event->TypeName());
    if (event->type() != storage::Event::Type::kBookmark) line += " " + std::string(event->object()->name());
    Add(line);
    return true;
  }
  void OnEnd(const Error& error) override {
    Add("END " + std::to_string(HttpStatus(error.code())) + " " + std::string(Reason(error.code())) + " " +
        error.message());
  }
  std::vector<std::string> Await(size_t count) {
    MutexLock lock(mutex_);
    while (lines_.size() < count) {
      if (changed_.wait_for(mutex_, std::chrono::seconds(20)) == std::cv_status::timeout) break;
    }
    return lines_;
  }

 private:
  void Add(std::string line) {
    MutexLock lock(mutex_);
    lines_.push_back(std::move(line));
    changed_.notify_all();
  }
  Mutex mutex_;
  CondVar changed_;
  std::vector<std::string> lines_;
};

class RegistryReadTest : public RegistryTest {
 protected:
  // Makes ConfigMaps a, b and c; keeps the revision after each of them.
  void SetUp() override {
    RegistryTest::SetUp();
    if (IsSkipped()) return;
    for (const char* name : {"a", "b", "c"}) {
      Result<corev1::ConfigMap> made = Create(ConfigMap(name));
      ASSERT_TRUE(made);
      revisions_.push_back(std::stoll(made->metadata().resource_version()));
    }
    ASSERT_TRUE(List({}));  // wait until the cache has them
  }
  Result<ObjectList> List(const ListOptions& options, std::string_view ns = "default") {
    return (*plane_)->List(Row<corev1::ConfigMap>(), ns, options);
  }
  std::string At(size_t i) const { return std::to_string(revisions_[i]); }
  void Compact() {
    Result<int64_t> now = plane_->client().Revision({});
    ASSERT_TRUE(now);
    ASSERT_TRUE(plane_->client().Compact(*now, {}));
  }

  std::vector<int64_t> revisions_;
};

TEST_F(RegistryReadTest, VersionsOfLists) {
  struct Case {
    std::string version, match;
    int64_t limit;
    std::vector<std::string> names;
  };
  const Case kCases[] = {
      {"", "", 0, {"a", "b", "c"}},
      {"", "", 2, {"a", "b"}},
      {"0", "", 0, {"a", "b", "c"}},
      {"0", "", 1, {"a", "b", "c"}},  // "0" has no pages
      {"0", "NotOlderThan", 1, {"a", "b", "c"}},
      {At(0), "", 0, {"a", "b", "c"}},
      {At(0), "NotOlderThan", 0, {"a", "b", "c"}},
      {At(0), "NotOlderThan", 2, {"a", "b"}},
      {At(0), "Exact", 0, {"a"}},
      {At(1), "Exact", 0, {"a", "b"}},
      {At(1), "", 10, {"a", "b"}},  // the pages of a version all have this version
  };
  for (const Case& c : kCases) {
    ListOptions options;
    options.resource_version = c.version;
    options.resource_version_match = c.match;
    options.limit = c.limit;
    Result<ObjectList> list = List(options);
    ASSERT_TRUE(list) << list.error().message();
    EXPECT_EQ(Names(*list), c.names) << c.version << " " << c.match << " " << c.limit;
    if (c.match == "Exact") {
      EXPECT_EQ(std::to_string(list->revision), c.version);
    }
    if (c.match != "Exact") {
      EXPECT_GE(list->revision, c.version.empty() ? revisions_[2] : std::stoll(c.version));
    }
  }
}

TEST_F(RegistryReadTest, RefusesCombinationsOfListOptions) {
  struct Case {
    ListOptions options;
    int status;
    std::string message;
  };
  auto options = [](const char* version, const char* match, const char* continued = "") {
    ListOptions made;
    made.resource_version = version;
    made.resource_version_match = match;
    made.continue_token = continued;
    return made;
  };
  const std::string token = storage::Encode({revisions_[0], std::string("a\0", 2)});
  ListOptions initial;
  initial.send_initial_events = false;
  const std::string kInvalid = "ListOptions.meta.k8s.io \"\" is invalid: ";
  const Case kCases[] = {
      {options("", "Exact"), 422,
       kInvalid + "resourceVersionMatch: Forbidden: resourceVersionMatch is forbidden unless resourceVersion "
                  "is provided"},
      {options("0", "Exact"), 422,
       kInvalid + "resourceVersionMatch: Forbidden: resourceVersionMatch \"exact\" is forbidden for "
                  "resourceVersion \"0\""},
      {options("1", "Newest"), 422,
       kInvalid + "resourceVersionMatch: Unsupported value: \"Newest\": supported values: \"Exact\", "
                  "\"NotOlderThan\", \"\""},
      {options("1", "NotOlderThan", token.c_str()), 422,
       kInvalid +
           "resourceVersionMatch: Forbidden: resourceVersionMatch is forbidden when continue is provided"},
      {options("", "x", "y"), 422, kInvalid + "[resourceVersionMatch: Forbidden: "},
      {initial, 422, kInvalid + "sendInitialEvents: Forbidden: sendInitialEvents is forbidden for list"},
      {options("5", "", token.c_str()), 400,
       "specifying resource version is not allowed when using continue"},
      {options("", "", "%"), 400,
       "invalid continue token: continue key is not valid: illegal base64 data at input byte 0"},
      {options("x", ""), 400,
       "invalid resource version: resourceVersion: Invalid value: \"x\": strconv.ParseUint: parsing \"x\": "
       "invalid syntax"},
      {options("-1", ""), 400,
       "invalid resource version: resourceVersion: Invalid value: \"-1\": strconv.ParseUint: parsing \"-1\": "
       "invalid syntax"},
      {options("99999999999999999999", ""), 400, "value out of range"},
  };
  for (const Case& c : kCases) {
    Result<ObjectList> list = List(c.options);
    ASSERT_FALSE(list) << c.message;
    EXPECT_EQ(HttpStatus(list.error().code()), c.status) << list.error().message();
    EXPECT_THAT(list.error().message(), HasSubstr(c.message));
  }
}

TEST_F(RegistryReadTest, VersionsOfTheFutureTimeOut) {
  for (const char* match : {"", "Exact", "NotOlderThan"}) {
    ListOptions options;
    options.resource_version = std::to_string(revisions_[2] + 1000);
    options.resource_version_match = match;
    Result<ObjectList> list = List(options);
    ASSERT_FALSE(list);
    EXPECT_EQ(HttpStatus(list.error().code()), 504);
    EXPECT_THAT(
        list.error().message(),
        HasSubstr("Timeout: Too large resource version: " + options.resource_version + ", current: "));
    ASSERT_NE(list.error().details(), nullptr);
    EXPECT_EQ(list.error().details()->causes.at(0).reason, "ResourceVersionTooLarge");
    EXPECT_EQ(list.error().details()->retry_after_seconds, 1);
  }
}

TEST_F(RegistryReadTest, PagesAreOfOneSnapshot) {
  ListOptions options;
  options.limit = 1;
  Result<ObjectList> first = List(options);
  ASSERT_TRUE(first);
  EXPECT_THAT(Names(*first), ElementsAre("a"));
  EXPECT_EQ(first->remaining, 2);
  options.continue_token = first->continue_token;
  // From the cache while nothing has changed, afterwards from etcd's history.
  for (bool changed : {false, true}) {
    if (changed) {
      ASSERT_TRUE(Create(ConfigMap("bb")));
      ASSERT_TRUE(Delete(Row<corev1::ConfigMap>(), "c"));
    }
    Result<ObjectList> second = List(options);
    ASSERT_TRUE(second) << second.error().message();
    EXPECT_THAT(Names(*second), ElementsAre("b"));
    EXPECT_EQ(second->revision, first->revision);
    EXPECT_EQ(second->remaining, 1);
    ListOptions last = options;
    last.continue_token = second->continue_token;
    last.limit = 5;
    Result<ObjectList> third = List(last);
    ASSERT_TRUE(third);
    EXPECT_THAT(Names(*third), ElementsAre("c"));
    EXPECT_EQ(third->revision, first->revision);
    EXPECT_EQ(third->continue_token, "");
    EXPECT_EQ(third->remaining, std::nullopt);
  }
}

TEST_F(RegistryReadTest, SelectorsLeaveOpenHowManyRemain) {
  ListOptions options;
  options.limit = 1;
  options.label_selector = "!nope";
  Result<ObjectList> list = List(options);
  ASSERT_TRUE(list);
  EXPECT_NE(list->continue_token, "");
  EXPECT_EQ(list->remaining, std::nullopt);
}

TEST_F(RegistryReadTest, CompactedPagesAreGoneAndCanGoOnInconsistently) {
  for (bool changed : {false, true}) {
    ListOptions options;
    options.limit = 1;
    Result<ObjectList> first = List(options);
    ASSERT_TRUE(first);
    // Something else must change, so that the page's version can be compacted.
    ASSERT_TRUE(changed ? Create(ConfigMap("b" + std::to_string(changed))).has_value()
                        : Create(Pod("other")).has_value());
    Compact();
    options.continue_token = first->continue_token;
    Result<ObjectList> second = List(options);
    ASSERT_FALSE(second);
    EXPECT_EQ(HttpStatus(second.error().code()), 410);
    EXPECT_EQ(Reason(second.error().code()), "Expired");
    EXPECT_THAT(
        second.error().message(),
        HasSubstr("You can start a new list without the continue parameter, or use the continue token in "
                  "this response to retrieve the remainder of the results."));
    options.continue_token = storage::InconsistentToken(options.continue_token);
    options.limit = 0;
    Result<ObjectList> rest = List(options);
    ASSERT_TRUE(rest) << rest.error().message();
    EXPECT_EQ(Names(*rest).front(), "b");
    EXPECT_GT(rest->revision, first->revision);
  }
}

TEST_F(RegistryReadTest, CompactedVersionsAreGone) {
  ASSERT_TRUE(Create(ConfigMap("d")));
  Compact();
  for (bool named : {false, true}) {
    ListOptions options;
    options.resource_version = At(0);
    options.resource_version_match = "Exact";
    if (named) options.field_selector = "metadata.name=a";
    Result<ObjectList> list = List(options);
    ASSERT_FALSE(list);
    EXPECT_EQ(HttpStatus(list.error().code()), 410);
    EXPECT_EQ(list.error().message(), "The resourceVersion for the provided list is too old.");
  }
}

TEST_F(RegistryReadTest, NamesAndNamespacesInFieldSelectors) {
  corev1::Namespace other;
  other.mutable_metadata()->set_name("other");
  ASSERT_TRUE(Create(other, ""));
  ASSERT_TRUE(Create(ConfigMap("a"), "other"));
  struct Case {
    const char *ns, *selector, *name;
    std::vector<std::string> keys;
  };
  const Case kCases[] = {
      {"default", "metadata.name=a", "", {"default/a"}},
      {"", "metadata.name=a", "", {"default/a", "other/a"}},
      {"", "metadata.name=a,metadata.namespace=other", "", {"other/a"}},
      {"", "metadata.namespace=other", "", {"other/a"}},
      {"default", "metadata.namespace=other", "", {}},
      {"default", "metadata.name=a,metadata.name!=a", "", {}},
      {"default", "metadata.name!=a", "", {"default/b", "default/c"}},
      {"default", "metadata.name=nope", "", {}},
      {"default", "", "b", {"default/b"}},
      {"default", "metadata.name=b", "b", {"default/b"}},
  };
  for (const Case& c : kCases) {
    ListOptions options;
    options.field_selector = c.selector;
    options.name = c.name;
    Result<ObjectList> list = List(options, c.ns);
    ASSERT_TRUE(list) << list.error().message();
    std::vector<std::string> keys;
    for (const ObjectPtr& item : list->items) keys.push_back(item->key());
    EXPECT_EQ(keys, c.keys) << c.ns << " " << c.selector;
  }
  ListOptions exact;
  exact.field_selector = "metadata.name=b";
  exact.resource_version = At(0);
  exact.resource_version_match = "Exact";
  EXPECT_EQ(List(exact)->items.size(), 0U);
  exact.resource_version = At(1);
  EXPECT_EQ(List(exact)->items.size(), 1U);
  ListOptions mismatch;
  mismatch.name = "a";
  mismatch.field_selector = "metadata.name=b";
  EXPECT_EQ(List(mismatch).error().message(), "fieldSelector metadata.name doesn't match requested name");
}

TEST_F(RegistryReadTest, SelectableFields) {
  struct Case {
    const char *group, *resource, *selector, *error;  // error null: valid
  };
  constexpr Case kCases[] = {
      {"", "pods",
       "spec.nodeName=a,spec.restartPolicy=b,spec.schedulerName=c,spec.serviceAccountName=d,"
       "spec.hostNetwork=true,status.phase=e,status.podIP=f,status.podIPs=g,status.nominatedNodeName=h,spec."
       "host=i",
       nullptr},
      {"", "pods", "spec.nope=x", "field label not supported: spec.nope"},
      {"", "configmaps", "data.a=1",
       "\"data.a\" is not a known field selector: only \"metadata.name\", \"metadata.namespace\""},
      {"", "nodes", "spec.unschedulable=true", nullptr},
      {"", "nodes", "metadata.namespace=x", "field label not supported: metadata.namespace"},
      {"", "persistentvolumes", "metadata.namespace=x", nullptr},
      {"", "namespaces", "status.phase=Active,name=default", nullptr},
      {"", "secrets", "type=Opaque", nullptr},
      {"", "services", "spec.clusterIP=None,spec.type=ClusterIP", nullptr},
      {"", "replicationcontrollers", "status.replicas=1", nullptr},
      {"", "events",
       "involvedObject.kind=a,involvedObject.namespace=b,involvedObject.name=c,involvedObject.uid=d,"
       "involvedObject.apiVersion=e,involvedObject.resourceVersion=f,involvedObject.fieldPath=g,reason=h,"
       "reportingComponent=i,source=j,type=k",
       nullptr},
      {"events.k8s.io", "events", "regarding.kind=a,regarding.name=b,reportingController=c,reason=d,type=e",
       nullptr},
      {"events.k8s.io", "events", "involvedObject.kind=a", "field label not supported: involvedObject.kind"},
      {"apps", "replicasets", "status.replicas=1", nullptr},
      {"apps", "deployments", "status.replicas=1",
       "\"status.replicas\" is not a known field selector: only \"metadata.name\", \"metadata.namespace\""},
      {"batch", "jobs", "status.successful=1", nullptr},
      {"batch", "jobs", "status.active=1", "field label \"status.active\" not supported for batchv1.Job"},
      {"certificates.k8s.io", "certificatesigningrequests", "spec.signerName=x", nullptr},
      {"", "pods", "spec.nodeName", "invalid selector: 'spec.nodeName'; can't understand 'spec.nodeName'"},
      {"", "pods", "spec.nodeName=a=b", "invalid field selector: unescaped character in value: ="},
  };
  for (const Case& c : kCases) {
    ListOptions options;
    options.field_selector = c.selector;
    Result<ObjectList> list = (*plane_)->List(Row(c.group, c.resource), "", options);
    if (!c.error) {
      EXPECT_TRUE(list) << list.error().message();
      continue;
    }
    ASSERT_FALSE(list) << c.selector;
    EXPECT_EQ(list.error().code(), Code::kBadRequest);
    EXPECT_EQ(list.error().message(), c.error);
  }
}

TEST_F(RegistryReadTest, BeginningsOfWatches) {
  struct Case {
    std::string version, match;
    std::optional<bool> initial;
    bool bookmarks;
    std::vector<std::string> lines;  // before "d" is made
  };
  const std::vector<std::string> kAll = {"ADDED a", "ADDED b", "ADDED c"};
  const Case kCases[] = {
      {"", "", std::nullopt, false, kAll},
      {"0", "", std::nullopt, false, kAll},
      {"", "", std::nullopt, true, {"ADDED a", "ADDED b", "ADDED c", "BOOKMARK"}},
      {"", "NotOlderThan", true, true, {"ADDED a", "ADDED b", "ADDED c", "BOOKMARK"}},
      {At(0), "NotOlderThan", true, true, {"ADDED a", "ADDED b", "ADDED c", "BOOKMARK"}},
      {"", "NotOlderThan", true, false, kAll},
      {"", "NotOlderThan", false, true, {}},
      {"0", "NotOlderThan", false, true, {}},
      {At(1), "NotOlderThan", false, true, {"ADDED c"}},
      {At(1), "", std::nullopt, true, {"ADDED c"}},
      {At(2), "", std::nullopt, false, {}},
      {std::to_string(revisions_[2] + 1), "", std::nullopt, false, {}},
  };
  int made = 0;
  for (const Case& c : kCases) {
    ListOptions options;
    options.resource_version = c.version;
    options.resource_version_match = c.match;
    options.send_initial_events = c.initial;
    options.allow_bookmarks = c.bookmarks;
    options.field_selector = "metadata.name!=z";
    auto lines = std::make_shared<Lines>();
    auto watch = (*plane_)->Watch(Row<corev1::ConfigMap>(), "default", options, lines);
    ASSERT_TRUE(watch) << watch.error().message();
    EXPECT_EQ(lines->Await(c.lines.size()), c.lines) << c.version << " " << c.match;
    watch->reset();
    ++made;
  }
  EXPECT_EQ(made, 12);
}

TEST_F(RegistryReadTest, RefusesCombinationsOfWatchOptions) {
  struct Case {
    const char *match, *continued;
    std::optional<bool> initial;
    const char* message;
  };
  const Case kCases[] = {
      {"", "", true,
       "resourceVersionMatch: Forbidden: sendInitialEvents requires setting resourceVersionMatch to "
       "NotOlderThan"},
      {"NotOlderThan", "", std::nullopt,
       "resourceVersionMatch: Forbidden: resourceVersionMatch is forbidden for watch unless "
       "sendInitialEvents is "
       "provided"},
      {"Exact", "", true,
       "[resourceVersionMatch: Forbidden: sendInitialEvents requires setting resourceVersionMatch to "
       "NotOlderThan, "
       "resourceVersionMatch: Unsupported value: \"Exact\": supported values: \"NotOlderThan\"]"},
      {"NotOlderThan", "x", true,
       "resourceVersionMatch: Forbidden: resourceVersionMatch is forbidden when continue is provided"},
  };
  for (const Case& c : kCases) {
    ListOptions options;
    options.resource_version_match = c.match;
    options.continue_token = c.continued;
    options.send_initial_events = c.initial;
    auto watch = (*plane_)->Watch(Row<corev1::ConfigMap>(), "default", options, std::make_shared<Lines>());
    ASSERT_FALSE(watch) << c.message;
    EXPECT_EQ(watch.error().message(), std::string("ListOptions.meta.k8s.io \"\" is invalid: ") + c.message);
    EXPECT_EQ(HttpStatus(watch.error().code()), 422);
  }
}

TEST_F(RegistryReadTest, WatchesOfForgottenVersionsEndWithAnEvent) {
  // A watch that starts now must not see earlier changes.
  Plane other(*etcd_);
  ListOptions options;
  options.resource_version = At(0);
  auto lines = std::make_shared<Lines>();
  auto watch = other->Watch(Row<corev1::ConfigMap>(), "default", options, lines);
  ASSERT_TRUE(watch) << watch.error().message();
  std::vector<std::string> seen = lines->Await(1);
  ASSERT_EQ(seen.size(), 1U);
  EXPECT_THAT(seen[0], HasSubstr("END 410 Expired too old resource version: " + At(0) + " ("));
  watch->reset();
}

TEST_F(RegistryReadTest, InitialEventsOfTheFutureTimeOut) {
  ListOptions options;
  options.resource_version = std::to_string(revisions_[2] + 1000);
  options.resource_version_match = "NotOlderThan";
  options.send_initial_events = true;
  auto watch = (*plane_)->Watch(Row<corev1::ConfigMap>(), "default", options, std::make_shared<Lines>());
  ASSERT_FALSE(watch);
  EXPECT_EQ(HttpStatus(watch.error().code()), 504);
}

TEST_F(RegistryReadTest, BookmarksOnDemand) {
  ListOptions options;
  options.resource_version = At(2);
  options.allow_bookmarks = true;
  auto lines = std::make_shared<Lines>();
  auto watch = (*plane_)->Watch(Row<corev1::ConfigMap>(), "default", options, lines);
  ASSERT_TRUE(watch);
  (*watch)->RequestBookmark();
  EXPECT_THAT(lines->Await(1), ElementsAre("BOOKMARK"));
}

}  // namespace
}  // namespace keelson::registry
