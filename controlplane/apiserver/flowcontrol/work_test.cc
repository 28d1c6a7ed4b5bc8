#include "controlplane/apiserver/flowcontrol/work.h"

#include <gtest/gtest.h>

#include "controlplane/apiserver/flowcontrol/watch_counts.h"

namespace keelson::apiserver::flowcontrol {
namespace {

using std::chrono::microseconds;

RequestInfo Info(const std::string& method, const std::string& path, const http::Query& query = {}) {
  return ParseRequestInfo(method, path, query);
}

TEST(WorkEstimator, ListsCostWhatTheyLoad) {
  struct Case {
    const char *path, *query;
    int64_t objects, bytes;
    int max_seats, want;
  };
  const Case cases[] = {
      {"/api/v1/pods", "", 0, 0, 0, 1},
      {"/api/v1/pods", "", 10, 10'000, 0, 1},
      {"/api/v1/pods", "", 400, 400'000, 0, 4},
      {"/api/v1/pods", "", 100'000, 200'000'000, 0, 10},  // streamed from the cache
      {"/api/v1/pods", "resourceVersion=0&limit=50", 400, 400'000, 0, 1},
      {"/api/v1/pods", "limit=300", 400, 400'000, 0, 3},
      {"/api/v1/pods", "", 400, 400'000, 2, 2},  // of a small level
      {"/api/v1/pods", "fieldSelector=metadata.name%3Da", 400, 400'000, 0, 1},
      {"/api/v1/pods", "resourceVersionMatch=Exact&resourceVersion=7", 40'000, 40'000'000, 0, 100},
      {"/api/v1/pods", "continue=abc&limit=500", 40'000, 40'000'000, 0, 5},
      {"/api/v1/pods", "continue=abc&limit=500&labelSelector=a", 40'000, 40'000'000, 0, 100},
      {"/api/v1/pods", "continue=abc&limit=500&labelSelector=a", 4'000, 4'000'000, 0, 20},
      {"/api/v1/pods", "resourceVersion=7&limit=500", 4'000, 4'000'000, 0, 5},
      {"/api/v1/pods", "limit=many", 1, 1, 0, 100},
      {"/api/v1/pods", "watch=1", 400, 400'000, 0, 1},
      {"/api/v1/pods", "watch=1&sendInitialEvents=true", 400, 400'000, 0, 4},
      {"/api/v1/namespaces/a/pods/b", "", 400, 400'000, 0, 1},
      {"/version", "", 400, 400'000, 0, 1},
  };
  for (const Case& one : cases) {
    WorkEstimator estimator({[&one](const RequestInfo&) {
                               return WorkEstimator::Stored{one.objects, one.bytes};
                             },
                             [](const RequestInfo&) { return 1000; }});
    const http::Query query = http::Query::Parse(one.query);
    WorkEstimate work = estimator.Estimate(Info("GET", one.path, query), query, one.max_seats);
    EXPECT_EQ(work.initial_seats, one.want) << one.path << "?" << one.query << " of " << one.objects;
    EXPECT_EQ(work.final_seats, 0);
  }
}

TEST(WorkEstimator, WritesCostWhoHearsOfThem) {
  struct Case {
    const char *method, *path;
    int watchers, max_seats, want_seats;
    microseconds want_time;
    double scale = 1;
  };
  const Case cases[] = {
      {"POST", "/api/v1/namespaces/a/pods", 9, 0, 0, microseconds(0)},
      {"POST", "/api/v1/namespaces/a/pods", 10, 0, 1, microseconds(5000)},
      {"PATCH", "/api/v1/namespaces/a/pods/b", 45, 0, 5, microseconds(5000)},
      {"PUT", "/api/v1/namespaces/a/pods/b", 400, 0, 10, microseconds(20000)},  // narrower and longer
      {"DELETE", "/api/v1/namespaces/a/pods/b", 40, 2, 2, microseconds(10000)},
      {"DELETE", "/api/v1/namespaces/a/pods/b", 40, 2, 2, microseconds(1000), 0.1},
      {"DELETE", "/api/v1/namespaces/a/pods", 40, 0, 0,
       microseconds(0)},  // as upstream: a collection is not asked
      {"POST", "/api/v1/namespaces/a/serviceaccounts/b/token", 40, 0, 0, microseconds(0)},
  };
  for (const Case& one : cases) {
    WorkEstimator estimator({[](const RequestInfo&) {
                               return WorkEstimator::Stored{1, 1};
                             },
                             [&one](const RequestInfo&) { return one.watchers; }, one.scale});
    WorkEstimate work = estimator.Estimate(Info(one.method, one.path), {}, one.max_seats);
    EXPECT_EQ(work.initial_seats, 1);
    EXPECT_EQ(work.final_seats, one.want_seats) << one.method << one.path << one.watchers;
    EXPECT_EQ(work.additional, one.want_time) << one.method << one.path << one.watchers;
  }
}

TEST(WorkEstimator, AWideRequestHasPartOfALevel) {
  EXPECT_EQ(MaxSeatsOf(245, 6), 37);
  EXPECT_EQ(MaxSeatsOf(17, 6), 2);
  EXPECT_EQ(MaxSeatsOf(2, 6), 1);
  EXPECT_EQ(MaxSeatsOf(0, 6), 1);
  EXPECT_EQ(MaxSeatsOf(245, 0), 0);
}

TEST(WatchCounts, CountWhoIsTold) {
  WatchCounts counts;
  auto watch = [&](const char* path, const char* query, int by = 1) {
    const http::Query parsed = http::Query::Parse(query);
    counts.Add(WatchCounts::ScopeOf(Info("GET", path, parsed)), by);
  };
  watch("/api/v1/pods", "watch=1");
  watch("/api/v1/namespaces/a/pods", "watch=1", 2);
  watch("/api/v1/namespaces/a/pods", "watch=1&fieldSelector=metadata.name%3Db");
  watch("/api/v1/pods", "watch=1&fieldSelector=spec.nodeName%3Dn", 100);
  watch("/apis/apps/v1/deployments", "watch=1");
  auto told = [&](const char* path) { return counts.InterestedIn(Info("PUT", path)); };
  EXPECT_EQ(told("/api/v1/namespaces/a/pods/b"), 1 + 2 + 1 + 1);
  EXPECT_EQ(told("/api/v1/namespaces/a/pods/b/status"), 5);
  EXPECT_EQ(told("/api/v1/namespaces/a/pods/c"), 1 + 2 + 1);
  EXPECT_EQ(told("/api/v1/namespaces/c/pods/c"), 1 + 1);
  EXPECT_EQ(told("/api/v1/nodes/n"), 0);
  watch("/api/v1/pods", "watch=1", -1);
  EXPECT_EQ(told("/api/v1/namespaces/c/pods/c"), 1);
}

}  // namespace
}  // namespace keelson::apiserver::flowcontrol
