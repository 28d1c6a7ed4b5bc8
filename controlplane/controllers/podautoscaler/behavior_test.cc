#include "controlplane/controllers/podautoscaler/behavior.h"

#include <gtest/gtest.h>

#include <limits>

#include "lib/api/codec/codec.h"

namespace keelson::controllers::podautoscaler {
namespace {

using Behavior = api::autoscaling::v2::HorizontalPodAutoscalerBehavior;
using std::chrono::seconds;

const WallTime kBegin = WallTime(seconds(1800000000));
constexpr seconds kDownWindow{300};

Behavior BehaviorOf(const char* json) {
  Behavior behavior;
  EXPECT_TRUE(api::DecodeJson(json, behavior)) << json;
  return behavior;
}

TEST(Decide, WithoutABehaviour) {
  struct Case {
    const char* name;
    Wish wish;
    int32_t replicas;
    const char* limit;
  };
  for (const Case& c : {
           Case{"as it is", {1, 10, 3, 3}, 3, "DesiredWithinRange"},
           Case{"more", {1, 10, 3, 5}, 5, "DesiredWithinRange"},
           Case{"twice at most", {1, 100, 10, 50}, 20, "ScaleUpLimit"},
           Case{"four at least", {1, 100, 1, 50}, 4, "ScaleUpLimit"},
           Case{"the highest", {1, 10, 8, 50}, 10, "TooManyReplicas"},
           Case{"the lowest", {2, 10, 8, 1}, 2, "TooFewReplicas"},
           Case{"none", {0, 10, 8, 0}, 0, "DesiredWithinRange"},
           Case{"less, at once", {1, 10, 8, 2}, 2, "DesiredWithinRange"},
           Case{"very many",
                {1, std::numeric_limits<int32_t>::max(), 2000000000, 2147483647},
                2147483647,
                "DesiredWithinRange"},
       }) {
    History history;
    const Decision decision = Decide(c.wish, nullptr, kDownWindow, kBegin, history);
    EXPECT_EQ(decision.replicas, c.replicas) << c.name;
    EXPECT_EQ(decision.limited_reason, c.limit) << c.name;
    EXPECT_EQ(decision.limited, decision.limited_reason != "DesiredWithinRange") << c.name;
    EXPECT_EQ(decision.able_reason, "ReadyForNewScale") << c.name;
  }
}

// Wishes over time, and what comes of them.
struct Step {
  int at;  // seconds
  int32_t desired, replicas;
  const char *able = "ReadyForNewScale", *limit = "DesiredWithinRange";
};
struct Story {
  const char *name, *behavior;  // null: none
  int32_t begin;
  std::vector<Step> steps;
};

void Play(const Story& story) {
  const Behavior behavior = story.behavior ? BehaviorOf(story.behavior) : Behavior();
  const Behavior* given = story.behavior ? &behavior : nullptr;
  History history{{{kBegin, story.begin}}, {}, {}};
  int32_t current = story.begin;
  for (const Step& step : story.steps) {
    const std::string where = std::string(story.name) + " at " + std::to_string(step.at);
    const WallTime now = kBegin + seconds(step.at);
    const Decision decision = Decide({1, 1000, current, step.desired}, given, kDownWindow, now, history);
    EXPECT_EQ(decision.replicas, step.replicas) << where;
    EXPECT_EQ(decision.able_reason, step.able) << where;
    EXPECT_EQ(decision.limited_reason, step.limit) << where;
    NoteScale(current, decision.replicas, given, now, history);
    current = decision.replicas;
  }
}

TEST(Decide, OverTime) {
  constexpr const char *kUp = "ScaleUpStabilized", *kDown = "ScaleDownStabilized",
                       *kReady = "ReadyForNewScale", *kFast = "ScaleUpLimit", *kSlow = "ScaleDownLimit";
  for (const Story& story : std::vector<Story>{
           {"a higher wish holds for five minutes",
            nullptr,
            5,
            {{15, 8, 8}, {30, 2, 8, kDown}, {300, 2, 8, kDown}, {316, 3, 3}, {331, 3, 3}}},
           {"one that comes down slowly", nullptr, 8, {{100, 6, 8, kDown}, {301, 4, 6, kDown}, {402, 4, 4}}},
           {"what there was before the first look holds too", nullptr, 9, {{0, 1, 9, kDown}, {301, 1, 1}}},
           {"the defaults of a behaviour",
            "{}",
            1,
            {{0, 50, 5, kReady, kFast},
             {5, 50, 5, kReady, kFast},
             {15, 50, 10, kReady, kFast},
             {30, 50, 20, kReady, kFast},
             {60, 1, 20, kDown},
             {361, 1, 1}}},
           {"at most two a minute",
            R"({"scaleUp":{"policies":[{"type":"Pods","value":2,"periodSeconds":60}]}})",
            3,
            {{0, 20, 5, kReady, kFast}, {30, 20, 5, kReady, kFast}, {60, 20, 7, kReady, kFast}}},
           {"a percentage is rounded up",
            R"({"scaleUp":{"policies":[{"type":"Percent","value":10,"periodSeconds":60}]}})",
            3,
            {{0, 20, 4, kReady, kFast}, {59, 20, 4, kReady, kFast}, {60, 20, 5, kReady, kFast}}},
           {"the smaller of two",
            R"({"scaleUp":{"selectPolicy":"Min","policies":[{"type":"Pods","value":4,"periodSeconds":60},
               {"type":"Percent","value":50,"periodSeconds":60}]}})",
            4,
            {{0, 50, 6, kReady, kFast}, {60, 50, 9, kReady, kFast}, {120, 50, 13, kReady, kFast}}},
           {"not at all",
            R"({"scaleUp":{"selectPolicy":"Disabled"},"scaleDown":{"selectPolicy":"Disabled"}})",
            4,
            {{0, 50, 4, kReady, kFast}, {299, 1, 4, kDown}, {400, 1, 4, kReady, kSlow}}},
           {"growth that waits",
            R"({"scaleUp":{"stabilizationWindowSeconds":60}})",
            2,
            {{1, 4, 2, kUp}, {30, 3, 2, kUp}, {61, 5, 3, kUp}, {91, 5, 5}}},
           {"both wait: it stays between",
            R"({"scaleUp":{"stabilizationWindowSeconds":60},"scaleDown":{"stabilizationWindowSeconds":60}})",
            5,
            {{1, 9, 5, kUp}, {20, 2, 5, kDown}, {62, 8, 5, kUp}, {81, 8, 8}}},
           {"shrinking by one each ten seconds",
            R"({"scaleDown":{"stabilizationWindowSeconds":0,"policies":[
               {"type":"Pods","value":1,"periodSeconds":10}]}})",
            5,
            {{0, 1, 4, kReady, kSlow}, {5, 1, 4, kReady, kSlow}, {10, 1, 3, kReady, kSlow}, {20, 2, 2}}},
           {"shrinking by a share, rounded down; the larger change",
            R"({"scaleDown":{"stabilizationWindowSeconds":0,"policies":[
               {"type":"Percent","value":25,"periodSeconds":10},{"type":"Pods","value":1,"periodSeconds":10}]}})",
            10,
            {{0, 1, 7, kReady, kSlow}, {10, 1, 5, kReady, kSlow}, {20, 1, 3, kReady, kSlow}}},
           {"the smaller change",
            R"({"scaleDown":{"stabilizationWindowSeconds":0,"selectPolicy":"Min","policies":[
               {"type":"Percent","value":50,"periodSeconds":10},{"type":"Pods","value":1,"periodSeconds":10}]}})",
            10,
            {{0, 1, 9, kReady, kSlow}, {10, 1, 8, kReady, kSlow}}},
           {"what shrank within the period may come back",
            R"({"scaleUp":{"policies":[{"type":"Pods","value":1,"periodSeconds":60}]},
               "scaleDown":{"stabilizationWindowSeconds":0}})",
            10,
            {{0, 4, 4}, {30, 50, 11, kReady, kFast}, {31, 50, 11, kReady, kFast}}},
       })
    Play(story);
}

