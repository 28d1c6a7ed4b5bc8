// The cache and its watchers, without etcd.
#include "controlplane/storage/watch_cache.h"

#include <gtest/gtest.h>

#include "controlplane/storage/continue_token.h"
#include "controlplane/storage/convert.h"
#include "controlplane/storage/wire.h"
#include "lib/api/codec/codec.h"
#include "lib/api/meta.h"
#include "lib/api/proto/autoscaling_v2.pb.h"

namespace keelson::storage {
namespace {

const api::ResourceInfo& Pods() { return api::ResourceOf<corev1::Pod>(); }

ObjectPtr Pod(const std::string& key, int64_t revision, const std::string& app = "",
              const std::string& node = "") {
  corev1::Pod pod;
  auto [ns, name] = api::SplitKey(key);
  pod.mutable_metadata()->set_namespace_(ns);
  pod.mutable_metadata()->set_name(name);
  if (!app.empty()) (*pod.mutable_metadata()->mutable_labels())["app"] = app;
  if (!node.empty()) pod.mutable_spec()->set_node_name(node);
  return Object::FromMessage(Pods(), pod, revision);
}

class Recorder : public WatchSink {
 public:
  explicit Recorder(size_t limit = 1000) : limit_(limit) {}
  bool OnEvent(const EventPtr& event) override {
    std::string line(event->TypeName());
    if (event->type() != Event::Type::kBookmark) line += " " + event->object()->key();
    line += " " + std::to_string(event->revision());
    lines.push_back(line);
    events.push_back(event);
    return lines.size() < limit_;
  }
  void OnEnd(const Error& error) override { lines.push_back("END " + error.message()); }

  std::vector<std::string> lines;
  std::vector<EventPtr> events;

 private:
  size_t limit_;
};

using Lines = std::vector<std::string>;

struct Started {
  std::shared_ptr<CacheWatcher> watcher;
  std::shared_ptr<Recorder> recorder;
};

class CacheTest : public testing::Test {
 protected:
  Started Watch(WatchRequest request, int64_t from, bool initial,
                std::shared_ptr<Recorder> recorder = nullptr) {
    if (!recorder) recorder = std::make_shared<Recorder>();
    auto watcher = std::make_shared<CacheWatcher>(Pods(), std::move(request), recorder);
    cache_.AddWatcher(watcher, from, initial, reached_);
    return {watcher, recorder};
  }
  void Put(const std::string& key, const std::string& app = "", const std::string& node = "") {
    ++reached_;
    cache_.Apply({{key, Pod(key, reached_, app, node)}}, reached_);
  }
  void Delete(const std::string& key) {
    ++reached_;
    cache_.Apply({{key, nullptr}}, reached_);
  }

