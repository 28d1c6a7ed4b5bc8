#include "lib/base/service_group.h"

#include <atomic>
#include <mutex>

#include <gtest/gtest.h>

#include "lib/base/mutex.h"

namespace keelson {
namespace {

// Blocks until a stop is requested, without sleeping.
void AwaitStop(std::stop_token stop) {
  std::mutex mutex;
  std::condition_variable_any cv;
  std::unique_lock lock(mutex);
  cv.wait(lock, stop, [] { return false; });
}

TEST(ServiceGroup, StartsInOrderOfNeedsAndStopsInReverse) {
  ServiceGroup group;
  Mutex mutex;
  std::vector<std::string> log;
  std::stop_source source;
  auto note = [&](const std::string& what) {
    MutexLock lock(mutex);
    log.push_back(what);
  };
  auto service = [&](std::string name, bool last) {
    return [&, name, last](std::stop_token stop, ServiceGroup::Ready ready) -> Result<> {
      note("start " + name);
      ready();
      if (last) source.request_stop();
      AwaitStop(stop);
      note("stop " + name);
      return {};
    };
  };
  group.Add({"store", {}, service("store", false)});
  group.Add({"server", {"store"}, service("server", false)});
  group.Add({"clients", {"server"}, service("clients", true)});
  EXPECT_TRUE(group.Run(source.get_token()));
  EXPECT_EQ(log, (std::vector<std::string>{"start store", "start server", "start clients", "stop clients",
                                           "stop server", "stop store"}));
}

TEST(ServiceGroup, AFailureStopsTheRestAndIsReturned) {
  ServiceGroup group;
  std::atomic<bool> stopped = false;
  group.Add({"steady", {}, [&](std::stop_token stop, ServiceGroup::Ready ready) -> Result<> {
               ready();
               AwaitStop(stop);
               stopped = true;
               return {};
             }});
  group.Add({"broken", {"steady"}, [](std::stop_token, ServiceGroup::Ready) -> Result<> {
               return Error(Code::kUnavailable, "no route");
             }});
  Result<> result = group.Run({});
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().message(), "broken: no route");
  EXPECT_TRUE(stopped);
}

TEST(ServiceGroup, AServiceWhoseNeedsNeverComeIsNotStarted) {
  ServiceGroup group;
  std::atomic<bool> started = false;
  group.Add({"never-ready", {}, [](std::stop_token, ServiceGroup::Ready) -> Result<> { return {}; }});
  group.Add({"dependent", {"never-ready"}, [&](std::stop_token, ServiceGroup::Ready) -> Result<> {
               started = true;
               return {};
             }});
  EXPECT_EQ(group.Run({}).error().message(), "never-ready: ended on its own");
  EXPECT_FALSE(started);
}

}  // namespace
}  // namespace keelson
