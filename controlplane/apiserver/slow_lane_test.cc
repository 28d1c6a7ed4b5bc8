#include "controlplane/apiserver/slow_lane.h"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <future>

#include <gtest/gtest.h>

#include "controlplane/apiserver/testing/recorder.h"
#include "controlplane/etcd/client.h"

namespace keelson::apiserver {
namespace {

constexpr char kDefinitions[] = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";

std::shared_ptr<Context> Write(const std::string& method, const std::string& path, size_t bytes) {
  auto request = std::make_shared<http::ServerRequest>();
  request->method = method;
  request->path = path;
  request->body = std::string(bytes, ' ');
  auto context = std::make_shared<Context>();
  context->info = ParseRequestInfo(method, path, request->query);
  context->request = std::move(request);
  context->writer = std::make_shared<Recorder>();
  return context;
}

int NiceOfThread() { return getpriority(PRIO_PROCESS, static_cast<id_t>(gettid())); }

TEST(SlowLane, TakesLargeDefinitionsAndPolicies) {
  storage::Store store(std::make_shared<etcd::Client>(etcd::ClientOptions{{"unix:///nowhere"}}), {});
  constexpr size_t kSmall = 10'000, kLarge = 1 << 20;
  struct Case {
    const char *method, *path;
    size_t bytes;
    bool taken;
  };
  for (const Case& one :
       {Case{"POST", kDefinitions, kLarge, true}, Case{"POST", kDefinitions, kSmall, false},
        Case{"PUT", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/a.b.c", kLarge, true},
        Case{"PATCH", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/a.b.c", kLarge, true},
        Case{"DELETE", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/a.b.c", kLarge, false},
        Case{"GET", kDefinitions, 0, false},
        Case{"POST", "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies", kLarge, true},
        Case{"POST", "/api/v1/namespaces/default/configmaps", kLarge, false},
        Case{"POST", "/apis/example.com/v1/namespaces/default/widgets", kLarge, false}}) {
    EXPECT_EQ(SlowLane::Takes(*Write(one.method, one.path, one.bytes), store), one.taken)
        << one.method << " " << one.path;
  }
}

TEST(SlowLane, RunsInOrderOnAThreadOfLowPriority) {
  const int own = NiceOfThread();
  std::vector<int> order;
  std::promise<int> nice;
  std::promise<void> last;
  SlowLane lane;
  ASSERT_TRUE(lane.Submit(
      Write("POST", kDefinitions, 100), [&] { nice.set_value(NiceOfThread()); },
      [&] { order.push_back(1); }));
  ASSERT_TRUE(lane.Submit(
      Write("POST", kDefinitions, 100), [&] { order.push_back(2); }, [&] { last.set_value(); }));
  last.get_future().wait();
  EXPECT_EQ(nice.get_future().get(), std::min(19, own + 10));
  EXPECT_EQ(NiceOfThread(), own);
  EXPECT_EQ(order, (std::vector<int>{1, 2}));
}

TEST(SlowLane, LeavesOutClientsThatAreGone) {
  auto context = Write("POST", kDefinitions, 100);
  context->writer->Finish();
  std::promise<void> done;
  bool handled = false;
  SlowLane lane;
  ASSERT_TRUE(lane.Submit(
      context, [&] { handled = true; }, [&] { done.set_value(); }));
  done.get_future().wait();
  EXPECT_FALSE(handled);
}

TEST(SlowLane, HoldsALimitedNumberOfBytes) {
  constexpr size_t kBytes = 30 << 20;
  std::promise<void> go, last;
  std::shared_future<void> gone = go.get_future().share();
  SlowLane lane;
  auto wait = [gone] { gone.wait(); };
  ASSERT_TRUE(lane.Submit(Write("POST", kDefinitions, kBytes), wait, [] {}));
  ASSERT_TRUE(lane.Submit(Write("POST", kDefinitions, kBytes), wait, [&] { last.set_value(); }));
  EXPECT_FALSE(lane.Submit(Write("POST", kDefinitions, kBytes), wait, [] {}));
  go.set_value();
  last.get_future().wait();
  EXPECT_TRUE(lane.Submit(Write("POST", kDefinitions, kBytes), wait, [] {}));
}

}  // namespace
}  // namespace keelson::apiserver