TEST(Decide, ABehaviourKeepsTheBounds) {
  const Behavior behavior = BehaviorOf(R"({"scaleDown":{"stabilizationWindowSeconds":0}})");
  History history;
  Decision decision = Decide({2, 6, 5, 9}, &behavior, kDownWindow, kBegin, history);
  EXPECT_EQ(decision.replicas, 6);
  EXPECT_EQ(decision.limited_reason, "TooManyReplicas");
  EXPECT_EQ(decision.limited_message, "the desired replica count is more than the maximum replica count");
  decision = Decide({2, 6, 5, 1}, &behavior, kDownWindow, kBegin, history);
  EXPECT_EQ(decision.replicas, 2);
  EXPECT_EQ(decision.limited_reason, "TooFewReplicas");
  EXPECT_EQ(decision.limited_message, "the desired replica count is less than the minimum replica count");
}

TEST(Decide, HistoryDoesNotGrow) {
  const Behavior behavior =
      BehaviorOf(R"({"scaleUp":{"policies":[{"type":"Pods","value":1,"periodSeconds":60}]}})");
  History history;
  int32_t current = 1;
  for (int second = 0; second < 3000; second += 15) {
    const WallTime now = kBegin + seconds(second);
    const int32_t next = Decide({1, 1000, current, 1000}, &behavior, kDownWindow, now, history).replicas;
    NoteScale(current, next, &behavior, now, history);
    current = next;
  }
  EXPECT_EQ(current, 51);
  EXPECT_LE(history.recommendations.size(), 21u);
  EXPECT_LE(history.ups.size(), 2u);
}

}  // namespace
}  // namespace keelson::controllers::podautoscaler