  FakeClock clock_;
  WorkerPool pool_{1};
  WatchCache cache_{Pods(), {4, 1 << 20}, clock_, pool_};
  int64_t reached_ = 100;
};

Predicate Select(const char* labels, const char* fields = "") {
  return {*api::LabelSelector::Parse(labels), *api::FieldSelector::Parse(fields)};
}

TEST_F(CacheTest, ListsByNamespaceInOrderAndPages) {
  cache_.Replace({Pod("a/1", 5), Pod("a/2", 6), Pod("ab/1", 7), Pod("b/1", 8)}, 100);
  auto keys = [](const WatchCache::Page& page) {
    Lines out;
    for (const auto& item : page.items) out.push_back(item->key());
    return out;
  };
  EXPECT_EQ(keys(cache_.List("", "", {}, 0, 100)), (Lines{"a/1", "a/2", "ab/1", "b/1"}));
  EXPECT_EQ(keys(cache_.List("a", "", {}, 0, 100)), (Lines{"a/1", "a/2"}));
  EXPECT_EQ(keys(cache_.List("c", "", {}, 0, 100)), Lines{});
  WatchCache::Page page = cache_.List("", "", {}, 3, 100);
  EXPECT_EQ(keys(page), (Lines{"a/1", "a/2", "ab/1"}));
  EXPECT_TRUE(page.more);
  EXPECT_EQ(page.left, 1);
  EXPECT_EQ(keys(cache_.List("", std::string("a/2") + '\0', {}, 0, 100)), (Lines{"ab/1", "b/1"}));
}

TEST_F(CacheTest, KnowsItsSize) {
  auto bytes = [](const char* key, const char* app, int64_t revision = 9) {
    return Pod(key, revision, app)->raw().size();
  };
  cache_.Replace({Pod("a/1", 5, "one"), Pod("a/2", 6, "two")}, 100);
  EXPECT_EQ(cache_.size().objects, 2u);
  EXPECT_EQ(cache_.size().bytes, bytes("a/1", "one") + bytes("a/2", "two"));
  Put("a/2", "a-longer-one");
  Delete("a/1");
  Delete("a/1");
  EXPECT_EQ(cache_.size().objects, 1u);
  EXPECT_EQ(cache_.size().bytes, bytes("a/2", "a-longer-one", 101));
  cache_.Replace({}, 200);
  EXPECT_EQ(cache_.size().bytes, 0u);
}

TEST_F(CacheTest, SelectsByLabelAndField) {
  cache_.Replace({Pod("a/1", 5, "web", "n1"), Pod("a/2", 6, "web", "n2"), Pod("a/3", 7, "db", "n1")}, 100);
  struct Case {
    const char *labels, *fields;
    Lines want;
  };
  for (const Case& c :
       {Case{"app=web", "", {"a/1", "a/2"}}, Case{"app!=web", "", {"a/3"}},
        Case{"app in (db,x)", "", {"a/3"}}, Case{"!app", "", {}}, Case{"app", "", {"a/1", "a/2", "a/3"}},
        Case{"", "spec.nodeName=n1", {"a/1", "a/3"}}, Case{"app=web", "spec.nodeName!=n1", {"a/2"}},
        Case{"", "metadata.name=3", {"a/3"}}, Case{"", "metadata.namespace=b", {}}}) {
    Lines got;
    for (const auto& item : cache_.List("", "", Select(c.labels, c.fields), 0, 100).items) {
      got.push_back(item->key());
    }
    EXPECT_EQ(got, c.want) << c.labels << " " << c.fields;
  }
}

TEST_F(CacheTest, WatchesLive) {
  cache_.Replace({}, 100);
  auto [watcher, recorder] = Watch({}, 100, false);
  Put("a/1");
  Put("a/1");
  Delete("a/1");
  EXPECT_EQ(recorder->lines, (Lines{"ADDED a/1 101", "MODIFIED a/1 102", "DELETED a/1 103"}));
  // The last state, under the revision of its end.
  EXPECT_EQ(api::Meta(*recorder->events[2]->object()->Decode()).resource_version(), "103");
}

TEST_F(CacheTest, SelectionChangesBecomeAddedAndDeleted) {
  cache_.Replace({}, 100);
  WatchRequest request;
  request.predicate = Select("app=web");
  auto [watcher, recorder] = Watch(request, 100, false);
  Put("a/1", "db");
  Put("a/1", "web");
  Put("a/1", "web");
  Put("a/1", "db");
  Delete("a/1");
  EXPECT_EQ(recorder->lines, (Lines{"ADDED a/1 102", "MODIFIED a/1 103", "DELETED a/1 104"}));
  EXPECT_EQ(api::Meta(*recorder->events[2]->object()->Decode()).labels().at("app"), "web");
}

TEST_F(CacheTest, StartsFromHistoryAndRefusesWhatIsGone) {
  cache_.Replace({}, 100);
  for (const char* key : {"a/1", "a/2", "a/3", "a/4", "a/5", "a/6"}) Put(key);
  EXPECT_EQ(Watch({}, 104, false).recorder->lines, (Lines{"ADDED a/5 105", "ADDED a/6 106"}));
  EXPECT_EQ(Watch({}, 102, false).recorder->lines.size(), 4U);
  EXPECT_EQ(Watch({}, 101, false).recorder->lines, (Lines{"END too old resource version: 101 (102)"}));
}

TEST_F(CacheTest, TellsInitialStateAndItsEnd) {
  cache_.Replace({Pod("a/1", 5), Pod("b/1", 6)}, 100);
  WatchRequest request;
  request.ns = "a";
  request.initial_events_end = true;
  auto [watcher, recorder] = Watch(request, 0, true);
  Put("a/2");
  EXPECT_EQ(recorder->lines, (Lines{"ADDED a/1 5", "BOOKMARK 100", "ADDED a/2 101"}));
  EXPECT_EQ(api::Meta(*recorder->events[1]->object()->Decode()).annotations().at("k8s.io/initial-events-end"),
            "true");
}

TEST_F(CacheTest, BookmarksNeverGoBack) {
  cache_.Replace({}, 100);
  WatchRequest request;
  request.bookmarks = true;
  auto [watcher, recorder] = Watch(request, 100, false);
  cache_.DispatchBookmarks(100);
  Put("a/1");
  cache_.DispatchBookmarks(100);
  cache_.DispatchBookmarks(101);
  EXPECT_EQ(recorder->lines, (Lines{"BOOKMARK 100", "ADDED a/1 101", "BOOKMARK 101"}));
}

TEST_F(CacheTest, AWatchFromTheFutureBeginsThere) {
  cache_.Replace({}, 100);
  WatchRequest request;
  request.bookmarks = true;
  auto [watcher, recorder] = Watch(request, 102, false);
  Put("a/1");
  Put("a/2");
  cache_.DispatchBookmarks(101);
  EXPECT_EQ(recorder->lines, Lines{});
  Put("a/3");
  EXPECT_EQ(recorder->lines, Lines{"ADDED a/3 103"});
}

TEST_F(CacheTest, CutsOffWhoIsTooSlow) {
  cache_.Replace({}, 100);
  auto [watcher, recorder] = Watch({}, 100, false, std::make_shared<Recorder>(2));
  for (const char* key : {"a/1", "a/2", "a/3"}) Put(key);
  EXPECT_EQ(recorder->lines.size(), 2U);
  EXPECT_TRUE(watcher->dead());
}

TEST_F(CacheTest, ResetEndsWatches) {
  cache_.Replace({}, 100);
  auto [watcher, recorder] = Watch({}, 100, false);
  cache_.Replace({Pod("a/1", 150)}, 200);
  Put("a/2");
  EXPECT_EQ(recorder->lines, Lines{"END too old resource version"});
}

TEST_F(CacheTest, FramesAreSharedByAllWatchers) {
  cache_.Replace({}, 100);
  Started one = Watch({}, 100, false), two = Watch({}, 100, false);
  Put("a/1");
  Bytes json = one.recorder->events.at(0)->Frame(Format::kJson);
  EXPECT_EQ(json, two.recorder->events.at(0)->Frame(Format::kJson));
  EXPECT_EQ(json->substr(0, 26), R"({"type":"ADDED","object":{)");
  EXPECT_EQ(json->back(), '\n');
  Bytes protobuf = one.recorder->events[0]->Frame(Format::kProtobuf);
  metav1::WatchEvent event;
  ASSERT_TRUE(event.ParseFromString(protobuf->substr(4)));
  EXPECT_EQ(event.type(), "ADDED");
  corev1::Pod pod;
  ASSERT_TRUE(api::DecodeProtobuf(event.object().raw(), pod));
  EXPECT_EQ(pod.metadata().resource_version(), "101");
}

TEST(ObjectTest, StoredBytesGetTheirRevision) {
  corev1::Pod pod;
  pod.mutable_metadata()->set_name("x");
  pod.mutable_metadata()->set_namespace_("d");
  pod.mutable_metadata()->set_resource_version("1");  // upstream stores none; what is there must not stay
  pod.mutable_metadata()->set_uid("u");
  pod.mutable_spec()->set_node_name("n");
  auto object = Object::FromStored(Pods(), "d/x", 77, api::EncodeProtobuf(pod, Pods().Gvk()));
  ASSERT_TRUE(object) << object.error().message();
  EXPECT_EQ((*object)->ns(), "d");
  EXPECT_EQ((*object)->name(), "x");
  pod.mutable_metadata()->set_resource_version("77");
  EXPECT_EQ((*object)->Decode()->SerializeAsString(), pod.SerializeAsString());
  EXPECT_EQ((*object)->raw(), pod.SerializeAsString());
  EXPECT_EQ((*object)->WithRevision(8)->raw().find("77"), std::string::npos);
  EXPECT_NE((*object)->Json()->find(R"("resourceVersion":"77")"), std::string::npos);
}

TEST(ObjectTest, RefusesGarbage) {
  corev1::Pod pod;
  std::string value = api::EncodeProtobuf(pod, api::ResourceOf<corev1::Service>().Gvk());
  for (const std::string& bad :
       {value, std::string("{}"), std::string(), std::string("k8s\0\x12\x02\x0a\x7f", 8)}) {
    Result<ObjectPtr> read = Object::FromStored(Pods(), "d/x", 1, bad);
    ASSERT_FALSE(read);
    EXPECT_EQ(read.error().code(), Code::kInternal) << read.error().message();
  }
}

TEST(ObjectTest, IdleFormsAreDropped) {
  ObjectPtr pod = Pod("a/1", 5);
  Bytes json = pod->Json();
  pod->DropIdle();
  EXPECT_EQ(pod->JsonIfKnown(), json);  // was asked for since
  pod->DropIdle();
  EXPECT_EQ(pod->JsonIfKnown(), nullptr);
}

TEST(ConvertTest, EventsShareOneStorage) {
  const auto& row = api::ResourceOf<eventsv1::Event>();
  EXPECT_EQ(&StoredAs(row), &api::ResourceOf<corev1::Event>());
  eventsv1::Event event;
  event.mutable_metadata()->set_name("e");
  event.set_note("hello");
  event.set_reporting_controller("c");
  event.mutable_regarding()->set_kind("Pod");
  event.set_deprecated_count(3);
  auto core = Convert(event, StoredAs(row));
  EXPECT_EQ(static_cast<corev1::Event&>(*core).message(), "hello");
  EXPECT_EQ(static_cast<corev1::Event&>(*core).involved_object().kind(), "Pod");
  EXPECT_EQ(Convert(*core, row)->SerializeAsString(), event.SerializeAsString());
}

TEST(ConvertTest, HpaKeepsWhatV1CannotSay) {
  api::autoscaling::v2::HorizontalPodAutoscaler hpa;
  hpa.mutable_metadata()->set_name("h");
  hpa.mutable_spec()->set_max_replicas(5);
  auto* cpu = hpa.mutable_spec()->add_metrics();
  cpu->set_type("Resource");
  cpu->mutable_resource()->set_name("cpu");
  cpu->mutable_resource()->mutable_target()->set_type("Utilization");
  cpu->mutable_resource()->mutable_target()->set_average_utilization(60);
  auto* memory = hpa.mutable_spec()->add_metrics();
  *memory = *cpu;
  memory->mutable_resource()->set_name("memory");
  const auto& v1 = api::ResourceOf<autoscalingv1::HorizontalPodAutoscaler>();
  auto old = Convert(hpa, v1);
  auto& as_v1 = static_cast<autoscalingv1::HorizontalPodAutoscaler&>(*old);
  EXPECT_EQ(as_v1.spec().target_cpu_utilization_percentage(), 60);
  as_v1.mutable_spec()->set_target_cpu_utilization_percentage(70);
  auto back = Convert(as_v1, StoredAs(v1));
  auto& as_v2 = static_cast<api::autoscaling::v2::HorizontalPodAutoscaler&>(*back);
  ASSERT_EQ(as_v2.spec().metrics_size(), 2);
  EXPECT_EQ(as_v2.spec().metrics(0).resource().name(), "memory");
  EXPECT_EQ(as_v2.spec().metrics(1).resource().name(), "cpu");
  EXPECT_EQ(as_v2.spec().metrics(1).resource().target().average_utilization(), 70);
  EXPECT_EQ(as_v2.metadata().annotations_size(), 0);
}

TEST(ContinueTokenTest, RoundTripsAndRefusesGarbage) {
  std::string text = Encode({42, std::string("pod-1\0", 6)});
  Result<ContinueToken> token = DecodeContinue(text);
  ASSERT_TRUE(token) << token.error().message();
  EXPECT_EQ(token->revision, 42);
  EXPECT_EQ(token->start, std::string("pod-1\0", 6));
}

std::string Encoded(const std::string& json) {
  static constexpr char kAlphabet[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
  std::string out;
  uint32_t bits = 0;
  int have = 0;
  for (unsigned char byte : json) {
    bits = bits << 8 | byte;
    for (have += 8; have >= 6; have -= 6) out += kAlphabet[bits >> (have - 6) & 63];
  }
  if (have > 0) out += kAlphabet[bits << (6 - have) & 63];
  return out;
}

TEST(ContinueTokenTest, RefusesInUpstreamsWords) {
  struct Case {
    std::string token, problem;
  };
  const Case kCases[] = {
      {"", ": unexpected end of JSON input"},
      {"!", ": illegal base64 data at input byte 0"},
      {"eyJ9=", ": illegal base64 data at input byte 4"},
      {Encoded("x"), ": invalid character 'x' looking for beginning of value"},
      {Encoded("{"), ": unexpected end of JSON input"},
      {Encoded("{}"), ": server does not recognize this encoded version "},
      {Encoded(R"({"v":"meta.k8s.io/v9","rv":1,"start":"a"})"),
       ": server does not recognize this encoded version meta.k8s.io/v9"},
      {Encoded(R"({"v":"meta.k8s.io/v1","start":"a"})"),
       ": incorrect encoded start resourceVersion (version meta.k8s.io/v1)"},
      {Encoded(R"({"v":"meta.k8s.io/v1","rv":0,"start":"a"})"),
       ": incorrect encoded start resourceVersion (version meta.k8s.io/v1)"},
      {Encoded(R"({"v":"meta.k8s.io/v1","rv":5})"), ": encoded start key empty (version meta.k8s.io/v1)"},
      {Encoded(R"({"v":"meta.k8s.io/v1","rv":5,"start":"../secrets/x"})"), ": ../secrets/x"},
      {Encoded(R"({"v":"meta.k8s.io/v1","rv":5,"start":"a//b"})"), ": a//b"},
      {Encoded(R"({"v":"meta.k8s.io/v1","rv":5,"start":"a/./b"})"), ": a/./b"},
  };
  for (const Case& c : kCases) {
    Result<ContinueToken> result = DecodeContinue(c.token);
    ASSERT_FALSE(result) << c.token;
    EXPECT_EQ(result.error().code(), Code::kBadRequest);
    EXPECT_EQ(result.error().message(), "continue key is not valid" + c.problem);
  }
}

TEST(ContinueTokenTest, GoesOnInconsistently) {
  Result<ContinueToken> token = DecodeContinue(InconsistentToken(Encode({42, std::string("ns/pod-1\0", 9)})));
  ASSERT_TRUE(token);
  EXPECT_EQ(token->revision, -1);
  EXPECT_EQ(token->start, std::string("ns/pod-1\0", 9));
  EXPECT_EQ(InconsistentToken("?"), "");
}

}  // namespace
}  // namespace keelson::storage
