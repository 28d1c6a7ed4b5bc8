// The whole scheduler against an API server in memory, for tests.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>
#include <boost/json.hpp>

#include "controlplane/scheduler/scheduler.h"
#include "controlplane/scheduler/testing/objects.h"
#include "lib/client/testing/fake_api.h"
#include "lib/http/client/client.h"
#include "lib/http/server/server.h"
#include "lib/k8s/pods/pod_util.h"

namespace keelson::scheduler {

namespace json = boost::json;

using testing::MakeNode;
using testing::MakePod;
using namespace std::chrono_literals;

class SchedulerTest : public ::testing::Test {
 protected:
  SchedulerTest() : fake_(std::make_shared<client::FakeApi>()), api_(fake_) {}
  ~SchedulerTest() override {
    if (thread_.joinable()) {
      thread_.request_stop();
      thread_.join();
    }
  }

  void Start(Config config = {}, std::vector<std::shared_ptr<Plugin>> plugins = {}) {
    Options options;
    options.config = std::move(config);
    options.plugins = std::move(plugins);
    options.dispatcher_threads = 2;
    options.seed = 1;
    options.config.initial_backoff = 20ms;
    options.debug_host = debug_port_ ? "127.0.0.1" : "";
    options.debug_port = debug_port_;
    thread_ = std::jthread([this, options](std::stop_token stop) {
      const Result<> run = scheduler::Run(api_, options, stop, nullptr);
      EXPECT_TRUE(run) << (run ? "" : run.error().message());
    });
  }

  corev1::Pod Create(const corev1::Pod& pod) {
    Result<corev1::Pod> created = api_.Create(pod);
    EXPECT_TRUE(created) << (created ? "" : created.error().message());
    return created ? *created : pod;
  }
  // Follows all objects of a kind until `done` says so of one of them; fails after ten seconds.
  template <typename T>
  T AwaitObject(const std::string& name, const std::function<bool(const T&)>& done) {
    const auto& info = api::ResourceOf<T>();
    client::ListOptions options;
    T found;
    bool hit = false;
    const auto look = [&](std::string_view raw) -> Result<> {
      T object;
      KEELSON_RETURN_IF_ERROR(client::RestClient::DecodeInto(raw, object));
      if (object.metadata().name() == name && done(object)) {
        found = object;
        hit = true;
      }
      return {};
    };
    EXPECT_TRUE(api_.ListEach(info, "", options, &options.resource_version, look));
    if (hit) return found;
    auto watch = api_.Watch(info, "", options);
    EXPECT_TRUE(watch);
    std::stop_source stop;
    std::jthread alarm([&](std::stop_token end) {
      Mutex mutex;
      CondVar cv;
      MutexLock lock(mutex);
      if (!cv.wait_for(mutex, end, 10s, [] { return false; }) && !end.stop_requested()) stop.request_stop();
    });
    while (watch && !hit) {
      Result<client::WatchEvent> event = (*watch)->Next(stop.get_token());
      if (!event) {
        ADD_FAILURE() << name << ": " << event.error().message();
        break;
      }
      if (event->type == client::WatchEvent::Type::kBookmark) continue;
      EXPECT_TRUE(look(event->raw));
    }
    return found;
  }
  corev1::Pod Await(const std::string& name, const std::function<bool(const corev1::Pod&)>& done) {
    return AwaitObject<corev1::Pod>(name, done);
  }
  corev1::PersistentVolumeClaim AwaitClaim(
      const std::string& name, const std::function<bool(const corev1::PersistentVolumeClaim&)>& done) {
    return AwaitObject<corev1::PersistentVolumeClaim>(name, done);
  }
  std::string NodeOf(const std::string& name) {
    return Await(name, [](const corev1::Pod& pod) { return !pod.spec().node_name().empty(); })
        .spec()
        .node_name();
  }
  std::string WhyNot(const std::string& name) {
    const corev1::Pod pod = Await(name, [](const corev1::Pod& p) {
      const corev1::PodCondition* condition = k8s::FindCondition(p.status(), k8s::kPodScheduled);
      return condition && condition->status() == "False";
    });
    const corev1::PodCondition* condition = k8s::FindCondition(pod.status(), k8s::kPodScheduled);
    return condition ? condition->reason() + ": " + condition->message() : "";
  }

  // Has the debug endpoint at a port that was free a moment ago.
  void Listen() {
    auto server = http::Server::Listen({}, nullptr);
    ASSERT_TRUE(server);
    debug_port_ = (*server)->port();
  }
  // What the debug endpoint says of a pod of the default namespace: a status, and the answer as JSON if there
  // is one.
  std::pair<int, json::value> Why(const std::string& pod) {
    http::ClientOptions options;
    options.base_url = "http://127.0.0.1:" + std::to_string(debug_port_);
    auto client = http::Client::Create(std::move(options));
    if (!client) return {-1, nullptr};
    auto answer = (*client)->Do({"GET", "/debug/why?pod=default%2F" + pod, {}, ""}, 10s);
    if (!answer) return {-1, json::string(answer.error().message())};
    return {answer->status, answer->status == 200 ? json::parse(answer->body) : json::string(answer->body)};
  }

  // The same, asked until the scheduler's informer has seen the pod's node, and with it all earlier events of pods.
  std::pair<int, json::value> WhyOnceBound(const std::string& pod) {
    const auto deadline = std::chrono::steady_clock::now() + 20s;
    while (true) {
      std::pair<int, json::value> told = Why(pod);
      const json::object* object = told.second.if_object();
      if ((object && object->contains("node")) || std::chrono::steady_clock::now() > deadline) return told;
    }
  }

  uint16_t debug_port_ = 0;
  std::shared_ptr<client::FakeApi> fake_;
  client::RestClient api_;
  std::jthread thread_;
};

}  // namespace keelson::scheduler
