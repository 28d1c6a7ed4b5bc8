#include "tests/api/json_value.h"

#include <gtest/gtest.h>

namespace keelson::apitest {
namespace {

TEST(JsonValue, OverlaysMergeObjectsAndReachIntoArrays) {
  struct Case {
    const char *base, *change, *result;
  };
  const Case cases[] = {
      {"{a: 1, b: {c: 2}}", "{b: {d: 3}}", "{a: 1, b: {c: 2, d: 3}}"},
      {"{a: 1, b: 2}", "{a: null}", "{b: 2}"},
      {"{a: [1, 2, 3]}", "{a: [4]}", "{a: [4]}"},
      {"{a: [{b: 1}, {b: 2}]}", "{a: {1: {c: 3}}}", "{a: [{b: 1}, {b: 2, c: 3}]}"},
      {"{a: [1, 2, 3]}", "{a: {0: null, 2: null}}", "{a: [2]}"},
      {"{a: [1]}", "{a: {+: [2, 3]}}", "{a: [1, 2, 3]}"},
      {"{}", "{a: {b: {c: null, d: 1}}}", "{a: {b: {d: 1}}}"},
      {"{a: text}", "{a: {b: 1}}", "{a: {b: 1}}"},
  };
  for (const Case& one : cases) {
    EXPECT_EQ(Overlay(ParseYaml(one.base), ParseYaml(one.change)), ParseYaml(one.result)) << one.change;
  }
}

TEST(JsonValue, DifferencesNameThePlace) {
  struct Case {
    const char *expected, *got;
    std::vector<std::string> differences;
  };
  const Case cases[] = {
      {"{a: 1}", "{a: 1}", {}},
      {"{a: 1}", "{a: 2}", {"a: expected 1, got 2"}},
      {"{a: {b.c: 1}}", "{a: {}}", {"a[b.c]: missing, expected 1"}},
      {"{}", "{a: [1]}", {"a: unexpected [1]"}},
      {"{a: [{b: 1}]}", "{a: [{b: '1'}]}", {"a[0].b: expected 1, got \"1\""}},
      {"{a: [1]}", "{a: [1, 2]}", {"a: expected [1], got [1,2]"}},
      {"{a: <absent>}", "{}", {}},
      {"{a: <time>}", "{a: '2026-01-02T03:04:05Z'}", {}},
      {"{a: <time>}", "{a: yesterday}", {"a: expected <time>, got \"yesterday\""}},
      {"{a: <null>}", "{a: null}", {}},
      {"{a: <none>}", "{a: <none>}", {}},  // a cell of kubectl's, no matcher
  };
  for (const Case& one : cases) {
    EXPECT_EQ(Differences(ParseYaml(one.expected), ParseYaml(one.got)), one.differences) << one.expected;
  }
}

TEST(JsonValue, YamlScalarsHaveTheirTypes) {
  EXPECT_EQ(ParseYaml("[1, '1', true, 'true', null, ~, 0.5, 1e3, -7, yes, 0x1]"),
            json::parse(R"([1, "1", true, "true", null, null, 0.5, 1000.0, -7, "yes", "0x1"])"));
}

}  // namespace
}  // namespace keelson::apitest
