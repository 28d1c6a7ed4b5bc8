#include <gtest/gtest.h>

#include <thread>

#include "kubelet/objects/pod_references.h"
#include "lib/api/codec/codec.h"
#include "lib/client/testing/fake_api.h"

namespace keelson::kubelet {
namespace {

using std::chrono::seconds;

// What happens, one after the other. `requests` and `word` are those of a "get": how often the API server is
// asked, and data["word"] or the error.
struct Step {
  std::string act;
  int requests = 0;
  std::string word;
};

constexpr char kGone[] = "configmaps \"settings\" not found", kAway[] = "connection refused";

struct Case {
  const char* name;
  std::string strategy;
  std::optional<seconds> ttl;
  std::vector<Step> steps;
};

class ObjectsTest : public ::testing::Test {
 protected:
  ObjectsTest() {
    Write("old", false);
    fake_->SetInterceptor(
        [this](const client::ApiRequest& request) -> std::optional<Result<client::ApiResponse>> {
          if (away_) return Result<client::ApiResponse>(Error(Code::kUnavailable, kAway));
          if (request.target.find("resourceVersion=0") != std::string::npos && !at_hand_.data().empty()) {
            corev1::ConfigMapList list;
            *list.add_items() = at_hand_;
            return Result<client::ApiResponse>(client::FakeApi::Answer(list));
          }
          return std::nullopt;
        });
  }
  std::unique_ptr<ObjectStore> Reader(const std::string& strategy, std::optional<seconds> ttl = {}) {
    return NewObjectStore(
        strategy, {api_, api::ResourceOf<corev1::ConfigMap>(), api_backoff_, [ttl] { return ttl; }, clock_});
  }
  corev1::ConfigMap Write(const std::string& word, bool immutable) {
    corev1::ConfigMap map;
    map.mutable_metadata()->set_name("settings");
    map.mutable_metadata()->set_namespace_("default");
    (*map.mutable_data())["word"] = word;
    if (immutable) map.set_immutable(true);
    return fake_->Put(map);
  }
  static std::string Word(ObjectStore& reader) {
    auto object = reader.Get("default", "settings");
    if (!object) return object.error().message();
    return static_cast<const corev1::ConfigMap&>(**object).data().at("word");
  }
  void Act(const std::string& act, ObjectStore& reader) {
    const auto [verb, rest] = std::pair(act.substr(0, act.find(' ')), act.substr(act.find(' ') + 1));
    if (verb == "write") {
      Write(rest, false);
    } else if (verb == "freeze") {
      Write(rest, true);
    } else if (act == "delete") {
      ASSERT_TRUE(api_.Delete<corev1::ConfigMap>("default", "settings"));
    } else if (verb == "wait") {
      clock_.Advance(seconds(std::stoi(rest)));
    } else if (act == "new pod") {
      reader.AddReference("default", "settings");
    } else if (act == "last pod gone") {
      reader.DeleteReference("default", "settings");
    } else if (act == "away") {
      away_ = true;
      fake_->EndWatches();
    } else if (act == "back") {
      away_ = false;
    } else if (act == "end watches") {
      fake_->EndWatches();
    } else if (act == "bookmarks") {
      fake_->SendBookmarks();
    } else if (act == "lag") {  // from now on the API server's cache stands still
      at_hand_ = *api_.Get<corev1::ConfigMap>("default", "settings");
    } else {
      FAIL() << act;
    }
  }

  FakeClock clock_;
  ApiServerBackoff api_backoff_{clock_};
  std::shared_ptr<client::FakeApi> fake_ = std::make_shared<client::FakeApi>();
  client::RestClient api_{fake_};
  std::atomic<bool> away_ = false;
  corev1::ConfigMap at_hand_;
};

class StrategyTest : public ObjectsTest, public ::testing::WithParamInterface<Case> {};

TEST_P(StrategyTest, AsksAsOftenAsItHasTo) {
  auto reader = Reader(GetParam().strategy, GetParam().ttl);
  int number = 0;
  for (const Step& step : GetParam().steps) {
    SCOPED_TRACE("step " + std::to_string(++number) + ": " + step.act);
    if (step.act != "get") {
      Act(step.act, *reader);
      continue;
    }
    fake_->ForgetRequests();
    EXPECT_EQ(Word(*reader), step.word);
    EXPECT_EQ(fake_->Requests().size(), static_cast<size_t>(step.requests));
  }
}

const Case kCases[] = {
    {"GetAsksAlways",
     "Get",
     {},
     {{"get", 1, "old"},
      {"get", 1, "old"},
      {"freeze new"},
      {"get", 1, "new"},
      {"get", 1, "new"},
      {"away"},
      {"get", 1, kAway},
      {"get", 1, kAway},
      {"back"},
      {"get", 1, "new"},
      {"delete"},
      {"get", 1, kGone}}},
    {"CacheAsksOnceAMinute",
     "Cache",
     {},
     {{"get", 1, "old"},
      {"get", 0, "old"},
      {"write new"},
      {"wait 59"},
      {"get", 0, "old"},
      {"wait 1"},
      {"get", 1, "new"},
      {"get", 0, "new"},
      {"delete"},
      {"get", 0, "new"},
      {"wait 60"},
      {"get", 1, kGone},
      {"get", 1, kGone},
      {"write again"},
      {"get", 1, "again"}}},
    {"CacheAsksWhenTheNodeSays",
     "Cache",
     seconds(300),
     {{"get", 1, "old"}, {"write new"}, {"wait 299"}, {"get", 0, "old"}, {"wait 1"}, {"get", 1, "new"}}},
    {"CacheAsksAlwaysInSmallClusters",
     "Cache",
     seconds(0),
     {{"get", 1, "old"}, {"write new"}, {"get", 1, "new"}, {"get", 1, "new"}}},
    {"CacheAsksForANewPod",
     "Cache",
     {},
     {{"new pod"},
      {"get", 1, "old"},
      {"write new"},
      {"lag"},
      {"write newest"},
      {"get", 0, "old"},
      {"new pod"},
      {"get", 1, "newest"},
      {"get", 0, "newest"},
      {"last pod gone"},
      {"get", 1, "newest"}}},
    {"CacheDoesNotGoBack",
     "Cache",
     {},
     {{"lag"}, {"write new"}, {"get", 1, "new"}, {"wait 60"}, {"get", 1, "new"}, {"get", 1, "new"}}},
    {"CacheReadsWhatNeverChangesForNewPods",
     "Cache",
     seconds(0),
     {{"freeze ice"}, {"get", 1, "ice"}, {"wait 9999"}, {"get", 0, "ice"}, {"new pod"}, {"get", 1, "ice"}}},
    {"CacheIsGoodEnoughWhileTheServerIsAway",
     "Cache",
     {},
     {{"get", 1, "old"},
      {"away"},
      {"wait 60"},
      {"get", 1, "old"},
      {"get", 0, "old"},
      {"wait 10"},
      {"get", 1, "old"},
      {"new pod"},
      {"get", 0, "old"},
      {"back"},
      {"wait 10"},
      {"write new"},
      {"get", 1, "new"}}},
    {"CacheNeverReadIsAskedForWhileAway",
     "Cache",
     {},
     {{"away"}, {"get", 1, kAway}, {"get", 1, kAway}, {"back"}, {"get", 1, "old"}}},
    {"WatchAsksOnce",
     "Watch",
     {},
     {{"get", 2, "old"},
      {"get", 0, "old"},
      {"new pod"},
      {"get", 0, "old"},
      {"write new"},
      {"write newer"},
      {"get", 0, "newer"},
      {"delete"},
      {"get", 0, kGone},
      {"write again"},
      {"get", 0, "again"},
      {"last pod gone"},
      {"get", 2, "again"}}},
    {"WatchWaitsForWhatIsNotThere",
     "Watch",
     {},
     {{"delete"}, {"get", 2, kGone}, {"get", 0, kGone}, {"write here"}, {"get", 0, "here"}}},
    {"WatchBeginsAnewWhenItHasEnded",
     "Watch",
     {},
     {{"get", 2, "old"}, {"end watches"}, {"write new"}, {"get", 2, "new"}, {"get", 0, "new"}}},
    {"WatchThatIsSilentIsDead",
     "Watch",
     {},
     {{"get", 2, "old"},
      {"wait 149"},
      {"bookmarks"},
      {"get", 0, "old"},
      {"wait 149"},
      {"get", 0, "old"},
      {"wait 1"},
      {"get", 2, "old"}}},
    {"WatchLeavesWhatNeverChanges",
     "Watch",
     {},
     {{"freeze ice"}, {"get", 1, "ice"}, {"wait 9999"}, {"get", 0, "ice"}}},
    {"WatchLeavesWhatChangesNoMore",
     "Watch",
     {},
     {{"get", 2, "old"}, {"freeze ice"}, {"get", 0, "ice"}, {"wait 9999"}, {"away"}, {"get", 0, "ice"}}},
    {"WatchIsGoodEnoughWhileTheServerIsAway",
     "Watch",
     {},
     {{"get", 2, "old"},
      {"away"},
      {"get", 1, "old"},
      {"get", 0, "old"},
      {"write new"},
      {"wait 9999"},
      {"get", 1, "old"},
      {"back"},
      {"wait 10"},
      {"get", 2, "new"}}},
    {"WatchNeverReadIsAskedForWhileAway",
     "Watch",
     {},
     {{"away"}, {"get", 1, kAway}, {"get", 1, kAway}, {"back"}, {"get", 2, "old"}}},
};

INSTANTIATE_TEST_SUITE_P(Objects, StrategyTest, ::testing::ValuesIn(kCases),
                         [](const auto& tested) { return tested.param.name; });

TEST_F(ObjectsTest, ABurstOfPodsIsOneQuestion) {
  auto reader = Reader("Watch");
  std::vector<std::jthread> pods;
  std::atomic<int> right = 0;
  for (int i = 0; i < 8; ++i) pods.emplace_back([&] { right += Word(*reader) == "old"; });
  pods.clear();
  EXPECT_EQ(right, 8);
  EXPECT_EQ(fake_->Requests().size(), 2u) << "list and watch";
}

TEST_F(ObjectsTest, WhatIsKeptIsBounded) {
  auto reader = Reader("Watch");
  auto get = [&](int number) { return reader->Get("default", "big" + std::to_string(number)); };
  for (int i = 0; i < 9; ++i) {
    corev1::ConfigMap map;
    map.mutable_metadata()->set_name("big" + std::to_string(i));
    map.mutable_metadata()->set_namespace_("default");
    (*map.mutable_data())["word"] = std::string(1 << 20, 'x');
    fake_->Put(map);
    clock_.Advance(seconds(1));
    ASSERT_TRUE(get(i));
  }
  fake_->ForgetRequests();
  ASSERT_TRUE(get(8));
  EXPECT_EQ(fake_->Requests().size(), 0u);
  ASSERT_TRUE(get(0));
  EXPECT_EQ(fake_->Requests().size(), 2u) << "not used for longest";
}

// Records each call.
class Listener : public ObjectStore {
 public:
  explicit Listener(std::string kind, std::vector<std::string>& heard) : kind_(kind), heard_(heard) {}
  Result<Object> Get(const std::string&, const std::string&) override { return Object(); }
  void AddReference(const std::string& ns, const std::string& name) override { Add("wanted", ns, name); }
  void DeleteReference(const std::string& ns, const std::string& name) override { Add("released", ns, name); }

 private:
  void Add(const std::string& what, const std::string& ns, const std::string& name) {
    heard_.push_back(what + " " + kind_ + " " + ns + "/" + name);
  }
  const std::string kind_;
  std::vector<std::string>& heard_;
};

TEST(PodReferencesTest, EachPodWantsOnceAndTheLastReleases) {
  auto pod = [](const std::string& uid, const std::string& spec) {
    corev1::Pod out;
    auto decoded = api::DecodeJson(
        R"({"metadata":{"namespace":"n","name":"p","uid":")" + uid + R"("},"spec":)" + spec + "}", out);
    EXPECT_TRUE(decoded) << decoded.error().message();
    return out;
  };
  const std::string both =
      R"({"volumes":[{"name":"a","configMap":{"name":"x"}},{"name":"b","secret":{"secretName":"x"}}]})";
  const std::string map = R"({"volumes":[{"name":"a","configMap":{"name":"x"}}]})";
  std::vector<std::string> heard;
  Listener maps("map", heard), secrets("secret", heard);
  PodReferences references(maps, secrets);
  auto said = [&] { return std::exchange(heard, {}); };
  using Words = std::vector<std::string>;
  references.SetPod(pod("1", both));
  EXPECT_EQ(said(), (Words{"wanted map n/x", "wanted secret n/x"}));
  references.SetPod(pod("1", both));
  EXPECT_EQ(said(), Words()) << "its status has changed, or such";
  references.SetPod(pod("2", map));
  EXPECT_EQ(said(), Words{"wanted map n/x"});
  references.SetPod(pod("1", map));
  EXPECT_EQ(said(), Words{"released secret n/x"});
  references.RemovePod("1");
  references.RemovePod("unknown");
  EXPECT_EQ(said(), Words());
  references.RemovePod("2");
  EXPECT_EQ(said(), Words{"released map n/x"});
}

TEST(ObjectTtlTest, IsTheNodesWord) {
  const std::pair<const char*, std::optional<seconds>> cases[] = {
      {"0", seconds(0)}, {"300", seconds(300)}, {"-1", seconds(-1)}, {"", {}}, {"5m", {}}, {"1.5", {}}};
  for (const auto& [text, ttl] : cases) {
    corev1::Node node;
    (*node.mutable_metadata()->mutable_annotations())["node.alpha.kubernetes.io/ttl"] = text;
    EXPECT_EQ(ObjectTtl(&node), ttl) << text;
  }
  EXPECT_EQ(ObjectTtl(nullptr), std::nullopt);
  corev1::Node node;
  EXPECT_EQ(ObjectTtl(&node), std::nullopt);
}

}  // namespace
}  // namespace keelson::kubelet
